//! What waits in the partition of an instance: messages, activities, and what could not be read or delivered.
//!
//! All of it is read from JSON property by property: an operator has to see documents that a runtime cannot read.

use serde::Serialize;
use serde_json::Value;

use crate::documents::InstanceDocument;

/// A message to the instance that waits for a turn. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WaitingMessage {
    /// The id of the document.
    pub id: String,
    /// What the message is: `StartOrchestration`, `ActivityCompleted`, `TimerFired`, …
    pub kind: String,
    /// What it is about: the name of an orchestration or event, or the number of a scheduling event.
    pub subject: String,
    /// When it was enqueued.
    pub enqueued_at: u64,
    /// It is not processed before this time.
    pub visible_at: u64,
    /// How often a runtime has fetched it.
    pub attempts: u32,
    /// Whether the turn that has the lock processes it.
    pub in_turn: bool,
}

/// An activity that waits for a worker or that one executes. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WaitingActivity {
    /// The id of the document.
    pub id: String,
    /// The name of the activity.
    pub name: String,
    /// The execution that has scheduled it.
    pub execution_id: u64,
    /// The event that has scheduled it.
    pub activity_id: u64,
    /// When it was enqueued.
    pub enqueued_at: u64,
    /// No worker gets it before this time.
    pub visible_at: u64,
    /// How often a worker has fetched it.
    pub attempts: u32,
    /// The worker that has it: its host and process, as far as the lock says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Until when that worker has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<u64>,
    /// The session whose worker has to execute it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The worker that has the session, if one has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_owner: Option<String>,
    /// The tag that a worker must take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A message or an activity that was set aside because it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QuarantinedItem {
    /// The id of the document.
    pub id: String,
    /// What the item seems to be.
    pub kind: String,
    /// Whether it is an activity; otherwise it is a message.
    pub is_activity: bool,
    /// Why it cannot be read.
    pub error: String,
}

/// A message to another instance that is not known to be delivered. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UndeliveredMessage {
    /// The id of the document.
    pub id: String,
    /// The instance that the message is for.
    pub target: String,
    /// What the message is: `StartOrchestration`, `SubOrchCompleted`, …
    pub kind: String,
    /// When the turn was committed that sends it.
    pub created_at: u64,
    /// How often it could not be delivered, beyond the first time.
    pub attempts: u32,
    /// When that was last tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt_at: Option<u64>,
}

/// A large turn that is committed and whose messages and activities are not all visible yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UnreleasedTurn {
    /// The id of the document.
    pub id: String,
    /// When the turn was committed, in milliseconds since 1970.
    pub created_at: u64,
}

impl WaitingMessage {
    pub(super) fn of(document: &Value, instance: Option<&InstanceDocument>) -> WaitingMessage {
        let id = text(document, "id");
        let (kind, subject) = describe_work_item(&document["workItem"]);
        WaitingMessage {
            kind,
            subject,
            enqueued_at: time(document, "enqueuedAt").unwrap_or_default(),
            visible_at: time(document, "visibleAt").unwrap_or_default(),
            attempts: instance.and_then(|instance| instance.attempts.get(&id)).copied().unwrap_or_default(),
            in_turn: instance.is_some_and(|instance| {
                instance.lock_token.is_some() && instance.locked_messages.contains(&id)
            }),
            id,
        }
    }

    /// Whether the message is a timer, which waits on purpose.
    pub fn is_timer(&self) -> bool {
        self.kind == "TimerFired"
    }
}

impl WaitingActivity {
    pub(super) fn of(document: &Value) -> WaitingActivity {
        let (_, name) = describe_work_item(&document["workItem"]);
        WaitingActivity {
            id: text(document, "id"),
            name,
            execution_id: document["executionId"].as_u64().unwrap_or_default(),
            activity_id: document["activityId"].as_u64().unwrap_or_default(),
            enqueued_at: time(document, "enqueuedAt").unwrap_or_default(),
            visible_at: time(document, "visibleAt").unwrap_or_default(),
            attempts: count(document, "attemptCount"),
            holder: document["lockToken"].as_str().map(holder),
            locked_until: time(document, "lockedUntil"),
            session_id: document["sessionId"].as_str().map(str::to_owned),
            session_owner: None,
            tag: document["tag"].as_str().map(str::to_owned),
        }
    }
}

impl QuarantinedItem {
    pub(super) fn of(document: &Value) -> QuarantinedItem {
        let (kind, _) = describe_work_item(&document["workItem"]);
        QuarantinedItem {
            id: text(document, "id"),
            kind,
            is_activity: is_activity(document),
            error: text(document, "error"),
        }
    }
}

impl UndeliveredMessage {
    pub(super) fn of(document: &Value) -> UndeliveredMessage {
        let (kind, _) = describe_work_item(&document["payload"]["workItem"]);
        UndeliveredMessage {
            id: text(document, "id"),
            target: text(document, "targetInstanceId"),
            kind,
            created_at: time(document, "createdAt").unwrap_or_default(),
            attempts: count(document, "attemptCount"),
            last_attempt_at: time(document, "lastAttemptAt"),
        }
    }
}

impl UnreleasedTurn {
    pub(super) fn of(document: &Value) -> UnreleasedTurn {
        UnreleasedTurn {
            id: text(document, "id"),
            created_at: time(document, "createdAt").unwrap_or_default(),
        }
    }
}

/// Whether a document that was set aside is an activity: only these count their attempts themselves.
pub(super) fn is_activity(document: &Value) -> bool {
    document.get("attemptCount").is_some()
}

/// Who holds a lock, by its token: the part of it that is not the same for all locks of one process is left out.
pub(super) fn holder(token: &str) -> String {
    let name = token.split('|').next().unwrap_or_default();
    name.split_once('@').map_or(name, |(_, holder)| holder).to_owned()
}

/// The kind of a work item, and what it is about.
fn describe_work_item(item: &Value) -> (String, String) {
    let Some((kind, members)) = item.as_object().and_then(|object| object.iter().next()) else {
        return ("unknown".to_owned(), String::new());
    };
    let subject =
        ["orchestration", "name", "id", "parent_id", "reason"].into_iter().find_map(|member| match &members
            [member]
        {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(format!("of event {number}")),
            _ => None,
        });
    (kind.clone(), subject.unwrap_or_default())
}

fn text(document: &Value, member: &str) -> String {
    document[member].as_str().unwrap_or_default().to_owned()
}

fn time(document: &Value, member: &str) -> Option<u64> {
    document[member].as_f64().map(|time| time as u64)
}

fn count(document: &Value, member: &str) -> u32 {
    document[member].as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lock_names_its_holder() {
        assert_eq!(holder("0123@web-1:4711|order-1"), "web-1:4711");
        assert_eq!(holder("0123@web-1:4711|document|order|1"), "web-1:4711");
        assert_eq!(holder("0123|order-1"), "0123");
    }

    #[test]
    fn documents_that_make_no_sense_are_described_all_the_same() {
        for document in [json!({}), json!({"workItem": 5, "visibleAt": "soon"}), json!({"workItem": {}})] {
            assert_eq!(WaitingMessage::of(&document, None).kind, "unknown");
            assert!(!QuarantinedItem::of(&document).is_activity);
        }
        let document = json!({"id": "1", "workItem": {"TimerFired": {"id": 7}}, "visibleAt": 12.5});
        let message = WaitingMessage::of(&document, None);
        assert!(message.is_timer());
        assert_eq!((message.subject.as_str(), message.visible_at), ("of event 7", 12));
    }
}
