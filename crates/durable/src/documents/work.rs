//! Activities that wait for workers.

use duroxide::providers::WorkItem;
use serde::{Deserialize, Serialize};

use super::message::WorkItemData;
use super::{DocumentType, SCHEMA_VERSION};
use crate::clock::Millis;
use crate::error::Result;
use crate::ids;
use crate::slots::dispatch_slot;

/// An activity to execute. While a worker has it, it becomes visible again when the lock expires.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) work_item: WorkItemData,
    pub(crate) dispatch_slot: u8,
    /// The item is not fetched before this time. While it is locked, that is the end of the lock.
    pub(crate) visible_at: Millis,
    pub(crate) enqueued_at: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locked_until: Option<Millis>,
    #[serde(default)]
    pub(crate) attempt_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) execution_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) activity_id: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// The large turn that this item belongs to, while it is staged or once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) staged_by: Option<String>,
}

impl WorkDocument {
    /// An item that nobody has locked. Items that are no activities have the empty instance id.
    pub(crate) fn new(item: &WorkItem, enqueued_at: Millis) -> Result<WorkDocument> {
        let (instance, execution_id, activity_id, session_id, tag) = match item {
            WorkItem::ActivityExecute { instance, execution_id, id, session_id, tag, .. } => {
                (instance.as_str(), Some(*execution_id), Some(*id), session_id.clone(), tag.clone())
            }
            _ => ("", None, None, None, None),
        };
        Ok(WorkDocument {
            id: ids::unique(),
            instance_id: instance.to_owned(),
            document_type: DocumentType::WorkerQueue,
            schema_version: SCHEMA_VERSION,
            work_item: serde_json::value::to_raw_value(item)?,
            dispatch_slot: dispatch_slot(instance),
            visible_at: enqueued_at,
            enqueued_at,
            lock_token: None,
            locked_until: None,
            attempt_count: 0,
            execution_id,
            activity_id,
            session_id,
            tag,
            staged_by: None,
        })
    }

    /// Locks the item, which is fetched once more.
    pub(crate) fn lock(&mut self, token: &str, until: Millis) {
        self.lock_token = Some(token.to_owned());
        self.locked_until = Some(until);
        self.visible_at = until;
        self.attempt_count += 1;
    }

    /// Releases the lock; the item becomes visible at this time.
    pub(crate) fn unlock(&mut self, visible_at: Millis, ignore_attempt: bool) {
        self.lock_token = None;
        self.locked_until = None;
        self.visible_at = visible_at;
        if ignore_attempt {
            self.attempt_count = self.attempt_count.saturating_sub(1);
        }
    }
}
