//! Scopes: the names that an expression can see, and the number of frames between.
//!
//! There is one entry per frame that will exist when the expression is evaluated, outermost first.

use smol_str::SmolStr;

use crate::ast::{Expression, ExpressionKind};
use crate::bound::BoundExpression;
use crate::functions::aggregate::Aggregate;

/// The frames that an expression can see.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    entries: Vec<ScopeEntry>,
    /// The index of the group of the current query; `None` while binding expressions over single rows.
    pub(super) group_at: Option<usize>,
}

/// The name and the kind of one frame.
#[derive(Debug)]
pub(super) struct ScopeEntry {
    pub(super) name: Option<SmolStr>,
    pub(super) kind: ScopeEntryKind,
}

/// What a frame will hold.
#[derive(Debug)]
pub(super) enum ScopeEntryKind {
    /// A whole document of the container, with its computed properties.
    Document,
    /// A value of any other kind.
    Value,
    /// A group in position of the rows from which it was made.
    Group(Box<GroupScope>),
}

/// The scope of a group.
#[derive(Debug, Default)]
pub(super) struct GroupScope {
    /// The GROUP BY expressions.
    pub(super) keys: Vec<Expression>,
    /// The frames of the grouped rows.
    rows: Vec<ScopeEntry>,
    /// The aggregates bound so far.
    pub(super) aggregates: Vec<(Aggregate, Expression, BoundExpression)>,
}

/// The meaning of a name.
pub(super) enum Resolution {
    /// A source, the number of frames up to it, and whether it is a whole document.
    Source { up: usize, is_document: bool },
    /// A source of rows that have since been grouped.
    Grouped,
    /// The name is not defined.
    Unknown,
}

impl Scopes {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn push_document(&mut self, name: Option<SmolStr>) {
        self.entries.push(ScopeEntry { name, kind: ScopeEntryKind::Document });
    }

    pub(super) fn push_value(&mut self, name: Option<SmolStr>) {
        self.entries.push(ScopeEntry { name, kind: ScopeEntryKind::Value });
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }

    /// Whether one of the frames from `base` on already has this name.
    pub(super) fn is_taken(&self, base: usize, name: &str) -> bool {
        self.entries[base..].iter().any(|entry| entry.name.as_deref() == Some(name))
    }

    pub(super) fn find(&self, name: &str) -> Resolution {
        for (up, entry) in self.entries.iter().rev().enumerate() {
            match &entry.kind {
                ScopeEntryKind::Group(group) => {
                    let grouped = group.rows.iter().any(|row| row.name.as_deref() == Some(name));
                    if grouped {
                        return Resolution::Grouped;
                    }
                }
                kind if entry.name.as_deref() == Some(name) => {
                    return Resolution::Source { up, is_document: matches!(kind, ScopeEntryKind::Document) };
                }
                _ => {}
            }
        }
        Resolution::Unknown
    }

    /// Whether the frame `up` from the innermost holds a whole document.
    pub(super) fn is_document(&self, up: usize) -> bool {
        self.entries.iter().rev().nth(up).is_some_and(|entry| matches!(entry.kind, ScopeEntryKind::Document))
    }

    /// Replaces the frames from `base` on by a group with these keys.
    pub(super) fn group(&mut self, base: usize, keys: Vec<Expression>) {
        let rows = self.entries.split_off(base);
        let group = GroupScope { keys, rows, aggregates: Vec::new() };
        self.entries.push(ScopeEntry { name: None, kind: ScopeEntryKind::Group(Box::new(group)) });
        self.group_at = Some(base);
    }

    /// Reverts [`Scopes::group`] and returns the aggregates.
    pub(super) fn ungroup(&mut self, base: usize) -> Vec<(Aggregate, BoundExpression)> {
        self.group_at = None;
        let entry = self.entries.drain(base..).next();
        match entry.map(|entry| entry.kind) {
            Some(ScopeEntryKind::Group(group)) => {
                group.aggregates.into_iter().map(|(aggregate, _, code)| (aggregate, code)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The group at `at`.
    pub(super) fn group_scope(&mut self, at: usize) -> Option<&mut GroupScope> {
        match &mut self.entries.get_mut(at)?.kind {
            ScopeEntryKind::Group(group) => Some(group),
            _ => None,
        }
    }

    /// Swaps the group at `at` (and everything inside it) with its rows, so that the argument of an
    /// aggregate can be bound; [`Scopes::leave_rows`] swaps back.
    pub(super) fn enter_rows(&mut self, at: usize) -> Vec<ScopeEntry> {
        let mut inside = self.entries.split_off(at);
        if let Some(ScopeEntryKind::Group(group)) = inside.first_mut().map(|entry| &mut entry.kind) {
            self.entries.append(&mut group.rows);
        }
        self.group_at = None;
        inside
    }

    /// Reverts [`Scopes::enter_rows`] and restores the group.
    pub(super) fn leave_rows(&mut self, at: usize, mut inside: Vec<ScopeEntry>) {
        let rows = self.entries.split_off(at);
        if let Some(ScopeEntryKind::Group(group)) = inside.first_mut().map(|entry| &mut entry.kind) {
            group.rows = rows;
        }
        self.entries.append(&mut inside);
        self.group_at = Some(at);
    }

    /// The bound GROUP BY key that equals `expression`.
    pub(super) fn group_key(&self, expression: &Expression) -> Option<BoundExpression> {
        for (up, entry) in self.entries.iter().rev().enumerate() {
            let ScopeEntryKind::Group(group) = &entry.kind else { continue };
            let Some(index) = group.keys.iter().position(|key| key == expression) else { continue };
            // Inside a subquery, a source of the same name hides the grouped one.
            let closer = &self.entries[self.entries.len() - up..];
            let hidden =
                closer.iter().any(|entry| entry.name.as_ref().is_some_and(|name| mentions(expression, name)));
            if !hidden {
                return Some(BoundExpression::GroupKey { up, index });
            }
        }
        None
    }

    /// Replaces the frame `up` from the innermost, and hides all others, so that a computed property sees
    /// only its document.
    pub(super) fn enter_computed(&mut self, up: usize, alias: &SmolStr) -> Vec<ScopeEntry> {
        let count = self.entries.len();
        let seen = (0..count).map(|at| ScopeEntry {
            name: (count - 1 - at == up).then(|| alias.clone()),
            kind: ScopeEntryKind::Value,
        });
        std::mem::replace(&mut self.entries, seen.collect())
    }

    /// Reverts [`Scopes::enter_computed`] and restores the frames.
    pub(super) fn leave_computed(&mut self, entries: Vec<ScopeEntry>) {
        self.entries = entries;
    }
}

fn mentions(expression: &Expression, name: &SmolStr) -> bool {
    let mut found = matches!(expression.kind(), ExpressionKind::Name(mentioned) if mentioned == name);
    expression.kind().for_each_child(&mut |child| found = found || mentions(child, name));
    found
}
