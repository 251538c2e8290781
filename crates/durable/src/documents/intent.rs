//! Messages that are to be delivered to other instances: the outbox.

use serde::{Deserialize, Serialize};

use super::{DocumentType, MessageDocument, SCHEMA_VERSION};

/// A message to another instance, written with the turn that sends it and removed once it is delivered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IntentDocument {
    pub(crate) id: String,
    /// The instance that sends the message.
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) target_instance_id: String,
    pub(crate) target_document_type: DocumentType,
    /// The message as it is to be created. Its id follows from the idempotency key.
    pub(crate) payload: MessageDocument,
    pub(crate) idempotency_key: String,
    pub(crate) status: IntentStatus,
    pub(crate) created_at: u64,
    #[serde(default)]
    pub(crate) attempt_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_attempt_at: Option<u64>,
    /// The large turn that this intent belongs to, while it is staged or once it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) staged_by: Option<String>,
}

/// Whether a message to another instance was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IntentStatus {
    /// It has yet to be delivered.
    Pending,
}

impl IntentDocument {
    /// The intent to deliver a message, which gets an id that follows from the key.
    pub(crate) fn new(source: &str, key: String, mut payload: MessageDocument) -> IntentDocument {
        payload.id = format!("{DELIVERED_PREFIX}{key}");
        IntentDocument {
            id: format!("intent:{key}"),
            instance_id: source.to_owned(),
            document_type: DocumentType::OutboxIntent,
            schema_version: SCHEMA_VERSION,
            target_instance_id: payload.instance_id.clone(),
            target_document_type: payload.document_type,
            created_at: payload.enqueued_at as u64,
            payload,
            idempotency_key: key,
            status: IntentStatus::Pending,
            attempt_count: 0,
            last_attempt_at: None,
            staged_by: None,
        }
    }
}

/// What the ids of messages from other instances begin with.
const DELIVERED_PREFIX: &str = "outbox:";

/// Whether a message came from another instance, by its id.
pub(crate) fn is_from_outbox(message_id: &str) -> bool {
    message_id.starts_with(DELIVERED_PREFIX)
}
