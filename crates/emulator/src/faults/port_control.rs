//! Opens, closes and silences the ports of the regions as the fault rules demand.
//!
//! Input: the rules and the time. Output: ports that are closed, silent or open. A change of the rules takes
//! effect before it returns ([`PortControl::apply_rules`]); rules that begin or end with time are applied by
//! a task, the [`PortControlTask`].

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

use super::account_faults::AccountFaults;
use crate::request_log::{CutConnection, RequestLog};
use clock::Clock;
use engine::account::events::EventKind;
use engine::regions::RegionId;
use faults::{PortState, RuleState};
use server::ServerPort;

/// Connections that one change of a port adds to the request log, at most.
const LOGGED_CONNECTIONS_MAX: usize = 100;
/// How soon opening a port is retried after it failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Controls the listeners of all regions.
#[derive(Debug)]
pub(crate) struct PortControl {
    rules: Arc<AccountFaults>,
    request_log: Arc<RequestLog>,
    clock: Clock,
    /// The ids of the rules that were active when they were last applied.
    active_rules: Mutex<BTreeSet<String>>,
    ports: Mutex<Vec<ControlledPort>>,
}

/// The port of one region, and its state.
#[derive(Debug)]
struct ControlledPort {
    region: RegionId,
    port: ServerPort,
    status: PortStatus,
}

/// One region's port: its state, and why that is not the state the rules demand.
#[derive(Debug, Default)]
struct PortStatus {
    current: PortState,
    /// Why the port is not in the state that the rules demand.
    error: Option<PortUnavailable>,
}

/// A region's port could not be opened again.
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
    /// Controls no ports yet.
    pub(crate) fn new(rules: Arc<AccountFaults>, request_log: Arc<RequestLog>, clock: Clock) -> PortControl {
        let (active_rules, ports) = (Mutex::default(), Mutex::default());
        PortControl { rules, request_log, clock, active_rules, ports }
    }

    /// Controls the port of a region from now on. It is open, and brought into the state that the rules demand.
    pub(crate) fn add(self: &Arc<PortControl>, region: RegionId, port: ServerPort) {
        let control = Arc::downgrade(self);
        port.observe_swallowed(move || {
            if let Some(control) = control.upgrade() {
                control.count_cut(region, 1, CutConnection::Swallowed);
            }
        });
        self.ports().push(ControlledPort { region, port, status: PortStatus::default() });
        // A port that was just opened can be closed and silenced; an older error is reported by its own call.
        let _ = self.apply_rules();
    }

    /// Controls the port of a region no longer, and opens it if it is not.
    pub(crate) fn release(&self, region: RegionId) {
        let mut ports = self.ports();
        if let Some(at) = ports.iter().position(|controlled| controlled.region == region) {
            let ControlledPort { port, status, .. } = ports.remove(at);
            if let Err(error) = change_port(&port, status.current, PortState::Open) {
                tracing::error!(%error, port = port.port(), "the account's port cannot be opened again");
            }
        }
    }

    /// Brings every port into the state that the rules demand now. Returns the first error.
    pub(crate) fn apply_rules(&self) -> Result<(), PortUnavailable> {
        let now = self.clock.uptime();
        let mut ports = self.ports();
        for ControlledPort { region, port, status } in ports.iter_mut() {
            let (wanted, _) = self.rules.port_state(*region, now);
            match change_port(port, status.current, wanted) {
                Ok(cut) => {
                    self.record_change(*region, status.current, wanted, cut);
                    *status = PortStatus { current: wanted, error: None };
                }
                Err(error) => status.error = Some(self.unavailable(*region, port.port(), &error)),
            }
        }
        let error = ports.iter().find_map(|controlled| controlled.status.error.clone());
        drop(ports);
        self.record_ended_rules(now);
        error.map_or(Ok(()), Err)
    }

    /// Records what a change of a region's port did to its connections.
    fn record_change(&self, region: RegionId, before: PortState, after: PortState, cut: usize) {
        if before == after {
            return;
        }
        let name = self.rules.regions().current().region(region).name.clone();
        let (kind, message) = match after {
            PortState::Open => (EventKind::PortOpened, "it accepts connections again".to_owned()),
            PortState::Refused => {
                self.count_cut(region, cut, CutConnection::Reset);
                (EventKind::PortClosed, format!("it refuses connections; {cut} that were open were reset"))
            }
            PortState::Silent => {
                self.count_cut(region, cut, CutConnection::Swallowed);
                (EventKind::PortSilent, format!("it swallows connections; {cut} that were open fell silent"))
            }
        };
        self.rules.events().record(kind, Some(&name), message);
    }

    /// Counts connections that a fault cut off, and adds them to the request log.
    fn count_cut(&self, region: RegionId, connections: usize, how: CutConnection) {
        let now = self.clock.uptime();
        if connections > 0
            && let Some(rule) = self.rules.count_connections(region, connections as u64, now)
        {
            for _ in 0..connections.min(LOGGED_CONNECTIONS_MAX) {
                self.request_log.record_connection(region, how, rule.clone(), now);
            }
        }
    }

    /// Records the rules that have ended by themselves since the last call.
    fn record_ended_rules(&self, now: Duration) {
        let reports = self.rules.list(now);
        let with = |state: RuleState| {
            let of_state = reports.iter().filter(move |report| report.state == state);
            of_state.filter_map(|report| report.rule.id.clone()).collect::<BTreeSet<String>>()
        };
        let before = std::mem::replace(&mut *self.active_rules.lock(), with(RuleState::Active));
        for id in with(RuleState::Ended).intersection(&before) {
            self.rules.events().record(EventKind::FaultEnded, None, format!("the fault '{id}' has ended"));
        }
    }

    /// The state of a region's port, and why it is not the one that the rules demand.
    pub(crate) fn state(&self, region: RegionId) -> (PortState, Option<PortUnavailable>) {
        let ports = self.ports();
        let controlled = ports.iter().find(|controlled| controlled.region == region);
        controlled.map_or_else(Default::default, |ControlledPort { status, .. }| {
            (status.current, status.error.clone())
        })
    }

    /// Applies rules when they begin and end, for as long as the account runs.
    async fn run(self: Arc<PortControl>) {
        let mut changes = self.rules.changes();
        loop {
            changes.mark_unchanged();
            let wait = self.next_check(self.apply_rules());
            let elapsed = async {
                match wait {
                    NextCheck::OnChange => std::future::pending().await,
                    NextCheck::After(wait) => {
                        self.clock.wait_for_uptime(self.clock.uptime().saturating_add(wait)).await;
                    }
                    NextCheck::Retry => tokio::time::sleep(RETRY_INTERVAL).await,
                }
            };
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = elapsed => {}
            }
        }
    }

    fn next_check(&self, applied: Result<(), PortUnavailable>) -> NextCheck {
        if applied.is_err() {
            return NextCheck::Retry;
        }
        let now = self.clock.uptime();
        let ports = self.ports();
        let ports = ports.iter().filter_map(|controlled| self.rules.port_state(controlled.region, now).1);
        let rules = self.rules.list(now);
        let ends = rules.iter().filter_map(|report| report.ends_in.map(|left| left.0));
        let next = ports.chain(ends).min();
        next.map_or(NextCheck::OnChange, NextCheck::After)
    }

    fn unavailable(&self, region: RegionId, port: u16, error: &io::Error) -> PortUnavailable {
        let region = self.rules.regions().current().region(region).name.clone();
        PortUnavailable { region, port, reason: error.to_string() }
    }

    fn ports(&self) -> MutexGuard<'_, Vec<ControlledPort>> {
        self.ports.lock()
    }
}

/// The task that applies rules when they begin and end. Dropping it stops the task.
#[derive(Debug)]
pub(crate) struct PortControlTask(AbortHandle);

impl PortControlTask {
    /// Starts the task. Must be called inside a Tokio runtime.
    pub(crate) fn start(ports: Arc<PortControl>) -> PortControlTask {
        PortControlTask(tokio::spawn(ports.run()).abort_handle())
    }
}

impl Drop for PortControlTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// When the rules have to be applied next.
enum NextCheck {
    OnChange,
    After(Duration),
    Retry,
}

/// Brings a port into another state, and returns how many open connections that cut off.
fn change_port(port: &ServerPort, current: PortState, wanted: PortState) -> io::Result<usize> {
    if current == wanted {
        return Ok(0);
    }
    let cut = match wanted {
        PortState::Refused => port.close(),
        // Silent before it opens, so that no connection is served in between.
        PortState::Silent => port.set_silent(true),
        PortState::Open => 0,
    };
    if current == PortState::Refused {
        port.open()?;
    }
    if current == PortState::Silent {
        port.set_silent(false);
    }
    Ok(cut)
}
