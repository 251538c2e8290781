//! The thread that brings the journal to the disk.
//!
//! One sync serves everybody who wrote before it began: while it runs, the next group gathers. It never
//! holds the journal's lock while the disk is busy, so writes go on meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::directory::sync_folder;
use super::fsync::{Fsync, SYNC_INTERVAL};
use super::journal::{Journal, Unsynced};

/// Starts the thread. It ends, after a last sync, when the journal is `stopping`.
pub(super) fn start(journal: Arc<Journal>, folder: PathBuf) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("peri-disk-sync".to_owned()).spawn(move || run(&journal, &folder))
}

fn run(journal: &Journal, folder: &Path) {
    loop {
        let (unsynced, last) = wait(journal);
        let Unsynced { files, newest } = unsynced;
        // A file has to be found again too: with more than one, some are new.
        let folder_synced = if files.len() > 1 { sync_folder(folder) } else { Ok(()) };
        match folder_synced.and_then(|()| files.iter().try_for_each(|file| file.sync_data())) {
            Ok(()) => journal.synced(newest),
            // What the system could not write it may have forgotten; a second try would succeed
            // and prove nothing.
            Err(error) => {
                tracing::error!(%error, "the journal cannot be synced; no more writes are taken");
                journal.give_up(format!("it could not be synced: {error}"));
                return;
            }
        }
        if last {
            return;
        }
    }
}

/// Waits until there is something to do; the last time when it is time to stop.
fn wait(journal: &Journal) -> (Unsynced, bool) {
    let mut state = journal.lock();
    let wanted = |state: &super::journal::State| match journal.fsync {
        Fsync::Always | Fsync::Interval => state.dirty,
        Fsync::Never => Journal::has_unsynced_files(state),
    };
    while !state.stopping && !wanted(&state) {
        state = journal.sync_wanted.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    if journal.fsync == Fsync::Interval {
        // Lets more writes gather; only the end is worth hurrying for.
        let waited = journal.sync_wanted.wait_timeout_while(state, SYNC_INTERVAL, |state| !state.stopping);
        (state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    let last = state.stopping;
    (journal.take_unsynced(&mut state), last)
}
