//! The events of an execution, as far as they can be read.

use duroxide::Event;
use serde_json::value::RawValue;

use super::{Operator, OperatorError};
use crate::documents::{HistoryDocument, InstanceDocument, check_version};
use crate::error::Result;
use crate::ids;
use crate::queries;

/// The events of an execution.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct History {
    /// The number of the execution.
    pub execution_id: u64,
    /// The events, in order.
    pub entries: Vec<HistoryEntry>,
    /// The first thing that is wrong with the history; none if all of it can be read.
    pub problem: Option<String>,
}

/// An event of a history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The event as JSON text, as it is stored.
    pub json: String,
    /// The event; none if this release of duroxide cannot read it.
    pub event: Option<Event>,
}

impl History {
    /// The events that can be read.
    pub fn events(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.entries.iter().filter_map(|entry| entry.event.as_ref())
    }

    fn note(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }

    fn add(&mut self, document: &HistoryDocument) {
        if let Err(error) =
            check_version(&format!("The history document {}", document.id), document.schema_version)
        {
            self.note(error.to_string());
        }
        for data in &document.event_data {
            let event = serde_json::from_str::<Event>(data.get());
            if let Err(error) = &event {
                self.note(format!("an event of {} cannot be read: {error}", document.id));
            }
            self.entries.push(HistoryEntry { json: data.get().to_owned(), event: event.ok() });
        }
    }
}

impl Operator {
    /// The history of an execution; of the current one if none is named. Events that cannot be read are part of it, as they
    /// are stored.
    pub async fn history(&self, instance: &str, execution_id: Option<u64>) -> Result<History, OperatorError> {
        ids::check_instance_id(instance)?;
        let Some(current) = self.core.read_instance(instance).await? else {
            return Err(OperatorError::NoInstance { instance: instance.to_owned() });
        };
        let history = self.read_entries(&current.document, execution_id).await?;
        if history.entries.is_empty()
            && execution_id.is_some_and(|id| id != current.document.current_execution_id)
        {
            let executions = self.core.list_executions(instance).await?;
            return Err(OperatorError::Refused(format!(
                "instance {instance:?} has no execution {}; it has {executions:?}",
                history.execution_id
            )));
        }
        Ok(history)
    }

    /// The history of an execution of an instance with this document.
    pub(super) async fn read_entries(
        &self,
        current: &InstanceDocument,
        execution_id: Option<u64>,
    ) -> Result<History> {
        let execution_id = execution_id.unwrap_or(current.current_execution_id);
        let rows: Vec<Box<RawValue>> = self
            .core
            .store
            .values_of_partition(&current.instance_id, || queries::history(execution_id))
            .await?;
        let mut history = History { execution_id, ..History::default() };
        let mut documents: Vec<HistoryDocument> = Vec::new();
        for row in rows {
            match serde_json::from_str(row.get()) {
                Ok(document) => documents.push(document),
                Err(error) => history.note(format!("a history document cannot be read: {error}")),
            }
        }
        let is_current = execution_id == current.current_execution_id;
        if is_current {
            // What a turn has staged and not committed does not count.
            documents.retain(|document| document.event_id <= current.last_event_id);
        }
        documents.sort_by_key(|document| document.event_id);
        documents.iter().for_each(|document| history.add(document));
        let count = history.entries.len() as u64;
        if is_current && count != current.history_events {
            history.note(format!(
                "the history of execution {execution_id} has {count} events and should have {}",
                current.history_events
            ));
        }
        Ok(history)
    }
}
