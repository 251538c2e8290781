//! Instances, their histories and values.

use std::sync::Arc;

use duroxide::providers::{InstanceInfo, ProviderError};
use duroxide::{Event, SystemStats};
use perihelion::Query;

use crate::cache::CachedInstance;
use crate::clock::{self, Millis};
use crate::core::Core;
use crate::documents::InstanceDocument;
use crate::error::{Failure, Result};
use crate::ids;
use crate::key_values::{self, KeyValues};
use crate::store::Versioned;

/// How old an instance may be that is answered from memory. Clients ask for the history and then for the status, and ask
/// again after a few milliseconds.
const FRESH: Millis = 20.0;
/// How often an instance is read that keeps changing meanwhile.
const READ_TRIES: usize = 5;

/// An instance, its history or why that cannot be understood, and its values.
type InstanceParts = (Versioned<InstanceDocument>, Result<Arc<Vec<Event>>, String>, Arc<KeyValues>);

impl Core {
    /// An instance with its history and values, at most a few milliseconds old; none if nothing is known of it.
    pub(crate) async fn current_instance(&self, instance: &str) -> Result<Option<Arc<CachedInstance>>> {
        let now = clock::now();
        let cached = self.cache.get(instance);
        if let Some(cached) = &cached
            && now - cached.confirmed_at < FRESH
        {
            return Ok(Some(Arc::clone(cached)));
        }
        let Some(version) = self.read_instance(instance).await? else {
            self.cache.remove(instance);
            return Ok(None);
        };
        if let Some(cached) =
            cached.filter(|cached| cached.version.etag == version.etag && cached.history.is_some())
        {
            let confirmed = CachedInstance { confirmed_at: now, ..(*cached).clone() };
            self.cache.insert(confirmed.clone());
            return Ok(Some(Arc::new(confirmed)));
        }
        let (version, history, key_values) = match self.read_parts(instance, version).await? {
            Some(parts) => parts,
            None => return Ok(None),
        };
        let history = match history {
            Ok(history) => Some(history),
            Err(error) => {
                let message = format!("Failed to deserialize the history of instance {instance:?}: {error}");
                return Err(Failure::invalid(message));
            }
        };
        let current = CachedInstance { version, history, key_values, confirmed_at: now };
        self.cache.insert(current.clone());
        Ok(Some(Arc::new(current)))
    }

    /// The history and values of an instance as its document describes them. They are documents of their own: if a turn
    /// was committed meanwhile, some may be gone, and everything is read again. None if the instance is gone.
    async fn read_parts(
        &self,
        instance: &str,
        mut version: Versioned<InstanceDocument>,
    ) -> Result<Option<InstanceParts>> {
        let mut tries = 0;
        loop {
            tries += 1;
            let read = self.read_state(&version.document).await;
            let is_whole = matches!(&read, Ok((Ok(_), _)));
            if is_whole || tries == READ_TRIES || read.as_ref().is_err_and(Failure::is_retryable) {
                let (history, key_values) = read?;
                return Ok(Some((version, history, key_values)));
            }
            let Some(current) = self.read_instance(instance).await? else { return Ok(None) };
            if current.etag == version.etag {
                let (history, key_values) = read?;
                return Ok(Some((version, history, key_values)));
            }
            version = current;
        }
    }

    /// The document of an instance, at most a few milliseconds old.
    pub(crate) async fn current_document(&self, instance: &str) -> Result<Option<InstanceDocument>> {
        let cached = self.cache.get(instance);
        if let Some(cached) = cached
            && clock::now() - cached.confirmed_at < FRESH
        {
            return Ok(Some(cached.version.document.clone()));
        }
        Ok(self.read_instance(instance).await?.map(|version| version.document))
    }

    /// The history of the current execution.
    pub(crate) async fn read_current_history(&self, instance: &str) -> Result<Vec<Event>> {
        ids::check_instance_id(instance)?;
        let current = self.current_instance(instance).await?;
        Ok(current.and_then(|current| current.history.as_deref().cloned()).unwrap_or_default())
    }

    /// The history of an execution.
    pub(crate) async fn read_execution(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>> {
        ids::check_instance_id(instance)?;
        let document = self.current_document(instance).await?;
        let last_event_id = match &document {
            Some(document) if document.current_execution_id == execution_id => document.last_event_id,
            // What a turn has staged that was never committed.
            Some(document) if document.current_execution_id < execution_id && document.staging.is_some() => 0,
            _ => u64::MAX,
        };
        self.read_history(instance, execution_id, last_event_id).await?.map_err(|error| {
            Failure::invalid(format!("Failed to deserialize the history of instance {instance:?}: {error}"))
        })
    }

    /// The custom status, if it changed after this version of it.
    pub(crate) async fn custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>> {
        ids::check_instance_id(instance)?;
        let document = self.current_document(instance).await?;
        Ok(document
            .filter(|document| document.custom_status_version > last_seen_version)
            .map(|document| (document.custom_status, document.custom_status_version)))
    }

    /// All values of an instance: those of earlier executions, and the changes of the current one.
    pub(crate) async fn key_values(&self, instance: &str) -> Result<KeyValues> {
        ids::check_instance_id(instance)?;
        let Some(current) = self.current_instance(instance).await? else { return Ok(KeyValues::new()) };
        let mut values = (*current.key_values).clone();
        if let Some(history) = &current.history {
            key_values::apply(&mut values, history.iter());
        }
        Ok(values)
    }

    /// Sizes of an instance, so that they are visible before they hurt.
    pub(crate) async fn instance_stats(&self, instance: &str) -> Result<Option<SystemStats>> {
        ids::check_instance_id(instance)?;
        let document = self.read_instance(instance).await?.map(|version| version.document);
        let Some(document) = document.filter(|document| document.orchestration_name.is_some()) else {
            return Ok(None);
        };
        let values = self.key_values(instance).await?;
        Ok(Some(SystemStats {
            history_event_count: document.history_events,
            history_size_bytes: document.history_bytes,
            queue_pending_count: document.carried_events,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.values().map(|stored| stored.value.len() as u64).sum(),
        }))
    }

    /// The document of an instance that exists.
    pub(crate) async fn existing_instance(&self, instance: &str) -> Result<Versioned<InstanceDocument>> {
        ids::check_instance_id(instance)?;
        let version = self.read_instance(instance).await?;
        version
            .filter(|version| version.document.orchestration_name.is_some())
            .ok_or_else(|| Failure::invalid(format!("Instance {instance} not found")))
    }

    /// What is known about an instance.
    pub(crate) async fn instance_info(&self, instance: &str) -> Result<InstanceInfo> {
        let document = self.existing_instance(instance).await?.document;
        let output = self.output(&document).await?;
        Ok(InstanceInfo {
            instance_id: document.instance_id,
            orchestration_name: document.orchestration_name.unwrap_or_default(),
            orchestration_version: document.orchestration_version.unwrap_or_else(|| "unknown".to_owned()),
            current_execution_id: document.current_execution_id,
            status: document.status.unwrap_or_else(|| "Running".to_owned()),
            output,
            created_at: document.created_at,
            updated_at: document.updated_at,
            parent_instance_id: document.parent_instance_id,
        })
    }

    /// The output of the current execution: from the document, or from the history if it is large.
    async fn output(&self, document: &InstanceDocument) -> Result<Option<String>> {
        use duroxide::EventKind;
        if document.output.is_some() || !document.is_terminal() {
            return Ok(document.output.clone());
        }
        let history = self.read_current_history(&document.instance_id).await?;
        Ok(history.into_iter().rev().find_map(|event| match event.kind {
            EventKind::OrchestrationCompleted { output } => Some(output),
            EventKind::OrchestrationFailed { details } => Some(details.display_message()),
            EventKind::OrchestrationContinuedAsNew { input } => Some(input),
            _ => None,
        }))
    }

    /// The ids of instances, newest first: all, or those with a status.
    pub(crate) async fn list_instances(&self, status: Option<&str>) -> Result<Vec<String>> {
        let condition = if status.is_some() { " AND c.status = @status" } else { "" };
        let text = format!(
            "SELECT VALUE c.instanceId FROM c WHERE c.type = 'instance' AND IS_DEFINED(c.status){condition} ORDER BY \
             c.createdAt DESC"
        );
        self.store
            .values(|| match status {
                Some(status) => Query::new(text.as_str()).with_parameter("@status", status),
                None => Query::new(text.as_str()),
            })
            .await
    }

    /// The ids of the instances that an instance has started.
    pub(crate) async fn list_children(&self, instance: &str) -> Result<Vec<String>> {
        self.store
            .values(|| {
                Query::new(
                    "SELECT VALUE c.instanceId FROM c WHERE c.type = 'instance' AND c.parentInstanceId = @parent",
                )
                .with_parameter("@parent", instance)
            })
            .await
    }
}

/// Names the operation of an error, as the runtime expects.
pub(crate) fn named<T>(operation: &str, result: Result<T>) -> Result<T, ProviderError> {
    result.map_err(|failure| failure.into_provider_error(operation))
}
