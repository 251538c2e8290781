//! Executes a schedule: runs the workload while faults begin and end, then reads all items back and checks them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use perihelion::{ContainerClient, ErrorKind, OperationOptions, TimeoutOptions};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use control_client::ControlError;

use crate::guarantee::{Guarantee, Violation};
use crate::inject::ActiveInterval;
use crate::report::{Report, RunData};
use crate::schedule::Schedule;
use crate::target_account::{TargetAccount, TargetError};
use crate::workers::{TestItem, WorkerContext, WorkerRecord, created_id, owned_id, work};
use crate::write_history::{ReadCheck, WriteHistory, WriteOutcome};

/// How often progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// How many requests are sent at a time before and after the workload.
const PARALLEL_MAX: usize = 16;

/// How often, and how soon, items are read again that are older in a region than they should be.
const READ_BACKS_MAX: u32 = 10;
const READ_BACK_AFTER: Duration = Duration::from_millis(300);
/// How long the first write of an item may take.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a run ended without a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The account could not be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A fault could not be begun or ended.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The first versions of the items could not be written.
    #[error("the first versions of the items could not be written: {0}")]
    Prepare(#[from] perihelion::Error),
    /// A runtime for the first operations could not be started.
    #[error("a runtime for the first operations could not be started: {0}")]
    Runtime(std::io::Error),
}

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The time since the workload began.
    pub elapsed: Duration,
    /// How long the workload lasts.
    pub lasts: Duration,
    /// The number of operations that ended.
    pub done: u64,
    /// The number of operations that failed.
    pub failed: u64,
    /// The faults that are active now.
    pub faults: Vec<String>,
}

/// Executes a schedule on an account and reports the result.
pub async fn run(
    account: &TargetAccount,
    schedule: &Schedule,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<Report, RunError> {
    let workload = &schedule.workload;
    let clients = account.client_factory(schedule);
    let client = clients.client()?;
    let container = clients.container_of(&client);
    let history = Arc::new(WriteHistory::new(workload.workers, workload.items));
    let first = write_first_versions(container, schedule.clone(), Arc::clone(&history));
    if schedule.first_runtime_ends {
        on_runtime_that_ends(first).await?;
    } else {
        first.await?;
    }
    #[expect(clippy::disallowed_methods, reason = "a run begins now; its schedule counts from here")]
    let start = Instant::now();
    let context = Arc::new(WorkerContext::new(schedule.clone(), client, clients, history, start));
    let (records, active_intervals) = run_workload_and_faults(account, &context, progress).await?;
    // Replication to all regions completes within twice the lag.
    let lag = schedule.lag.map_or(Duration::ZERO, |lag| lag.to);
    tokio::time::sleep(lag * 2).await;
    let mut violations = read_back_everywhere(account, &context).await?;
    // A busy machine replicates late. What is lost stays lost.
    for _ in 0..READ_BACKS_MAX {
        let is_lost = |violation: &Violation| violation.guarantee == Guarantee::NothingIsLost;
        if violations.is_empty() || !violations.iter().all(is_lost) {
            break;
        }
        tokio::time::sleep(READ_BACK_AFTER).await;
        violations = read_back_everywhere(account, &context).await?;
    }
    let undecided = context.history.undecided();
    Ok(Report::new(schedule, RunData { records, active_intervals, violations, undecided }))
}

/// Writes the first version of all items, so that they exist before the workload begins.
async fn write_first_versions(
    container: ContainerClient,
    schedule: Schedule,
    history: Arc<WriteHistory>,
) -> Result<(), RunError> {
    let (workload, container, history) = (&schedule.workload, &container, &history);
    let all = (0..workload.workers).flat_map(|worker| (0..workload.items).map(move |item| (worker, item)));
    let writes = stream::iter(all).map(|(worker, item)| async move {
        let version = history.item(worker, item).begin_write();
        let stored = TestItem::owned(worker, item, version, workload.padding);
        // The deadline of the workload may be short, and this is no part of it.
        let timeouts = TimeoutOptions::new().with_end_to_end(PREPARE_TIMEOUT);
        let options = OperationOptions::new().with_timeouts(timeouts);
        container.upsert_item(stored.pk.as_str(), &stored).options(options).await?;
        history.item(worker, item).end_write(version, WriteOutcome::Acknowledged);
        Ok::<(), perihelion::Error>(())
    });
    let results: Vec<_> = writes.buffer_unordered(PARALLEL_MAX).collect().await;
    results.into_iter().collect::<Result<(), _>>()?;
    Ok(())
}

/// Runs `work` on a runtime of its own, which ends with it: so does all background work that was started on it.
async fn on_runtime_that_ends(
    work: impl Future<Output = Result<(), RunError>> + Send + 'static,
) -> Result<(), RunError> {
    let thread = tokio::task::spawn_blocking(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(RunError::Runtime)?.block_on(work)
    });
    match thread.await {
        Ok(result) => result,
        Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
    }
}

/// Runs the workload and the faults, until both have ended.
async fn run_workload_and_faults(
    account: &TargetAccount,
    context: &Arc<WorkerContext>,
    progress: &mut (dyn FnMut(&Progress) + Send),
) -> Result<(Vec<WorkerRecord>, Vec<ActiveInterval>), RunError> {
    let schedule = &context.schedule;
    let mut workers = JoinSet::new();
    for worker in 0..schedule.workload.workers {
        workers.spawn(work(Arc::clone(context), worker));
    }
    let injector = account.injector(schedule);
    let faults = futures::future::try_join_all(
        schedule
            .faults
            .iter()
            .enumerate()
            .map(|(number, fault)| injector.run_fault(number, fault, context.start)),
    );
    tokio::pin!(faults);
    let mut tick = interval(PROGRESS_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut records, mut active_intervals) = (Vec::new(), None);
    loop {
        tokio::select! {
            ended = &mut faults, if active_intervals.is_none() => active_intervals = Some(ended?),
            Some(record) = workers.join_next() => match record {
                Ok(record) => records.push(record),
                Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
            },
            _ = tick.tick() => progress(&progress_of(context)),
            else => break,
        }
        if workers.is_empty() && active_intervals.is_some() {
            break;
        }
    }
    Ok((records, active_intervals.unwrap_or_default()))
}

fn progress_of(context: &WorkerContext) -> Progress {
    let elapsed = context.start.elapsed();
    let faults = context.schedule.faults.iter().filter(|fault| (fault.begins..fault.ends).contains(&elapsed));
    Progress {
        elapsed,
        lasts: context.schedule.end,
        done: context.counters.done.load(Ordering::Relaxed),
        failed: context.counters.failed.load(Ordering::Relaxed),
        faults: faults.map(|fault| fault.to_string()).collect(),
    }
}

/// Reads all items in all regions, each with a new client, and checks them against the history of writes.
async fn read_back_everywhere(
    account: &TargetAccount,
    context: &WorkerContext,
) -> Result<Vec<Violation>, RunError> {
    let mut violations = Vec::new();
    for region in account.regions() {
        violations.extend(read_back(&account.reader_in(region)?, context, region).await);
    }
    Ok(violations)
}

/// Reads all items in one region and checks them against the history of writes.
async fn read_back(container: &ContainerClient, context: &WorkerContext, region: &str) -> Vec<Violation> {
    let workload = &context.schedule.workload;
    let owned = (0..workload.workers).flat_map(|worker| (0..workload.items).map(move |item| (worker, item)));
    let owned = stream::iter(owned).map(|(worker, item)| async move {
        let id = owned_id(worker, item);
        let read = container.read_item::<TestItem>(id.as_str(), &id).await;
        let history = context.history.item(worker, item);
        let floor = history.acknowledged();
        match read {
            Ok(response) => {
                let found = response.value().version;
                let example = format!("{id} in {region}: acknowledged {floor}, found {found}");
                match history.check_read(floor, found) {
                    ReadCheck::Consistent | ReadCheck::LateWrite => None,
                    ReadCheck::Rejected => Some(Violation::new(Guarantee::RejectedChangesNothing, example)),
                    ReadCheck::Lost | ReadCheck::Impossible => {
                        Some(Violation::new(Guarantee::NothingIsLost, example))
                    }
                }
            }
            Err(error) => {
                Some(Violation::new(Guarantee::NothingIsLost, format!("{id} in {region}: {error}")))
            }
        }
    });
    let created = stream::iter(context.history.creates()).map(|(worker, sequence, outcome)| async move {
        let id = created_id(worker, sequence);
        let read = container.read_item::<TestItem>(id.as_str(), &id).await;
        match (outcome, read) {
            (WriteOutcome::Acknowledged | WriteOutcome::Undecided, Ok(_)) => None,
            (WriteOutcome::Undecided | WriteOutcome::Rejected, Err(error))
                if error.kind() == ErrorKind::NotFound =>
            {
                None
            }
            (WriteOutcome::Rejected, Ok(_)) => Some(Violation::new(
                Guarantee::RejectedChangesNothing,
                format!("{id} in {region} exists, although its create was rejected"),
            )),
            (_, Err(error)) => {
                Some(Violation::new(Guarantee::NothingIsLost, format!("{id} in {region}: {error}")))
            }
        }
    });
    let mut violations: Vec<Violation> =
        owned.buffer_unordered(PARALLEL_MAX).filter_map(async |violation| violation).collect().await;
    violations.extend(
        created
            .buffer_unordered(PARALLEL_MAX)
            .filter_map(async |violation| violation)
            .collect::<Vec<_>>()
            .await,
    );
    violations
}
