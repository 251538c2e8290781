//! Everything about one instance.

use serde::Serialize;

use super::waiting::{QuarantinedItem, WaitingActivity, WaitingMessage};
use super::{InstanceSelector, InstanceSummary, Operator, OperatorError, PENDING};
use crate::error::Result;

/// How many sub-orchestrations are listed.
const CHILDREN_MAX: usize = 100;

/// Everything about one instance but its history. Times are milliseconds since 1970.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InstanceDetails {
    /// What a list says about the instance.
    #[serde(flatten)]
    pub summary: InstanceSummary,
    /// The whole output, or the error of an instance that failed.
    #[serde(rename = "fullOutput", skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The version of duroxide that the current execution has to be processed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duroxide_version: Option<String>,
    /// The number of turns so far.
    pub turns: u64,
    /// How often the custom status was set.
    pub custom_status_version: u64,
    /// The executions, the oldest first.
    pub executions: Vec<ExecutionSummary>,
    /// The instances that this one has started as sub-orchestrations: at most 100.
    pub children: Vec<InstanceSummary>,
    /// The key-value store; none if it cannot be read, because the history cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_values: Option<KeyValueSize>,
    /// Queue messages that the current execution took over from the one before.
    pub carried_messages: u64,
    /// The number of messages that wait.
    pub message_count: u64,
    /// The messages that wait: at most 100.
    pub messages: Vec<WaitingMessage>,
    /// The number of activities that wait or are executed.
    pub activity_count: u64,
    /// The activities that wait or are executed: at most 100.
    pub activities: Vec<WaitingActivity>,
    /// The messages and activities that cannot be read: at most 100.
    pub quarantined: Vec<QuarantinedItem>,
}

/// An execution of an instance. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExecutionSummary {
    /// The number of the execution.
    pub execution_id: u64,
    /// `Running`, `Completed`, `Failed` or `ContinuedAsNew`.
    pub status: String,
    /// When the execution began.
    pub started_at: u64,
    /// When the execution ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<u64>,
    /// The number of its events.
    pub events: u64,
}

/// The size of the key-value store of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeyValueSize {
    /// The number of keys.
    pub keys: u64,
    /// The bytes of all values.
    pub bytes: u64,
}

impl Operator {
    /// Everything about one instance but its history.
    pub async fn details(&self, instance: &str) -> Result<InstanceDetails, OperatorError> {
        let contents = self.read_partition(instance).await?;
        if let Some(error) = &contents.instance_error {
            return Err(OperatorError::Refused(format!(
                "the document of instance {instance:?} cannot be read: {error}"
            )));
        }
        let summary = self.summary(instance).await?.unwrap_or_else(|| {
            let start = contents.messages.iter().find(|message| message.kind == "StartOrchestration");
            let (name, at) = start.map_or(("", 0), |start| (start.subject.as_str(), start.enqueued_at));
            InstanceSummary::not_started(instance, name, at)
        });
        let started = contents.instance.as_ref().filter(|_| summary.status != PENDING);
        let mut executions = Vec::new();
        if started.is_some() {
            for id in self.core.list_executions(instance).await? {
                let found = self.core.execution_info(instance, id).await?;
                executions.push(ExecutionSummary {
                    execution_id: id,
                    status: found.status,
                    started_at: found.started_at,
                    completed_at: found.completed_at,
                    events: found.event_count as u64,
                });
            }
        }
        let children = InstanceSelector {
            parent: Some(instance.to_owned()),
            limit: Some(CHILDREN_MAX),
            ..InstanceSelector::default()
        };
        // Both need the history, which may be what is wrong with the instance.
        let (values, output) = match started {
            Some(_) => (
                self.core.key_values(instance).await.ok(),
                self.core.instance_info(instance).await.ok().and_then(|info| info.output),
            ),
            None => (None, None),
        };
        let key_values = values.map(|values| KeyValueSize {
            keys: values.len() as u64,
            bytes: values.values().map(|stored| stored.value.len() as u64).sum(),
        });
        let document = contents.instance.as_ref();
        Ok(InstanceDetails {
            output: output.or_else(|| summary.output.clone()),
            duroxide_version: document
                .and_then(|document| document.pinned_duroxide_version)
                .map(|version| version.to_semver().to_string()),
            turns: document.map_or(0, |document| document.turns),
            custom_status_version: document.map_or(0, |document| document.custom_status_version),
            executions,
            children: self.list(&children).await?,
            key_values,
            carried_messages: document.map_or(0, |document| document.carried_events),
            message_count: contents.count("orch_queue"),
            activity_count: contents.count("worker_queue"),
            messages: contents.messages,
            activities: contents.activities,
            quarantined: contents.quarantined,
            summary,
        })
    }
}
