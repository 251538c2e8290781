//! Where rows come from.

use smol_str::SmolStr;

use super::Query;
use crate::token::Span;

/// One source of FROM or JOIN.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What is read.
    pub collection: Collection,
    /// `alias IN collection`: once per element, instead of once as a whole.
    pub iterate: bool,
    /// The name rows see it under, when one was written.
    pub alias: Option<SmolStr>,
    /// Where it was written.
    pub span: Span,
}

/// What a source reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Collection {
    /// A name and a path into it: `c`, `c.children`, `c["tags"][0]`.
    Path {
        /// The container, or the alias of another source.
        root: SmolStr,
        /// What follows it.
        steps: Vec<PathStep>,
    },
    /// `(SELECT …)`
    Subquery(Box<Query>),
}

/// One step of a source path.
#[derive(Clone, Debug, PartialEq)]
pub enum PathStep {
    /// `.name`
    Dot(SmolStr),
    /// `["name"]`
    Bracket(SmolStr),
    /// `[0]`
    Index(u64),
}

impl Source {
    /// The name rows see the source under: the alias, else the last name of the path.
    pub fn name(&self) -> Option<&SmolStr> {
        match (&self.alias, &self.collection) {
            (Some(alias), _) => Some(alias),
            (None, Collection::Path { root, steps }) => match steps.last() {
                None => Some(root),
                Some(PathStep::Dot(name) | PathStep::Bracket(name)) => Some(name),
                Some(PathStep::Index(_)) => None,
            },
            (None, Collection::Subquery(_)) => None,
        }
    }

    pub(super) fn depth(&self) -> u16 {
        match &self.collection {
            Collection::Path { .. } => 0,
            Collection::Subquery(query) => query.depth().saturating_add(1),
        }
    }
}
