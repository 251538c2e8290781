//! Which worker executes the activities of a session.

use serde::{Deserialize, Serialize};

use super::{DocumentType, SCHEMA_VERSION};
use crate::clock::Millis;
use crate::ids;

/// A session: all its activities are executed by one worker, as long as that renews its lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionDocument {
    pub(crate) id: String,
    /// The partition of the session, which is not that of an instance.
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) session_id: String,
    pub(crate) owner_id: String,
    pub(crate) locked_until: Millis,
    pub(crate) last_activity: Millis,
    pub(crate) created_at: u64,
}

impl SessionDocument {
    pub(crate) fn new(session: &str, owner: &str, now: Millis) -> SessionDocument {
        SessionDocument {
            id: ids::SESSION_DOCUMENT.to_owned(),
            instance_id: ids::session_partition(session),
            document_type: DocumentType::Session,
            schema_version: SCHEMA_VERSION,
            session_id: session.to_owned(),
            owner_id: owner.to_owned(),
            locked_until: now,
            last_activity: now,
            created_at: now as u64,
        }
    }
}
