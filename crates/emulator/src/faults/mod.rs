//! Failures on purpose: rules that slow requests down, answer in the service's place, or break
//! connections.
//!
//! In: [`Rule`]s, from JSON or from Rust. Out: what is to happen to each request
//! (`FaultSet::strike`) and to each region's port. Deciding is pure: time,
//! draws and what is known about a request are arguments. Carrying it out is left to the `gateway`
//! (delays, answers) and to the `server` (connections, ports).

mod delay;
mod doors;
mod draw;
mod effect;
mod filter;
mod handle;
mod rule;
mod set;
mod switch;

pub use delay::{Between, DELAY_MAX, Delay, Percentiles, Shape};
pub use doors::PortTaken;
pub use effect::{ConnectionEffect, Delayed, Effect};
pub use filter::{Filter, OperationKind, ResourceKind};
pub use handle::{FaultError, Faults, RegionHealth, RegionSwitch};
pub use rule::{BadRule, Rule};
pub use set::{RULES_MAX, Report, RuleState};
pub use switch::{Condition, Down, Trouble};

pub(crate) use doors::{DoorKeeper, Doors};
pub(crate) use filter::Facts;
pub(crate) use set::{Doorway, FaultSet, Strike};

/// On every answer that a rule gave in the service's place: the rule's id.
pub const FAULT_HEADER: &str = "x-ms-perihelion-fault";
