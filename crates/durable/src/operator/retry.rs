//! Gives work another try that is stuck. Every change is conditional: what a runtime has taken meanwhile stays as it is.

use std::collections::HashMap;

use perihelion::{Batch, Patch, Query};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::waiting::{WaitingMessage, is_activity};
use super::{InstanceSelector, InstanceSummary, Operator, OperatorError, restart};
use crate::clock::{self, Millis};
use crate::documents::{DocumentType, InstanceDocument, IntentDocument, ReleaseDocument, WorkDocument};
use crate::error::Result;
use crate::queries;
use crate::store::Versioned;
use crate::turn;

/// How old something must be that its process should have finished, in milliseconds.
const LEFT_BEHIND: Millis = 2_000.0;
/// How many messages of an instance are made visible at a time: with its document they have to fit into one batch.
const MESSAGES_MAX: usize = 90;
/// How many instances one query asks for.
const IDS_MAX: usize = 100;

/// Something that can be given another try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RetryItem {
    /// The id of the instance.
    pub instance_id: String,
    /// What is done about it.
    pub action: RetryAction,
    /// The document that it is done to: the id of a message, an activity or an instance, or the new instance.
    pub subject: String,
}

/// What is done to give something another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RetryAction {
    /// A message or an activity that could not be read goes back into its queue.
    RestoreQuarantined,
    /// An activity whose worker has not ended it in time, or that failed to be executed, is offered to workers now, as if
    /// it was never tried.
    ResetActivity,
    /// An instance whose turns were not ended in time, or failed, is offered to runtimes now, as if it was never tried.
    ResetInstance,
    /// A message to another instance is delivered.
    DeliverMessage,
    /// A committed large turn is made visible.
    ReleaseTurn,
    /// A failed instance is started once more, under a new id.
    Restart,
}

impl RetryAction {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            RetryAction::RestoreQuarantined => "restore quarantined",
            RetryAction::ResetActivity => "reset activity",
            RetryAction::ResetInstance => "reset instance",
            RetryAction::DeliverMessage => "deliver message",
            RetryAction::ReleaseTurn => "release turn",
            RetryAction::Restart => "restart",
        }
    }
}

/// What became of a retry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryOutcome {
    /// The retry was done.
    Done,
    /// There was no need for it, for this reason.
    Skipped(String),
}

impl Operator {
    /// What can be given another try among the instances that a selector selects; failed instances only if asked for.
    pub async fn retryable(
        &self,
        selector: &InstanceSelector,
        failed: bool,
    ) -> Result<Vec<RetryItem>, OperatorError> {
        let mut items = self.stuck().await?;
        let known = self.summaries_of(&items).await?;
        items.retain(|item| match known.get(&item.instance_id) {
            Some(summary) => selector.matches(summary),
            None => selector.matches(&InstanceSummary::not_started(&item.instance_id, "", 0)),
        });
        if failed {
            let mut selector = selector.clone();
            selector.roots_only = true;
            selector.statuses = vec!["Failed".to_owned()];
            for instance in self.list(&selector).await? {
                if self.can_restart(&instance).await? {
                    items.push(RetryItem {
                        action: RetryAction::Restart,
                        subject: restart::successor(&instance.instance_id),
                        instance_id: instance.instance_id,
                    });
                }
            }
        }
        items.truncate(selector.limit.unwrap_or(usize::MAX));
        Ok(items)
    }

    /// Gives one thing another try.
    pub async fn retry(&self, item: &RetryItem) -> Result<RetryOutcome, OperatorError> {
        let (instance, subject) = (item.instance_id.as_str(), item.subject.as_str());
        let done = match item.action {
            RetryAction::RestoreQuarantined => self.restore_quarantined(instance, subject).await,
            RetryAction::ResetActivity => self.reset_activity(instance, subject).await,
            RetryAction::ResetInstance => self.reset_instance(instance).await,
            RetryAction::DeliverMessage => self.deliver_message(instance, subject).await,
            RetryAction::ReleaseTurn => self.release_turn(instance, subject).await,
            RetryAction::Restart => return self.restart(instance).await,
        };
        match done {
            Err(error) if error.is_lost_race() => {
                Ok(RetryOutcome::Skipped("somebody else has changed it meanwhile".to_owned()))
            }
            Err(error) => Err(error.into()),
            Ok(outcome) => Ok(outcome),
        }
    }

    /// Everything that no runtime seems to take care of.
    async fn stuck(&self) -> Result<Vec<RetryItem>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Found {
            instance_id: String,
            id: String,
            #[serde(rename = "type")]
            document_type: String,
        }
        let now = clock::now();
        // A document that was fetched and is not locked was given back after a failure.
        let text = "SELECT c.instanceId, c.id, c.type FROM c WHERE c.type = 'quarantined' OR (c.type = 'worker_queue' AND \
             (c.lockedUntil <= @now OR (NOT IS_DEFINED(c.lockToken) AND c.attemptCount > 0))) OR (c.type = 'instance' AND \
             (NOT IS_DEFINED(c.status) OR c.status = 'Running') AND (c.lockedUntil <= @now OR (NOT \
             IS_DEFINED(c.lockToken) AND IS_DEFINED(c.attempts)))) OR ((c.type = 'outbox_intent' OR c.type = 'release') \
             AND c.createdAt < @before)";
        let found: Vec<Found> = self
            .core
            .store
            .values(|| {
                Query::new(text).with_parameter("@now", now).with_parameter("@before", now - LEFT_BEHIND)
            })
            .await?;
        let items = found.into_iter().filter_map(|found| {
            let action = match found.document_type.as_str() {
                "quarantined" => RetryAction::RestoreQuarantined,
                "worker_queue" => RetryAction::ResetActivity,
                "instance" => RetryAction::ResetInstance,
                "outbox_intent" => RetryAction::DeliverMessage,
                "release" => RetryAction::ReleaseTurn,
                _ => return None,
            };
            Some(RetryItem { instance_id: found.instance_id, action, subject: found.id })
        });
        Ok(items.collect())
    }

    async fn summaries_of(
        &self,
        items: &[RetryItem],
    ) -> Result<HashMap<String, InstanceSummary>, OperatorError> {
        let mut ids: Vec<&str> = items.iter().map(|item| item.instance_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut summaries = HashMap::new();
        for ids in ids.chunks(IDS_MAX) {
            for summary in self.list(&InstanceSelector::with_ids(ids.iter().copied())).await? {
                summaries.insert(summary.instance_id.clone(), summary);
            }
        }
        Ok(summaries)
    }

    async fn restore_quarantined(&self, instance: &str, id: &str) -> Result<RetryOutcome> {
        let stored: Option<Versioned<Value>> = self.core.store.read(instance, id).await?;
        let Some(document) = stored.map(|stored| stored.document) else { return Ok(gone()) };
        let document_type =
            if is_activity(&document) { DocumentType::WorkerQueue } else { DocumentType::OrchQueue };
        let mut patch = Patch::new().set("/type", document_type);
        if document.get("error").is_some() {
            patch = patch.remove("/error");
        }
        let patch = patch.only_if("FROM c WHERE c.type = 'quarantined'");
        self.core.store.patch(instance, id, patch).await?;
        Ok(RetryOutcome::Done)
    }

    async fn reset_activity(&self, instance: &str, id: &str) -> Result<RetryOutcome> {
        let stored: Option<Versioned<WorkDocument>> = self.core.store.read(instance, id).await?;
        let Some(Versioned { mut document, etag }) = stored else { return Ok(gone()) };
        let is_locked = document.locked_until.is_some_and(|until| until > clock::now());
        if is_locked || document.document_type != DocumentType::WorkerQueue {
            return Ok(RetryOutcome::Skipped("a worker has it".to_owned()));
        }
        // Where it was enqueued is its place among the others.
        document.unlock(document.enqueued_at, false);
        document.attempt_count = 0;
        self.core.store.replace(instance, id, &etag, &document).await?;
        Ok(RetryOutcome::Done)
    }

    async fn reset_instance(&self, instance: &str) -> Result<RetryOutcome> {
        let Some(Versioned { mut document, etag }) = self.core.read_instance(instance).await? else {
            return Ok(gone());
        };
        let now = clock::now();
        if document.busy_until(now).is_some() {
            return Ok(RetryOutcome::Skipped("a runtime processes it".to_owned()));
        }
        let hidden = self.given_back(&document, now).await?;
        document.unlock(false);
        document.attempts.clear();
        let id = document.id.clone();
        let mut batch = Batch::new(instance).replace(&id, &document).if_match(&etag);
        for message in hidden.iter().take(MESSAGES_MAX) {
            batch = batch.patch(message, Patch::new().set("/visibleAt", now));
        }
        self.core.store.execute(batch).await?;
        Ok(RetryOutcome::Done)
    }

    /// Messages that wait after a failed attempt. Timers, and messages that were sent with a delay, wait on purpose.
    async fn given_back(&self, document: &InstanceDocument, now: Millis) -> Result<Vec<String>> {
        if document.attempts.is_empty() {
            return Ok(Vec::new());
        }
        let query = || queries::all_of_type("orch_queue");
        let messages: Vec<Value> = self.core.store.values_of_partition(&document.instance_id, query).await?;
        let messages = messages.iter().map(|message| WaitingMessage::of(message, Some(document)));
        let hidden = messages
            .filter(|message| message.attempts > 0 && message.visible_at > now as u64 && !message.is_timer());
        Ok(hidden.map(|message| message.id).collect())
    }

    async fn deliver_message(&self, instance: &str, id: &str) -> Result<RetryOutcome> {
        let stored: Option<Versioned<IntentDocument>> = self.core.store.read(instance, id).await?;
        let Some(stored) = stored else { return Ok(gone()) };
        self.core.deliver_one(&stored.document).await?;
        self.core.store.delete(instance, id).await?;
        Ok(RetryOutcome::Done)
    }

    async fn release_turn(&self, instance: &str, id: &str) -> Result<RetryOutcome> {
        let stored: Option<Versioned<ReleaseDocument>> = self.core.store.read(instance, id).await?;
        let Some(stored) = stored else { return Ok(gone()) };
        turn::release(&self.core, &stored.document).await?;
        Ok(RetryOutcome::Done)
    }
}

fn gone() -> RetryOutcome {
    RetryOutcome::Skipped("it is gone: somebody has processed it".to_owned())
}
