//! Fault injection as data: which requests fail, how, how often and when, and the decision per request.
//!
//! One [`FaultRule`] means the same wherever it is applied: at the edge of the local account (`peri fault`,
//! `POST /faults`), in the driver below its connection shards, and in the scenarios of `peri chaos`. A rule is
//! written as JSON, as TOML or with the builder methods of [`FaultRule`]:
//!
//! ```
//! use std::time::Duration;
//!
//! use perihelion_faults::{Applier, FaultRule, FaultSet, OperationKind, RequestAttributes, ResourceKind};
//!
//! let built = FaultRule::status(503, 0).named("west").on(OperationKind::Read).in_region("West US").times(1);
//! let read = FaultRule::from_json(
//!     br#"{"id":"west","match":{"operations":["read"],"regions":["West US"]},"count":1,"effect":{"status":503}}"#,
//! )?;
//! assert_eq!(built, read);
//!
//! let faults = FaultSet::new(Applier::Driver, 42);
//! let now = Duration::ZERO;
//! faults.add(built, now)?;
//! let request = RequestAttributes {
//!     region: Some("West US"),
//!     operation: Some(OperationKind::Read),
//!     resource: Some(ResourceKind::Item),
//!     ..RequestAttributes::default()
//! };
//! let decision = faults.decide(&request, now);
//! assert_eq!(decision.effect.and_then(|effect| effect.status), Some(503));
//! assert_eq!(faults.decide(&request, now).effect, None, "one hit was allowed");
//! # Ok::<(), perihelion_faults::InvalidRule>(())
//! ```
//!
//! Everything here decides and nothing acts: time is an argument, and random numbers come from a seed. Waiting,
//! responding and closing connections is left to the applier. What an [`Applier`] cannot do is an error when
//! the rule is added, with a message that names the alternative.

// What a rule consists of.
mod delay;
mod effect;
mod filter;
mod probability;
mod rule;
mod schedule;

// Rules for whole regions.
mod region_fault;

// What is wrong with a rule.
mod invalid;
mod support;

// The rules in force.
mod random;
mod set;

pub use clock::HumanDuration;
pub use delay::{DELAY_MAX, Delay, DelayPercentiles, DelayRange, DistributionShape};
pub use effect::{ConnectionEffect, Delayed, FaultEffect};
pub use filter::{OperationKind, RequestAttributes, RequestFilter, ResourceKind};
pub use invalid::InvalidRule;
pub use probability::Probability;
pub use region_fault::{DownMode, RegionCondition, RegionFault, region_fault_id};
pub use rule::FaultRule;
pub use schedule::Schedule;
pub use set::{FaultDecision, FaultSet, PortState, RULES_MAX, RuleReport, RuleState};
pub use support::Applier;

/// Header of every response that a rule made instead of the service; its value is the rule's id.
pub const FAULT_HEADER: &str = "x-ms-perihelion-fault";
