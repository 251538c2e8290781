//! Fault injection: rules that delay requests, respond in the service's place, or break connections.
//!
//! Input: [`Rule`]s, from JSON or from Rust. Output: a decision for each request (`FaultSet::strike`) and a
//! state for each region's port. Deciding is pure: time, random draws and request attributes are arguments.
//! The `gateway` carries out delays and responses, the `server` crate connection faults and port states.

mod control;
mod delay;
mod draw;
mod effect;
mod filter;
mod port_control;
mod region_fault;
mod rule;
mod set;

pub use control::{FaultError, Faults, RegionControl, RegionHealth};
pub use delay::{Between, DELAY_MAX, Delay, Percentiles, Shape};
pub use effect::{ConnectionEffect, Delayed, Effect};
pub use filter::{Filter, OperationKind, ResourceKind};
pub use port_control::PortUnavailable;
pub use region_fault::{DownMode, RegionCondition, RegionFault};
pub use rule::{BadRule, Rule};
pub use set::{RULES_MAX, Report, RuleState};

pub(crate) use filter::Facts;
pub(crate) use port_control::{PortControl, PortControlTask};
pub(crate) use set::{Doorway, FaultSet, Strike};

/// The header that names the rule, on every response that a rule gave in the service's place.
pub const FAULT_HEADER: &str = "x-ms-perihelion-fault";
