//! Ids of documents, lock tokens, and which instance ids can be stored.

use std::sync::LazyLock;

use uuid::Uuid;

use crate::error::{Failure, Result};

/// The longest instance id. Ids of items have at most 255 characters, and the longest that is made of an instance id
/// adds less than 60.
const INSTANCE_ID_MAX: usize = 190;

/// Characters that the service does not accept in the id of an item.
const FORBIDDEN: [char; 4] = ['/', '\\', '?', '#'];

/// Checks that documents of an instance can have its id in their own.
pub(crate) fn check_instance_id(instance: &str) -> Result<()> {
    let problem = if instance.is_empty() {
        "it is empty".to_owned()
    } else if let Some(found) = instance.chars().find(|c| FORBIDDEN.contains(c) || c.is_control()) {
        format!("it contains {found:?}; `/`, `\\`, `?`, `#` and control characters are not allowed")
    } else if instance.chars().count() > INSTANCE_ID_MAX {
        format!("it has {} characters; {INSTANCE_ID_MAX} are allowed", instance.chars().count())
    } else if instance.ends_with(' ') {
        "it ends with a space".to_owned()
    } else {
        return Ok(());
    };
    Err(Failure::invalid(format!("{instance:?} cannot be the id of an instance: {problem}")))
}

/// The id of the document of an instance.
pub(crate) fn instance_document(instance: &str) -> String {
    format!("{instance}:instance")
}

/// The id of a document of history events, by the first of them.
pub(crate) fn history_document(instance: &str, execution_id: u64, event_id: u64) -> String {
    format!("{instance}:history:{execution_id}:{event_id}")
}

/// The id of the summary of an earlier execution.
pub(crate) fn execution_document(instance: &str, execution_id: u64) -> String {
    format!("{instance}:execution:{execution_id}")
}

/// The id of a document of the key-value store, as it is after an execution.
pub(crate) fn key_values_document(instance: &str, execution_id: u64, chunk: usize) -> String {
    format!("{instance}:kv:{execution_id}:{chunk}")
}

/// The id of the document that says what remains to be done after a large turn.
pub(crate) fn release_document(instance: &str, turn: u64) -> String {
    format!("{instance}:release:{turn}")
}

/// The partition of a session: sessions belong to no instance, because activities of several may share one.
pub(crate) fn session_partition(session: &str) -> String {
    format!("session:{session}")
}

/// The id of a session's document in its partition.
pub(crate) const SESSION_DOCUMENT: &str = "session";

/// A new id that no other document has.
pub(crate) fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}

/// What a lock token begins with: a unique name, and the host and process that have the lock, for operators.
fn unique_of_process() -> String {
    static HOLDER: LazyLock<String> = LazyLock::new(|| holder(&host_name(), std::process::id()));
    format!("{}@{}", unique(), *HOLDER)
}

/// A host and a process, as lock tokens have them. The separator of tokens is no part of it.
fn holder(host: &str, process: u32) -> String {
    let host: String = host.chars().filter(|c| *c != '|' && !c.is_control()).take(64).collect();
    format!("{host}:{process}")
}

/// The name of this machine, as far as the system says it without being asked over a network.
fn host_name() -> String {
    let variable = |name: &str| std::env::var(name).ok();
    let name = variable("HOSTNAME")
        .or_else(|| variable("COMPUTERNAME"))
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let name = name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    name.unwrap_or("unknown-host").to_owned()
}

/// The lock on an instance: says which instance it is, so that any process can find the document it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TurnToken {
    pub(crate) instance: String,
    pub(crate) text: String,
}

impl TurnToken {
    pub(crate) fn new(instance: &str) -> TurnToken {
        TurnToken { instance: instance.to_owned(), text: format!("{}|{instance}", unique_of_process()) }
    }

    /// The token of a text that a provider has given out.
    pub(crate) fn parse(text: &str) -> Result<TurnToken> {
        let (_, instance) = text.split_once('|').ok_or_else(|| unknown_token(text))?;
        Ok(TurnToken { instance: instance.to_owned(), text: text.to_owned() })
    }
}

/// The lock on a work item: says which document it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkToken {
    pub(crate) instance: String,
    pub(crate) document: String,
    pub(crate) text: String,
}

impl WorkToken {
    pub(crate) fn new(instance: &str, document: &str) -> WorkToken {
        let text = format!("{}|{document}|{instance}", unique_of_process());
        WorkToken { instance: instance.to_owned(), document: document.to_owned(), text }
    }

    /// The token of a text that a provider has given out.
    pub(crate) fn parse(text: &str) -> Result<WorkToken> {
        let mut parts = text.splitn(3, '|').skip(1);
        let (Some(document), Some(instance)) = (parts.next(), parts.next()) else {
            return Err(unknown_token(text));
        };
        Ok(WorkToken { instance: instance.to_owned(), document: document.to_owned(), text: text.to_owned() })
    }
}

fn unknown_token(text: &str) -> Failure {
    Failure::invalid(format!("Invalid lock token: {text:?} is not one that this provider gives out"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_their_documents() {
        let turn = TurnToken::new("a|b");
        assert_eq!(TurnToken::parse(&turn.text).expect("its own"), turn);
        let work = WorkToken::new("a|b", "doc");
        assert_eq!(WorkToken::parse(&work.text).expect("its own"), work);
        assert!(turn.text.contains(&format!(":{}|", std::process::id())), "{}", turn.text);
        assert_eq!(holder("a|b\n", 7), "ab:7");
        assert!(TurnToken::parse("none").is_err());
        assert!(WorkToken::parse("none|x").is_err());
    }

    #[test]
    fn instance_ids_that_no_document_can_have_are_refused() {
        for good in ["order-1", "a:b::sub::2", "ordre é", "{}[]", "a|b"] {
            check_instance_id(good).expect("storable");
        }
        for bad in ["", "a/b", "a\\b", "a?", "#a", "a\n", "a ", &"x".repeat(191)] {
            let error = check_instance_id(bad).expect_err("not storable");
            assert!(error.to_string().contains("cannot be the id of an instance"), "{error}");
        }
    }
}
