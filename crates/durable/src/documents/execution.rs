//! Summaries of executions that others followed.

use serde::{Deserialize, Serialize};

use super::{DocumentType, InstanceDocument, SCHEMA_VERSION};
use crate::ids;

/// An execution that was continued as new. That of the current execution is part of the instance's document.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) execution_id: u64,
    pub(crate) status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    pub(crate) started_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<u64>,
    pub(crate) history_events: u64,
}

impl ExecutionDocument {
    /// The current execution of an instance.
    pub(crate) fn current(instance: &InstanceDocument) -> ExecutionDocument {
        ExecutionDocument {
            id: ids::execution_document(&instance.instance_id, instance.current_execution_id),
            instance_id: instance.instance_id.clone(),
            document_type: DocumentType::Execution,
            schema_version: SCHEMA_VERSION,
            execution_id: instance.current_execution_id,
            status: instance.status.clone().unwrap_or_else(|| "Running".to_owned()),
            output: instance.output.clone(),
            started_at: instance.started_at,
            completed_at: instance.completed_at,
            history_events: instance.history_events,
        }
    }
}
