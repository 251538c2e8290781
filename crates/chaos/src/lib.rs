//! Steady work on an account in several regions while faults come and go: what was lost, what was late, how
//! long it took to recover.
//!
//! A [`Scenario`] (a file) and a seed become a [`Schedule`]: every fault, every operation and when. A
//! [`World`] is the account it happens to, [`run`](run::run) makes it happen, and the [`Report`] says
//! whether the promises held. Everything that decides is pure; `run`, `load`, `inject` and `world` act.
//!
//! Operations go through the product's client (`perihelion`), faults through the account's control port.

pub mod built_in; // the scenarios that come with it
pub mod scenario; // what is to happen, as a file says it

mod dice; // chance, from a seed
pub mod schedule; // what is to happen, and when exactly
pub mod workload; // which operation is due, for every worker and turn

mod control; // asking the control port
mod inject; // making faults begin and end
pub mod world; // the account it happens to

pub mod ledger; // what was promised about every item
mod load; // workers at work
pub mod run; // all of it together

pub mod report; // what came of it
pub mod sample; // one operation, as it went

pub use control::ControlError;
pub use report::Report;
pub use run::{Progress, RunError, run};
pub use scenario::{BadScenario, Scenario};
pub use schedule::Schedule;
pub use world::{World, WorldError};
