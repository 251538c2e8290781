//! Chaos tests of an account in several regions: a steady workload while faults begin and end. The result says which
//! guarantees were violated, and how long operations took to recover.
//!
//! A [`Scenario`] (a file) and a seed become a [`Schedule`]: every fault and every operation with its time. A
//! [`TargetAccount`] is the account of the run, [`run`](run::run) executes the schedule, and the [`Report`] says whether
//! all guarantees held. All decisions are pure functions; `run`, `workers`, `inject` and `target_account` act.
//!
//! Operations go through the product's client (`perihelion`), faults through the account's control port
//! (`perihelion-control-client`).

pub mod built_in; // the scenarios that come with the crate
pub mod scenario; // a scenario file

pub mod duration; // durations and ranges of durations in scenario files
mod invalid_scenario; // the error of a scenario file
pub mod schedule; // faults with their times
mod seed; // seeds of random sources
pub mod workload; // operations with their times

mod inject; // begins and ends faults
pub mod target_account; // the account of a run

pub mod guarantee; // what must hold during a run
pub mod run; // executes a schedule
mod workers; // execute the workload
pub mod write_history; // what is known about every write

mod impact; // what a fault did to operations
mod impact_check; // compares that with the scenario
pub mod region_set; // the regions that an operation used
pub mod report; // the result of a run
pub mod sample; // one operation with its latency

pub use invalid_scenario::InvalidScenario;
pub use report::Report;
pub use run::{Progress, RunError, run};
pub use scenario::Scenario;
pub use schedule::Schedule;
pub use target_account::{TargetAccount, TargetError};
