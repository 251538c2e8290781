//! One committed change of an item: what the log, the change feed, replication and the journal are made of.

use std::sync::Arc;

use protocol::lsn::Lsn;

use crate::items::Item;

/// One committed change.
#[derive(Debug)]
pub struct Change {
    pub lsn: Lsn,
    pub kind: ChangeKind,
    /// The version it made; for a deletion the version it removed.
    pub item: Arc<Item>,
    /// The version that was there before a replacement.
    pub previous: Option<Arc<Item>>,
    /// Seconds since the epoch.
    pub at: u64,
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A new item.
    Create,
    /// A new version of an item.
    Replace,
    /// An item removed by a request.
    Delete,
    /// An item removed because its time was over.
    Expire,
}

impl Change {
    /// The versions before and after it.
    pub fn versions(&self) -> (Option<&Arc<Item>>, Option<&Arc<Item>>) {
        match self.kind {
            ChangeKind::Create => (None, Some(&self.item)),
            ChangeKind::Replace => (self.previous.as_ref(), Some(&self.item)),
            ChangeKind::Delete | ChangeKind::Expire => (Some(&self.item), None),
        }
    }
}

impl ChangeKind {
    /// Whether the item is gone afterwards.
    pub fn removes(self) -> bool {
        match self {
            ChangeKind::Create | ChangeKind::Replace => false,
            ChangeKind::Delete | ChangeKind::Expire => true,
        }
    }
}
