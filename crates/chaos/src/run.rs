//! All of it together: the load begins, faults come and go, the load ends, and everything is read back.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use perihelion::{ContainerClient, ErrorKind};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::control::ControlError;
use crate::inject::InForce;
use crate::ledger::{Fate, Finding, Ledger};
use crate::load::{Diary, Site, Stored, made_id, owned_id, work};
use crate::report::{Breach, Facts, Promise, Report};
use crate::schedule::Schedule;
use crate::world::{World, WorldError};

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// Requests at once before and after the load.
const AT_ONCE: usize = 16;

/// Why a run did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The account did not take part.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A fault could not be made or ended.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// An item that everything starts from could not be written.
    #[error("the items that everything starts from could not be written: {0}")]
    Prepare(#[from] perihelion::Error),
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Since the load began.
    pub elapsed: Duration,
    /// How long the load lasts.
    pub lasts: Duration,
    /// Operations that ended.
    pub done: u64,
    /// Those that failed.
    pub failed: u64,
    /// What is wrong at the moment.
    pub faults: Vec<String>,
}

/// Plays a schedule on an account and says what came of it.
pub async fn run(
    world: &World,
    schedule: &Schedule,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Report, RunError> {
    let load = &schedule.load;
    let client = world.client(world.regions(), load.deadline)?;
    let container = world.container(&client);
    let ledger = Ledger::new(load.workers, load.items);
    write_first_versions(&container, schedule, &ledger).await?;
    #[expect(clippy::disallowed_methods, reason = "a run begins now; its schedule counts from here")]
    let site = Arc::new(Site {
        schedule: schedule.clone(),
        container,
        ledger,
        start: Instant::now(),
        counters: crate::load::Counters::default(),
    });
    let (diaries, in_force) = play(world, &site, progress).await?;
    // What was on its way to other regions arrives.
    let lag = schedule.lag.map_or(Duration::ZERO, |lag| lag.to);
    tokio::time::sleep(lag * 2).await;
    let mut breaches = Vec::new();
    for region in world.regions() {
        breaches.extend(read_back(&world.reader_in(region)?, &site, region).await);
    }
    Ok(Report::new(schedule, Facts { diaries, in_force, breaches, undecided: site.ledger.undecided() }))
}

/// Every worker's items exist before anything is asked of them.
async fn write_first_versions(
    container: &ContainerClient,
    schedule: &Schedule,
    ledger: &Ledger,
) -> Result<(), RunError> {
    let load = &schedule.load;
    let all = (0..load.workers).flat_map(|worker| (0..load.items).map(move |item| (worker, item)));
    let writes = stream::iter(all).map(|(worker, item)| async move {
        let version = ledger.history(worker, item).begin();
        let stored = Stored::owned(worker, item, version);
        container.upsert_item(stored.pk.as_str(), &stored).await?;
        ledger.history(worker, item).end(version, Fate::Acknowledged);
        Ok::<(), perihelion::Error>(())
    });
    let results: Vec<_> = writes.buffer_unordered(AT_ONCE).collect().await;
    results.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

/// The load and the faults, until both have ended.
async fn play(
    world: &World,
    site: &Arc<Site>,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<(Vec<Diary>, Vec<InForce>), RunError> {
    let schedule = &site.schedule;
    let mut workers = JoinSet::new();
    for worker in 0..schedule.load.workers {
        workers.spawn(work(Arc::clone(site), worker));
    }
    let injector = world.injector(schedule);
    let faults = futures::future::try_join_all(
        schedule.faults.iter().enumerate().map(|(number, fault)| injector.play(number, fault, site.start)),
    );
    tokio::pin!(faults);
    let mut tick = interval(PROGRESS_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut diaries, mut in_force) = (Vec::new(), None);
    loop {
        tokio::select! {
            played = &mut faults, if in_force.is_none() => in_force = Some(played?),
            Some(diary) = workers.join_next() => match diary {
                Ok(diary) => diaries.push(diary),
                Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
            },
            _ = tick.tick() => progress(&told(site)),
            else => break,
        }
        if workers.is_empty() && in_force.is_some() {
            break;
        }
    }
    Ok((diaries, in_force.unwrap_or_default()))
}

fn told(site: &Site) -> Progress {
    let elapsed = site.start.elapsed();
    let faults = site.schedule.faults.iter().filter(|fault| (fault.begins..fault.ends).contains(&elapsed));
    Progress {
        elapsed,
        lasts: site.schedule.end,
        done: site.counters.done.load(Ordering::Relaxed),
        failed: site.counters.failed.load(Ordering::Relaxed),
        faults: faults.map(|fault| fault.to_string()).collect(),
    }
}

/// Reads everything that was ever written, in one region, and holds it against what was promised.
async fn read_back(container: &ContainerClient, site: &Site, region: &str) -> Vec<Breach> {
    let load = &site.schedule.load;
    let owned = (0..load.workers).flat_map(|worker| (0..load.items).map(move |item| (worker, item)));
    let owned = stream::iter(owned).map(|(worker, item)| async move {
        let id = owned_id(worker, item);
        let read = container.read_item::<Stored>(id.as_str(), &id).await;
        let history = site.ledger.history(worker, item);
        let floor = history.acknowledged();
        match read {
            Ok(response) => {
                let found = response.value().version;
                let example = format!("{id} in {region}: acknowledged {floor}, found {found}");
                match history.judge(floor, found) {
                    Finding::Fine | Finding::Resurfaced => None,
                    Finding::Refused => Some(Breach::new(Promise::RefusedMeansUnchanged, example)),
                    Finding::Lost | Finding::Impossible => Some(Breach::new(Promise::NothingIsLost, example)),
                }
            }
            Err(error) => Some(Breach::new(Promise::NothingIsLost, format!("{id} in {region}: {error}"))),
        }
    });
    let made = stream::iter(site.ledger.all_made()).map(|(worker, turn, fate)| async move {
        let id = made_id(worker, turn);
        let read = container.read_item::<Stored>(id.as_str(), &id).await;
        match (fate, read) {
            (Fate::Acknowledged | Fate::Undecided, Ok(_)) => None,
            (Fate::Undecided | Fate::Refused, Err(error)) if error.kind() == ErrorKind::NotFound => None,
            (Fate::Refused, Ok(_)) => Some(Breach::new(
                Promise::RefusedMeansUnchanged,
                format!("{id} in {region} is there, and its create was said to have changed nothing"),
            )),
            (_, Err(error)) => {
                Some(Breach::new(Promise::NothingIsLost, format!("{id} in {region}: {error}")))
            }
        }
    });
    let mut breaches: Vec<Breach> =
        owned.buffer_unordered(AT_ONCE).filter_map(async |breach| breach).collect().await;
    breaches
        .extend(made.buffer_unordered(AT_ONCE).filter_map(async |breach| breach).collect::<Vec<_>>().await);
    breaches
}
