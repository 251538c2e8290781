//! The model: the expected history of each partition key, by LSN.
//!
//! Pure. A response states its LSN, so the model knows exactly what it has to contain.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// The items of one partition key, by id.
pub(crate) type Items = BTreeMap<String, Version>;

/// One version of an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    /// The body without system properties.
    pub(crate) body: Value,
    pub(crate) etag: String,
    pub(crate) lsn: u64,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Create,
    Replace,
    Delete,
}

impl ChangeKind {
    /// The operation type in the change feed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ChangeKind::Create => "create",
            ChangeKind::Replace => "replace",
            ChangeKind::Delete => "delete",
        }
    }
}

/// One change of one item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) lsn: u64,
    pub(crate) id: String,
    pub(crate) kind: ChangeKind,
    /// The new version; none for a deletion.
    pub(crate) version: Option<Version>,
    /// The uptime of the change.
    pub(crate) at: Duration,
}

enum Event {
    Changed(Change),
    /// A snapshot was restored.
    Restored {
        lsn: u64,
        items: Items,
    },
}

/// The history of one partition key.
#[derive(Default)]
pub(crate) struct History {
    events: Vec<Event>,
    newest: Items,
}

impl History {
    /// The items after the last event.
    pub(crate) fn newest(&self) -> &Items {
        &self.newest
    }

    /// The items as of `lsn`.
    pub(crate) fn at(&self, lsn: u64) -> Items {
        let mut items = Items::new();
        for event in &self.events {
            match event {
                Event::Changed(change) if change.lsn <= lsn => apply(&mut items, change),
                Event::Restored { lsn: restored, items: saved } if *restored <= lsn => items = saved.clone(),
                _ => {}
            }
        }
        items
    }

    /// Changes after `lsn`, in order.
    pub(crate) fn changes_after(&self, lsn: u64) -> impl Iterator<Item = &Change> {
        let changes = self.events.iter().filter_map(|event| match event {
            Event::Changed(change) => Some(change),
            Event::Restored { .. } => None,
        });
        changes.filter(move |change| change.lsn > lsn)
    }

    /// The LSN of the last event.
    pub(crate) fn lsn(&self) -> u64 {
        self.events.last().map_or(0, |event| match event {
            Event::Changed(change) => change.lsn,
            Event::Restored { lsn, .. } => *lsn,
        })
    }

    /// The LSN of the last restore; the states before it can no longer be queried.
    pub(crate) fn known_since(&self) -> u64 {
        let restored = self.events.iter().rev().find_map(|event| match event {
            Event::Restored { lsn, .. } => Some(*lsn),
            Event::Changed(_) => None,
        });
        restored.unwrap_or(0)
    }

    pub(crate) fn record(&mut self, change: Change) {
        apply(&mut self.newest, &change);
        self.events.push(Event::Changed(change));
    }

    pub(crate) fn restore(&mut self, lsn: u64, items: Items) {
        self.newest = items.clone();
        self.events.push(Event::Restored { lsn, items });
    }
}

fn apply(items: &mut Items, change: &Change) {
    match &change.version {
        Some(version) => items.insert(change.id.clone(), version.clone()),
        None => items.remove(&change.id),
    };
}

/// The body of an item without system properties.
pub(crate) fn plain(body: &Value) -> Value {
    match body {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !name.starts_with('_'))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect(),
        other => other.clone(),
    }
}
