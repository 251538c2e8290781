//! What remains to be done after a large turn was committed.

use serde::{Deserialize, Serialize};

use super::{DocumentType, SCHEMA_VERSION};
use crate::ids;

/// A committed large turn: its staged documents are to become visible, and these work items are to be deleted.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReleaseDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    /// The name under which the documents were staged that are to become visible.
    pub(crate) staged_by: String,
    /// Work items of cancelled activities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cancelled: Vec<String>,
    pub(crate) created_at: u64,
}

impl ReleaseDocument {
    pub(crate) fn new(instance: &str, turn: u64, staged_by: &str, created_at: u64) -> ReleaseDocument {
        ReleaseDocument {
            id: ids::release_document(instance, turn),
            instance_id: instance.to_owned(),
            document_type: DocumentType::Release,
            schema_version: SCHEMA_VERSION,
            staged_by: staged_by.to_owned(),
            cancelled: Vec::new(),
            created_at,
        }
    }
}
