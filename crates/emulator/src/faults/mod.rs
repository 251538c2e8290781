//! Fault injection at the edge of the account: rules that delay requests, respond in the service's place, or
//! break connections.
//!
//! The rules and the decision per request are those of the crate `faults`, which the driver and `peri chaos`
//! use too. This module adds what only the account has: its regions, their ports, and the control for tests
//! and the control port. The `gateway` carries out delays and responses, the `server` crate connection faults
//! and port states.

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
