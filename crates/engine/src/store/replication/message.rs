//! Replication messages: one change of one item, sent from one write region to another.

use std::sync::Arc;

use bytes::Bytes;
use protocol::partition::EffectivePartitionKey;
use smol_str::SmolStr;

use crate::items::{Change, Item};
use crate::regions::RegionId;

/// The identity of an item within its container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::store) struct ItemKey {
    pub(in crate::store) epk: EffectivePartitionKey,
    pub(in crate::store) id: SmolStr,
}

/// One change of one item, as it travels between regions.
#[derive(Clone, Debug)]
pub(in crate::store) struct ReplicationMessage {
    /// The region that wrote the change.
    pub(in crate::store) origin: RegionId,
    /// The number of the commit among those of its origin.
    pub(in crate::store) commit: u64,
    /// The number of the message among those of its sender.
    pub(in crate::store) number: u64,
    pub(in crate::store) key: ItemKey,
    /// The entity tag of the version the writer replaced.
    pub(in crate::store) base: Option<Bytes>,
    /// The new version; none for a deletion.
    pub(in crate::store) item: Option<Arc<Item>>,
    /// When the change was made, in seconds since the epoch.
    pub(in crate::store) at: u64,
}

impl ReplicationMessage {
    /// What other regions have to know of a change: one message, or two where an item got another id.
    pub(in crate::store) fn about(change: &Change, origin: RegionId, commit: u64) -> Vec<ReplicationMessage> {
        let message = |before: Option<&Arc<Item>>, after: Option<&Arc<Item>>| {
            let item = after.or(before)?;
            let key = ItemKey { epk: item.epk.clone(), id: item.id.clone() };
            let base = before.map(|item| item.etag());
            let (item, at) = (after.cloned(), change.at);
            Some(ReplicationMessage { origin, commit, number: 0, key, base, item, at })
        };
        match change.versions() {
            (Some(before), Some(after)) if before.id != after.id => {
                [message(Some(before), None), message(None, Some(after))].into_iter().flatten().collect()
            }
            (before, after) => message(before, after).into_iter().collect(),
        }
    }
}
