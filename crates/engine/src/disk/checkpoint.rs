//! The checkpoint thread: moves sealed journal segments into the trees.
//!
//! Several segments become one sorted run per tree, which has only the last operation on each key. The
//! segments are deleted when all trees have ingested their runs; a crash before that repeats the checkpoint,
//! which changes nothing. A failed checkpoint, on a full disk for instance, is tried again later: the journal
//! still has everything.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::lsn::Lsn;
use protocol::resource_id::ContainerRid;

use super::batch::Keyspace;
use super::coalesce::{CoalescedChanges, coalesce};
use super::directory::Directory;
use super::encoding::put_number;
use super::error::OpenError;
use super::journal::{Journal, SEGMENT_BYTES};
use super::keys::{self, CatalogKey, ChainKey};
use super::manifest::{self, Manifest, TreeVersion};
use super::replay::SealedSegment;
use super::trees::{Entry, Trees};
use super::{segment, values};

/// Small segments are left until there are this many.
const FILES_MIN: usize = 32;
/// Bytes that one checkpoint covers, more or less.
const BYTES_AT_ONCE: u64 = 2 * SEGMENT_BYTES;
/// How long after a failure the checkpoint is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Moves sealed segments into the trees.
pub(super) struct Checkpointer {
    journal: Arc<Journal>,
    trees: Trees,
    /// Why the last checkpoint failed, for the directory's health.
    failure: Arc<Mutex<Option<String>>>,
    /// Keeps the directory locked for as long as the thread works.
    directory: Arc<Directory>,
}

impl Checkpointer {
    pub(super) fn new(
        journal: Arc<Journal>,
        trees: Trees,
        failure: Arc<Mutex<Option<String>>>,
        directory: &Arc<Directory>,
    ) -> Checkpointer {
        Checkpointer { journal, trees, failure, directory: Arc::clone(directory) }
    }

    /// Starts the thread. It ends when the journal is `stopping`.
    pub(super) fn start(self) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("peri-checkpoint".to_owned()).spawn(move || self.run())
    }

    fn run(&self) {
        while let Some(files) = self.wait() {
            let checkpointed = self.checkpoint(&files);
            let failed = checkpointed.as_ref().err().map(|error| format!("{error}; {}", error.advice()));
            if let Err(error) = &checkpointed {
                tracing::error!(%error, "the checkpoint failed; the journal stays as it is");
            }
            *self.failure.lock() = failed;
            if checkpointed.is_err() && self.pause() {
                return;
            }
        }
    }

    /// Waits until there is enough to do; `None` when it is time to stop.
    fn wait(&self) -> Option<Vec<SealedSegment>> {
        let mut state = self.journal.lock();
        loop {
            if state.stopping {
                return None;
            }
            // Only what has reached the disk: the trees must not get ahead of the journal.
            let synced = self.journal.progress.borrow().synced;
            let is_synced = |file: &&SealedSegment| file.records.end <= synced + 1;
            let ready: Vec<&SealedSegment> = state.sealed.iter().take_while(is_synced).collect();
            let bytes: u64 = ready.iter().map(|file| file.bytes).sum();
            if bytes >= SEGMENT_BYTES / 2 || ready.len() >= FILES_MIN {
                let mut remaining = BYTES_AT_ONCE;
                let fits = |file: &&SealedSegment| {
                    let fits = remaining > 0;
                    remaining = remaining.saturating_sub(file.bytes);
                    fits
                };
                return Some(ready.into_iter().take_while(fits).cloned().collect());
            }
            self.journal.checkpoint_wanted.wait(&mut state);
        }
    }

    /// Waits after a failure, and says whether it is time to stop.
    fn pause(&self) -> bool {
        let mut state = self.journal.lock();
        self.journal.checkpoint_wanted.wait_while_for(&mut state, |state| !state.stopping, RETRY_AFTER);
        state.stopping
    }

    fn checkpoint(&self, files: &[SealedSegment]) -> Result<(), OpenError> {
        let mut changes = Vec::new();
        let mut last = 0;
        for file in files {
            let bytes = Bytes::from(fs::read(&file.path).map_err(OpenError::io("read", &file.path))?);
            let mut scan = segment::scan(file.number, &bytes);
            if scan.damaged {
                return Err(OpenError::damaged(&file.path, "it was whole when it was written"));
            }
            changes.append(&mut scan.changes);
            last = scan.next - 1;
        }
        let mut spaces = coalesce(changes);
        let mut take = |space| self.sorted_run(space, spaces.remove(&space).unwrap_or_default());
        let (mut items, mut log) = (take(Keyspace::Items)?, take(Keyspace::Log)?);
        let (replication, mut catalog) = (take(Keyspace::Replication)?, take(Keyspace::Catalog)?);
        for rid in removed_containers(&catalog) {
            self.remove_all(Keyspace::Items, rid, &mut items)?;
            self.remove_all(Keyspace::Log, rid, &mut log)?;
        }
        self.trim(&mut log)?;
        self.trees.create()?;
        let changing = |manifest: &mut Manifest| {
            manifest.trees = Keyspace::ALL.into_iter().map(|space| (space, TreeVersion::Changing)).collect();
        };
        self.update_manifest(changing)?;
        self.trees.put(Keyspace::Items, items)?;
        self.trees.put(Keyspace::Log, log)?;
        self.trees.put(Keyspace::Replication, replication)?;
        let mut mark = Vec::new();
        put_number(&mut mark, last);
        catalog.push((CatalogKey::Checkpointed.to_bytes().into(), Some(mark.into())));
        catalog.sort_by(|a, b| a.0.cmp(&b.0));
        // Last: the mark in it says that the other trees are complete.
        self.trees.put(Keyspace::Catalog, catalog)?;
        let compacted = Keyspace::ALL.into_iter().try_for_each(|space| self.trees.compact(space));
        let trees = self.trees.versions()?;
        self.update_manifest(|manifest| {
            manifest.trees = trees;
            manifest.checkpointed = last;
            for file in files {
                manifest.segments.remove(&file.number);
            }
        })?;
        // After the manifest: what it names must be there.
        for file in files {
            fs::remove_file(&file.path).map_err(OpenError::io("remove", &file.path))?;
        }
        self.journal.forget(files);
        compacted
    }

    fn update_manifest(&self, change: impl FnOnce(&mut Manifest)) -> Result<(), OpenError> {
        let updated = self.journal.manifest.update(change);
        updated.map_err(OpenError::io("write", manifest::path_in(self.directory.path())))
    }

    /// The sorted run to ingest, with tombstones for every key of the removed ranges.
    fn sorted_run(&self, space: Keyspace, newest: CoalescedChanges) -> Result<Vec<Entry>, OpenError> {
        let CoalescedChanges { entries: mut run, removed } = newest;
        for (from, to) in removed {
            self.trees.drop_tables(space, &from, &to)?;
            self.remove_range(space, &from, &to, &mut run)?;
        }
        Ok(run)
    }

    /// Adds tombstones for every key of a deleted container.
    fn remove_all(&self, space: Keyspace, rid: ContainerRid, run: &mut Vec<Entry>) -> Result<(), OpenError> {
        let prefix = keys::container_prefix(rid);
        let prefix_end = keys::prefix_end(&prefix);
        run.retain(|(key, _)| !key.starts_with(&prefix));
        self.trees.drop_tables(space, &prefix, &prefix_end)?;
        self.remove_range(space, &prefix, &prefix_end, run)
    }

    /// Adds tombstones for what the logs of the chains in `run` have trimmed since.
    fn trim(&self, run: &mut Vec<Entry>) -> Result<(), OpenError> {
        let damaged = |error| OpenError::damaged("journal", error);
        let mut trimmed_to: HashMap<ChainKey, Lsn> = HashMap::new();
        for (key, value) in run.iter() {
            if let Some(value) = value {
                let (chain, _) = keys::read_log(key).map_err(damaged)?;
                // In order of LSN, so that the newest of a chain comes last.
                trimmed_to.insert(chain, values::read_trimmed_to(value).map_err(damaged)?);
            }
        }
        run.retain(|(key, _)| match keys::read_log(key) {
            Ok((chain, lsn)) => trimmed_to.get(&chain).is_none_or(|trimmed_to| lsn > *trimmed_to),
            Err(_) => true,
        });
        for (chain, trimmed_to) in trimmed_to {
            let (from, to) = (keys::log(chain, Lsn(0)), keys::log(chain, Lsn(trimmed_to.0 + 1)));
            self.remove_range(Keyspace::Log, &from, &to, run)?;
        }
        Ok(())
    }

    /// Adds tombstones for the keys that the trees have in `[from, to)`, except for those in `run`.
    fn remove_range(
        &self,
        space: Keyspace,
        from: &[u8],
        to: &[u8],
        run: &mut Vec<Entry>,
    ) -> Result<(), OpenError> {
        let before = run.len();
        for entry in self.trees.range(space, from, to) {
            run.push((Bytes::copy_from_slice(entry?.0.as_ref()), None));
        }
        if run.len() > before {
            // A stable sort: of two entries with one key, the run's own stays.
            run.sort_by(|a, b| a.0.cmp(&b.0));
            run.dedup_by(|a, b| a.0 == b.0);
        }
        Ok(())
    }
}

fn removed_containers(catalog: &[Entry]) -> Vec<ContainerRid> {
    let removed = catalog.iter().filter(|(_, value)| value.is_none());
    let keys = removed.filter_map(|(key, _)| CatalogKey::read(key).ok());
    let containers = keys.filter_map(|key| match key {
        CatalogKey::Container(rid) => Some(rid),
        _ => None,
    });
    containers.collect()
}
