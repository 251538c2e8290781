//! Deletes instances with everything that belongs to them.
//!
//! First all of them are marked, each under the ETag that was checked; that fences off turns and further deletions. Then
//! their documents go, and that of the instance goes last. A deletion that is interrupted is finished by the reconciler.

use duroxide::providers::{DeleteInstanceResult, InstanceFilter, InstanceTree};
use perihelion::Query;
use serde::Deserialize;

use crate::clock;
use crate::core::Core;
use crate::documents::{DELETING, InstanceDocument};
use crate::error::{Failure, Result};
use crate::ids;
use crate::store::Versioned;

/// The number of instances that one call deletes, unless the caller says otherwise.
const BULK_LIMIT: u32 = 1000;

impl Core {
    /// Deletes instances, all or none: none if one of them runs (unless forced) or has a child that is not among them.
    pub(crate) async fn delete_instances(
        &self,
        instances: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult> {
        let mut checked: Vec<Versioned<InstanceDocument>> = Vec::new();
        for instance in instances {
            ids::check_instance_id(instance)?;
            if let Some(version) = self.read_instance(instance).await? {
                let document = &version.document;
                let is_running = document.orchestration_name.is_some() && !document.is_terminal();
                if is_running && !force && document.status.as_deref() != Some(DELETING) {
                    return Err(Failure::invalid(format!(
                        "Instance {instance} is still running. Use force=true to delete anyway, or cancel first."
                    )));
                }
                checked.push(version);
            }
        }
        for instance in instances {
            for child in self.list_children(instance).await? {
                if !instances.contains(&child) {
                    return Err(Failure::invalid(format!(
                        "Cannot delete {instance}: its sub-orchestration {child} would become an orphan; delete both"
                    )));
                }
            }
        }
        for version in &checked {
            let mut document = version.document.clone();
            document.status = Some(DELETING.to_owned());
            document.lock_token = Some(ids::unique());
            document.updated_at = clock::now() as u64;
            let (instance, id) = (document.instance_id.clone(), document.id.clone());
            self.cache.remove(&instance);
            self.store.replace(&instance, &id, &version.etag, &document).await?;
        }
        let mut result = DeleteInstanceResult::default();
        for instance in instances {
            let counts = self.delete_partition(instance).await?;
            let version = checked.iter().find(|version| version.document.instance_id == *instance);
            if let Some(version) = version.filter(|version| version.document.turns > 0) {
                result.instances_deleted += 1;
                result.executions_deleted += 1 + counts.executions;
                result.events_deleted += version.document.history_events + counts.earlier_events;
            }
            result.queue_messages_deleted += counts.messages;
        }
        Ok(result)
    }

    /// Deletes all documents of an instance, its own last.
    pub(crate) async fn delete_partition(&self, instance: &str) -> Result<DeletedDocuments> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Found {
            id: String,
            #[serde(rename = "type")]
            document_type: String,
            #[serde(default)]
            history_events: u64,
        }
        let found: Vec<Found> = self
            .store
            .values_of_partition(instance, || Query::new("SELECT c.id, c.type, c.historyEvents FROM c"))
            .await?;
        let mut counts = DeletedDocuments::default();
        let mut last = Vec::new();
        let mut ids = Vec::new();
        for document in found {
            match document.document_type.as_str() {
                "instance" => {
                    last.push(document.id);
                    continue;
                }
                "execution" => {
                    counts.executions += 1;
                    counts.earlier_events += document.history_events;
                }
                "orch_queue" | "worker_queue" => counts.messages += 1,
                _ => {}
            }
            ids.push(document.id);
        }
        self.delete_documents(instance, ids).await?;
        self.delete_documents(instance, last).await?;
        self.cache.remove(instance);
        self.instances.ready.lock().forget(instance);
        self.work.ready.lock().forget(instance);
        Ok(counts)
    }

    /// Deletes instances that have ended and that a filter selects, with all their descendants.
    pub(crate) async fn delete_selected(&self, filter: &InstanceFilter) -> Result<DeleteInstanceResult> {
        let mut total = DeleteInstanceResult::default();
        for root in self.select(filter, Selection::EndedRoots).await? {
            let tree = self.instance_tree(&root).await?;
            let deleted = self.delete_instances(&tree.all_ids, true).await?;
            total.instances_deleted += deleted.instances_deleted;
            total.executions_deleted += deleted.executions_deleted;
            total.events_deleted += deleted.events_deleted;
            total.queue_messages_deleted += deleted.queue_messages_deleted;
        }
        Ok(total)
    }

    /// An instance and all its descendants.
    pub(crate) async fn instance_tree(&self, root: &str) -> Result<InstanceTree> {
        let mut all_ids = vec![root.to_owned()];
        let mut next = 0;
        while let Some(instance) = all_ids.get(next).cloned() {
            for child in self.list_children(&instance).await? {
                if !all_ids.contains(&child) {
                    all_ids.push(child);
                }
            }
            next += 1;
        }
        Ok(InstanceTree { root_id: root.to_owned(), all_ids })
    }

    /// The instances that a filter selects.
    pub(crate) async fn select(&self, filter: &InstanceFilter, selection: Selection) -> Result<Vec<String>> {
        if filter.instance_ids.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Vec::new());
        }
        let mut text = format!(
            "SELECT TOP {} VALUE c.instanceId FROM c WHERE c.type = 'instance' AND IS_DEFINED(c.status)",
            filter.limit.unwrap_or(BULK_LIMIT)
        );
        if selection == Selection::EndedRoots {
            text += " AND c.status IN ('Completed', 'Failed', 'ContinuedAsNew') AND NOT IS_DEFINED(c.parentInstanceId)";
        }
        if filter.instance_ids.is_some() {
            text += " AND ARRAY_CONTAINS(@instances, c.instanceId)";
        }
        if filter.completed_before.is_some() {
            text += " AND c.completedAt < @before";
        }
        self.store
            .values(|| {
                let mut query = Query::new(text.as_str());
                if let Some(instances) = &filter.instance_ids {
                    query = query.with_parameter("@instances", instances);
                }
                if let Some(before) = filter.completed_before {
                    query = query.with_parameter("@before", before);
                }
                query
            })
            .await
    }
}

/// Which instances a filter selects from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All instances, whatever their status.
    All,
    /// Those that have ended and that no other instance has started.
    EndedRoots,
}

/// What was deleted with an instance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeletedDocuments {
    pub(crate) executions: u64,
    pub(crate) earlier_events: u64,
    pub(crate) messages: u64,
}
