//! What is stored: one file per document type. All documents of an instance share its partition.

mod execution;
mod history;
mod instance;
mod intent;
mod key_values;
mod message;
mod release;
mod session;
mod work;

pub(crate) use execution::ExecutionDocument;
pub(crate) use history::HistoryDocument;
pub(crate) use instance::{DELETING, InstanceDocument, PinnedVersion, is_terminal};
pub(crate) use intent::{IntentDocument, is_from_outbox};
pub(crate) use key_values::{KeyValuesDocument, StoredValue};
pub(crate) use message::{MessageDocument, Tombstone};
pub(crate) use release::ReleaseDocument;
pub(crate) use session::SessionDocument;
pub(crate) use work::WorkDocument;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};

/// The version of the documents that this crate writes. It reads this version and earlier ones.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The type of a document, in its property `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DocumentType {
    /// An instance: its metadata, lock and status.
    Instance,
    /// Events of one turn.
    History,
    /// A message to an instance.
    OrchQueue,
    /// An activity to execute.
    WorkerQueue,
    /// A message that is to be delivered to another instance.
    OutboxIntent,
    /// Which worker executes the activities of a session.
    Session,
    /// The summary of an execution that another one followed.
    Execution,
    /// The key-value store of an instance, as it is after an execution.
    KeyValues,
    /// What remains to be done after a large turn was committed.
    Release,
    /// A document of a large turn that is not visible yet.
    Staged,
    /// A message from another instance that was processed; it keeps the message from being delivered again.
    Delivered,
    /// A message or an activity that cannot be read.
    Quarantined,
}

/// Checks that this crate understands a document.
pub(crate) fn check_version(what: &str, version: u32) -> Result<()> {
    if version <= SCHEMA_VERSION {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "{what} was written by a newer release (document version {version}, this release knows {SCHEMA_VERSION}): upgrade \
         perihelion-durable"
    )))
}
