//! Splits and merges: child partitions are built beside their parents and then swapped in.

pub(super) mod child_partitions;
pub(super) mod layout;
pub(super) mod swap;
