//! The `x-ms-documentdb-partitionkey` header: a partition key as a JSON array.
//!
//! Input: the text of the header. Output: the partition key, or that it is empty. Whether it has all
//! components is decided by the container's definition.

use std::fmt::Write;

use thiserror::Error;

use super::key::{PartitionKey, PartitionKeyComponent};
use crate::number::write_double;

/// The content of the partition key header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionKeyHeader {
    /// `[]`: a query without a partition key, or the only key of a container created without one.
    Empty,
    /// A partition key, possibly only a prefix of one.
    Key(PartitionKey),
}

/// The error of a header that is not a partition key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("partition key header: expected {expected} at byte {position}")]
pub struct PartitionKeyError {
    /// What the parser expected.
    pub expected: &'static str,
    /// The byte offset at which it was missing.
    pub position: usize,
}

impl PartitionKey {
    /// Parses the header.
    ///
    /// Cost: one pass; allocates the list and its strings, and nothing else unless a string has escapes.
    pub fn parse_header(text: &str) -> Result<PartitionKeyHeader, PartitionKeyError> {
        let components = Cursor { text, at: 0 }.array()?;
        if components.is_empty() {
            return Ok(PartitionKeyHeader::Empty);
        }
        Ok(PartitionKeyHeader::Key(PartitionKey::new(components)))
    }

    /// Writes the header in ASCII, which every HTTP library accepts.
    ///
    /// A number that JSON cannot represent (no client can send one) becomes `null`.
    pub fn to_header(&self) -> String {
        let lengths = self.components().iter().map(usual_length);
        let mut out = String::with_capacity(2 + lengths.sum::<usize>());
        out.push('[');
        for (index, component) in self.components().iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            match component {
                PartitionKeyComponent::Undefined => out.push_str("{}"),
                PartitionKeyComponent::Null => out.push_str("null"),
                PartitionKeyComponent::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
                PartitionKeyComponent::Number(value) if value.is_finite() => write_double(*value, &mut out),
                PartitionKeyComponent::Number(_) => out.push_str("null"),
                PartitionKeyComponent::String(value) => push_string(value, &mut out),
            }
        }
        out.push(']');
        out
    }
}

/// How long a component is in the header, with its comma, unless it has escapes or is a long number.
fn usual_length(component: &PartitionKeyComponent) -> usize {
    match component {
        PartitionKeyComponent::String(value) => value.len() + 3,
        _ => 16,
    }
}

fn push_string(value: &str, out: &mut String) {
    out.push('"');
    // Nearly every key consists of such characters alone, which are copied at once.
    let (plain, rest) = value.split_at(value.bytes().position(|byte| !is_plain(byte)).unwrap_or(value.len()));
    out.push_str(plain);
    for character in rest.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail");
                }
            }
        }
    }
    out.push('"');
}

/// Whether a byte is a character that stands for itself.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    fn array(mut self) -> Result<Vec<PartitionKeyComponent>, PartitionKeyError> {
        let mut components = Vec::with_capacity(1); // nearly all keys have one
        if !self.take(b'[') {
            return self.expected("'['");
        }
        if !self.take(b']') {
            loop {
                components.push(self.component()?);
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return self.expected("',' or ']'");
                }
            }
        }
        self.skip_space();
        if self.at < self.text.len() {
            return self.expected("the end");
        }
        Ok(components)
    }

    fn component(&mut self) -> Result<PartitionKeyComponent, PartitionKeyError> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => {
                self.at += 1;
                if self.take(b'}') { Ok(PartitionKeyComponent::Undefined) } else { self.expected("'}'") }
            }
            _ if self.take_literal("null") => Ok(PartitionKeyComponent::Null),
            _ if self.take_literal("true") => Ok(PartitionKeyComponent::Bool(true)),
            _ if self.take_literal("false") => Ok(PartitionKeyComponent::Bool(false)),
            _ => self.expected("a string, number, boolean, null or {}"),
        }
    }

    fn string(&mut self) -> Result<PartitionKeyComponent, PartitionKeyError> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let (mut end, mut escaped) = (start, false);
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    end += 2;
                }
                Some(byte) if *byte >= 0x20 => end += 1,
                _ => {
                    self.at = end.min(bytes.len());
                    return self.expected("the end of a string");
                }
            }
        }
        let value = if escaped {
            // Escapes are rare, so strings that have them are parsed by serde_json, quotes included.
            match serde_json::from_str(&self.text[start - 1..=end]) {
                Ok(value) => value,
                Err(_) => return self.expected("a string with valid escapes"),
            }
        } else {
            self.text[start..end].to_owned()
        };
        self.at = end + 1;
        Ok(PartitionKeyComponent::String(value))
    }

    fn number(&mut self) -> Result<PartitionKeyComponent, PartitionKeyError> {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let text = &rest[..end];
        match text.parse::<f64>() {
            Ok(value) if is_json_number(text) && value.is_finite() => {
                self.at += end;
                Ok(PartitionKeyComponent::Number(value))
            }
            _ => self.expected("a number"),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn take_literal(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, PartitionKeyError> {
        Err(PartitionKeyError { expected, position: self.at })
    }
}

/// Whether a text is a JSON number: Rust also parses `1.`, `.5` and `01`, which JSON does not allow.
fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [b'0', b'0'..=b'9', ..] => false,
        [b'0'..=b'9', ..] => !text.contains(".e") && !text.contains(".E") && !text.ends_with('.'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PartitionKeyComponent::{Bool, Null, Number, Undefined};
    use super::*;

    #[track_caller]
    fn check(text: &str, components: Vec<PartitionKeyComponent>) {
        let expected = PartitionKeyHeader::Key(PartitionKey::new(components));
        assert_eq!(PartitionKey::parse_header(text), Ok(expected), "header: {text}");
    }

    #[test]
    fn every_kind_of_component_is_read() {
        check(r#"["abc"]"#, vec!["abc".into()]);
        check("[5]", vec![Number(5.0)]);
        check("[1.5]", vec![Number(1.5)]);
        check("[-1.5e-3]", vec![Number(-0.0015)]);
        check("[1E2]", vec![Number(100.0)]);
        check("[true]", vec![Bool(true)]);
        check("[false]", vec![Bool(false)]);
        check("[null]", vec![Null]);
        check("[{}]", vec![Undefined]);
        check(r#"[""]"#, vec!["".into()]);
        check(r#"["a","b"]"#, vec!["a".into(), "b".into()]);
        check(r#"["a",{}]"#, vec!["a".into(), Undefined]);
        check(" [ \"a\" , 1 ,\t{ } , null ] ", vec!["a".into(), Number(1.0), Undefined, Null]);
        assert_eq!(PartitionKey::parse_header("[]"), Ok(PartitionKeyHeader::Empty));
        assert_eq!(PartitionKey::parse_header(" [ ] "), Ok(PartitionKeyHeader::Empty));
    }

    #[test]
    fn whole_and_fractional_spellings_of_a_number_are_one_key() {
        check("[1]", vec![Number(1.0)]);
        check("[1.0]", vec![Number(1.0)]);
        check("[-0]", vec![Number(-0.0)]);
        check("[0]", vec![Number(0.0)]);
        check("[9007199254740993]", vec![Number(9007199254740992.0)]);
    }

    #[test]
    fn escaped_and_raw_text_are_one_key() {
        check("[\"中文\"]", vec!["中文".into()]);
        check(r#"["\u4e2d\u6587"]"#, vec!["中文".into()]);
        check(r#"["\uD83D\uDE00"]"#, vec!["\u{1F600}".into()]);
        check(r#"["a\"b\\c\/d\n"]"#, vec!["a\"b\\c/d\n".into()]);
        check(r#"["[x],{}"]"#, vec!["[x],{}".into()]);
    }

    #[test]
    fn malformed_headers_name_what_was_expected_and_where() {
        for (text, position) in [
            ("", 0),
            ("abc", 0),
            ("\"abc\"", 0),
            ("[", 1),
            ("[\"a\"", 4),
            ("[\"a", 3),
            ("[\"a\\", 4),
            ("[\"a\\\"]", 6),
            ("[\"a\\x\"]", 1),
            ("[\"\\ud83d\"]", 1),
            ("[\"a\nb\"]", 3),
            ("[\"a\"]x", 5),
            ("[,]", 1),
            ("[\"a\",]", 5),
            ("[{\"a\":1}]", 2),
            ("[[1]]", 1),
            ("[01]", 1),
            ("[1.]", 1),
            ("[.5]", 1),
            ("[-]", 1),
            ("[1e999]", 1),
            ("[NaN]", 1),
            ("[nul]", 1),
            ("[1 2]", 3),
        ] {
            let error = PartitionKey::parse_header(text).expect_err(text);
            assert_eq!(error.position, position, "{text}: {error}");
        }
    }

    #[test]
    fn headers_are_written_in_ascii() {
        let key = PartitionKey::new(vec![
            "中\u{1F600}\"\\\n".into(),
            Number(1.0),
            Number(-0.0),
            Number(1.5),
            Undefined,
            Null,
            Bool(true),
        ]);
        let expected = r#"["\u4e2d\ud83d\ude00\"\\\u000a",1,-0.0,1.5,{},null,true]"#;
        assert_eq!(key.to_header(), expected);
    }

    fn any_component() -> impl Strategy<Value = PartitionKeyComponent> {
        prop_oneof![
            Just(Undefined),
            Just(Null),
            any::<bool>().prop_map(Bool),
            any::<f64>().prop_filter("JSON has no others", |value| value.is_finite()).prop_map(Number),
            any::<i64>().prop_map(|value| Number(value as f64)),
            any::<String>().prop_map(PartitionKeyComponent::String),
        ]
    }

    proptest! {
        #[test]
        fn a_key_survives_its_header(components in prop::collection::vec(any_component(), 1..4)) {
            let key = PartitionKey::new(components);
            let header = key.to_header();
            prop_assert!(header.is_ascii());
            prop_assert_eq!(PartitionKey::parse_header(&header), Ok(PartitionKeyHeader::Key(key)));
        }

        #[test]
        fn any_text_parses_or_fails_without_panic(text in "\\PC{0,30}", json in r#"[\[\]{}",\\u0-9a-f.eE+ -]{0,20}"#) {
            let _ = PartitionKey::parse_header(&text);
            let read = PartitionKey::parse_header(&json);
            // Whatever is read here is JSON for everyone else.
            if read.is_ok() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
