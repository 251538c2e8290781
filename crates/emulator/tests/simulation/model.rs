//! What the account should hold: for each partition key its history, by LSN.
//!
//! Pure. A response states the LSN it was given at, so the model says exactly what it had to show.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// The items of one partition key, by id.
pub(crate) type Items = BTreeMap<String, Version>;

/// One version of an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Version {
    /// Without the members that the account adds.
    pub(crate) body: Value,
    pub(crate) etag: String,
    pub(crate) lsn: u64,
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Create,
    Replace,
    Delete,
}

impl ChangeKind {
    /// As the change feed calls it.
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
    /// What it made; nothing for a deletion.
    pub(crate) version: Option<Version>,
    /// The uptime at which it was made.
    pub(crate) at: Duration,
}

enum Event {
    Changed(Change),
    /// A snapshot came back.
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
    /// What is there now.
    pub(crate) fn newest(&self) -> &Items {
        &self.newest
    }

    /// What was there at `lsn`.
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

    /// The LSN of the last restored snapshot: what was before it can no longer be asked about.
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

/// An item's text without what the account adds to it.
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
