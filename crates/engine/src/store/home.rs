//! Which region takes a partition's writes, where partitions fail over one by one.
//!
//! Nearly always it is the account's; then nothing is set. Where the account is kept, it is part of the layout.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::regions::{REGIONS_MAX, RegionId, Topology};

/// A region of the partition's own, or none.
pub(super) struct Home(AtomicU8);

/// No region has this number.
const NONE: u8 = u8::MAX;
const _: () = assert!(REGIONS_MAX < NONE as usize, "every number could be a region's");

impl Home {
    /// With the account.
    pub(super) fn with_the_account() -> Home {
        Home(AtomicU8::new(NONE))
    }

    /// The region of its own.
    pub(super) fn own(&self) -> Option<RegionId> {
        Some(self.0.load(Ordering::Acquire)).filter(|region| *region != NONE).map(RegionId)
    }

    /// Gives it a region of its own, or takes that back.
    pub(super) fn set(&self, region: Option<RegionId>) {
        self.0.store(region.map_or(NONE, |region| region.0), Ordering::Release);
    }

    /// Whether writes are taken in `region`.
    pub(super) fn takes_writes(&self, region: RegionId, topology: &Topology) -> bool {
        match self.own() {
            Some(own) => own == region,
            None => topology.takes_item_writes(region),
        }
    }
}
