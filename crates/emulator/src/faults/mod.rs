//! Fault injection at the edge of the account: rules that slow requests down, respond in the service's place, or break
//! connections.
//!
//! The rules and the decision per request are those of the crate `faults`, which the driver and `peri chaos` use too.
//! Here is what only the account has: its regions, their ports, and the handle for tests and the control port.
//! Delays and responses are carried out by the `gateway`, connections by the `server`.

mod account_faults;
mod control;
mod port_control;

pub use control::{FaultError, Faults, RegionControl, RegionHealth};
pub use faults::{
    Applier, ConnectionEffect, DELAY_MAX, Delay, DelayPercentiles, DelayRange, Delayed, DistributionShape,
    DownMode, FAULT_HEADER, FaultEffect, FaultRule, InvalidRule, OperationKind, Probability, RULES_MAX,
    RegionCondition, RegionFault, RequestFilter, ResourceKind, RuleReport, RuleState, Schedule,
};
pub use port_control::PortUnavailable;

pub(crate) use account_faults::AccountFaults;
pub(crate) use faults::{FaultDecision, RequestAttributes};
pub(crate) use port_control::{PortControl, PortControlTask};
