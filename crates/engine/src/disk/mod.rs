//! `--data-dir`: what survives the end of the process.
//!
//! In: commits, before anybody sees them. Out: the same account when the directory is opened again.
//! A commit is one record of the journal (`record`, `segment`, `journal`), so it is there as a whole or
//! not at all. Behind it, `sync` brings the journal to the disk as `--fsync` promises, and `settle` moves
//! what is old into trees (`base`). Opening reads both (`replay`, `load`, `history`). What keys and values
//! look like is in `keys`, `values`, `layout`, `regions`, `catalog::kept` and `store`'s `kept`. The promises
//! are in `docs/durability.md`, the reasons in `docs/decisions/003` and `007`.

mod base;
mod batch;
mod coding;
mod directory;
mod error;
mod fsync;
mod history;
mod journal;
mod keys;
mod layout;
mod load;
mod newest;
mod record;
mod regions;
mod replay;
mod segment;
mod settle;
mod sync;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use protocol::lsn::Lsn;

pub(crate) use batch::{Batch, Space};
pub(crate) use coding::{Malformed, Reader, put_bytes, put_number};
pub use error::DiskError;
pub use error::OpenError;
pub use fsync::Fsync;
pub(crate) use keys::{CatalogKey, LineKey, MeshEntry, MeshKey};
pub(crate) use layout::{Birth, KeptLayout, KeptPartition};
pub(crate) use load::{ItemsRead, LineRead, LoggedAt, Opened};
pub(crate) use regions::KeptRegions;
pub(crate) use replay::in_parallel;
pub(crate) use values::{put_version, read_version};

use protocol::resource_id::ContainerRid;

use crate::items::{Change, Item, Ordinal};
use directory::Directory;
use journal::Journal;
use replay::Torn;

/// How long an answer waits for the disk.
const SYNC_WAIT_MAX: Duration = Duration::from_secs(30);
/// Bytes of journal that are not settled yet, before answers to writes are held back.
const BACKLOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How long a write is held back for that, so that whoever writes slows down and nobody stops.
const BACKLOG_WAIT_MAX: Duration = Duration::from_secs(1);

/// How long closing waits for each thread, and how often it looks.
const CLOSE_WAIT_MAX: Duration = Duration::from_millis(600);
const CLOSE_STEP: Duration = Duration::from_millis(2);

/// Where an account is kept, and how safely.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DataDir {
    /// The directory; made if it does not exist.
    pub path: PathBuf,
    /// When a write is acknowledged.
    pub fsync: Fsync,
}

impl DataDir {
    /// A directory with the usual promise, [`Fsync::Interval`].
    pub fn new(path: impl Into<PathBuf>) -> DataDir {
        DataDir { path: path.into(), fsync: Fsync::default() }
    }
}

/// An open data directory. Closes, after a last sync, when it is dropped.
#[derive(Debug)]
pub struct Disk {
    journal: Arc<Journal>,
    torn: Option<Torn>,
    settling: Arc<Mutex<Option<String>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Ours until this and the threads have given it up.
    directory: Mutex<Option<Arc<Directory>>>,
    path: PathBuf,
}

/// One commit of one line.
pub(crate) struct Commit<'a> {
    pub(crate) line: LineKey,
    pub(crate) lsn: Lsn,
    pub(crate) changes: &'a [Arc<Change>],
    /// Changes up to here are no longer known.
    pub(crate) forgotten: Lsn,
    /// The ordinal the container's next item gets.
    pub(crate) next_ordinal: u64,
    /// What has the LSN before it is not in this log.
    pub(crate) after_gap: bool,
}

/// What has to be on the disk before an answer may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncSequence(u64);

/// How a data directory is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataDirHealth {
    pub path: PathBuf,
    /// What was cut off when it was opened.
    pub truncated_tail: Option<String>,
    /// Why no more writes are taken.
    pub write_error: Option<String>,
    /// Why the journal is not getting shorter.
    pub checkpoint_error: Option<String>,
}

impl Disk {
    /// Opens a directory for an account in `regions`, and reads what is in it. Takes its time, so it
    /// belongs on a thread that has it.
    pub(crate) fn open(settings: &DataDir, regions: &KeptRegions) -> Result<(Disk, Opened), OpenError> {
        let directory = Arc::new(Directory::open(&settings.path)?);
        let base = base::Base::open(directory.base())?;
        let settled = load::settled(&base)?;
        let mut replay = replay::replay(&directory.journal(), settled)?;
        let source = load::Source::new(&base, std::mem::take(&mut replay.changes));
        let catalog = load::catalog(&source)?;
        check_regions(&catalog, regions, &settings.path)?;
        let opened = load::load(&source, catalog, regions.lines())?;
        drop(source);
        if let Some(torn) = &replay.torn {
            tracing::warn!(
                file = %torn.file.display(), at = torn.at, bytes = torn.bytes,
                "the end of the journal was incomplete and has been cut off: {torn}"
            );
        }
        let torn = replay.torn.clone();
        directory.renew()?;
        let journal = Arc::new(Journal::start(directory.journal(), &replay, settings.fsync)?);
        let tidying = opened.tidying().map_err(|error| OpenError::damaged("base/catalog", error))?;
        if !tidying.is_empty() {
            // For want of room it is left for another time: nothing depends on it.
            let _ = journal.append(tidying.into_frame());
        }
        let settling = Arc::new(Mutex::new(None));
        let settler = settle::Settler::new(Arc::clone(&journal), base, Arc::clone(&settling), &directory);
        let syncing = sync::start(Arc::clone(&journal), directory.journal());
        let started = syncing.and_then(|syncing| Ok(vec![syncing, settler.start()?]));
        let threads = started.map_err(OpenError::refused("start threads for", &settings.path))?;
        let (path, directory) = (settings.path.clone(), Mutex::new(Some(directory)));
        Ok((Disk { journal, torn, settling, threads: Mutex::new(threads), directory, path }, opened))
    }

    /// Writes a batch down. When it returns, the operating system has it; when it fails, nobody does.
    /// Commits are written in the writer's turn, so that they are in order.
    pub(crate) fn append(&self, batch: Batch) -> Result<(), DiskError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.journal.append(batch.into_frame()).map(drop)
    }

    /// What an answer to a write that was just made has to wait for, if anything.
    pub fn pending_sync(&self) -> Option<SyncSequence> {
        let behind = self.journal.progress.borrow().backlog > BACKLOG_BYTES_MAX;
        (behind || self.journal.fsync == Fsync::Always).then(|| SyncSequence(self.journal.committed()))
    }

    /// What an answer has to wait for that shows what nobody wrote: conflicts that looking has settled. Not
    /// after a failure: what is there can still be looked at.
    pub fn pending_sync_for_read(&self) -> Option<SyncSequence> {
        let waits = self.journal.fsync == Fsync::Always && self.journal.progress.borrow().broken.is_none();
        waits.then(|| SyncSequence(self.journal.committed()))
    }

    /// Waits for what `--fsync` promises. Many wait for one sync.
    pub async fn wait_durable(&self, ticket: SyncSequence) -> Result<(), DiskError> {
        let mut progress = self.journal.progress.subscribe();
        let behind = progress.wait_for(|now| now.broken.is_some() || now.backlog <= BACKLOG_BYTES_MAX);
        // Held back, not held up: settling may be slower than this, and may have failed.
        let _ = tokio::time::timeout(BACKLOG_WAIT_MAX, behind).await;
        if self.journal.fsync != Fsync::Always {
            return Ok(());
        }
        let synced = progress.wait_for(|now| now.broken.is_some() || now.synced >= ticket.0);
        match tokio::time::timeout(SYNC_WAIT_MAX, synced).await {
            Ok(Ok(now)) if now.synced >= ticket.0 => Ok(()),
            Ok(Ok(now)) => Err(DiskError::Broken(now.broken.clone().unwrap_or_default())),
            Ok(Err(_)) => Err(DiskError::Broken("it was closed".to_owned())),
            Err(_) => Err(DiskError::Failed(format!("no answer from the disk in {SYNC_WAIT_MAX:?}"))),
        }
    }

    /// How it is doing.
    pub fn health(&self) -> DataDirHealth {
        DataDirHealth {
            path: self.path.clone(),
            truncated_tail: self.torn.as_ref().map(ToString::to_string),
            write_error: self.journal.progress.borrow().broken.clone(),
            checkpoint_error: self.settling.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Disk {
    /// Brings everything to the disk, takes no more writes, and gives the directory up.
    pub(crate) fn close(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if threads.is_empty() {
            return;
        }
        self.journal.stop();
        let patience = CLOSE_WAIT_MAX.as_millis() / CLOSE_STEP.as_millis();
        for thread in threads {
            // What is being settled may take longer than anybody wants to wait. It needs no end: the
            // thread keeps the directory until the process is gone, and the next one begins anew.
            for _ in 0..patience {
                if thread.is_finished() {
                    break;
                }
                std::thread::park_timeout(CLOSE_STEP);
            }
            if thread.is_finished() {
                // A thread that panicked has said so; there is nothing left to close.
                let _ = thread.join();
            }
        }
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
impl Disk {
    /// The same, and waits for what is being settled: whoever opens it next is in this process.
    fn close_and_wait(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        self.journal.stop();
        for thread in threads {
            thread.join().expect("it ends when it is told to");
        }
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

impl Batch {
    /// Adds what a commit changes.
    pub(crate) fn put_commit(&mut self, commit: &Commit<'_>) {
        let LineKey { container, line, .. } = commit.line;
        let versions =
            commit.changes.iter().flat_map(|change| [Some(&change.item), change.previous.as_ref()]);
        self.reserve(versions.flatten().map(|item| item.size() + 256).sum());
        for change in commit.changes {
            let key = keys::item(container, line, change.item.ordinal);
            let previous = change.previous.as_ref().filter(|item| item.ordinal != change.item.ordinal);
            if let Some(previous) = previous {
                self.remove(Space::Items, &keys::item(container, line, previous.ordinal));
            }
            if change.kind.removes() {
                self.remove(Space::Items, &key);
            } else {
                self.put(Space::Items, &key, |to| values::put_item(to, &change.item));
            }
        }
        let key = keys::log(commit.line, commit.lsn);
        self.put(Space::Log, &key, |to| values::put_log(to, commit));
    }

    /// Adds a version of an item, as the newest.
    pub(crate) fn put_item(&mut self, container: ContainerRid, line: u8, item: &Item) {
        let key = keys::item(container, line, item.ordinal);
        self.put(Space::Items, &key, |to| values::put_item(to, item));
    }

    /// Takes an item away.
    pub(crate) fn remove_item(&mut self, container: ContainerRid, line: u8, ordinal: Ordinal) {
        self.remove(Space::Items, &keys::item(container, line, ordinal));
    }

    /// Takes away what happened in a line after `lsn`.
    pub(crate) fn remove_log_after(&mut self, line: LineKey, lsn: Lsn) {
        let from = keys::log(line, Lsn(lsn.0.saturating_add(1)));
        self.remove_range(Space::Log, &from, &keys::behind(&keys::line_prefix(line)));
    }

    /// Takes away what happened in every line of a container whose range id is at least that of `line`.
    pub(crate) fn remove_log_from(&mut self, line: LineKey) {
        let behind = keys::behind(&keys::container_line_prefix(line.container, line.line));
        self.remove_range(Space::Log, &keys::line_prefix(line), &behind);
    }

    /// Takes away what is kept of a partition where every region writes.
    pub(crate) fn remove_mesh(&mut self, container: ContainerRid, partition: u32) {
        let prefix = keys::mesh_prefix(container, partition);
        self.remove_range(Space::Mesh, &prefix, &keys::behind(&prefix));
    }

    /// Takes away all that is in a container.
    pub(crate) fn remove_contents(&mut self, container: ContainerRid) {
        let prefix = keys::container_prefix(container);
        for space in [Space::Items, Space::Log, Space::Mesh] {
            self.remove_range(space, &prefix, &keys::behind(&prefix));
        }
    }
}

/// Refuses a directory whose containers belong to an account in which other regions write.
fn check_regions(
    catalog: &[(CatalogKey, bytes::Bytes)],
    wanted: &KeptRegions,
    path: &Path,
) -> Result<(), OpenError> {
    let kept = catalog.iter().find(|(key, _)| *key == CatalogKey::Regions);
    let kept = kept.map(|(_, value)| serde_json::from_slice(value)).transpose();
    let kept: KeptRegions = kept.map_err(|error| OpenError::damaged(path, error))?.unwrap_or_default();
    let empty = !catalog.iter().any(|(key, _)| matches!(key, CatalogKey::Container(_)));
    if empty { Ok(()) } else { kept.check(wanted, path) }
}

/// Closes a directory when it is dropped, whoever else still refers to it.
#[derive(Debug)]
pub struct CloseOnDrop(pub Option<Arc<Disk>>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(disk) = &self.0 {
            disk.close();
        }
    }
}

/// Runs `work`, which may take long, without keeping other requests from being answered.
pub(crate) fn make_room<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
