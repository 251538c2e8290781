//! The sync thread: brings the journal to the disk.
//!
//! One sync covers every record written before it began: while it runs, the next group collects (group
//! commit). The journal's lock is not held while the disk is busy, so writes continue meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::directory::sync_folder;
use super::fsync::{Fsync, SYNC_INTERVAL};
use super::journal::{Journal, Unsynced};

/// Starts the thread. It ends, after a last sync, when the journal is `stopping`.
pub(super) fn start(journal: Arc<Journal>, folder: PathBuf) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("peri-journal-sync".to_owned()).spawn(move || run(&journal, &folder))
}

fn run(journal: &Journal, folder: &Path) {
    loop {
        let (unsynced, last) = wait(journal);
        let Unsynced { files, newest } = unsynced;
        // New segments need their folder entries synced as well: with more than one file, some are new.
        let folder_synced = if files.len() > 1 { sync_folder(folder) } else { Ok(()) };
        match folder_synced.and_then(|()| files.iter().try_for_each(|file| file.sync_data())) {
            Ok(()) => journal.synced(newest),
            // After a failed sync the system may have dropped the data; a second sync would succeed and prove
            // nothing.
            Err(error) => {
                tracing::error!(%error, "the journal cannot be synced; no more writes are taken");
                journal.fail(format!("it could not be synced: {error}"));
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
    let wanted = |state: &super::journal::JournalState| match journal.fsync {
        Fsync::Always | Fsync::Interval => state.dirty,
        Fsync::Never => Journal::has_unsynced_files(state),
    };
    while !state.stopping && !wanted(&state) {
        journal.sync_wanted.wait(&mut state);
    }
    if journal.fsync == Fsync::Interval {
        // Lets more writes collect; only stopping ends the wait early.
        journal.sync_wanted.wait_while_for(&mut state, |state| !state.stopping, SYNC_INTERVAL);
    }
    let last = state.stopping;
    (journal.take_unsynced(&mut state), last)
}
