//! The region that takes a partition's writes, where partitions fail over one by one.
//!
//! Usually it is the account's write region, and nothing is set here. In an account with a data directory
//! the setting is stored in the layout of the container.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::regions::{REGIONS_MAX, RegionId, Topology};

/// A write region of the partition's own, or none.
pub(super) struct WriteRegion(AtomicU8);

/// Stands for the account's write region; no region has this number.
const NONE: u8 = u8::MAX;
const _: () = assert!(REGIONS_MAX < NONE as usize, "every number could be a region's");

impl WriteRegion {
    /// No write region of its own: the account's applies.
    pub(super) fn account_default() -> WriteRegion {
        WriteRegion(AtomicU8::new(NONE))
    }

    /// The write region of the partition's own, if it has one.
    pub(super) fn get(&self) -> Option<RegionId> {
        // Acquire pairs with the release below: who sees the region sees what led to the failover.
        Some(self.0.load(Ordering::Acquire)).filter(|region| *region != NONE).map(RegionId)
    }

    /// Sets a write region of its own, or removes it.
    pub(super) fn set(&self, region: Option<RegionId>) {
        self.0.store(region.map_or(NONE, |region| region.0), Ordering::Release);
    }

    /// Whether `region` takes the partition's writes.
    pub(super) fn accepts_writes_from(&self, region: RegionId, topology: &Topology) -> bool {
        match self.get() {
            Some(own) => own == region,
            None => topology.takes_item_writes(region),
        }
    }
}
