//! What happens to instances, as it happens.

use std::collections::HashMap;

use perihelion::Query;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::waiting::QuarantinedItem;
use super::{InstanceSelector, Operator, OperatorError};
use crate::documents::DELETING;
use crate::error::Result;

/// By how many seconds the clocks of physical partitions may differ.
const PARTITION_CLOCK_DIFFERENCE: u64 = 5;
/// By how many milliseconds the clocks of runtimes and of the account may differ.
const CLOCK_DIFFERENCE: u64 = 60_000;
/// How long what was reported is remembered, in milliseconds.
const MEMORY: u64 = 600_000;

/// Something that happened to an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InstanceChange {
    /// When it happened, in milliseconds since 1970.
    pub at: u64,
    /// What happened to the instance.
    pub kind: ChangeKind,
    /// The id of the instance.
    pub instance_id: String,
    /// The name of the orchestration.
    pub orchestration_name: String,
    /// The output or the error, as far as there is one.
    pub detail: String,
}

/// What happened to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The instance has begun.
    Started,
    /// It goes on in a new execution.
    Continued,
    /// It has ended with a result.
    Completed,
    /// It has ended with an error.
    Failed,
    /// It is being deleted.
    Deleting,
    /// A message to it, or an activity of it, cannot be read and was set aside.
    Quarantined,
}

impl ChangeKind {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Started => "started",
            ChangeKind::Continued => "continued",
            ChangeKind::Completed => "completed",
            ChangeKind::Failed => "failed",
            ChangeKind::Deleting => "deleting",
            ChangeKind::Quarantined => "quarantined",
        }
    }

    /// Whether something went wrong.
    pub fn is_failure(self) -> bool {
        matches!(self, ChangeKind::Failed | ChangeKind::Quarantined)
    }
}

/// Reports what happens to instances. It asks for documents that were written since it last asked, so an instance that
/// begins and ends in between is reported with both, and one that is deleted in between is not reported. Clocks of runtimes
/// may differ from that of the account by up to a minute.
#[derive(Debug)]
pub struct ChangeFollower {
    selector: InstanceSelector,
    /// The largest timestamp of a document so far, in seconds since 1970.
    newest: u64,
    /// What happened before this time is not reported.
    floor: u64,
    /// What was reported, and when it happened.
    reported: HashMap<(String, String), u64>,
}

/// A document that was written lately.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    id: String,
    instance_id: String,
    #[serde(rename = "type")]
    document_type: String,
    #[serde(default)]
    orchestration_name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    current_execution_id: u64,
    #[serde(default)]
    created_at: u64,
    #[serde(default)]
    updated_at: u64,
    #[serde(default)]
    started_at: u64,
    #[serde(default)]
    completed_at: Option<u64>,
    #[serde(default)]
    output: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    work_item: Value,
    #[serde(rename = "_ts", default)]
    timestamp: u64,
}

impl Operator {
    /// Reports what happens from now on to instances whose id and orchestration a selector selects; its other conditions do
    /// not count.
    pub async fn follow(&self, selector: &InstanceSelector) -> Result<ChangeFollower, OperatorError> {
        let newest: Vec<Value> = self
            .core
            .store
            .values(|| {
                Query::new("SELECT VALUE MAX(c._ts) FROM c WHERE c.type IN ('instance', 'quarantined')")
            })
            .await?;
        let newest = newest.iter().filter_map(Value::as_u64).max().unwrap_or_default();
        let mut follower = ChangeFollower {
            selector: selector.clone(),
            newest,
            floor: (newest * 1_000).saturating_sub(CLOCK_DIFFERENCE),
            reported: HashMap::new(),
        };
        // What happened until now is known, not reported.
        let window = newest.saturating_sub(2 * CLOCK_DIFFERENCE / 1_000);
        for document in self.changed_since(window).await? {
            follower.note(&document);
        }
        Ok(follower)
    }

    /// What happened since this was last asked, the oldest first.
    pub async fn next_changes(
        &self,
        follower: &mut ChangeFollower,
    ) -> Result<Vec<InstanceChange>, OperatorError> {
        let since = follower.newest.saturating_sub(PARTITION_CLOCK_DIFFERENCE);
        let documents = self.changed_since(since).await?;
        let mut changes: Vec<InstanceChange> =
            documents.iter().flat_map(|document| follower.note(document)).collect();
        follower.forget();
        changes.sort_by_key(|change| change.at);
        Ok(changes)
    }

    /// The documents that were written at this time or later, in seconds since 1970.
    async fn changed_since(&self, since: u64) -> Result<Vec<Changed>> {
        self.core
            .store
            .values(|| {
                Query::new(
                    "SELECT c.id, c.instanceId, c.type, c.orchestrationName, c.status, c.currentExecutionId, c.createdAt, \
                     c.updatedAt, c.startedAt, c.completedAt, LEFT(c.output, 500) AS output, c.error, (c.type = \
                     'quarantined' ? c.workItem : null) AS workItem, c._ts FROM c WHERE c.type IN ('instance', \
                     'quarantined') AND c._ts >= @since",
                )
                .with_parameter("@since", since)
            })
            .await
    }
}

impl ChangeFollower {
    /// What a document says that was written lately and that was not reported yet.
    fn note(&mut self, document: &Changed) -> Vec<InstanceChange> {
        self.newest = self.newest.max(document.timestamp);
        let mut changes = Vec::new();
        for (kind, at, detail) in document.changes() {
            // An instance starts once; the rest may happen to each execution.
            let execution = if kind == ChangeKind::Started { 1 } else { document.current_execution_id };
            let what = format!("{} {execution} {}", kind.name(), document.id);
            let is_new =
                at >= self.floor && self.reported.insert((document.instance_id.clone(), what), at).is_none();
            if is_new && self.selects(document) {
                changes.push(InstanceChange {
                    at,
                    kind,
                    instance_id: document.instance_id.clone(),
                    orchestration_name: document.orchestration_name.clone(),
                    detail,
                });
            }
        }
        changes
    }

    /// Forgets what was reported long ago. It is not reported again: it is before the time that counts then.
    fn forget(&mut self) {
        self.floor = self.floor.max((self.newest * 1_000).saturating_sub(MEMORY));
        self.reported.retain(|_, at| *at >= self.floor);
    }

    fn selects(&self, document: &Changed) -> bool {
        let begins = |text: &str, prefix: &Option<String>| {
            prefix.as_ref().is_none_or(|prefix| text.starts_with(prefix.as_str()))
        };
        begins(&document.instance_id, &self.selector.id_prefix)
            && (self.selector.ids.is_empty() || self.selector.ids.contains(&document.instance_id))
            && (begins(&document.orchestration_name, &self.selector.name_prefix)
                // Documents that were set aside do not name their orchestration.
                || document.document_type == "quarantined")
    }
}

impl Changed {
    /// What the document says has happened, with the time and details.
    fn changes(&self) -> Vec<(ChangeKind, u64, String)> {
        if self.document_type == "quarantined" {
            let item = QuarantinedItem::of(&serde_json::json!({ "workItem": self.work_item }));
            let detail = format!("{}: {}", item.kind, self.error);
            return vec![(ChangeKind::Quarantined, self.timestamp * 1_000, detail)];
        }
        // A document without a status is a lock on an instance that begins.
        if self.status.is_empty() {
            return Vec::new();
        }
        let mut changes = vec![(ChangeKind::Started, self.created_at, String::new())];
        if self.current_execution_id > 1 {
            let detail = format!("execution {}", self.current_execution_id);
            changes.push((ChangeKind::Continued, self.started_at, detail));
        }
        let end = match self.status.as_str() {
            "Completed" => Some((ChangeKind::Completed, self.completed_at)),
            "Failed" => Some((ChangeKind::Failed, self.completed_at)),
            DELETING => Some((ChangeKind::Deleting, None)),
            _ => None,
        };
        changes.extend(end.map(|(kind, at)| (kind, at.unwrap_or(self.updated_at), self.output.clone())));
        changes
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(status: &str, execution: u64, written: u64) -> Changed {
        serde_json::from_value(json!({
            "id": "i:instance", "instanceId": "i", "type": "instance", "status": status, "createdAt": 1_000_000,
            "updatedAt": written * 1_000, "startedAt": 1_000_000 + execution, "currentExecutionId": execution,
            "completedAt": (status == "Failed").then_some(written * 1_000), "_ts": written,
        }))
        .expect("a document")
    }

    #[test]
    fn each_change_is_reported_once() {
        let mut follower = ChangeFollower {
            selector: InstanceSelector::default(),
            newest: 1_000,
            floor: 940_000,
            reported: HashMap::new(),
        };
        let mut kinds = |document: Changed| -> Vec<ChangeKind> {
            let changes = follower.note(&document);
            follower.forget();
            changes.into_iter().map(|change| change.kind).collect()
        };
        assert_eq!(kinds(document("", 1, 1_000)), []);
        assert_eq!(kinds(document("Running", 1, 1_000)), [ChangeKind::Started]);
        assert_eq!(kinds(document("Running", 1, 1_002)), []);
        assert_eq!(kinds(document("Running", 2, 1_003)), [ChangeKind::Continued]);
        assert_eq!(kinds(document("Running", 2, 3_000)), [], "long ago");
        assert_eq!(kinds(document("Failed", 2, 3_001)), [ChangeKind::Failed]);
        assert_eq!(kinds(document("Failed", 2, 3_001)), []);
    }
}
