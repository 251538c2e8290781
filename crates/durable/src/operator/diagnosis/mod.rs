//! Why an instance does not move: what it waits for, who has it, and what went wrong.

mod conclude;

use duroxide::EventKind;
use serde::Serialize;

use super::partition::PartitionContents;
use super::timeline::{Timeline, TimelineSpan, WaitKind};
use super::waiting::{
    QuarantinedItem, UndeliveredMessage, UnreleasedTurn, WaitingActivity, WaitingMessage, holder,
};
use super::{History, Operator, OperatorError, PENDING};
use crate::clock;
use crate::documents::InstanceDocument;
use crate::error::Result;

/// Why an instance does not move. Times are milliseconds since 1970; of each kind of document at most 100 are listed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Diagnosis {
    /// The id of the instance.
    pub instance_id: String,
    /// When this was found out.
    pub at: u64,
    /// The status of the instance.
    pub status: String,
    /// What is the case, the most important first, and what to do about it.
    pub findings: Vec<Finding>,
    /// The lock on the instance, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// The number of messages that wait.
    pub message_count: u64,
    /// The messages that wait.
    pub messages: Vec<WaitingMessage>,
    /// The number of activities that wait or are executed.
    pub activity_count: u64,
    /// The activities that wait or are executed.
    pub activities: Vec<WaitingActivity>,
    /// The messages and activities that were set aside because they cannot be read.
    pub quarantined: Vec<QuarantinedItem>,
    /// Messages to other instances that are not known to be delivered.
    pub undelivered: Vec<UndeliveredMessage>,
    /// Large turns that are committed and not completely visible.
    pub unreleased: Vec<UnreleasedTurn>,
    /// The number of documents of large turns that are not visible.
    pub staged: u64,
    /// What the current execution waits for.
    pub waits: Vec<TimelineSpan>,
    /// The last error in the history of the current execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<HistoryError>,
    /// Why the history or the document of the instance cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
    /// The version of duroxide that the current execution has to be processed with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duroxide_version: Option<String>,
}

/// The lock on an instance: a turn of it is being processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Lock {
    /// The host and process that have it.
    pub holder: String,
    /// The whole token of the lock.
    pub token: String,
    /// Until when it is valid, in milliseconds since 1970.
    pub until: u64,
    /// Whether that time has passed.
    pub expired: bool,
    /// The number of messages that the turn processes.
    pub messages: usize,
    /// The largest number of times that one of them was fetched.
    pub attempts: u32,
}

/// An error in the history of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HistoryError {
    /// The event that reports it.
    pub event_id: u64,
    /// When it was reported, in milliseconds since 1970.
    pub at: u64,
    /// What failed, with its name.
    pub what: String,
    /// The message of the error.
    pub message: String,
}

/// Something that is the case with an instance, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Finding {
    /// Whether this keeps the instance from moving and will not end by itself.
    pub is_problem: bool,
    /// What is the case.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Operator {
    /// Finds out why an instance does not move.
    pub async fn diagnose(&self, instance: &str) -> Result<Diagnosis, OperatorError> {
        let contents = self.read_partition(instance).await?;
        let history = match &contents.instance {
            Some(document) if document.history_events > 0 => self.read_entries(document, None).await?,
            _ => History::default(),
        };
        let now = clock::now() as u64;
        let mut diagnosis = Diagnosis::new(instance, contents, &history, now);
        let children = self.statuses_of_children(&diagnosis.waits).await?;
        diagnosis.findings = conclude::findings(&diagnosis, &children);
        Ok(diagnosis)
    }

    /// The status of each sub-orchestration that is waited for; none if it has no document.
    async fn statuses_of_children(&self, waits: &[TimelineSpan]) -> Result<Vec<(String, Option<String>)>> {
        let mut statuses = Vec::new();
        let children = waits.iter().filter(|wait| wait.kind == WaitKind::SubOrchestration);
        for child in children.filter_map(|wait| wait.instance_id.as_ref()).take(conclude::LISTED_MAX) {
            let status = self.summary(child).await?.map(|summary| summary.status);
            statuses.push((child.clone(), status));
        }
        Ok(statuses)
    }
}

impl Diagnosis {
    /// The facts, without findings.
    fn new(instance: &str, contents: PartitionContents, history: &History, now: u64) -> Diagnosis {
        let document = contents.instance.as_ref();
        let timeline = Timeline::new(history.events());
        Diagnosis {
            instance_id: instance.to_owned(),
            at: now,
            status: document
                .and_then(|document| document.status.clone())
                .unwrap_or_else(|| PENDING.to_owned()),
            findings: Vec::new(),
            lock: document.and_then(|document| Lock::of(document, now)),
            message_count: contents.count("orch_queue"),
            activity_count: contents.count("worker_queue"),
            staged: contents.count("staged"),
            waits: timeline.open().cloned().collect(),
            last_error: last_error(history),
            unreadable: contents.instance_error.clone().or_else(|| history.problem.clone()),
            duroxide_version: document
                .and_then(|document| document.pinned_duroxide_version)
                .map(|version| version.to_semver().to_string()),
            messages: contents.messages,
            activities: contents.activities,
            quarantined: contents.quarantined,
            undelivered: contents.undelivered,
            unreleased: contents.unreleased,
        }
    }
}

impl Lock {
    fn of(document: &InstanceDocument, now: u64) -> Option<Lock> {
        let token = document.lock_token.clone()?;
        let until = document.locked_until.unwrap_or_default() as u64;
        Some(Lock {
            holder: holder(&token),
            token,
            until,
            expired: until <= now,
            messages: document.locked_messages.len(),
            attempts: document.attempts_max(),
        })
    }
}

/// The last error in a history.
fn last_error(history: &History) -> Option<HistoryError> {
    history.events().rev().find_map(|event| {
        let (what, details) = match &event.kind {
            EventKind::OrchestrationFailed { details } => ("the orchestration", details),
            EventKind::ActivityFailed { details } => ("an activity", details),
            EventKind::SubOrchestrationFailed { details } => ("a sub-orchestration", details),
            _ => return None,
        };
        let source = event.source_event_id;
        let name = history.events().find_map(|scheduled| match &scheduled.kind {
            EventKind::ActivityScheduled { name, .. } | EventKind::SubOrchestrationScheduled { name, .. }
                if Some(scheduled.event_id) == source =>
            {
                Some(name)
            }
            _ => None,
        });
        Some(HistoryError {
            event_id: event.event_id,
            at: event.timestamp_ms,
            what: name.map_or_else(|| what.to_owned(), |name| format!("{what} ({name})")),
            message: details.display_message(),
        })
    })
}
