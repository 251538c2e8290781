//! Why an operation cannot be sent as it is: an id that no resource can have, or text that no header can hold. Pure.
//!
//! The check belongs to the operation and not to the connection: a connection that refuses a request looks like
//! one that failed, and a region must not be given up for what a caller wrote.

use protocol::headers as names;

use super::{Operation, Precondition};

impl Operation {
    /// What is wrong with the ids or headers of the operation; `None` if it can be sent.
    ///
    /// Cost: one pass over the values the caller gave; allocates only for the message. The header of a partition key
    /// is escaped JSON, so it is always valid.
    pub fn invalid_because(&self) -> Option<String> {
        if self.target.names_nothing() {
            let link = self.target.link();
            return Some(format!("an id of `{link}` is empty or made of dots, which no resource can have"));
        }
        let token = self.session_token().map(|token| (names::SESSION_TOKEN, token));
        let condition = match &self.precondition {
            Precondition::None => None,
            Precondition::IfMatch(etag) => Some((names::IF_MATCH, etag.as_str())),
            Precondition::IfNoneMatch(etag) => Some((names::IF_NONE_MATCH, etag.as_str())),
        };
        for (name, value) in token.into_iter().chain(condition) {
            if let Some(problem) = invalid_value(name, value) {
                return Some(problem);
            }
        }
        self.headers
            .iter()
            .find_map(|(name, value)| invalid_name(name).or_else(|| invalid_value(name, value)))
    }
}

/// What is wrong with the name of a header; `None` if nothing is.
fn invalid_name(name: &str) -> Option<String> {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_valid = !name.is_empty() && name.bytes().all(in_name);
    (!is_valid).then(|| format!("`{}` cannot be the name of a header", name.escape_debug()))
}

/// What is wrong with the value of a header; `None` if nothing is.
///
/// Values are printable ASCII and tabs. HTTP tolerates other bytes above 127, but the service defines no encoding for
/// them, and a condition that it cannot read must not be taken for no condition.
fn invalid_value(name: &str, value: &str) -> Option<String> {
    if value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return None;
    }
    let (at, character) = value.chars().enumerate().find(|(_, c)| !matches!(c, '\t' | ' '..='~'))?;
    Some(format!(
        "the header {name} cannot hold the character {character:?} (U+{:04X}), which is number {} of its value; \
         pass the value as the service gave it",
        u32::from(character),
        at + 1
    ))
}

#[cfg(test)]
mod tests {
    use protocol::partition::PartitionKey;

    use super::*;
    use crate::operation::{ContainerName, OperationKind, Target};

    fn read() -> Operation {
        Operation::read_item(&ContainerName::new("d", "c"), PartitionKey::single("k"), "i")
    }

    #[test]
    fn text_that_no_header_can_hold_is_named_with_its_header() {
        let etag = "\"e\r\n\"".to_owned();
        for (operation, header, character) in [
            (read().with_session_token("0:-1#7\n"), "x-ms-session-token", "U+000A"),
            (read().with_session_token("0:-1#7é"), "x-ms-session-token", "U+00E9"),
            (read().with_precondition(Precondition::IfMatch(etag.clone())), "if-match", "U+000D"),
            (read().with_precondition(Precondition::IfNoneMatch(etag)), "if-none-match", "U+000D"),
            (read().with_header("x-ms-continuation", "a\0b"), "x-ms-continuation", "U+0000"),
            (read().with_header("x-own", "\u{7f}"), "x-own", "U+007F"),
        ] {
            let message = operation.invalid_because().expect(header);
            assert!(message.contains(header) && message.contains(character), "{message}");
        }
        let position = read().with_header("x-own", "aé\n").invalid_because().expect("invalid");
        assert!(position.contains("number 2 "), "{position}");
        for name in ["", "x own", "x-öwn", "x\n"] {
            assert!(read().with_header(name, "v").invalid_because().is_some(), "{name:?}");
        }
    }

    #[test]
    fn ids_and_keys_may_hold_every_character_because_they_are_escaped() {
        for text in ["Zürich 東京 🚲", "a\nb\tc\0", "\u{7f}", "%2F", "a/b\\c?d#e"] {
            let read = Operation::read_item(&ContainerName::new("d", "c"), PartitionKey::single(text), text);
            assert_eq!(read.invalid_because(), None, "{text:?}");
            let key = read.key_header().expect("a point read has a key");
            assert_eq!(invalid_value(names::PARTITION_KEY, key), None, "{text:?}");
            assert!(read.target().path().bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}");
        }
        assert!(
            Operation::new(OperationKind::Read, Target::item(&ContainerName::new("d", "c"), ".."))
                .invalid_because()
                .is_some()
        );
        let fine = read().with_session_token("0:-1#7,1:2#9#3=4").with_header("x-own", "\"tab\t and space\"");
        assert_eq!(fine.invalid_because(), None);
    }
}
