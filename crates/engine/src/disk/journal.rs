//! The journal: every commit, in order, before it becomes visible.
//!
//! In: frames. Out: the sequence number of the record, once the operating system has it. A frame that cannot
//! be written leaves no trace, and the next one is tried again. A segment is in the manifest before its first
//! record is written. Syncing (`sync`) and checkpointing
//! (`checkpoint`) have threads of their own, so that an append waits for neither.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use super::batch::Keyspace;
use super::directory::{Directory, sync_folder};
use super::error::{DiskError, OpenError};
use super::fsync::Fsync;
use super::manifest::{self, Manifest, ManifestFile, TreeVersion};
use super::record;
use super::replay::{Replay, SealedSegment};
use super::segment;

/// A segment is sealed when it has this many bytes. Small in tests, so that they have many.
pub(super) const SEGMENT_BYTES: u64 = if cfg!(test) { 16 * 1024 } else { 64 * 1024 * 1024 };
/// The length of a new segment's file.
const LENGTH_FIRST: u64 = 4096;
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
    /// What has to be in the directory.
    pub(super) manifest: ManifestFile,
    folder: PathBuf,
}

/// The state of the journal, behind its lock.
#[derive(Debug)]
pub(super) struct JournalState {
    file: Arc<File>,
    number: u64,
    /// The number of its first record.
    first: u64,
    position: u64,
    /// The length of the file, which is more than its records have.
    length: u64,
    next: u64,
    /// The newest record that is a commit: no response waits for a sync mark.
    committed: u64,
    /// Segments with unsynced records, besides the current one.
    unsynced: Vec<Arc<File>>,
    /// Whether the current segment has unsynced records.
    pub(super) dirty: bool,
    pub(super) sealed: VecDeque<SealedSegment>,
    broken: Option<String>,
    /// Why the last commit could not be written.
    failed: Option<String>,
    pub(super) stopping: bool,
}

/// The segments that one sync covers.
pub(super) struct Unsynced {
    pub(super) files: Vec<Arc<File>>,
    /// The number of the newest record in them.
    pub(super) newest: u64,
}

impl Journal {
    /// Continues after what `replay` found, in a new segment of the directory's journal.
    pub(super) fn start(
        directory: &Directory,
        replay: &Replay,
        checkpointed: u64,
        trees: BTreeMap<Keyspace, TreeVersion>,
        fsync: Fsync,
    ) -> Result<Journal, OpenError> {
        let folder = directory.journal();
        let unsynced = replay.files.iter().map(|file| {
            // A killed process may have left its last segment unsynced.
            let opened = OpenOptions::new().write(true).open(&file.path);
            opened.map(Arc::new).map_err(OpenError::io("open", &file.path))
        });
        let unsynced = unsynced.collect::<Result<Vec<_>, _>>()?;
        let path = folder.join(segment::file_name(replay.next_file));
        let file = create(&folder, replay.next_file, replay.next).map_err(OpenError::io("write", &path))?;
        let mut segments: BTreeMap<u64, u64> =
            replay.files.iter().map(|file| (file.number, file.records.start)).collect();
        segments.insert(replay.next_file, replay.next);
        let manifest = Manifest { checkpointed, segments, trees };
        let manifest = ManifestFile::create(directory.path().to_owned(), manifest)
            .map_err(OpenError::io("write", manifest::path_in(directory.path())))?;
        let sealed: VecDeque<SealedSegment> = replay.files.iter().cloned().collect();
        let backlog = sealed.iter().map(|file| file.bytes).sum();
        let state = JournalState {
            file: Arc::new(file),
            number: replay.next_file,
            first: replay.next,
            position: segment::HEADER_LENGTH as u64,
            length: LENGTH_FIRST,
            next: replay.next,
            committed: 0,
            unsynced,
            dirty: true,
            sealed,
            broken: None,
            failed: None,
            stopping: false,
        };
        Ok(Journal {
            state: Mutex::new(state),
            sync_wanted: Condvar::new(),
            checkpoint_wanted: Condvar::new(),
            progress: watch::Sender::new(SyncProgress { backlog, ..SyncProgress::default() }),
            fsync,
            manifest,
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
        let written = state.write(&mut frame, hash);
        let sequence = match written {
            Ok(sequence) => sequence,
            Err(error) => {
                state.failed = Some(error.to_string());
                return Err(error);
            }
        };
        state.failed = None;
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

    /// Why the last commit could not be written, or why none can be.
    pub(super) fn write_error(&self) -> Option<String> {
        let state = self.lock();
        state.broken.clone().or_else(|| state.failed.clone())
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
        let listed = self.manifest.update(|manifest| {
            manifest.segments.insert(number, state.next);
        });
        if listed.is_err() {
            // If it cannot be removed either, it is a file without records, which opening sets aside.
            let _ = std::fs::remove_file(self.folder.join(segment::file_name(number)));
            return;
        }
        let sealed = std::mem::replace(&mut state.file, Arc::new(file));
        state.unsynced.push(sealed);
        let path = self.folder.join(segment::file_name(state.number));
        let records = state.first..state.next;
        state.sealed.push_back(SealedSegment { number: state.number, path, bytes: state.position, records });
        (state.number, state.first) = (number, state.next);
        (state.position, state.length) = (segment::HEADER_LENGTH as u64, LENGTH_FIRST);
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
        // The checkpoint waits for segments to be synced.
        self.checkpoint_wanted.notify_one();
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
        let end = self.position + frame.len() as u64;
        self.grow(end).map_err(|error| DiskError::of(&error))?;
        if let Err(error) = (&*self.file).write_all(frame) {
            self.undo(frame.len());
            return Err(DiskError::of(&error));
        }
        self.position = end;
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Makes room for records up to `end`, and for a zero after them.
    fn grow(&mut self, end: u64) -> io::Result<()> {
        if end < self.length {
            return Ok(());
        }
        let (smallest, with_room) = segment::file_lengths(end);
        // On a nearly full disk there may be room for this record and not for more.
        let grown = self.file.set_len(with_room).map(|()| with_room);
        self.length = grown.or_else(|_| self.file.set_len(smallest).map(|()| smallest))?;
        Ok(())
    }

    /// Overwrites with zeros what a failed write of `length` bytes may have left. If even that fails, the
    /// journal takes no more writes.
    fn undo(&mut self, length: usize) {
        let mut file = &*self.file;
        let written = file.stream_position().map(|at| at.saturating_sub(self.position).min(length as u64));
        let undone = written.and_then(|written| {
            file.seek(SeekFrom::Start(self.position))?;
            file.write_all(&vec![0; written as usize])?;
            file.seek(SeekFrom::Start(self.position))
        });
        if let Err(error) = undone {
            self.broken = Some(format!("a failed write could not be taken back: {error}"));
        }
    }
}

/// Creates a segment whose first record is `first`. When it returns, the file and its name are on the disk.
fn create(folder: &std::path::Path, number: u64, first: u64) -> io::Result<File> {
    let path = folder.join(segment::file_name(number));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let written = file.write_all(&segment::header(number, first));
    let written = written.and_then(|()| file.set_len(LENGTH_FIRST)).and_then(|()| file.sync_all());
    let written = written.and_then(|()| sync_folder(folder));
    if written.is_err() {
        // If it cannot be removed either, the write error is still what the caller has to know.
        let _ = std::fs::remove_file(&path);
    }
    written.map(|()| file)
}
