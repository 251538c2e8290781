//! Splits and merges: child partitions are built beside their parents and then swapped in. A further write region
//! replaces partitions as well, each by one with another replica.

pub(super) mod added_region;
pub(super) mod child_partitions;
pub(super) mod layout;
pub(super) mod swap;
