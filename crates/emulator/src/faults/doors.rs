//! Every region's port, kept as the rules say.
//!
//! In: the rules and the time. Out: ports that are closed, silent or open. What a change of the rules
//! asks for happens before the change returns ([`Doors::settle`]); what time asks for is carried out by
//! a task, the [`DoorKeeper`].

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;

use super::set::{Doorway, FaultSet};
use clock::Clock;
use engine::regions::RegionId;
use server::Entrance;

/// How soon a port that could not be opened again is tried once more.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The ports of all regions.
#[derive(Debug)]
pub(crate) struct Doors {
    set: Arc<FaultSet>,
    clock: Clock,
    doors: Vec<(RegionId, Entrance)>,
    states: Mutex<Vec<State>>,
}

/// One port, as it is.
#[derive(Debug, Default)]
struct State {
    is: Doorway,
    /// Why it is not as it should be.
    problem: Option<PortTaken>,
}

/// A region's port could not be opened again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the region '{region}' cannot come back: port {port} cannot be opened again ({reason}); stop whatever took \
     it, and the region comes back within a second"
)]
pub struct PortTaken {
    region: String,
    port: u16,
    reason: String,
}

impl Doors {
    /// The ports of the regions, in their order.
    pub(crate) fn new(set: Arc<FaultSet>, clock: Clock, entrances: Vec<Entrance>) -> Doors {
        let doors: Vec<_> = (0..).map(RegionId).zip(entrances).collect();
        let states = Mutex::new(doors.iter().map(|_| State::default()).collect());
        Doors { set, clock, doors, states }
    }

    /// Makes every port what the rules say it is now. Returns the first problem.
    pub(crate) fn settle(&self) -> Result<(), PortTaken> {
        let now = self.clock.uptime();
        let mut states = self.states();
        for ((region, entrance), state) in self.doors.iter().zip(states.iter_mut()) {
            let (wanted, _) = self.set.doorway(*region, now);
            match change(entrance, state.is, wanted) {
                Ok(()) => *state = State { is: wanted, problem: None },
                Err(error) => state.problem = Some(self.taken(*region, entrance.port(), &error)),
            }
        }
        states.iter().find_map(|state| state.problem.clone()).map_or(Ok(()), Err)
    }

    /// How a region's port is, and why it is not as it should be.
    pub(crate) fn state(&self, region: RegionId) -> (Doorway, Option<PortTaken>) {
        self.states()
            .get(region.index())
            .map_or_else(Default::default, |state| (state.is, state.problem.clone()))
    }

    /// Carries out what time asks for, for as long as the account runs.
    async fn keep(self: Arc<Doors>) {
        let mut changes = self.set.changes();
        loop {
            changes.mark_unchanged();
            let wait = self.wait_after(self.settle());
            let elapsed = async {
                match wait {
                    Wait::ForChange => std::future::pending().await,
                    Wait::Uptime(wait) => {
                        self.clock.reached(self.clock.uptime().saturating_add(wait)).await;
                    }
                    Wait::Retry => tokio::time::sleep(RETRY_INTERVAL).await,
                }
            };
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = elapsed => {}
            }
        }
    }

    fn wait_after(&self, settled: Result<(), PortTaken>) -> Wait {
        if settled.is_err() {
            return Wait::Retry;
        }
        let now = self.clock.uptime();
        let next = self.doors.iter().filter_map(|(region, _)| self.set.doorway(*region, now).1).min();
        next.map_or(Wait::ForChange, Wait::Uptime)
    }

    fn taken(&self, region: RegionId, port: u16, error: &io::Error) -> PortTaken {
        let region = self.set.regions().current().region(region).name.clone();
        PortTaken { region, port, reason: error.to_string() }
    }

    fn states(&self) -> MutexGuard<'_, Vec<State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that carries out what time asks for. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct DoorKeeper(AbortHandle);

impl DoorKeeper {
    /// Must be called inside a Tokio runtime.
    pub(crate) fn start(doors: Arc<Doors>) -> DoorKeeper {
        DoorKeeper(tokio::spawn(doors.keep()).abort_handle())
    }
}

impl Drop for DoorKeeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the keeper waits for.
enum Wait {
    ForChange,
    Uptime(Duration),
    Retry,
}

fn change(entrance: &Entrance, is: Doorway, wanted: Doorway) -> io::Result<()> {
    if is == wanted {
        return Ok(());
    }
    match wanted {
        Doorway::Refused => entrance.close(),
        // Silent first: nobody slips in while the port is opened.
        Doorway::Silent => entrance.set_silent(true),
        Doorway::Open => {}
    }
    if is == Doorway::Refused {
        entrance.open()?;
    }
    if is == Doorway::Silent {
        entrance.set_silent(false);
    }
    Ok(())
}
