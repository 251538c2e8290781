//! Messages that wait for instances.

use duroxide::providers::WorkItem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DocumentType, SCHEMA_VERSION};
use crate::clock::Millis;
use crate::error::Result;
use crate::ids;
use crate::slots::dispatch_slot;

/// A work item as it is stored: its JSON text.
pub(crate) type WorkItemData = Box<RawValue>;

/// A message to an instance: a start, a completion, a timer, an external event, a cancellation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) work_item: WorkItemData,
    pub(crate) dispatch_slot: u8,
    /// The message is not fetched before this time.
    pub(crate) visible_at: Millis,
    /// Messages of an instance are processed in this order.
    pub(crate) enqueued_at: Millis,
    /// The large turn that this message belongs to, while it is staged or once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) staged_by: Option<String>,
}

impl MessageDocument {
    /// A message that becomes visible at some time, or at once.
    pub(crate) fn new(
        instance: &str,
        item: &WorkItem,
        enqueued_at: Millis,
        visible_at: Option<Millis>,
    ) -> Result<MessageDocument> {
        Ok(MessageDocument {
            id: ids::unique(),
            instance_id: instance.to_owned(),
            document_type: DocumentType::OrchQueue,
            schema_version: SCHEMA_VERSION,
            work_item: serde_json::value::to_raw_value(item)?,
            dispatch_slot: dispatch_slot(instance),
            visible_at: visible_at.unwrap_or(enqueued_at),
            enqueued_at,
            staged_by: None,
        })
    }
}

/// How long a processed message from another instance is remembered.
const TOMBSTONE_SECONDS: u32 = 24 * 60 * 60;

/// What remains of a message from another instance once it was processed, so that a second delivery has no effect.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tombstone<'a> {
    id: &'a str,
    instance_id: &'a str,
    #[serde(rename = "type")]
    document_type: DocumentType,
    ttl: u32,
}

impl<'a> Tombstone<'a> {
    pub(crate) fn new(instance_id: &'a str, id: &'a str) -> Tombstone<'a> {
        Tombstone { id, instance_id, document_type: DocumentType::Delivered, ttl: TOMBSTONE_SECONDS }
    }
}
