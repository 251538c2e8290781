//! Why a history cannot be run at all.

use std::fmt;

/// Why a recorded history cannot be run against orchestration code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The history has no events.
    Empty,
    /// The history does not begin with the start of an execution.
    NotFromTheStart {
        /// The number of its first event.
        event_id: u64,
    },
    /// The registry has no such version of the orchestration.
    NotRegistered {
        /// The name of the orchestration.
        name: String,
        /// The version that the history names.
        version: String,
    },
    /// An event is no event that this release of duroxide knows.
    Unreadable {
        /// The position of the event, beginning with 1.
        number: usize,
        /// What is wrong with it.
        message: String,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Empty => write!(f, "the history has no events"),
            ReplayError::NotFromTheStart { event_id } => {
                write!(f, "the history begins with event {event_id}, which does not start an execution")
            }
            ReplayError::NotRegistered { name, version } => {
                write!(
                    f,
                    "orchestration {name:?} is not registered in version {version}, which the history names"
                )
            }
            ReplayError::Unreadable { number, message } => {
                write!(f, "event number {number} of the history cannot be read: {message}")
            }
        }
    }
}

impl std::error::Error for ReplayError {}
