//! Turns that do not fit into one batch: what they write is staged first, and one batch makes it visible.
//!
//! Events are staged as they are: those beyond the last event of the instance's document do not count. Work items and
//! messages are staged under another type, and the batch that commits the turn writes a document that says so; they get
//! their own type afterwards, by this process or by whoever finds that document. A turn that ends before its commit is
//! repeated from the beginning, and what it has staged is removed.

use std::sync::Arc;

use perihelion::{Batch, Patch};
use serde::Serialize;
use serde_json::Value;

use super::ack::{Committed, shared_writes};
use super::batch::{OPERATIONS_MAX, Write, split};
use super::plan::AckPlan;
use crate::core::Core;
use crate::documents::{DocumentType, InstanceDocument, ReleaseDocument};
use crate::error::Result;
use crate::held::HeldTurn;
use crate::queries;

impl Core {
    /// Stages the writes of a large turn, commits it, and makes what was staged visible.
    pub(super) async fn commit_staged(
        self: &Arc<Core>,
        held: &mut HeldTurn,
        plan: &mut AckPlan,
        cancelled: Vec<String>,
    ) -> Result<Committed> {
        let instance = held.instance().to_owned();
        let token = held.token.text.clone();
        for document in &mut plan.work {
            // A staged item is visible to nobody, so nobody can have it locked.
            if document.lock_token.is_some() {
                document.unlock(document.enqueued_at, true);
            }
        }
        self.begin_staging(held).await?;

        let mut writes = Vec::new();
        for document in &plan.history {
            writes.push(Write::upsert(document)?);
        }
        for document in &plan.key_values {
            writes.push(Write::upsert(document)?);
        }
        for document in &plan.work {
            writes.push(Write::upsert(&staged(document, &token)?)?);
        }
        for document in &plan.messages {
            writes.push(Write::upsert(&staged(document, &token)?)?);
        }
        for document in &plan.intents {
            writes.push(Write::upsert(&staged(document, &token)?)?);
        }
        for part in split(writes) {
            let batch = part.iter().fold(Batch::new(instance.as_str()), |batch, write| write.add_to(batch));
            self.store.execute(batch).await?;
        }

        let key_values = std::mem::take(&mut plan.key_values);
        let commit = shared_writes(plan);
        plan.key_values = key_values;
        let mut commit = commit?;
        let created_at = plan.instance.updated_at;
        let mut release = ReleaseDocument::new(&instance, plan.instance.turns, &token, created_at);
        release.cancelled = cancelled;
        // What a batch has no room for is deleted afterwards.
        while commit.len() + 2 > OPERATIONS_MAX {
            match commit.pop() {
                Some(Write::Delete(id)) => release.cancelled.push(id),
                Some(other) => {
                    commit.push(other);
                    break;
                }
                None => break,
            }
        }
        commit.push(Write::create(&release)?);
        let batch = Batch::new(instance.as_str())
            .replace(&plan.instance.id, &plan.instance)
            .if_match(&held.version.etag);
        let batch = commit.iter().fold(batch, |batch, write| write.add_to(batch));
        let results = self.store.execute(batch).await?;
        let etag = results.into_iter().next().and_then(|result| result.etag);
        if let Err(error) = self::release(self, &release).await {
            tracing::warn!(instance, %error, "a committed turn will be made visible by the reconciler");
            plan.messages.clear();
            plan.intents.clear();
        }
        Ok(Committed { etag, work_etags: Vec::new() })
    }

    /// Notes in the document of the instance that something is being staged, so that the next turn removes what an
    /// interrupted one has left.
    async fn begin_staging(&self, held: &mut HeldTurn) -> Result<()> {
        let mut document = held.version.document.clone();
        if document.staging.is_some() {
            self.remove_staged(&document).await?;
        }
        document.staging = Some(held.token.text.clone());
        let id = document.id.clone();
        held.version.etag = self.store.replace(held.instance(), &id, &held.version.etag, &document).await?;
        held.version.document = document;
        Ok(())
    }

    /// Removes what turns have staged that were never committed.
    pub(super) async fn remove_staged(&self, document: &InstanceDocument) -> Result<()> {
        let instance = &document.instance_id;
        let committed: Vec<ReleaseDocument> = self
            .store
            .query_partition(instance, || queries::all_of_type("release"))
            .await?
            .iter()
            .map(|row| row.read())
            .collect::<Result<_>>()?;
        let rows = self.store.query_partition(instance, queries::staged).await?;
        let mut orphans: Vec<String> = Vec::new();
        for row in rows {
            let value: Value = row.read()?;
            let is_committed = committed.iter().any(|release| value["stagedBy"] == release.staged_by);
            if !is_committed && let Some(id) = value["id"].as_str() {
                orphans.push(id.to_owned());
            }
        }
        let next_event = document.last_event_id + 1;
        let (current, next) = (document.current_execution_id, document.current_execution_id + 1);
        for (execution, event) in [(current, next_event), (next, 0)] {
            let query = || queries::history_from(execution, event);
            orphans.extend(self.store.values_of_partition::<String>(instance, query).await?);
        }
        self.delete_documents(instance, orphans).await
    }

    /// Deletes documents of one partition. Those that do not exist are no error.
    pub(crate) async fn delete_documents(&self, partition: &str, ids: Vec<String>) -> Result<()> {
        for part in split(ids.into_iter().map(Write::Delete).collect()) {
            let batch = part.iter().fold(Batch::new(partition), |batch, write| write.add_to(batch));
            match self.store.execute(batch).await {
                Err(error) if error.is_lost_race() || error.is_undecided() => {
                    for write in &part {
                        if let Write::Delete(id) = write {
                            self.store.delete(partition, id).await?;
                        }
                    }
                }
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

/// A document under the type of staged ones; its own type is noted beside it.
fn staged(document: &impl Serialize, token: &str) -> Result<Value> {
    let mut value = serde_json::to_value(document)?;
    value["stagedType"] = value["type"].take();
    value["type"] = serde_json::to_value(DocumentType::Staged)?;
    value["stagedBy"] = Value::String(token.to_owned());
    Ok(value)
}

/// Makes what a committed turn has staged visible, and deletes the work items of activities that it has cancelled. Does
/// nothing a second time.
pub(crate) async fn release(core: &Arc<Core>, release: &ReleaseDocument) -> Result<()> {
    let instance = &release.instance_id;
    loop {
        let rows = core.store.query_partition(instance, queries::staged).await?;
        let mut visible = Vec::new();
        for row in rows {
            let value: Value = row.read()?;
            if value["stagedBy"] == release.staged_by
                && let (Some(id), Some(_)) = (value["id"].as_str(), value["stagedType"].as_str())
            {
                visible.push((id.to_owned(), value["stagedType"].clone()));
            }
        }
        if visible.is_empty() {
            break;
        }
        for part in visible.chunks(OPERATIONS_MAX) {
            let batch = part.iter().fold(Batch::new(instance.as_str()), |batch, (id, document_type)| {
                batch.patch(id, Patch::new().set("/type", document_type).remove("/stagedType"))
            });
            match core.store.execute(batch).await {
                // Somebody else does the same.
                Err(error) if error.is_lost_race() => break,
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
    }
    core.delete_documents(instance, release.cancelled.clone()).await?;
    core.store.delete(instance, &release.id).await
}
