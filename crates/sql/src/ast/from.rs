//! FROM and JOIN clauses of the AST.

use smol_str::SmolStr;

use super::{Expression, Query};
use crate::token::Span;

/// One source of FROM or JOIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The collection that the source reads.
    pub collection: Collection,
    /// Whether `alias IN collection` was written, which iterates over the elements.
    pub iterate: bool,
    /// The alias of the source, if one was written.
    pub alias: Option<SmolStr>,
    /// The span of the source in the query text.
    pub span: Span,
}

/// The collection that a source reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A name and a path into it, such as `c`, `c.children` or `c["tags"][0]`.
    Path {
        /// The container, or the alias of another source.
        root: SmolStr,
        /// The steps after the root.
        steps: Vec<PathStep>,
    },
    /// A subquery in parentheses, `(SELECT …)`.
    Subquery(Box<Query>),
    /// The value of a function, such as `SetIntersect(c.a, c.b)`.
    Value(Box<Expression>),
}

/// One step of a source path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    /// A property in dot notation, `.name`.
    Dot(SmolStr),
    /// A property in bracket notation, `["name"]`.
    Bracket(SmolStr),
    /// An array element, such as `[0]`.
    Index(u64),
}

impl Source {
    /// The name under which expressions see the source: the alias, or else the last name of the path.
    pub fn name(&self) -> Option<&SmolStr> {
        match (&self.alias, &self.collection) {
            (Some(alias), _) => Some(alias),
            (None, Collection::Path { root, steps }) => match steps.last() {
                None => Some(root),
                Some(PathStep::Dot(name) | PathStep::Bracket(name)) => Some(name),
                Some(PathStep::Index(_)) => None,
            },
            (None, Collection::Subquery(_) | Collection::Value(_)) => None,
        }
    }

    pub(super) fn depth(&self) -> u16 {
        match &self.collection {
            Collection::Path { .. } => 0,
            Collection::Subquery(query) => query.depth().saturating_add(1),
            Collection::Value(value) => value.depth().saturating_add(1),
        }
    }
}
