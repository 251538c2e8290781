//! The journal: every commit, in order, before it becomes visible.
//!
//! In: frames. Out: the sequence number of the record, once the operating system has it. A frame that cannot
//! be written leaves no trace, and the next one is tried again. Syncing (`sync`) and checkpointing
//! (`checkpoint`) have threads of their own, so that an append waits for neither.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use super::error::{DiskError, OpenError};
use super::fsync::Fsync;
use super::record;
use super::replay::{Replay, SealedSegment};
use super::segment;

/// A segment is sealed when it has this many bytes. Small in tests, so that they have many.
pub(super) const SEGMENT_BYTES: u64 = if cfg!(test) { 16 * 1024 } else { 64 * 1024 * 1024 };
/// Bytes a record may have, at most.
const RECORD_BYTES_MAX: usize = 1 << 31;

/// How far the journal has been synced and checkpointed.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncProgress {
    /// Every record up to this one has reached the disk.
    pub(super) synced: u64,
    /// Why nothing more will be written.
    pub(super) broken: Option<String>,
    /// Bytes of sealed segments that are not checkpointed yet.
    pub(super) backlog: u64,
}

/// The journal of a data directory.
#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<JournalState>,
    /// Notified when there is something to sync, or when it is time to stop.
    pub(super) sync_wanted: Condvar,
    /// Notified when a segment was sealed, or when it is time to stop.
    pub(super) checkpoint_wanted: Condvar,
    pub(super) progress: watch::Sender<SyncProgress>,
    pub(super) fsync: Fsync,
    folder: PathBuf,
}

/// The state of the journal, behind its lock.
#[derive(Debug)]
pub(super) struct JournalState {
    file: Arc<File>,
    number: u64,
    position: u64,
    next: u64,
    /// The newest record that is a commit: no response waits for a sync mark.
    committed: u64,
    /// Segments with unsynced records, besides the current one.
    unsynced: Vec<Arc<File>>,
    /// Whether the current segment has unsynced records.
    pub(super) dirty: bool,
    pub(super) sealed: VecDeque<SealedSegment>,
    broken: Option<String>,
    pub(super) stopping: bool,
}

/// The segments that one sync covers.
pub(super) struct Unsynced {
    pub(super) files: Vec<Arc<File>>,
    /// The number of the newest record in them.
    pub(super) newest: u64,
}

impl Journal {
    /// Continues after what `replay` found, in a new segment.
    pub(super) fn start(folder: PathBuf, replay: &Replay, fsync: Fsync) -> Result<Journal, OpenError> {
        let unsynced = replay.files.iter().map(|file| {
            // A killed process may have left its last segment unsynced.
            let opened = OpenOptions::new().write(true).open(&file.path);
            opened.map(Arc::new).map_err(OpenError::io("open", &file.path))
        });
        let unsynced = unsynced.collect::<Result<Vec<_>, _>>()?;
        let path = folder.join(segment::file_name(replay.next_file));
        let file = create(&folder, replay.next_file, replay.next).map_err(OpenError::io("write", &path))?;
        let sealed: VecDeque<SealedSegment> = replay.files.iter().cloned().collect();
        let backlog = sealed.iter().map(|file| file.bytes).sum();
        let state = JournalState {
            file: Arc::new(file),
            number: replay.next_file,
            position: segment::HEADER_LENGTH as u64,
            next: replay.next,
            committed: 0,
            unsynced,
            dirty: true,
            sealed,
            broken: None,
            stopping: false,
        };
        Ok(Journal {
            state: Mutex::new(state),
            sync_wanted: Condvar::new(),
            checkpoint_wanted: Condvar::new(),
            progress: watch::Sender::new(SyncProgress { backlog, ..SyncProgress::default() }),
            fsync,
            folder,
        })
    }

    /// Writes a frame and returns its sequence number, once the operating system has it. The order of calls
    /// is the order of records.
    pub(super) fn append(&self, mut frame: Vec<u8>) -> Result<u64, DiskError> {
        if frame.len() > RECORD_BYTES_MAX {
            return Err(DiskError::TooLarge(frame.len()));
        }
        let hash = record::hash_of(&frame);
        let mut state = self.lock();
        let sequence = state.write(&mut frame, hash)?;
        state.committed = sequence;
        if state.position >= SEGMENT_BYTES {
            self.rotate(&mut state);
        }
        if !std::mem::replace(&mut state.dirty, true) && self.fsync != Fsync::Never {
            self.sync_wanted.notify_one();
        }
        Ok(sequence)
    }

    /// The sequence number of the newest commit.
    pub(super) fn committed(&self) -> u64 {
        self.lock().committed
    }

    /// Bytes of all segments.
    #[cfg(test)]
    pub(super) fn bytes_written(&self) -> u64 {
        let state = self.lock();
        state.position + state.sealed.iter().map(|file| file.bytes).sum::<u64>()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, JournalState> {
        // A panic under the lock would be a bug; the file is then where `position` says or behind it, and the
        // next failed write truncates it.
        self.state.lock()
    }

    /// Seals the current segment and begins the next. If that fails, the current one continues growing.
    fn rotate(&self, state: &mut JournalState) {
        let number = state.number + 1;
        let Ok(file) = create(&self.folder, number, state.next) else { return };
        let sealed = std::mem::replace(&mut state.file, Arc::new(file));
        state.unsynced.push(sealed);
        let path = self.folder.join(segment::file_name(state.number));
        state.sealed.push_back(SealedSegment { number: state.number, path, bytes: state.position });
        (state.number, state.position) = (number, segment::HEADER_LENGTH as u64);
        let backlog = state.sealed.iter().map(|file| file.bytes).sum();
        self.progress.send_modify(|progress| progress.backlog = backlog);
        // Even `never` syncs now: the trees must not get ahead of the journal.
        self.sync_wanted.notify_one();
        self.checkpoint_wanted.notify_one();
    }

    /// Takes the segments that a sync has to cover now.
    pub(super) fn take_unsynced(&self, state: &mut JournalState) -> Unsynced {
        let mut files = std::mem::take(&mut state.unsynced);
        files.push(Arc::clone(&state.file));
        state.dirty = false;
        Unsynced { files, newest: state.next - 1 }
    }

    /// Whether a sealed segment waits to be synced.
    pub(super) fn has_unsynced_files(state: &JournalState) -> bool {
        !state.unsynced.is_empty()
    }

    /// Records that everything up to `newest` has reached the disk, with a sync mark in the journal.
    pub(super) fn synced(&self, newest: u64) {
        let mut mark = super::batch::mark(newest);
        let hash = record::hash_of(&mark);
        // A mark that cannot be written is dropped: the next one says more anyway. Unchecked, because the
        // last one comes when the journal takes no more commits.
        let _ = self.lock().write_unchecked(&mut mark, hash);
        self.progress.send_modify(|progress| progress.synced = newest);
    }

    /// Fails the journal, which takes no more writes: it is unknown what is on the disk.
    pub(super) fn fail(&self, reason: String) {
        self.lock().broken = Some(reason.clone());
        self.progress.send_modify(|progress| progress.broken = Some(reason));
    }

    /// Takes no more writes, and tells the threads to end.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopping = true;
        state.broken.get_or_insert_with(|| "it was closed".to_owned());
        drop(state);
        self.sync_wanted.notify_all();
        self.checkpoint_wanted.notify_all();
    }

    /// Forgets sealed segments that have been checkpointed.
    pub(super) fn forget(&self, checkpointed: &[SealedSegment]) {
        let mut state = self.lock();
        state.sealed.retain(|file| !checkpointed.contains(file));
        let backlog = state.sealed.iter().map(|file| file.bytes).sum();
        self.progress.send_modify(|progress| progress.backlog = backlog);
    }
}

impl JournalState {
    fn write(&mut self, frame: &mut [u8], hash: u64) -> Result<u64, DiskError> {
        match &self.broken {
            Some(reason) => Err(DiskError::Broken(reason.clone())),
            None => self.write_unchecked(frame, hash),
        }
    }

    fn write_unchecked(&mut self, frame: &mut [u8], hash: u64) -> Result<u64, DiskError> {
        record::seal(frame, self.next, hash);
        if let Err(error) = (&*self.file).write_all(frame) {
            self.undo();
            return Err(DiskError::of(&error));
        }
        self.position += frame.len() as u64;
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Truncates what a failed write may have left. If even that fails, the journal takes no more writes.
    fn undo(&mut self) {
        let undone = self.file.set_len(self.position);
        let undone = undone.and_then(|()| (&*self.file).seek(SeekFrom::Start(self.position)));
        if let Err(error) = undone {
            self.broken = Some(format!("a failed write could not be taken back: {error}"));
        }
    }
}

fn create(folder: &std::path::Path, number: u64, first: u64) -> io::Result<File> {
    let path = folder.join(segment::file_name(number));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let written = file.write_all(&segment::header(number, first));
    if written.is_err() {
        // If it cannot be removed either, the write error is still what the caller has to know.
        let _ = std::fs::remove_file(&path);
    }
    written.map(|()| file)
}
