//! Copies of a container: snapshots in memory that can be restored, and containers loaded from disk.

pub(super) mod container;
pub(super) mod load;
