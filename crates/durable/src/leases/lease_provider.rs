//! The trait of slot leases.

use async_trait::async_trait;

/// Shares the dispatch slots out among dispatchers.
///
/// Slots keep dispatchers out of each other's way; they do not protect anything. Two dispatchers that believe to hold
/// the same slot for a moment compete for the locks of its instances, and one of them wins each.
#[async_trait]
pub trait LeaseProvider: Send + Sync {
    /// The slots of this caller, now. A caller that asks for the first time joins the others, and slots are rebalanced;
    /// a caller that has not asked for a while is considered gone.
    async fn acquire_slots(&self, caller_id: u64) -> Vec<u8>;

    /// Gives up the slots of a caller that ends.
    async fn release_slots(&self, caller_id: u64);
}
