//! The replicas of a partition in all regions, and how commits travel between them.
//!
//! Where one region writes (`single_write`), the other regions read the writer's versions after the
//! replication lag (`follower_view`). Where every region writes (`multi_write`), replication messages wait
//! in each region's queue, the hub resolves conflicts, and every region converges to the hub's version.

pub(super) mod conflicts;
pub(super) mod context;
pub(super) mod follower_view;
pub(super) mod message;
pub(super) mod multi_write;
pub(super) mod queue;
pub(super) mod replica_set;
pub(super) mod single_write;
pub(super) mod stored;
