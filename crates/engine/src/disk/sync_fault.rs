//! A disk whose syncs fail, for tests of what then happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes the syncs of a journal fail while it is set. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct SyncFault(Arc<AtomicBool>);

impl SyncFault {
    /// Lets every sync from now on fail, or succeed again.
    pub fn set(&self, fails: bool) {
        // Relaxed: the flag orders nothing; a sync that is under way may or may not see it.
        self.0.store(fails, Ordering::Relaxed);
    }

    /// The error of a sync, if syncs fail.
    pub(super) fn check(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::Error::other("an injected fault")),
            false => Ok(()),
        }
    }
}
