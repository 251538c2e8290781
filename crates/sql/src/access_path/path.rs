//! Paths into documents, as indexes use them.

use std::fmt;

use smol_str::SmolStr;

use crate::ast::is_plain_name;
use crate::value::Value;

/// A path from the root of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DocPath(pub Vec<DocStep>);

/// One step of a document path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DocStep {
    /// The property of this name.
    Key(SmolStr),
    /// Any element of an array.
    Element,
}

impl DocPath {
    /// The path with one more step.
    #[must_use]
    pub fn then(&self, step: DocStep) -> DocPath {
        let mut steps = self.0.clone();
        steps.push(step);
        DocPath(steps)
    }

    /// Whether the path passes through array elements, so that it may lead to several values.
    pub fn has_element(&self) -> bool {
        self.0.contains(&DocStep::Element)
    }

    /// Whether the path starts with `other`.
    pub fn starts_with(&self, other: &DocPath) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether `accept` returns true for some value at the path. Undefined values are skipped.
    pub fn any(&self, document: &Value, accept: &mut dyn FnMut(&Value) -> bool) -> bool {
        any_below(&self.0, document, accept)
    }
}

fn any_below(steps: &[DocStep], value: &Value, accept: &mut dyn FnMut(&Value) -> bool) -> bool {
    let Some((first, rest)) = steps.split_first() else { return value.is_defined() && accept(value) };
    match first {
        DocStep::Key(name) => any_below(rest, value.member(name), accept),
        DocStep::Element => {
            value.as_array().unwrap_or_default().iter().any(|element| any_below(rest, element, accept))
        }
    }
}

/// The path as indexing policies write it, without the ending: `/a/"b c"/[]`.
impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        for step in &self.0 {
            match step {
                DocStep::Key(name) if is_plain_name(name) => write!(f, "/{name}")?,
                DocStep::Key(name) => write!(f, "/{}", Value::String(name.clone()))?,
                DocStep::Element => f.write_str("/[]")?,
            }
        }
        Ok(())
    }
}
