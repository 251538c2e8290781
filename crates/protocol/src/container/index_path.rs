//! Paths of an indexing policy, such as `/a/?`, `/a/[]/b/*` or `/"a b"/c`.
//!
//! Input: the text of the policy. Output: steps, and how the path ends. Combining several paths is done in
//! `indexing_rules`.

use std::fmt;

use thiserror::Error;

use crate::partition::after_slash;

/// A parsed path of an indexing policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IndexPath {
    /// The steps from the root of the item, outermost first.
    pub steps: Vec<IndexStep>,
    /// Which values at the end of the steps are meant.
    pub end: IndexPathEnd,
}

/// One step of a path into an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IndexStep {
    /// The property of this name.
    Key(String),
    /// Any element of an array, written `[]`.
    Element,
}

/// Which values at the end of a path are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexPathEnd {
    /// `/?`: the scalar at the path.
    Scalar,
    /// `/*`: everything at and below the path.
    Subtree,
    /// No ending, as in composite, vector and full-text indexes.
    Bare,
}

/// The error of an invalid path in an indexing policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "The indexing path '{path}' could not be accepted, failed near position '{position}'. Please ensure that \
     the path is a valid path. Common errors include invalid characters or absence of quotes around labels."
)]
pub struct IndexPathError {
    /// The path as it was written.
    pub path: String,
    /// The byte offset of the error.
    pub position: usize,
}

impl IndexPath {
    /// Parses a path. `/` alone means everything.
    pub fn parse(text: &str) -> Result<IndexPath, IndexPathError> {
        let bad = |position| IndexPathError { path: text.to_owned(), position };
        if text == "/" {
            return Ok(IndexPath { steps: Vec::new(), end: IndexPathEnd::Subtree });
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = after_slash(text, at).ok_or_else(|| bad(at))?;
            at += 1;
            match rest {
                "" => return Err(bad(at)),
                "?" => return Ok(IndexPath { steps, end: IndexPathEnd::Scalar }),
                "*" => return Ok(IndexPath { steps, end: IndexPathEnd::Subtree }),
                _ => {}
            }
            let (step, taken) = step(rest).map_err(|offset| bad(at + offset))?;
            steps.push(step);
            at += taken;
        }
        if steps.is_empty() {
            return Err(bad(0));
        }
        Ok(IndexPath { steps, end: IndexPathEnd::Bare })
    }
}

/// The first step of `rest` and its length in bytes, or the offset of the error.
fn step(rest: &str) -> Result<(IndexStep, usize), usize> {
    if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
        let inner = &rest[1..];
        let end = inner.find(quote).ok_or(0usize)?;
        if end == 0 {
            return Err(1);
        }
        return Ok((IndexStep::Key(inner[..end].to_owned()), end + 2));
    }
    let end = rest.find('/').unwrap_or(rest.len());
    let word = &rest[..end];
    if word == "[]" {
        return Ok((IndexStep::Element, end));
    }
    match word.find(|c: char| matches!(c, '*' | '?' | '[' | ']' | '"' | '\'' | '\\') || c.is_control()) {
        Some(offset) => Err(offset),
        None if word.is_empty() => Err(0),
        None => Ok((IndexStep::Key(word.to_owned()), end)),
    }
}

/// The canonical text: quotes only where a name needs them.
impl fmt::Display for IndexPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                IndexStep::Element => f.write_str("/[]")?,
                IndexStep::Key(name) if is_plain(name) => write!(f, "/{name}")?,
                IndexStep::Key(name) if name.contains('"') => write!(f, "/'{name}'")?,
                IndexStep::Key(name) => write!(f, "/\"{name}\"")?,
            }
        }
        match self.end {
            IndexPathEnd::Scalar => f.write_str("/?"),
            IndexPathEnd::Subtree => f.write_str("/*"),
            IndexPathEnd::Bare => Ok(()),
        }
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_read_and_written() {
        for (text, steps, end) in [
            ("/*", 0, IndexPathEnd::Subtree),
            ("/?", 0, IndexPathEnd::Scalar),
            ("/a/?", 1, IndexPathEnd::Scalar),
            ("/a/b/*", 2, IndexPathEnd::Subtree),
            ("/a/[]/?", 2, IndexPathEnd::Scalar),
            ("/a/[]/b/*", 3, IndexPathEnd::Subtree),
            ("/\"a b\"/c", 2, IndexPathEnd::Bare),
            ("/'say \"hi\"'/?", 1, IndexPathEnd::Scalar),
            ("/vector1", 1, IndexPathEnd::Bare),
        ] {
            let path = IndexPath::parse(text).expect(text);
            assert_eq!((path.steps.len(), path.end), (steps, end), "{text}");
            assert_eq!(path.to_string(), text);
        }
        assert_eq!(IndexPath::parse("/").map(|path| path.to_string()), Ok("/*".into()));
        assert_eq!(IndexPath::parse("/\"_etag\"/?").map(|path| path.to_string()), Ok("/_etag/?".into()));
        assert_eq!(IndexPath::parse("/a-b/?").map(|path| path.to_string()), Ok("/\"a-b\"/?".into()));
        assert_eq!(IndexPath::parse("/\"a/b\"/?").map(|path| path.steps.len()), Ok(1));
    }

    #[test]
    fn an_invalid_path_names_the_offset_of_the_error() {
        for (text, position) in [
            ("", 0),
            ("a", 0),
            ("/a/", 3),
            ("//a", 1),
            ("/a*", 2),
            ("/a/?/b", 3),
            ("/a/*/b", 3),
            ("/a[]", 2),
            ("/[0]/?", 1),
            ("/\"a", 1),
            ("/\"\"/?", 2),
            ("/\"a\"b", 4),
        ] {
            assert_eq!(IndexPath::parse(text).expect_err(text).position, position, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_path_survives_its_text(names in prop::collection::vec("[a-z /*?\\[\\]]{1,6}", 1..4), end in 0..3) {
            let steps = names.into_iter().map(|name| if name == "[]" { IndexStep::Element } else { IndexStep::Key(name) }).collect();
            let end = [IndexPathEnd::Scalar, IndexPathEnd::Subtree, IndexPathEnd::Bare][end as usize];
            let path = IndexPath { steps, end };
            prop_assert_eq!(IndexPath::parse(&path.to_string()), Ok(path));
        }

        #[test]
        fn any_text_parses_or_fails_without_panic(text in any::<String>(), like in "[/*?\\[\\]\"'a]{0,12}") {
            let _ = IndexPath::parse(&text);
            let _ = IndexPath::parse(&like);
        }
    }
}
