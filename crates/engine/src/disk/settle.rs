//! The thread that moves sealed journal files into the base.
//!
//! Several files become one sorted run per tree, in which only the last fate of each key is left. The
//! files go when all trees have their run; a crash before that repeats it, which changes nothing. What
//! fails, for want of room for instance, is tried again later: the journal has it all meanwhile.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use protocol::lsn::Lsn;
use protocol::resource_id::ContainerRid;

use super::base::{Base, Entry};
use super::batch::Space;
use super::coding::put_number;
use super::directory::Directory;
use super::error::OpenError;
use super::journal::{Journal, SEGMENT_BYTES};
use super::keys::{self, CatalogKey, LineKey};
use super::newest::{Newest, newest};
use super::replay::Sealed;
use super::{segment, values};

/// Small files are left alone until there are this many.
const FILES_MIN: usize = 32;
/// Bytes that are settled at once, more or less.
const BYTES_AT_ONCE: u64 = 2 * SEGMENT_BYTES;
/// How long after a failure it is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Moves sealed files into the base.
pub(super) struct Settler {
    journal: Arc<Journal>,
    base: Base,
    /// Why it last failed, for whoever asks how the directory is doing.
    failure: Arc<Mutex<Option<String>>>,
    /// Nobody else may be in it for as long as this works.
    _directory: Arc<Directory>,
}

impl Settler {
    pub(super) fn new(
        journal: Arc<Journal>,
        base: Base,
        failure: Arc<Mutex<Option<String>>>,
        directory: &Arc<Directory>,
    ) -> Settler {
        Settler { journal, base, failure, _directory: Arc::clone(directory) }
    }

    /// Starts the thread. It ends when the journal is `stopping`.
    pub(super) fn start(self) -> std::io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("peri-disk-settle".to_owned()).spawn(move || self.run())
    }

    fn run(&self) {
        while let Some(files) = self.wait() {
            let settled = self.settle(&files);
            let failed = settled.as_ref().err().map(|error| format!("{error}; {}", error.advice()));
            if let Err(error) = &settled {
                tracing::error!(%error, "the journal cannot be settled and stays as it is");
            }
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failed;
            if settled.is_err() && self.pause() {
                return;
            }
        }
    }

    /// Waits until there is enough to do; `None` when it is time to stop.
    fn wait(&self) -> Option<Vec<Sealed>> {
        let mut state = self.journal.lock();
        loop {
            if state.stopping {
                return None;
            }
            let bytes: u64 = state.sealed.iter().map(|file| file.bytes).sum();
            if bytes >= SEGMENT_BYTES / 2 || state.sealed.len() >= FILES_MIN {
                let mut left = BYTES_AT_ONCE;
                let fits = |file: &&Sealed| {
                    let fits = left > 0;
                    left = left.saturating_sub(file.bytes);
                    fits
                };
                return Some(state.sealed.iter().take_while(fits).cloned().collect());
            }
            state = self.journal.settle_wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits after a failure, and says whether it is time to stop.
    fn pause(&self) -> bool {
        let state = self.journal.lock();
        let wanted = &self.journal.settle_wanted;
        let waited = wanted.wait_timeout_while(state, RETRY_AFTER, |state| !state.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    fn settle(&self, files: &[Sealed]) -> Result<(), OpenError> {
        let mut changes = Vec::new();
        let mut last = 0;
        for file in files {
            let bytes = Bytes::from(fs::read(&file.path).map_err(OpenError::refused("read", &file.path))?);
            let mut scan = segment::scan(file.number, &bytes);
            if scan.damaged {
                return Err(OpenError::damaged(&file.path, "it was whole when it was written"));
            }
            changes.append(&mut scan.changes);
            last = scan.next - 1;
        }
        let mut spaces = newest(changes);
        let mut take = |space| self.run_of(space, spaces.remove(&space).unwrap_or_default());
        let (mut items, mut log) = (take(Space::Items)?, take(Space::Log)?);
        let (mesh, mut catalog) = (take(Space::Mesh)?, take(Space::Catalog)?);
        for rid in removed_containers(&catalog) {
            self.remove_all(Space::Items, rid, &mut items)?;
            self.remove_all(Space::Log, rid, &mut log)?;
        }
        self.trim(&mut log)?;
        self.base.put(Space::Items, items)?;
        self.base.put(Space::Log, log)?;
        self.base.put(Space::Mesh, mesh)?;
        let mut mark = Vec::new();
        put_number(&mut mark, last);
        catalog.push((CatalogKey::Settled.to_bytes().into(), Some(mark.into())));
        catalog.sort_by(|a, b| a.0.cmp(&b.0));
        // Last: it says that the others are there.
        self.base.put(Space::Catalog, catalog)?;
        for file in files {
            fs::remove_file(&file.path).map_err(OpenError::refused("remove", &file.path))?;
        }
        self.journal.forget(files);
        Space::ALL.into_iter().try_for_each(|space| self.base.compact(space))
    }

    /// What to put into a tree, with an end to every key that went with a range.
    fn run_of(&self, space: Space, newest: Newest) -> Result<Vec<Entry>, OpenError> {
        let Newest { entries: mut run, removed } = newest;
        for (from, to) in removed {
            self.base.drop_tables(space, &from, &to)?;
            self.remove_range(space, &from, &to, &mut run)?;
        }
        Ok(run)
    }

    /// Puts an end to every key of a container that is gone.
    fn remove_all(&self, space: Space, rid: ContainerRid, run: &mut Vec<Entry>) -> Result<(), OpenError> {
        let prefix = keys::container_prefix(rid);
        let behind = keys::behind(&prefix);
        run.retain(|(key, _)| !key.starts_with(&prefix));
        self.base.drop_tables(space, &prefix, &behind)?;
        self.remove_range(space, &prefix, &behind, run)
    }

    /// Puts an end to what the logs of the lines in `run` have forgotten since.
    fn trim(&self, run: &mut Vec<Entry>) -> Result<(), OpenError> {
        let damaged = |error| OpenError::damaged("journal", error);
        let mut forgotten: HashMap<LineKey, Lsn> = HashMap::new();
        for (key, value) in run.iter() {
            if let Some(value) = value {
                let (line, _) = keys::read_log(key).map_err(damaged)?;
                // In order, so that the newest of a line comes last.
                forgotten.insert(line, values::read_forgotten(value).map_err(damaged)?);
            }
        }
        run.retain(|(key, _)| match keys::read_log(key) {
            Ok((line, lsn)) => forgotten.get(&line).is_none_or(|forgotten| lsn > *forgotten),
            Err(_) => true,
        });
        for (line, forgotten) in forgotten {
            let (from, to) = (keys::log(line, Lsn(0)), keys::log(line, Lsn(forgotten.0 + 1)));
            self.remove_range(Space::Log, &from, &to, run)?;
        }
        Ok(())
    }

    /// Puts an end to what the base has in `[from, to)`, but for keys that `run` says something about.
    fn remove_range(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        run: &mut Vec<Entry>,
    ) -> Result<(), OpenError> {
        let before = run.len();
        for entry in self.base.range(space, from, to) {
            run.push((Bytes::copy_from_slice(entry?.0.as_ref()), None));
        }
        if run.len() > before {
            // Stable: of two with one key, what the run said stays.
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
