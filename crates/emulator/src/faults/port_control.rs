//! The ports of the regions, in the state that the rules ask for.
//!
//! In: the rules and the time. Out: ports that are closed, silent or open. What a change of the rules asks for happens
//! before the change returns ([`PortControl::apply_rules`]); what the schedule of a rule asks for is carried out by a
//! task, the [`PortControlTask`].

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use faults::PortState;
use tokio::task::AbortHandle;

use super::account_faults::AccountFaults;
use crate::clock::Clock;
use crate::regions::RegionId;
use crate::server::Entrance;

/// How soon opening a port is tried again after it failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The ports of all regions of an account.
#[derive(Debug)]
pub(crate) struct PortControl {
    rules: Arc<AccountFaults>,
    clock: Clock,
    ports: Vec<(RegionId, Entrance)>,
    status: Mutex<Vec<PortStatus>>,
}

/// The actual state of one port.
#[derive(Debug, Default)]
struct PortStatus {
    state: PortState,
    /// Why the port does not have the state that the rules ask for.
    problem: Option<PortUnavailable>,
}

/// A region's port could not be opened again, because another process uses it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the region '{region}' cannot come back: port {port} cannot be opened again ({reason}); stop whatever took \
     it, and the region comes back within a second"
)]
pub struct PortUnavailable {
    region: String,
    port: u16,
    reason: String,
}

impl PortControl {
    /// The ports of the regions, in the order of the regions.
    pub(crate) fn new(rules: Arc<AccountFaults>, clock: Clock, entrances: Vec<Entrance>) -> PortControl {
        let ports: Vec<_> = (0..).map(RegionId).zip(entrances).collect();
        let status = Mutex::new(ports.iter().map(|_| PortStatus::default()).collect());
        PortControl { rules, clock, ports, status }
    }

    /// Brings every port into the state that the rules ask for now. Returns the first problem.
    pub(crate) fn apply_rules(&self) -> Result<(), PortUnavailable> {
        let now = self.clock.uptime();
        let mut all = self.status();
        for ((region, entrance), status) in self.ports.iter().zip(all.iter_mut()) {
            let (wanted, _) = self.rules.port_state(*region, now);
            match change(entrance, status.state, wanted) {
                Ok(()) => *status = PortStatus { state: wanted, problem: None },
                Err(error) => status.problem = Some(self.port_taken(*region, entrance.port(), &error)),
            }
        }
        all.iter().find_map(|status| status.problem.clone()).map_or(Ok(()), Err)
    }

    /// The state of a region's port, and why it is not the one that the rules ask for.
    pub(crate) fn state(&self, region: RegionId) -> (PortState, Option<PortUnavailable>) {
        self.status()
            .get(region.index())
            .map_or_else(Default::default, |status| (status.state, status.problem.clone()))
    }

    /// Follows the schedules of the rules for as long as the account runs.
    async fn follow_schedules(self: Arc<PortControl>) {
        let mut changes = self.rules.changes();
        loop {
            changes.mark_unchanged();
            let wait = self.wait_after(self.apply_rules());
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

    fn wait_after(&self, applied: Result<(), PortUnavailable>) -> Wait {
        if applied.is_err() {
            return Wait::Retry;
        }
        let now = self.clock.uptime();
        let next = self.ports.iter().filter_map(|(region, _)| self.rules.port_state(*region, now).1).min();
        next.map_or(Wait::ForChange, Wait::Uptime)
    }

    fn port_taken(&self, region: RegionId, port: u16, error: &io::Error) -> PortUnavailable {
        let region = self.rules.regions().current().region(region).name.clone();
        PortUnavailable { region, port, reason: error.to_string() }
    }

    fn status(&self) -> MutexGuard<'_, Vec<PortStatus>> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that follows the schedules of the rules. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct PortControlTask(AbortHandle);

impl PortControlTask {
    /// Starts the task; must be called inside a Tokio runtime.
    pub(crate) fn start(ports: Arc<PortControl>) -> PortControlTask {
        PortControlTask(tokio::spawn(ports.follow_schedules()).abort_handle())
    }
}

impl Drop for PortControlTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What the task waits for.
enum Wait {
    ForChange,
    Uptime(Duration),
    Retry,
}

fn change(entrance: &Entrance, current: PortState, wanted: PortState) -> io::Result<()> {
    if current == wanted {
        return Ok(());
    }
    match wanted {
        PortState::Refused => entrance.close(),
        // Silent first: no request is served while the port is opened.
        PortState::Silent => entrance.set_silent(true),
        PortState::Open => {}
    }
    if current == PortState::Refused {
        entrance.open()?;
    }
    if current == PortState::Silent {
        entrance.set_silent(false);
    }
    Ok(())
}
