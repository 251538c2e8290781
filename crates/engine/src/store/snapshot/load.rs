//! Builds a container's partitions from what was read from disk.
//!
//! Items and changes go to the partition that owns their effective partition key, whichever one they were
//! written to: partitions may have split and merged since. The head and the state of each partition are built
//! in parallel. The index follows later: point reads do not need it.

use std::collections::VecDeque;
use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;
use protocol::resource_id::ContainerRid;

use crate::disk::{Disk, LogEntry, Malformed, StoredChain, StoredContents, StoredLayout, in_parallel};
use crate::items::Change;
use crate::items::Item;
use crate::regions::Regions;
use crate::store::partition::{ContainerContext, Partition, PartitionIdentity};
use crate::store::replica::change_log::ChangeLog;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;
use crate::store::schema::ContainerSchema;

/// More than the operations of one transaction; separates those of several partitions with the same LSN.
const OPERATIONS_APART: u32 = 1 << 16;

/// What a container that is read from disk belongs to.
#[derive(Clone)]
pub(crate) struct RestoreContext {
    pub(crate) regions: Arc<Regions>,
    pub(crate) disk: Arc<Disk>,
    /// Bytes a partition holds before it is split.
    pub(crate) bytes_max: u64,
}

/// The items and changes of one partition.
#[derive(Default)]
struct PartitionShare {
    items: Vec<Arc<Item>>,
    log: Vec<(Lsn, u32, Arc<Change>)>,
    /// The LSN that its version chain began with.
    lsn_at_start: Lsn,
    lsn: Lsn,
    trimmed_to: Lsn,
}

enum Half {
    Head(Head),
    State(Box<PartitionState>),
}

/// The partitions of a container, in EPK order.
pub(in crate::store) fn partitions(
    rid: ContainerRid,
    schema: &Arc<ContainerSchema>,
    layout: &StoredLayout,
    read: StoredContents,
    context: &ContainerContext,
) -> Result<Vec<Arc<Partition>>, Malformed> {
    let StoredContents { chains, replication, .. } = read;
    let shares: Vec<PartitionShare> =
        (0..).zip(chains).flat_map(|(number, chain)| divide(layout, number, chain)).collect();
    let halves = in_parallel(shares.len() * 2, |at| {
        let (share, schema) = (&shares[at / 2], Arc::clone(schema));
        if at % 2 == 0 {
            return Half::Head(Head::restored(schema, share.lsn, &share.items));
        }
        let mut log = ChangeLog::restored(share.log.iter().cloned(), share.trimmed_to);
        // It may have begun with a restored snapshot: the log does not tell how that came about.
        if let Some(last) = log.last_before(share.lsn_at_start) {
            log.add_gap(last, share.lsn_at_start);
        }
        let mut state = PartitionState::restored(schema, share.lsn, &share.items, log);
        // Every write checks expiry and unique keys, so these need the index before the first write.
        if state.schema.default_ttl.is_some() || !state.schema.unique_keys.is_empty() {
            let schema = Arc::clone(&state.schema);
            state.reindex(schema);
        }
        Half::State(Box::new(state))
    });
    let mut halves = VecDeque::from(halves);
    let mut contents = Vec::with_capacity(shares.len());
    while let (Some(Half::Head(head)), Some(Half::State(state))) = (halves.pop_front(), halves.pop_front()) {
        contents.push(Some(ReplicaContents { head, state: *state }));
    }
    let count = layout.partitions.len();
    let partition = |(at, stored): (usize, &crate::disk::StoredPartition)| {
        // Chain by chain, and in each the partitions in order.
        let chains = contents.iter_mut().skip(at).step_by(count).filter_map(Option::take).collect();
        let identity = PartitionIdentity::new(stored.id, rid, stored.token_version);
        let (range, parents) = (stored.range.clone(), stored.parents.clone());
        let replication = replication.get(&stored.id).map_or(&[][..], Vec::as_slice);
        let partition = Partition::restored(identity, range, parents, chains, replication, context.clone())?;
        let topology = context.regions.current();
        if let Some(region) =
            stored.write_region.as_ref().filter(|_| layout.failover_count == topology.failover_count())
        {
            partition.set_write_region(topology.partition_write_region(region));
        }
        Ok(Arc::new(partition))
    };
    layout.partitions.iter().enumerate().map(partition).collect()
}

/// Divides items and changes by the partition that owns their key.
fn divide(layout: &StoredLayout, chain: u8, read: StoredChain) -> Vec<PartitionShare> {
    let mut shares: Vec<PartitionShare> = Vec::with_capacity(layout.partitions.len());
    for stored in &layout.partitions {
        let (lsn, trimmed_to) = read.ends.get(&stored.id).copied().unwrap_or_default();
        shares.push(PartitionShare {
            lsn_at_start: stored.origin(chain).lsn_at_start,
            lsn,
            trimmed_to,
            ..PartitionShare::default()
        });
    }
    let owner = |epk: &EffectivePartitionKey| {
        layout.partitions.partition_point(|stored| stored.range.min <= *epk).saturating_sub(1)
    };
    for item in read.items {
        shares[owner(&item.epk)].items.push(item);
    }
    for LogEntry { partition, operation, change } in read.log {
        let at = owner(&change.item.epk);
        let share = &mut shares[at];
        if change.lsn > share.trimmed_to {
            let parents = &layout.partitions[at].parents;
            let came_from = parents.iter().position(|parent| *parent == partition).unwrap_or(0);
            let operation = operation + came_from as u32 * OPERATIONS_APART;
            share.log.push((change.lsn, operation, change));
        }
    }
    shares
}
