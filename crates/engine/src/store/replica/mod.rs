//! One replica of a partition: what a single region holds of it.
//!
//! A replica is a version chain: the head serves point reads, the state serves queries and feeds, and the
//! change log tells how one version led to the next.

pub(super) mod change_log;
pub(super) mod contents;
pub(super) mod head;
pub(super) mod items_by_key;
pub(super) mod progress;
pub(super) mod state;
pub(super) mod version_chain;
