//! Work that may take long, on a thread that serves requests.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` in place and lets the runtime move this thread's other tasks elsewhere meanwhile. Outside a
/// runtime with several threads it just runs.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
