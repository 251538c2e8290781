//! The document of an instance: its metadata, lock and status.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DocumentType, SCHEMA_VERSION};
use crate::clock::Millis;
use crate::ids;

/// An instance of an orchestration. Its ETag changes with every turn, so a write under the ETag proves that nobody else
/// has changed the history or taken a message meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceDocument {
    pub(crate) id: String,
    pub(crate) instance_id: String,
    #[serde(rename = "type")]
    pub(crate) document_type: DocumentType,
    #[serde(default)]
    pub(crate) schema_version: u32,

    /// The name of the orchestration; none before the first turn is committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orchestration_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) orchestration_version: Option<String>,
    #[serde(default)]
    pub(crate) current_execution_id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// The output; none if it is so large that only the history has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent_instance_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pinned_duroxide_version: Option<PinnedVersion>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) custom_status: Option<String>,
    #[serde(default)]
    pub(crate) custom_status_version: u64,

    /// Who processes the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locked_until: Option<Millis>,
    /// The messages that the lock covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) locked_messages: Vec<String>,
    /// How often each message that is still waiting was fetched.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) attempts: BTreeMap<String, u32>,

    /// The number of committed turns.
    #[serde(default)]
    pub(crate) turns: u64,
    /// The token of the turn that was committed last: says whether a commit without a response has happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_turn: Option<String>,
    /// The name under which a large turn is being staged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) staging: Option<String>,

    /// The last event of the current execution; later events are not committed.
    #[serde(default)]
    pub(crate) last_event_id: u64,
    #[serde(default)]
    pub(crate) history_events: u64,
    #[serde(default)]
    pub(crate) history_bytes: u64,
    /// Queue messages that the current execution took over from the one before.
    #[serde(default)]
    pub(crate) carried_events: u64,
    /// The execution after which the key-value store was written; 0 if there is none.
    #[serde(default)]
    pub(crate) kv_execution_id: u64,
    /// The number of documents of the key-value store.
    #[serde(default)]
    pub(crate) kv_documents: usize,

    /// When the current execution began and ended.
    #[serde(default)]
    pub(crate) started_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<u64>,
    #[serde(default)]
    pub(crate) created_at: u64,
    #[serde(default)]
    pub(crate) updated_at: u64,
}

/// The version of duroxide that an execution is pinned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PinnedVersion {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
}

impl PinnedVersion {
    pub(crate) fn to_semver(self) -> semver::Version {
        semver::Version::new(self.major, self.minor, self.patch)
    }
}

impl From<&semver::Version> for PinnedVersion {
    fn from(version: &semver::Version) -> PinnedVersion {
        PinnedVersion { major: version.major, minor: version.minor, patch: version.patch }
    }
}

/// The status of an instance that is being deleted.
pub(crate) const DELETING: &str = "Deleting";

impl InstanceDocument {
    /// An instance of which only messages are known.
    pub(crate) fn new(instance: &str, now: Millis) -> InstanceDocument {
        InstanceDocument {
            id: ids::instance_document(instance),
            instance_id: instance.to_owned(),
            document_type: DocumentType::Instance,
            schema_version: SCHEMA_VERSION,
            orchestration_name: None,
            orchestration_version: None,
            current_execution_id: 1,
            status: None,
            output: None,
            parent_instance_id: None,
            pinned_duroxide_version: None,
            custom_status: None,
            custom_status_version: 0,
            lock_token: None,
            locked_until: None,
            locked_messages: Vec::new(),
            attempts: BTreeMap::new(),
            turns: 0,
            last_turn: None,
            staging: None,
            last_event_id: 0,
            history_events: 0,
            history_bytes: 0,
            carried_events: 0,
            kv_execution_id: 0,
            kv_documents: 0,
            started_at: now as u64,
            completed_at: None,
            created_at: now as u64,
            updated_at: now as u64,
        }
    }

    /// Until when somebody processes the instance; none if nobody does.
    pub(crate) fn busy_until(&self, now: Millis) -> Option<Millis> {
        self.locked_until.filter(|until| self.lock_token.is_some() && *until > now)
    }

    /// Locks the instance and these messages, each of which was fetched once more.
    pub(crate) fn lock(&mut self, token: &str, until: Millis, messages: &[&str]) {
        self.lock_token = Some(token.to_owned());
        self.locked_until = Some(until);
        self.locked_messages = messages.iter().map(|id| (*id).to_owned()).collect();
        for id in messages {
            *self.attempts.entry((*id).to_owned()).or_insert(0) += 1;
        }
    }

    /// Releases the lock. Messages that it covered keep their attempts, less the last one if it does not count.
    pub(crate) fn unlock(&mut self, ignore_attempt: bool) {
        if ignore_attempt {
            for id in &self.locked_messages {
                if let Some(attempts) = self.attempts.get_mut(id) {
                    *attempts = attempts.saturating_sub(1);
                }
            }
        }
        self.lock_token = None;
        self.locked_until = None;
        self.locked_messages.clear();
    }

    /// Forgets the messages that the lock covers: they are processed.
    pub(crate) fn forget_locked(&mut self) {
        for id in std::mem::take(&mut self.locked_messages) {
            self.attempts.remove(&id);
        }
    }

    /// The largest number of times that a locked message was fetched.
    pub(crate) fn attempts_max(&self) -> u32 {
        self.locked_messages.iter().filter_map(|id| self.attempts.get(id)).copied().max().unwrap_or(1)
    }

    /// Whether the current execution has ended.
    pub(crate) fn is_terminal(&self) -> bool {
        self.status.as_deref().is_some_and(is_terminal)
    }
}

/// Whether a status is that of an execution that has ended.
pub(crate) fn is_terminal(status: &str) -> bool {
    matches!(status, "Completed" | "Failed" | "ContinuedAsNew")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_for_each_message() {
        let mut instance = InstanceDocument::new("i", 0.0);
        instance.lock("t1", 10.0, &["a"]);
        assert_eq!((instance.attempts_max(), instance.busy_until(5.0)), (1, Some(10.0)));
        assert_eq!(instance.busy_until(10.0), None);
        instance.unlock(false);
        instance.lock("t2", 20.0, &["a", "b"]);
        assert_eq!((instance.attempts["a"], instance.attempts["b"]), (2, 1));
        instance.unlock(true);
        assert_eq!((instance.attempts["a"], instance.attempts["b"]), (1, 0));
        instance.lock("t3", 30.0, &["b"]);
        instance.forget_locked();
        assert_eq!(instance.attempts.keys().collect::<Vec<_>>(), ["a"], "still waiting, hidden");
    }
}
