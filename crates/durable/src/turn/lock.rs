//! Locks an instance: a conditional write of its document, which also counts the attempts of its messages.

use std::sync::Arc;

use duroxide::Event;
use duroxide::EventKind;
use duroxide::providers::{DispatcherCapabilityFilter, OrchestrationItem, WorkItem};
use perihelion::Patch;

use crate::cache::CachedInstance;
use crate::clock::{self, Millis};
use crate::core::Core;
use crate::dispatch::Candidate;
use crate::documents::{
    DELETING, DocumentType, HistoryDocument, InstanceDocument, KeyValuesDocument, MessageDocument,
    check_version,
};
use crate::error::{Failure, Result};
use crate::held::HeldTurn;
use crate::ids::{self, TurnToken};
use crate::key_values::{self, KeyValues};
use crate::queries;
use crate::store::Versioned;

/// The largest number of messages that one turn processes. With its own writes they have to fit into one batch.
const MESSAGES_MAX: usize = 64;
/// When an instance is looked at again that somebody else has just locked.
const LOST_RACE_DELAY: Millis = 50.0;
/// When messages are looked at again that came before the start of their instance.
const EARLY_MESSAGE_DELAY: Millis = 1_000.0;
/// When an instance is looked at again that this process cannot handle.
pub(super) const FOREIGN_DELAY: Millis = 5_000.0;

/// The result of trying to lock an instance.
#[derive(Debug)]
pub(super) enum LockAttempt {
    /// It is locked, and this is what the runtime gets.
    Locked(Box<(HeldTurn, OrchestrationItem)>),
    /// It is to be tried again at this time.
    RetryAt(Millis),
    /// This dispatcher cannot process it; another one may.
    Unsupported,
    /// There is nothing to do.
    Nothing,
}

/// How an instance is to be locked.
#[derive(Clone, Debug)]
pub(super) struct LockRequest {
    pub(super) lock_time: Millis,
    pub(super) filter: Option<DispatcherCapabilityFilter>,
}

/// A message and what it says.
struct ReadMessage {
    id: String,
    item: WorkItem,
}

impl Core {
    /// Locks an instance. What this process knows is tried first: if it is no longer true, the ETag says so.
    pub(super) async fn lock_candidate(
        &self,
        candidate: Candidate,
        request: &LockRequest,
    ) -> Result<LockAttempt> {
        let Candidate { instance, messages } = candidate;
        if let Some(messages) = messages {
            let cached = self.cache.get(&instance);
            let document = match &cached {
                Some(cached) => Some(cached.version.document.clone()),
                None if messages.iter().any(is_start) => Some(InstanceDocument::new(&instance, clock::now())),
                None => None,
            };
            if let Some(document) = document.filter(|document| document.staging.is_none()) {
                match self.try_lock(document, cached.as_deref(), messages, request).await {
                    Err(error) if error.is_lost_race() => self.cache.remove(&instance),
                    Err(error) => return Err(error),
                    Ok(LockAttempt::Nothing) => {}
                    Ok(attempt) => return Ok(attempt),
                }
            }
        }
        let now = clock::now();
        let rows = self.store.query_partition(&instance, || queries::instance_and_messages(now)).await?;
        let mut document = None;
        let mut messages = Vec::new();
        for row in rows {
            match row.document_type {
                DocumentType::Instance => {
                    document = Some(Versioned { document: row.read::<InstanceDocument>()?, etag: row.etag });
                }
                _ => messages.push(row.read::<MessageDocument>()?),
            }
        }
        let cached = document.map(|version| match self.cache.get(&instance) {
            Some(cached) if cached.version.etag == version.etag => (*cached).clone(),
            _ => CachedInstance { version, history: None, key_values: Arc::default(), confirmed_at: now },
        });
        let document = match &cached {
            Some(cached) => cached.version.document.clone(),
            None => InstanceDocument::new(&instance, now),
        };
        match self.try_lock(document, cached.as_ref(), messages, request).await {
            Err(error) if error.is_lost_race() => Ok(LockAttempt::RetryAt(now + LOST_RACE_DELAY)),
            attempt => attempt,
        }
    }

    /// Locks an instance whose document is as given, or does not exist if there is no version of it.
    async fn try_lock(
        &self,
        mut document: InstanceDocument,
        cached: Option<&CachedInstance>,
        mut messages: Vec<MessageDocument>,
        request: &LockRequest,
    ) -> Result<LockAttempt> {
        let now = clock::now();
        let instance = document.instance_id.clone();
        if let Err(error) =
            check_version(&format!("The document of instance {instance:?}"), document.schema_version)
        {
            tracing::error!(instance, %error, "an instance is left alone");
            return Ok(LockAttempt::RetryAt(now + FOREIGN_DELAY));
        }
        if let Some(until) = document.busy_until(now) {
            return Ok(LockAttempt::RetryAt(until));
        }
        if document.status.as_deref() == Some(DELETING) || messages.is_empty() {
            return Ok(LockAttempt::Nothing);
        }
        if let (Some(filter), Some(pinned)) = (&request.filter, document.pinned_duroxide_version)
            && !is_supported(filter, &pinned.to_semver())
        {
            return Ok(LockAttempt::Unsupported);
        }
        messages.sort_by(|a, b| a.enqueued_at.total_cmp(&b.enqueued_at));
        messages.truncate(MESSAGES_MAX);
        let messages = self.read_messages(messages).await?;
        let starts = messages.iter().any(|message| is_start_item(&message.item));
        if document.orchestration_name.is_none() && document.history_events == 0 && !starts {
            return self.early_messages(&instance, &messages, now).await;
        }
        if messages.is_empty() {
            return Ok(LockAttempt::Nothing);
        }

        let token = TurnToken::new(&instance);
        let until = now + request.lock_time;
        let covered: Vec<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        document.lock(&token.text, until, &covered);
        let etag = self.write_lock(&document, cached.map(|cached| cached.version.etag.as_str())).await?;
        let version = Versioned { document, etag };
        let mut held = HeldTurn {
            token,
            version,
            history: None,
            key_values: Arc::default(),
            locked_at: now,
            ended: false,
        };
        match self.load(&mut held, cached, messages).await {
            Ok(item) => Ok(LockAttempt::Locked(Box::new((held, item)))),
            Err(error) => {
                // The lock would otherwise hold up the instance until it expires.
                if let Err(error) = self.release_turn(&mut held, None, true).await {
                    tracing::debug!(instance, %error, "a lock could not be released and will expire");
                }
                Err(error)
            }
        }
    }

    /// Writes the document with the lock, under the ETag of the document without it.
    async fn write_lock(&self, document: &InstanceDocument, etag: Option<&str>) -> Result<String> {
        let instance = &document.instance_id;
        let written = match etag {
            Some(etag) => self.store.replace(instance, &document.id, etag, document).await,
            None => self.store.create(instance, document).await,
        };
        match written {
            Err(error) if error.is_undecided() => match self.read_instance(instance).await? {
                Some(found) if found.document.lock_token == document.lock_token => Ok(found.etag),
                _ => Err(error),
            },
            written => written,
        }
    }

    /// What the runtime gets of a locked instance.
    async fn load(
        &self,
        held: &mut HeldTurn,
        cached: Option<&CachedInstance>,
        messages: Vec<ReadMessage>,
    ) -> Result<OrchestrationItem> {
        let document = &held.version.document;
        if document.staging.is_some() {
            self.remove_staged(document).await?;
            held.version.document.staging = None;
        }
        let document = &held.version.document;
        let (history, key_values) =
            match cached.and_then(|cached| cached.history.as_ref().map(|h| (h, cached))) {
                Some((history, cached)) => (Ok(Arc::clone(history)), Arc::clone(&cached.key_values)),
                None => self.read_state(document).await?,
            };
        let (history, history_error) = match history {
            Ok(history) => (Some(history), None),
            Err(error) => {
                tracing::warn!(instance = document.instance_id, error, "a history cannot be read");
                (None, Some(format!("Failed to deserialize history: {error}")))
            }
        };
        let events: &[Event] = history.as_deref().map_or(&[], Vec::as_slice);
        let (name, version) = describe(document, events, &messages);
        let item = OrchestrationItem {
            instance: document.instance_id.clone(),
            orchestration_name: name,
            execution_id: document.current_execution_id,
            version: version.unwrap_or_else(|| "unknown".to_owned()),
            history: events.to_vec(),
            messages: messages.into_iter().map(|message| message.item).collect(),
            history_error,
            kv_snapshot: key_values::snapshot(&key_values),
        };
        held.history = history;
        held.key_values = key_values;
        Ok(item)
    }

    /// Reads the history of the current execution and the key-value store. The inner error is that of a history that
    /// cannot be understood.
    pub(crate) async fn read_state(
        &self,
        document: &InstanceDocument,
    ) -> Result<(Result<Arc<Vec<Event>>, String>, Arc<KeyValues>)> {
        let history = if document.history_events == 0 {
            Ok(Arc::default())
        } else {
            let execution_id = document.current_execution_id;
            let events =
                self.read_history(&document.instance_id, execution_id, document.last_event_id).await?;
            events.and_then(|events| match events.len() as u64 {
                count if count == document.history_events => Ok(Arc::new(events)),
                count => Err(format!(
                    "the history of execution {execution_id} has {count} events and should have {}",
                    document.history_events
                )),
            })
        };
        let values = self.read_key_values(document).await?;
        Ok((history, Arc::new(values)))
    }

    /// Reads the events of an execution up to one of them. The inner error is that of a history that cannot be understood.
    pub(crate) async fn read_history(
        &self,
        instance: &str,
        execution_id: u64,
        last_event_id: u64,
    ) -> Result<Result<Vec<Event>, String>> {
        let rows = self.store.query_partition(instance, || queries::history(execution_id)).await?;
        let documents: Result<Vec<HistoryDocument>> = rows.iter().map(|row| row.read()).collect();
        Ok(match documents {
            Ok(documents) => HistoryDocument::events(documents, last_event_id),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Reads the key-value store as it was stored after an execution.
    pub(crate) async fn read_key_values(&self, document: &InstanceDocument) -> Result<KeyValues> {
        let mut values = KeyValues::new();
        for chunk in 0..document.kv_documents {
            let id = ids::key_values_document(&document.instance_id, document.kv_execution_id, chunk);
            let stored: Option<Versioned<KeyValuesDocument>> =
                self.store.read(&document.instance_id, &id).await?;
            let Some(stored) = stored else {
                return Err(Failure::invalid(format!("the document {id} of the key-value store is missing")));
            };
            values.extend(stored.document.values);
        }
        Ok(values)
    }

    /// Reads messages. One that cannot be read is set aside, so that it does not hold up the others.
    async fn read_messages(&self, messages: Vec<MessageDocument>) -> Result<Vec<ReadMessage>> {
        let mut read = Vec::with_capacity(messages.len());
        for message in messages {
            let item = check_version(&format!("The message {}", message.id), message.schema_version)
                .map_err(|error| error.to_string())
                .and_then(|()| {
                    serde_json::from_str(message.work_item.get()).map_err(|error| error.to_string())
                });
            match item {
                Ok(item) => read.push(ReadMessage { id: message.id, item }),
                Err(error) => self.quarantine(&message.instance_id, &message.id, &error).await?,
            }
        }
        Ok(read)
    }

    /// Sets a message or an activity aside that cannot be read.
    pub(crate) async fn quarantine(&self, instance: &str, id: &str, error: &str) -> Result<()> {
        tracing::error!(instance, id, error, "a stored work item cannot be read and is set aside");
        let patch = Patch::new().set("/type", DocumentType::Quarantined).set("/error", error);
        match self.store.patch(instance, id, patch).await {
            Err(error) if !error.is_lost_race() => Err(error),
            _ => Ok(()),
        }
    }

    /// Handles messages of an instance that does not exist. Queue messages are dropped, as duroxide asks; others wait for
    /// the start that they overtook.
    async fn early_messages(
        &self,
        instance: &str,
        messages: &[ReadMessage],
        now: Millis,
    ) -> Result<LockAttempt> {
        let all_queued = messages.iter().all(|message| matches!(message.item, WorkItem::QueueMessage { .. }));
        if !all_queued {
            return Ok(LockAttempt::RetryAt(now + EARLY_MESSAGE_DELAY));
        }
        if !messages.is_empty() {
            let count = messages.len();
            tracing::warn!(
                instance,
                count,
                "queue messages of an instance that was never started are dropped"
            );
        }
        for message in messages {
            self.store.delete(instance, &message.id).await?;
        }
        Ok(LockAttempt::Nothing)
    }
}

/// The name and version of the orchestration: of the instance, its history or its start.
fn describe(
    document: &InstanceDocument,
    history: &[Event],
    messages: &[ReadMessage],
) -> (String, Option<String>) {
    if let Some(name) = &document.orchestration_name {
        return (name.clone(), document.orchestration_version.clone());
    }
    let started = history.iter().find_map(|event| match &event.kind {
        EventKind::OrchestrationStarted { name, version, .. } => Some((name.clone(), Some(version.clone()))),
        _ => None,
    });
    let requested = || {
        messages.iter().find_map(|message| match &message.item {
            WorkItem::StartOrchestration { orchestration, version, .. }
            | WorkItem::ContinueAsNew { orchestration, version, .. } => {
                Some((orchestration.clone(), version.clone()))
            }
            _ => None,
        })
    };
    started.or_else(requested).unwrap_or_default()
}

/// Whether the runtime can replay an execution that is pinned to a version. duroxide uses the first range only.
fn is_supported(filter: &DispatcherCapabilityFilter, version: &semver::Version) -> bool {
    filter.supported_duroxide_versions.first().is_some_and(|range| range.contains(version))
}

fn is_start_item(item: &WorkItem) -> bool {
    matches!(item, WorkItem::StartOrchestration { .. } | WorkItem::ContinueAsNew { .. })
}

/// Whether a message starts its instance, by the beginning of its JSON text.
fn is_start(message: &MessageDocument) -> bool {
    message.work_item.get().starts_with("{\"StartOrchestration\"")
}
