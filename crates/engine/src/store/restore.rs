//! Partitions from what was read from disk.
//!
//! Items and changes belong where their position on the ring says, whichever partition they were
//! written to: partitions may have split and merged since. The head and the state of each partition
//! are put together at the same time. The index is left for later: point reads do not need it.

use std::collections::VecDeque;
use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;
use protocol::resource_id::ContainerRid;

use super::contents::Contents;
use super::head::Head;
use super::log::Log;
use super::partition::{Partition, PartitionIdentity, Surroundings};
use super::schema::ContainerSchema;
use super::state::PartitionState;
use crate::disk::{Disk, ItemsRead, KeptLayout, LineRead, LoggedAt, Malformed, in_parallel};
use crate::items::Change;
use crate::items::Item;
use crate::regions::Regions;

/// More than one transaction has operations; keeps apart those of several partitions with one LSN.
const OPERATIONS_APART: u32 = 1 << 16;

/// Where a container is that was read from disk.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) regions: Arc<Regions>,
    pub(crate) disk: Arc<Disk>,
    /// Bytes a partition holds before it is split.
    pub(crate) bytes_max: u64,
}

/// What one partition is made of.
#[derive(Default)]
struct Share {
    items: Vec<Arc<Item>>,
    log: Vec<(Lsn, u32, Arc<Change>)>,
    /// The LSN its line began with.
    born: Lsn,
    lsn: Lsn,
    forgotten: Lsn,
}

enum Half {
    Head(Head),
    State(Box<PartitionState>),
}

/// The partitions of a container, in the order of the ring.
pub(super) fn partitions(
    rid: ContainerRid,
    schema: &Arc<ContainerSchema>,
    layout: &KeptLayout,
    read: ItemsRead,
    surroundings: &Surroundings,
) -> Result<Vec<Arc<Partition>>, Malformed> {
    let ItemsRead { lines, mesh, .. } = read;
    let shares: Vec<Share> =
        (0..).zip(lines).flat_map(|(number, line)| divide(layout, number, line)).collect();
    let halves = in_parallel(shares.len() * 2, |at| {
        let (share, schema) = (&shares[at / 2], Arc::clone(schema));
        if at % 2 == 0 {
            return Half::Head(Head::restored(schema, share.lsn, &share.items));
        }
        let mut log = Log::restored(share.log.iter().cloned(), share.forgotten);
        // It may have begun with what was restored then, of which nothing tells how it came about.
        if let Some(last) = log.last_before(share.born) {
            log.give_up(last, share.born);
        }
        let mut state = PartitionState::restored(schema, share.lsn, &share.items, log);
        // Every write looks at these: it must not come before the index.
        if state.schema.default_ttl.is_some() || !state.schema.unique_keys.is_empty() {
            let schema = Arc::clone(&state.schema);
            state.reindex(schema);
        }
        Half::State(Box::new(state))
    });
    let mut halves = VecDeque::from(halves);
    let mut contents = Vec::with_capacity(shares.len());
    while let (Some(Half::Head(head)), Some(Half::State(state))) = (halves.pop_front(), halves.pop_front()) {
        contents.push(Some(Contents { head, state: *state }));
    }
    let count = layout.partitions.len();
    let partition = |(at, kept): (usize, &crate::disk::KeptPartition)| {
        // Line by line, and in each the partitions in order.
        let lines = contents.iter_mut().skip(at).step_by(count).filter_map(Option::take).collect();
        let identity = PartitionIdentity::new(kept.id, rid, kept.token_version);
        let (range, parents) = (kept.range.clone(), kept.parents.clone());
        let mesh = mesh.get(&kept.id).map_or(&[][..], Vec::as_slice);
        let partition = Partition::restored(identity, range, parents, lines, mesh, surroundings.clone())?;
        let topology = surroundings.regions.current();
        if let Some(home) = kept.home.as_ref().filter(|_| layout.moves == topology.failover_count()) {
            partition.move_to(topology.partition_write_region(home));
        }
        Ok(Arc::new(partition))
    };
    layout.partitions.iter().enumerate().map(partition).collect()
}

/// Gives each partition what is in its range.
fn divide(layout: &KeptLayout, line: u8, read: LineRead) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::with_capacity(layout.partitions.len());
    for kept in &layout.partitions {
        let (lsn, forgotten) = read.ends.get(&kept.id).copied().unwrap_or_default();
        shares.push(Share { born: kept.birth(line).born, lsn, forgotten, ..Share::default() });
    }
    let owner = |epk: &EffectivePartitionKey| {
        layout.partitions.partition_point(|kept| kept.range.min <= *epk).saturating_sub(1)
    };
    for item in read.items {
        shares[owner(&item.epk)].items.push(item);
    }
    for LoggedAt { partition, operation, change } in read.log {
        let at = owner(&change.item.epk);
        let share = &mut shares[at];
        if change.lsn > share.forgotten {
            let parents = &layout.partitions[at].parents;
            let came_from = parents.iter().position(|parent| *parent == partition).unwrap_or(0);
            let operation = operation + came_from as u32 * OPERATIONS_APART;
            share.log.push((change.lsn, operation, change));
        }
    }
    shares
}
