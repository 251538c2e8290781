//! The data directory (`--data-dir`): what survives the end of the process.
//!
//! In: commits, before they become visible. Out: the same account when the directory is opened again. A
//! commit is one record of the journal (`record`, `segment`, `journal`), so it is there as a whole or not at
//! all. Behind it, `sync` brings the journal to the disk as `--fsync` promises, and `checkpoint` moves older
//! segments into LSM trees (`trees`). Opening reads both (`replay`, `load`, `history`). The format of keys
//! and values is in `keys`, `values`, `layout`, `regions`, `catalog::stored` and
//! `store::replication::stored`. The promises are in `docs/durability.md`, the reasons in
//! `docs/decisions/003` and `007`.

mod batch;
mod checkpoint;
mod coalesce;
mod directory;
mod encoding;
mod error;
mod fsync;
mod history;
mod journal;
mod keys;
mod layout;
mod load;
mod manifest;
mod record;
mod regions;
mod repair;
mod replay;
mod segment;
mod sync;
mod sync_fault;
mod synced_mark;
#[cfg(test)]
mod tests;
mod trees;
mod values;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::lsn::Lsn;

pub(crate) use batch::{Batch, Keyspace};
pub(crate) use encoding::{Malformed, Reader, put_bytes, put_number};
pub use error::DiskError;
pub use error::OpenError;
pub use fsync::Fsync;
pub(crate) use keys::{CatalogKey, ChainKey, ReplicationEntry, ReplicationKey};
pub(crate) use layout::{ChainOrigin, StoredLayout, StoredPartition};
pub(crate) use load::{LogEntry, StoredAccount, StoredChain, StoredContents};
pub use regions::RegionSource;
pub(crate) use regions::StoredRegions;
pub(crate) use replay::in_parallel;
pub use sync_fault::SyncFault;
pub(crate) use values::{put_version, read_version};

use protocol::resource_id::ContainerRid;

use crate::items::{Change, Item, Ordinal};
use directory::Directory;
use journal::Journal;
use replay::TornTail;
use synced_mark::SyncedMark;

/// How long a response waits for the disk.
const SYNC_WAIT_MAX: Duration = Duration::from_secs(30);
/// Bytes of journal that are not checkpointed yet, before responses to writes are delayed.
const BACKLOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How long a response is delayed for that: writers slow down, and none is blocked.
const BACKLOG_WAIT_MAX: Duration = Duration::from_secs(1);

/// How long closing waits for each thread, and how often it checks.
const CLOSE_WAIT_MAX: Duration = Duration::from_millis(600);
const CLOSE_STEP: Duration = Duration::from_millis(2);

/// The data directory of an account, and how durable its writes are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DataDir {
    /// The path of the directory, which is created if it does not exist.
    pub path: PathBuf,
    /// When a write is acknowledged.
    pub fsync: Fsync,
    /// Whether the directory is opened although data that was stored is missing: with what is there.
    pub accept_loss: bool,
    /// Syncs that fail, for tests.
    #[doc(hidden)]
    pub sync_fault: SyncFault,
}

impl DataDir {
    /// A directory with the default durability, [`Fsync::Interval`].
    pub fn new(path: impl Into<PathBuf>) -> DataDir {
        DataDir {
            path: path.into(),
            fsync: Fsync::default(),
            accept_loss: false,
            sync_fault: SyncFault::default(),
        }
    }
}

/// An open data directory. Dropping it syncs the journal and closes it.
#[derive(Debug)]
pub struct Disk {
    journal: Arc<Journal>,
    /// The newest record that is not one of a container's items.
    newest_record: AtomicU64,
    torn: Option<TornTail>,
    damaged_items: Vec<String>,
    checkpoint_error: Arc<Mutex<Option<String>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The lock on the directory, held until this and the threads have released it.
    directory: Mutex<Option<Arc<Directory>>>,
    path: PathBuf,
}

/// One commit of one version chain, to be persisted.
pub(crate) struct CommitRecord<'a> {
    pub(crate) chain: ChainKey,
    pub(crate) lsn: Lsn,
    pub(crate) changes: &'a [Arc<Change>],
    /// The chain's log has been trimmed up to this LSN.
    pub(crate) trimmed_to: Lsn,
    /// The ordinal that the container's next item gets.
    pub(crate) next_ordinal: u64,
    /// Whether the commit with the LSN before it is missing from this log.
    pub(crate) after_gap: bool,
}

/// The journal record that has to be on the disk before a response may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncSequence {
    record: u64,
    /// Whether the response acknowledges a write; otherwise it only shows what others wrote.
    acknowledges: bool,
}

/// The health of a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataDirHealth {
    /// The path of the directory.
    pub path: PathBuf,
    /// What was cut off the end of the journal when it was opened.
    pub truncated_tail: Option<String>,
    /// Why the last write failed, or why no more writes are accepted.
    pub write_error: Option<String>,
    /// Whether no more writes are accepted before a restart.
    pub is_broken: bool,
    /// Why the last checkpoint failed.
    pub checkpoint_error: Option<String>,
    /// The items whose stored text was not JSON when the directory was opened.
    pub damaged_items: Vec<String>,
}

impl Disk {
    /// Opens a directory for an account in `regions` and reads it. Takes long, so it belongs on a blocking
    /// thread.
    pub(crate) fn open(
        settings: &DataDir,
        regions: &StoredRegions,
        region_source: RegionSource,
    ) -> Result<(Disk, StoredAccount), OpenError> {
        let directory = Arc::new(Directory::open(&settings.path)?);
        // Everything is read and checked before anything is changed.
        directory.check_folders()?;
        let expected = directory.expected_journal(settings.accept_loss)?;
        let manifest = expected.manifest.as_ref();
        trees::check(&directory.trees(), manifest, directory.trees_by_format())?;
        let scanned = replay::scan(&directory.journal())?;
        if let (Some(manifest), false) = (manifest, settings.accept_loss) {
            // Opening the trees removes what an interrupted checkpoint left, so the journal comes first.
            scanned.check(manifest.checkpointed, &expected)?;
        }
        let trees = trees::Trees::open(directory.trees())?;
        let checkpointed = load::checkpointed(&trees)?;
        let mut replay = scanned.replay(checkpointed, &expected, settings.accept_loss)?;
        let source = load::Source::new(&trees, std::mem::take(&mut replay.changes));
        let catalog = load::catalog(&source)?;
        let chains = check_regions(&catalog, regions, region_source, &settings.path)?;
        let opened = load::load(&source, catalog, chains)?;
        drop(source);
        let cleanup = opened.cleanup().map_err(|error| OpenError::damaged("base/catalog", error))?;
        let damaged_items = opened.damaged_items.clone();
        for item in &damaged_items {
            tracing::warn!(
                "the stored text of {item} is not JSON; it is served repaired until it is replaced"
            );
        }
        directory.put_in_use();
        let torn = replay.cut.take().map(|cut| cut.carry_out(&directory.journal())).transpose()?;
        if let Some(torn) = &torn {
            tracing::warn!(
                file = %torn.file.display(), at = torn.at, bytes = torn.bytes,
                "the end of the journal was incomplete and has been cut off: {torn}"
            );
        }
        let mark = SyncedMark::continue_at(&settings.path, replay.synced)
            .map_err(OpenError::io("write", synced_mark::path_in(&settings.path)))?;
        let journal = Journal::start(&directory, &replay, checkpointed, trees.versions()?, settings.fsync)?;
        let journal = Arc::new(journal);
        directory.upgrade_format()?;
        if !cleanup.is_empty() {
            // A failure, on a full disk for instance, leaves it for the next start: nothing depends on it.
            let _ = journal.append(cleanup.into_frame());
        }
        let checkpoint_error = Arc::new(Mutex::new(None));
        let checkpointer = checkpoint::Checkpointer::new(
            Arc::clone(&journal),
            trees,
            Arc::clone(&checkpoint_error),
            &directory,
        );
        let syncing = sync::start(Arc::clone(&journal), mark, settings.sync_fault.clone());
        let started = syncing.and_then(|syncing| Ok(vec![syncing, checkpointer.start()?]));
        let threads = started.map_err(OpenError::io("start threads for", &settings.path))?;
        let (path, directory) = (settings.path.clone(), Mutex::new(Some(directory)));
        let threads = Mutex::new(threads);
        let newest_record = AtomicU64::new(0);
        let disk =
            Disk { journal, newest_record, torn, damaged_items, checkpoint_error, threads, directory, path };
        Ok((disk, opened))
    }

    /// Appends a batch that every response may show to the journal. When it returns, the operating system has
    /// it; when it fails, nothing was written. Appended before it becomes visible.
    pub(crate) fn append(&self, batch: Batch) -> Result<(), DiskError> {
        self.append_noting(batch, &self.newest_record)
    }

    /// Appends a batch whose record only those responses show that look at `newest_record` as well. Commits
    /// are appended under their write guard, so the journal has them in order.
    pub(crate) fn append_noting(&self, batch: Batch, newest_record: &AtomicU64) -> Result<(), DiskError> {
        if batch.is_empty() {
            return Ok(());
        }
        let record = self.journal.append(batch.into_frame())?;
        // Release: who reads the number sees at least what it stands for. It is written before the commit is
        // published, so who sees the commit sees the number.
        newest_record.fetch_max(record, Ordering::Release);
        Ok(())
    }

    /// Whether a response waits until what it shows is on the disk.
    pub fn syncs_before_responses(&self) -> bool {
        self.journal.fsync == Fsync::Always
    }

    /// What a response has to wait for that shows data of `shown` and of the catalog, if anything. One that
    /// `acknowledges` a write also waits while the journal grows faster than it is checkpointed.
    pub fn pending_sync(&self, shown: Option<&AtomicU64>, acknowledges: bool) -> Option<SyncSequence> {
        if self.journal.fsync != Fsync::Always {
            let backlogged = acknowledges && self.journal.progress.borrow().backlog > BACKLOG_BYTES_MAX;
            return backlogged.then_some(SyncSequence { record: 0, acknowledges });
        }
        // Acquire pairs with the release above.
        let newest = |record: &AtomicU64| record.load(Ordering::Acquire);
        let record = newest(&self.newest_record).max(shown.map_or(0, newest));
        let is_synced = self.journal.progress.borrow().synced >= record;
        (!is_synced).then_some(SyncSequence { record, acknowledges })
    }

    /// What a response has to wait for that acknowledges a change of anything in the account.
    pub fn pending_sync_of_everything(&self) -> Option<SyncSequence> {
        let newest = AtomicU64::new(self.journal.committed());
        self.pending_sync(Some(&newest), true)
    }

    /// Waits until what a response shows is as durable as `--fsync` promises. Many waiters share one sync.
    pub async fn wait_durable(&self, sequence: SyncSequence) -> Result<(), DiskError> {
        let SyncSequence { record, acknowledges } = sequence;
        let mut progress = self.journal.progress.subscribe();
        if acknowledges {
            let caught_up = progress.wait_for(|now| now.broken.is_some() || now.backlog <= BACKLOG_BYTES_MAX);
            // Delayed, not blocked: the checkpoint may take longer than this or have failed, so running into
            // the timeout is no error.
            let _ = tokio::time::timeout(BACKLOG_WAIT_MAX, caught_up).await;
        }
        if self.journal.fsync != Fsync::Always {
            return Ok(());
        }
        let synced = progress.wait_for(|now| now.broken.is_some() || now.synced >= record);
        let reason = match tokio::time::timeout(SYNC_WAIT_MAX, synced).await {
            Ok(Ok(now)) if now.synced >= record => return Ok(()),
            Ok(Ok(now)) => now.broken.clone().unwrap_or_default(),
            Ok(Err(_)) => "it was closed".to_owned(),
            Err(_) => format!("no answer from the disk in {SYNC_WAIT_MAX:?}"),
        };
        Err(if acknowledges { DiskError::Undecided(reason) } else { DiskError::Unsynced(reason) })
    }

    /// The health of the directory.
    pub fn health(&self) -> DataDirHealth {
        DataDirHealth {
            path: self.path.clone(),
            truncated_tail: self.torn.as_ref().map(ToString::to_string),
            write_error: self.journal.write_error(),
            is_broken: self.journal.progress.borrow().broken.is_some(),
            checkpoint_error: self.checkpoint_error.lock().clone(),
            damaged_items: self.damaged_items.clone(),
        }
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Disk {
    /// Syncs the journal, takes no more writes, and releases the directory.
    pub(crate) fn close(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return;
        }
        self.journal.stop();
        let checks = CLOSE_WAIT_MAX.as_millis() / CLOSE_STEP.as_millis();
        for thread in threads {
            // A checkpoint may take longer than a caller wants to wait. It need not finish: the thread keeps
            // the directory until the process ends, and the next process repeats it. Polled, because joining
            // has no timeout.
            for _ in 0..checks {
                if thread.is_finished() {
                    break;
                }
                std::thread::park_timeout(CLOSE_STEP);
            }
            if thread.is_finished() {
                // An error means that the thread panicked and has logged that; there is nothing left to
                // close.
                let _ = thread.join();
            }
        }
        *self.directory.lock() = None;
    }
}

#[cfg(test)]
impl Disk {
    /// Closes the directory and waits for a checkpoint under way, because the next opener is in this process.
    fn close_and_wait(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        self.journal.stop();
        for thread in threads {
            thread.join().expect("it ends when the journal stops");
        }
        *self.directory.lock() = None;
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

impl Batch {
    /// Adds the changes of a commit.
    pub(crate) fn put_commit(&mut self, commit: &CommitRecord<'_>) {
        let ChainKey { container, chain, .. } = commit.chain;
        let versions =
            commit.changes.iter().flat_map(|change| [Some(&change.item), change.previous.as_ref()]);
        self.reserve(versions.flatten().map(|item| item.size() + 256).sum());
        for change in commit.changes {
            let key = keys::item(container, chain, change.item.ordinal);
            let previous = change.previous.as_ref().filter(|item| item.ordinal != change.item.ordinal);
            if let Some(previous) = previous {
                self.remove(Keyspace::Items, &keys::item(container, chain, previous.ordinal));
            }
            if change.kind.removes() {
                self.remove(Keyspace::Items, &key);
            } else {
                self.put(Keyspace::Items, &key, |to| values::put_item(to, &change.item));
            }
        }
        let key = keys::log(commit.chain, commit.lsn);
        self.put(Keyspace::Log, &key, |to| values::put_log(to, commit));
    }

    /// Adds a version of an item as its newest.
    pub(crate) fn put_item(&mut self, container: ContainerRid, chain: u8, item: &Item) {
        let key = keys::item(container, chain, item.ordinal);
        self.put(Keyspace::Items, &key, |to| values::put_item(to, item));
    }

    /// Removes an item from the items.
    pub(crate) fn remove_item(&mut self, container: ContainerRid, chain: u8, ordinal: Ordinal) {
        self.remove(Keyspace::Items, &keys::item(container, chain, ordinal));
    }

    /// Removes the log of a version chain after `lsn`.
    pub(crate) fn remove_log_after(&mut self, chain: ChainKey, lsn: Lsn) {
        let from = keys::log(chain, Lsn(lsn.0.saturating_add(1)));
        self.remove_range(Keyspace::Log, &from, &keys::prefix_end(&keys::chain_prefix(chain)));
    }

    /// Removes the logs of all chains of a container whose range id is at least that of `chain`.
    pub(crate) fn remove_log_from(&mut self, chain: ChainKey) {
        let prefix_end = keys::prefix_end(&keys::container_chain_prefix(chain.container, chain.chain));
        self.remove_range(Keyspace::Log, &keys::chain_prefix(chain), &prefix_end);
    }

    /// Removes what is stored about a partition's replicas where every region writes.
    pub(crate) fn remove_replication(&mut self, container: ContainerRid, partition: u32) {
        let prefix = keys::replication_prefix(container, partition);
        self.remove_range(Keyspace::Replication, &prefix, &keys::prefix_end(&prefix));
    }

    /// Removes the contents of a container.
    pub(crate) fn remove_contents(&mut self, container: ContainerRid) {
        let prefix = keys::container_prefix(container);
        for space in [Keyspace::Items, Keyspace::Log, Keyspace::Replication] {
            self.remove_range(space, &prefix, &keys::prefix_end(&prefix));
        }
    }
}

/// Returns how many version chains each partition has; fails if the directory belongs to an account with other
/// write regions.
fn check_regions(
    catalog: &[(CatalogKey, bytes::Bytes)],
    wanted: &StoredRegions,
    source: RegionSource,
    path: &Path,
) -> Result<u8, OpenError> {
    let stored = catalog.iter().find(|(key, _)| *key == CatalogKey::Regions);
    let stored = stored.map(|(_, value)| serde_json::from_slice(value)).transpose();
    let stored: StoredRegions = stored.map_err(|error| OpenError::damaged(path, error))?.unwrap_or_default();
    let empty = !catalog.iter().any(|(key, _)| matches!(key, CatalogKey::Container(_)));
    let wanted = wanted.chosen(&stored, source);
    if !empty {
        stored.check(&wanted, path)?;
    }
    Ok(wanted.chains())
}

/// Closes a data directory when it is dropped, even if others still refer to it.
#[derive(Debug)]
pub struct CloseOnDrop(pub Option<Arc<Disk>>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(disk) = &self.0 {
            disk.close();
        }
    }
}
