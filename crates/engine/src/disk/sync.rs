//! The sync thread: brings the journal to the disk.
//!
//! One sync covers every record written before it began: while it runs, the next group collects (group
//! commit). The journal's lock is not held while the disk is busy, so writes continue meanwhile.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::fsync::{Fsync, SYNC_INTERVAL};
use super::journal::{Journal, Unsynced};
use super::sync_fault::SyncFault;
use super::synced_mark::SyncedMark;

/// With `--fsync always`, the high-water mark is synced with every so many syncs of the journal. In between
/// it survives the end of the process.
const MARK_SYNC_EVERY: u32 = 32;

/// Starts the thread. It ends, after a last sync, when the journal is `stopping`.
pub(super) fn start(
    journal: Arc<Journal>,
    mark: SyncedMark,
    fault: SyncFault,
) -> std::io::Result<JoinHandle<()>> {
    let name = "peri-journal-sync".to_owned();
    std::thread::Builder::new().name(name).spawn(move || run(&journal, mark, &fault))
}

fn run(journal: &Journal, mut mark: SyncedMark, fault: &SyncFault) {
    let mut syncs = 0_u32;
    loop {
        let (unsynced, last) = wait(journal);
        let Unsynced { files, newest } = unsynced;
        let synced = files.iter().try_for_each(|file| file.sync_data()).and_then(|()| fault.check());
        match synced {
            Ok(()) => {
                syncs = syncs.wrapping_add(1);
                let sync_mark =
                    last || journal.fsync != Fsync::Always || syncs.is_multiple_of(MARK_SYNC_EVERY);
                // A mark that cannot be written promises less than it could; the next one is tried again.
                let marked = mark.write(newest);
                let marked = marked.and_then(|()| if sync_mark { mark.sync() } else { Ok(()) });
                if let Err(error) = marked {
                    tracing::warn!(%error, "the high-water mark of the journal cannot be written");
                }
                journal.synced(newest);
            }
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
