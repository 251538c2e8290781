//! One committed change of an item: what the change log, the change feed, replication and the journal consist
//! of.

use std::sync::Arc;

use protocol::lsn::Lsn;

use crate::items::Item;

/// One committed change of one item.
#[derive(Debug)]
pub(crate) struct Change {
    /// The LSN of the commit it belongs to.
    pub(crate) lsn: Lsn,
    /// What kind of change it is.
    pub(crate) kind: ChangeKind,
    /// The version it made; for a deletion the version it removed.
    pub(crate) item: Arc<Item>,
    /// The version that was there before a replacement.
    pub(crate) previous: Option<Arc<Item>>,
    /// When it was made, in seconds since the epoch.
    pub(crate) at: u64,
}

/// What a change did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// A new item was created.
    Create,
    /// An item was replaced by a new version.
    Replace,
    /// An item was deleted by a request.
    Delete,
    /// An item was deleted because its time to live had passed.
    Expire,
}

impl Change {
    /// The versions before and after it.
    pub(crate) fn versions(&self) -> (Option<&Arc<Item>>, Option<&Arc<Item>>) {
        match self.kind {
            ChangeKind::Create => (None, Some(&self.item)),
            ChangeKind::Replace => (self.previous.as_ref(), Some(&self.item)),
            ChangeKind::Delete | ChangeKind::Expire => (Some(&self.item), None),
        }
    }
}

impl ChangeKind {
    /// Whether the item is gone afterwards.
    pub(crate) fn removes(self) -> bool {
        match self {
            ChangeKind::Create | ChangeKind::Replace => false,
            ChangeKind::Delete | ChangeKind::Expire => true,
        }
    }
}
