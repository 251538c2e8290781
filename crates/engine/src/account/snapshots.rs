//! Copies of the whole account, by name, to come back to.
//!
//! A test that needs a clean start saves one and restores it as often as it likes. Taking and restoring
//! one costs the same whatever the account holds, because what is stored never changes: it is written
//! beside. A copy keeps what it refers to in memory until it is removed, and is gone with the process,
//! also where the account is kept in a directory: there, what a restore makes of the account is kept.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use protocol::resource_id::ContainerRid;
use thiserror::Error;

use super::Account;
use crate::catalog;
use crate::disk::DiskError;
use crate::store::ContainerSnapshot;
use clock::Ticks;

/// Copies kept at the most: each keeps memory from being freed.
const SNAPSHOTS_MAX: usize = 64;
/// Characters of a name at the most.
const NAME_LENGTH_MAX: usize = 128;

/// Why there is no such copy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// Nothing under this name.
    #[error("there is no snapshot '{0}'; `peri snapshot list` shows those there are")]
    Unknown(String),
    /// Too many.
    #[error("there are {SNAPSHOTS_MAX} snapshots already; remove one with `peri snapshot rm NAME`")]
    TooMany,
    /// It could not be written down, and was not done.
    #[error("{0}")]
    NotPersisted(String),
    /// Not a name.
    #[error(
        "a snapshot's name has 1 to {NAME_LENGTH_MAX} characters, none of them '/' or a control character"
    )]
    InvalidName,
}

impl From<DiskError> for SnapshotError {
    fn from(error: DiskError) -> SnapshotError {
        SnapshotError::NotPersisted(match error {
            DiskError::TooLarge(bytes) => format!(
                "The snapshot was not restored: {bytes} bytes of the account are other than they were, more \
                 than can be written down as one. Start without --data-dir, or delete what is large first."
            ),
            other => other.to_string(),
        })
    }
}

/// A copy, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Its name.
    pub name: String,
    /// When it was taken.
    pub taken_at: Ticks,
    /// Containers in it.
    pub containers: usize,
    /// Items in them.
    pub items: u64,
}

/// The copies of one account.
#[derive(Default)]
pub struct AccountSnapshots(Mutex<BTreeMap<String, Arc<AccountSnapshot>>>);

impl std::fmt::Debug for AccountSnapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// One copy.
pub struct AccountSnapshot {
    taken_at: Ticks,
    catalog: Arc<catalog::CatalogSnapshot>,
    containers: HashMap<ContainerRid, ContainerSnapshot>,
}

impl AccountSnapshot {
    /// A container as it was.
    pub fn container(&self, rid: ContainerRid) -> Option<&ContainerSnapshot> {
        self.containers.get(&rid)
    }
}

impl AccountSnapshots {
    /// The copy under this name.
    pub fn get(&self, name: &str) -> Result<Arc<AccountSnapshot>, SnapshotError> {
        self.lock().get(name).cloned().ok_or_else(|| SnapshotError::Unknown(name.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AccountSnapshot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// Keeps the whole account as it is now under `name`, in the place of what was there.
    pub fn save_snapshot(&self, name: &str, now: Ticks) -> Result<(), SnapshotError> {
        let length = name.chars().count();
        if !(1..=NAME_LENGTH_MAX).contains(&length) || name.contains(['/']) || name.contains(char::is_control)
        {
            return Err(SnapshotError::InvalidName);
        }
        let (catalog, containers) = self.catalog.save()?;
        let mut snapshots = self.snapshots.lock();
        if snapshots.len() >= SNAPSHOTS_MAX && !snapshots.contains_key(name) {
            return Err(SnapshotError::TooMany);
        }
        snapshots.insert(name.to_owned(), Arc::new(AccountSnapshot { taken_at: now, catalog, containers }));
        Ok(())
    }

    /// Makes the whole account as it was, as one: nobody sees a part of it, and a process that is killed
    /// meanwhile finds all of it when it opens its directory again, or nothing.
    ///
    /// Costs the same whatever the account holds, unless it is kept in a directory. There, what was
    /// written since the copy was taken is written again as it was; a container whose partitions have split
    /// or merged since is looked through whole, and one that was deleted is written whole. It is with the
    /// operating system when this returns; the control port answers when it is as safe as `--fsync` promises.
    pub fn restore_snapshot(&self, name: &str) -> Result<(), SnapshotError> {
        let saved = self.snapshots.get(name)?;
        Ok(self.catalog.restore(&saved.catalog, |rid| saved.container(rid))?)
    }

    /// Forgets the copy under `name`.
    pub fn remove_snapshot(&self, name: &str) -> Result<(), SnapshotError> {
        let removed = self.snapshots.lock().remove(name);
        removed.map(drop).ok_or_else(|| SnapshotError::Unknown(name.to_owned()))
    }

    /// The copies there are, by name.
    pub fn list_snapshots(&self) -> Vec<SnapshotSummary> {
        let summary = |(name, saved): (&String, &Arc<AccountSnapshot>)| SnapshotSummary {
            name: name.clone(),
            taken_at: saved.taken_at,
            containers: saved.containers.len(),
            items: saved.containers.values().map(ContainerSnapshot::items).sum(),
        };
        self.snapshots.lock().iter().map(summary).collect()
    }
}
