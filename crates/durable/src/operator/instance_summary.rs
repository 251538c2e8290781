//! An instance in a list.

use serde::{Deserialize, Serialize};

/// The status of an instance whose first turn is not committed yet.
pub const PENDING: &str = "Pending";

/// What a list says about an instance. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InstanceSummary {
    /// The id of the instance.
    pub instance_id: String,
    /// The name of the orchestration; empty while it is not known.
    #[serde(default)]
    pub orchestration_name: String,
    /// The version of the orchestration, once a runtime has chosen it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration_version: Option<String>,
    /// `Running`, `Completed`, `Failed`, `ContinuedAsNew`, `Deleting`, or [`PENDING`].
    #[serde(default = "pending")]
    pub status: String,
    /// The number of the current execution, which continuing as new increments.
    #[serde(default)]
    pub current_execution_id: u64,
    /// The instance that has started this one as a sub-orchestration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_instance_id: Option<String>,
    /// When the instance was created.
    #[serde(default)]
    pub created_at: u64,
    /// When a turn was last committed.
    #[serde(default)]
    pub updated_at: u64,
    /// When the current execution ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<u64>,
    /// The number of events of the current execution.
    #[serde(default)]
    pub history_events: u64,
    /// The size of these events as JSON text.
    #[serde(default)]
    pub history_bytes: u64,
    /// What the orchestration says about its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_status: Option<String>,
    /// The beginning of the output, or of the error of an instance that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

fn pending() -> String {
    PENDING.to_owned()
}

impl InstanceSummary {
    /// An instance of which only its start is known, which no runtime has processed.
    pub(super) fn not_started(instance: &str, orchestration: &str, enqueued_at: u64) -> InstanceSummary {
        InstanceSummary {
            instance_id: instance.to_owned(),
            orchestration_name: orchestration.to_owned(),
            orchestration_version: None,
            status: pending(),
            current_execution_id: 0,
            parent_instance_id: None,
            created_at: enqueued_at,
            updated_at: enqueued_at,
            completed_at: None,
            history_events: 0,
            history_bytes: 0,
            custom_status: None,
            output: None,
        }
    }

    /// Whether the instance has ended.
    pub fn has_ended(&self) -> bool {
        crate::documents::is_terminal(&self.status)
    }
}
