//! What this process knows to be waiting: instances with messages, and activities. Pure state; time is an argument.
//!
//! Whatever a process enqueues itself it need not search the container for. What others enqueue, and what was left behind
//! by a crash, is found by polls.

mod poll_schedule;
mod ready_instances;
mod ready_work;

pub(crate) use poll_schedule::PollSchedule;
pub(crate) use ready_instances::{Candidate, FoundMessage, ReadyInstances};
pub(crate) use ready_work::{LockedWork, ReadyWork, WorkFilter};
