//! Long synchronous work inside a Tokio task.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` without blocking the other tasks of this thread: a split copies what it splits, and a query
/// may read a whole partition. Outside a multi-threaded runtime it runs in place.
pub(crate) fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
