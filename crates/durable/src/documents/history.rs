//! The events of one turn.

use duroxide::Event;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{DocumentType, SCHEMA_VERSION};
use crate::ids;

/// An event as it is stored: its JSON text. It is not parsed before its instance is known to be processed here.
pub(crate) type EventData = Box<RawValue>;

/// Consecutive events of one execution. A turn writes one such document, or several if its events are large.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,
    pub(crate) execution_id: u64,
    /// The id of the first event.
    pub(crate) event_id: u64,
    pub(crate) event_data: Vec<EventData>,
}

impl HistoryDocument {
    pub(crate) fn new(instance: &str, execution_id: u64, event_id: u64) -> HistoryDocument {
        HistoryDocument {
            id: ids::history_document(instance, execution_id, event_id),
            instance_id: instance.to_owned(),
            document_type: DocumentType::History,
            schema_version: SCHEMA_VERSION,
            execution_id,
            event_id,
            event_data: Vec::new(),
        }
    }

    /// The events of some documents, in order, up to the last one that is committed.
    pub(crate) fn events(
        mut documents: Vec<HistoryDocument>,
        last_event_id: u64,
    ) -> Result<Vec<Event>, String> {
        documents.sort_by_key(|document| document.event_id);
        let mut events = Vec::new();
        for document in documents.iter().filter(|document| document.event_id <= last_event_id) {
            super::check_version(&format!("The history document {}", document.id), document.schema_version)
                .map_err(|error| error.to_string())?;
            for data in &document.event_data {
                let event: Event = serde_json::from_str(data.get())
                    .map_err(|error| format!("an event of {} cannot be read: {error}", document.id))?;
                events.push(event);
            }
        }
        Ok(events)
    }
}
