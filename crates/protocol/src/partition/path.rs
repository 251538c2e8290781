//! A path of a partition key definition, such as `/a/b` or `/"a b"/c`.
//!
//! Input: the text of a container's definition. Output: the property names to follow into an item.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// A parsed path into an item.
///
/// Two paths are equal if they have the same segments, regardless of quotes.
#[derive(Clone)]
pub struct PartitionKeyPath {
    text: String,
    segments: Vec<String>,
}

/// The text behind the slash at this position; `None` if there is no slash.
pub(crate) fn after_slash(text: &str, at: usize) -> Option<&str> {
    text[at..].strip_prefix('/')
}

impl PartitionKeyPath {
    /// Parses a path. A quoted segment may hold any characters; an unquoted one may hold letters, digits
    /// and `_ - $ .`.
    pub fn parse(text: &str) -> Result<PartitionKeyPath, PartitionKeyPathError> {
        let bad = |position| PartitionKeyPathError { path: text.to_owned(), position };
        let mut segments = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = after_slash(text, at).ok_or_else(|| bad(at))?;
            at += 1;
            let (segment, taken) = match rest.chars().next() {
                Some(quote @ ('"' | '\'')) => quoted_segment(rest, quote).ok_or_else(|| bad(at))?,
                _ => plain_segment(rest).map_err(|offset| bad(at + offset))?,
            };
            segments.push(segment.to_owned());
            at += taken;
        }
        if segments.is_empty() {
            return Err(bad(0));
        }
        Ok(PartitionKeyPath { text: text.to_owned(), segments })
    }

    /// The property names to follow, outermost first; at least one.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether this path leads to `other` or to an ancestor of it.
    pub fn is_prefix_of(&self, other: &PartitionKeyPath) -> bool {
        other.segments.starts_with(&self.segments)
    }
}

/// The text between the quotes, and its length with them. A backslash keeps a quote inside and remains part
/// of the name, as in the clients: both sides must extract the same key.
fn quoted_segment(rest: &str, quote: char) -> Option<(&str, usize)> {
    let inner = &rest[1..];
    let mut from = 0;
    loop {
        let end = from + inner[from..].find(quote)?;
        if !inner[..end].ends_with('\\') {
            return (end > 0).then(|| (&inner[..end], end + 2));
        }
        from = end + 1;
    }
}

fn plain_segment(rest: &str) -> Result<(&str, usize), usize> {
    let end = rest.find('/').unwrap_or(rest.len());
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
    match rest[..end].find(|c| !allowed(c)) {
        // A space ends the name; the service points at what comes after it.
        Some(offset) => Err(rest.len() - rest[offset..].trim_start_matches(' ').len()),
        None if end == 0 => Err(0),
        None => Ok((&rest[..end], end)),
    }
}

/// The error of an invalid partition key path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "The partition key component definition path '{path}' could not be accepted, failed near position \
     '{position}'. Partition key paths must contain only valid characters and not contain a trailing slash or \
     wildcard character."
)]
pub struct PartitionKeyPathError {
    /// The path as it was written.
    pub path: String,
    /// The byte offset of the error.
    pub position: usize,
}

impl PartialEq for PartitionKeyPath {
    fn eq(&self, other: &PartitionKeyPath) -> bool {
        self.segments == other.segments
    }
}

impl Eq for PartitionKeyPath {}

impl fmt::Debug for PartitionKeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionKeyPath({})", self.text)
    }
}

impl fmt::Display for PartitionKeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PartitionKeyPath {
    type Err = PartitionKeyPathError;

    fn from_str(text: &str) -> Result<PartitionKeyPath, PartitionKeyPathError> {
        PartitionKeyPath::parse(text)
    }
}

impl Serialize for PartitionKeyPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for PartitionKeyPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PartitionKeyPath, D::Error> {
        let text = String::deserialize(deserializer)?;
        PartitionKeyPath::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, segments: &[&str]) {
        let path = PartitionKeyPath::parse(text).expect("a good path");
        assert_eq!(path.segments(), segments, "path: {text}");
        assert_eq!(path.to_string(), text);
    }

    #[test]
    fn paths_are_split_into_segments() {
        check("/pk", &["pk"]);
        check("/a/b", &["a", "b"]);
        check("/_partitionKey", &["_partitionKey"]);
        check("/tenant-id/$type", &["tenant-id", "$type"]);
        check("/größe", &["größe"]);
    }

    #[test]
    fn quoted_segments_keep_their_characters() {
        check(r#"/"a b"/c"#, &["a b", "c"]);
        check(r#"/"it's""#, &["it's"]);
        check(r#"/'say "hi"'"#, &["say \"hi\""]);
        check(r#"/"a/b*?"/"c""#, &["a/b*?", "c"]);
        check(r#"/"a\"b""#, &[r#"a\"b"#]);
    }

    #[test]
    fn an_invalid_path_names_the_offset_of_the_error() {
        for (text, position) in [
            ("", 0),
            ("pk", 0),
            ("C:/Program Files", 0),
            ("/", 1),
            ("/a/", 3),
            ("/a//b", 3),
            ("/a/*", 3),
            ("/a?", 2),
            ("/a[]", 2),
            ("/asdwqr31 @#$#$WRadf", 10),
            ("/a b", 3),
            ("/a b/c", 3),
            ("/\"open", 1),
            ("/\"\"", 1),
            ("/\"a\"b", 4),
        ] {
            let error = PartitionKeyPath::parse(text).expect_err(text);
            assert_eq!(error.position, position, "path: {text}");
            assert!(error.to_string().contains(
                "Partition key paths must contain only valid characters and not contain a trailing slash or \
                 wildcard character"
            ));
        }
    }

    #[test]
    fn paths_that_differ_in_quotes_are_equal() {
        assert_eq!(PartitionKeyPath::parse("/a/b"), PartitionKeyPath::parse(r#"/"a"/b"#));
        let outer = PartitionKeyPath::parse("/a").expect("a good path");
        let inner = PartitionKeyPath::parse("/a/b").expect("a good path");
        assert!(outer.is_prefix_of(&inner) && !inner.is_prefix_of(&outer));
    }
}
