//! The journal: every commit, in order, before anybody sees it.
//!
//! In: frames, whole. Out: the number of the record, once the operating system has it. A frame that
//! cannot be written leaves no trace, and the next one is tried again. Syncing (`sync`) and settling
//! (`settle`) have threads of their own, so that whoever appends waits for neither.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::error::{DiskError, OpenError};
use super::fsync::Fsync;
use super::record;
use super::replay::{Replay, Sealed};
use super::segment;

/// A file is sealed when it has this many bytes. Small in tests, so that they see many.
pub(super) const SEGMENT_BYTES: u64 = if cfg!(test) { 16 * 1024 } else { 64 * 1024 * 1024 };
/// Bytes a record may have.
const RECORD_BYTES_MAX: usize = 1 << 31;

/// How far the disk is.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Every record up to this one has reached the disk.
    pub(super) synced: u64,
    /// Why nothing more will.
    pub(super) broken: Option<String>,
    /// Bytes of sealed files that are not settled yet.
    pub(super) backlog: u64,
}

/// Takes commits, one at a time.
#[derive(Debug)]
pub(super) struct Journal {
    state: Mutex<State>,
    /// Something wants to be synced, or it is time to stop.
    pub(super) sync_wanted: Condvar,
    /// A file was sealed, or it is time to stop.
    pub(super) settle_wanted: Condvar,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) fsync: Fsync,
    folder: PathBuf,
}

/// What is behind the lock.
#[derive(Debug)]
pub(super) struct State {
    file: Arc<File>,
    number: u64,
    position: u64,
    next: u64,
    /// The newest record that is a commit: nobody waits for a mark to be synced.
    committed: u64,
    /// Files with records that may not have reached the disk, besides the current one.
    unsynced: Vec<Arc<File>>,
    /// Whether the current file has records that may not have reached the disk.
    pub(super) dirty: bool,
    pub(super) sealed: VecDeque<Sealed>,
    broken: Option<String>,
    pub(super) stopping: bool,
}

/// What one sync has to do.
pub(super) struct Unsynced {
    pub(super) files: Vec<Arc<File>>,
    /// The newest record in them.
    pub(super) newest: u64,
}

impl Journal {
    /// Goes on after what `replay` found, in a new file.
    pub(super) fn start(folder: PathBuf, replay: &Replay, fsync: Fsync) -> Result<Journal, OpenError> {
        let unsynced = replay.files.iter().map(|file| {
            // A process that was killed may have left its last file to the operating system.
            let opened = OpenOptions::new().write(true).open(&file.path);
            opened.map(Arc::new).map_err(OpenError::refused("open", &file.path))
        });
        let unsynced = unsynced.collect::<Result<Vec<_>, _>>()?;
        let path = folder.join(segment::file_name(replay.next_file));
        let file =
            create(&folder, replay.next_file, replay.next).map_err(OpenError::refused("write", &path))?;
        let sealed: VecDeque<Sealed> = replay.files.iter().cloned().collect();
        let backlog = sealed.iter().map(|file| file.bytes).sum();
        let state = State {
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
            settle_wanted: Condvar::new(),
            progress: watch::Sender::new(Progress { backlog, ..Progress::default() }),
            fsync,
            folder,
        })
    }

    /// Hands a frame to the operating system and returns its number. The order of calls is the order
    /// of records.
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

    /// The number of the newest commit.
    pub(super) fn committed(&self) -> u64 {
        self.lock().committed
    }

    /// Bytes of all files there are.
    #[cfg(test)]
    pub(super) fn bytes_written(&self) -> u64 {
        let state = self.lock();
        state.position + state.sealed.iter().map(|file| file.bytes).sum::<u64>()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics under the lock but a bug, and then the file is where `position` says or
        // behind it, which the next write puts right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current file and begins the next. Failing that, the current one goes on growing.
    fn rotate(&self, state: &mut State) {
        let number = state.number + 1;
        let Ok(file) = create(&self.folder, number, state.next) else { return };
        let sealed = std::mem::replace(&mut state.file, Arc::new(file));
        state.unsynced.push(sealed);
        let path = self.folder.join(segment::file_name(state.number));
        state.sealed.push_back(Sealed { number: state.number, path, bytes: state.position });
        (state.number, state.position) = (number, segment::HEADER_LENGTH as u64);
        let backlog = state.sealed.iter().map(|file| file.bytes).sum();
        self.progress.send_modify(|progress| progress.backlog = backlog);
        // Even `never` does it now: what is settled next should not be ahead of the journal.
        self.sync_wanted.notify_one();
        self.settle_wanted.notify_one();
    }

    /// What a sync has to do now.
    pub(super) fn take_unsynced(&self, state: &mut State) -> Unsynced {
        let mut files = std::mem::take(&mut state.unsynced);
        files.push(Arc::clone(&state.file));
        state.dirty = false;
        Unsynced { files, newest: state.next - 1 }
    }

    /// Whether a sealed file waits to be synced.
    pub(super) fn has_unsynced_files(state: &State) -> bool {
        !state.unsynced.is_empty()
    }

    /// Notes that everything up to `newest` has reached the disk, in the journal as well.
    pub(super) fn synced(&self, newest: u64) {
        let mut mark = super::batch::mark(newest);
        let hash = record::hash_of(&mark);
        // A mark that cannot be written is only missing: the next one says more anyway. The last one
        // comes when nothing else is taken any more.
        let _ = self.lock().write_anyway(&mut mark, hash);
        self.progress.send_modify(|progress| progress.synced = newest);
    }

    /// Takes no more writes: it is not known what is on the disk.
    pub(super) fn give_up(&self, reason: String) {
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
        self.settle_wanted.notify_all();
    }

    /// Forgets sealed files that have been settled.
    pub(super) fn forget(&self, settled: &[Sealed]) {
        let mut state = self.lock();
        state.sealed.retain(|file| !settled.contains(file));
        let backlog = state.sealed.iter().map(|file| file.bytes).sum();
        self.progress.send_modify(|progress| progress.backlog = backlog);
    }
}

impl State {
    fn write(&mut self, frame: &mut [u8], hash: u64) -> Result<u64, DiskError> {
        match &self.broken {
            Some(reason) => Err(DiskError::Broken(reason.clone())),
            None => self.write_anyway(frame, hash),
        }
    }

    fn write_anyway(&mut self, frame: &mut [u8], hash: u64) -> Result<u64, DiskError> {
        record::seal(frame, self.next, hash);
        if let Err(error) = (&*self.file).write_all(frame) {
            self.undo();
            return Err(DiskError::of(&error));
        }
        self.position += frame.len() as u64;
        self.next += 1;
        Ok(self.next - 1)
    }

    /// Takes back what a failed write may have left. If even that fails, the journal ends here.
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
        let _ = std::fs::remove_file(&path);
    }
    written.map(|()| file)
}
