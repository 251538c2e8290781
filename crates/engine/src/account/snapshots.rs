//! Named snapshots of the whole account, which can be restored.
//!
//! A test that needs a clean start saves one and restores it as often as it likes. Saving and restoring cost
//! the same whatever the account holds, because stored versions never change. A snapshot keeps the memory of
//! what it refers to until it is removed, and ends with the process, also in an account with a data
//! directory: there, the result of a restore is persisted.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use protocol::resource_id::ContainerRid;
use thiserror::Error;

use super::Account;
use super::events::EventKind;
use crate::catalog;
use crate::disk::DiskError;
use crate::store::ContainerSnapshot;
use clock::Ticks;

/// Snapshots at most: each keeps memory from being freed.
const SNAPSHOTS_MAX: usize = 64;
/// Characters of a snapshot's name, at most.
const NAME_LENGTH_MAX: usize = 128;

/// Why a snapshot could not be saved, found or restored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// No snapshot has this name.
    #[error("there is no snapshot '{0}'; `peri snapshot list` shows those there are")]
    Unknown(String),
    /// The account has as many snapshots as it may have.
    #[error("there are {SNAPSHOTS_MAX} snapshots already; remove one with `peri snapshot rm NAME`")]
    TooMany,
    /// The restore could not be persisted, and was not made.
    #[error("{0}")]
    NotPersisted(String),
    /// The name is empty, too long, or has forbidden characters.
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

/// What a list of snapshots shows of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// The name of the snapshot.
    pub name: String,
    /// When the snapshot was saved.
    pub taken_at: Ticks,
    /// How many containers it has.
    pub containers: usize,
    /// How many items its containers have.
    pub items: u64,
}

/// The snapshots of one account, by name.
#[derive(Default)]
pub struct AccountSnapshots(Mutex<BTreeMap<String, Arc<AccountSnapshot>>>);

impl std::fmt::Debug for AccountSnapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// One snapshot of the whole account.
pub struct AccountSnapshot {
    taken_at: Ticks,
    catalog: Arc<catalog::CatalogSnapshot>,
    containers: HashMap<ContainerRid, ContainerSnapshot>,
}

impl AccountSnapshot {
    /// A container as it was when the snapshot was saved.
    pub fn container(&self, rid: ContainerRid) -> Option<&ContainerSnapshot> {
        self.containers.get(&rid)
    }
}

impl AccountSnapshots {
    /// The snapshot with this name.
    pub fn get(&self, name: &str) -> Result<Arc<AccountSnapshot>, SnapshotError> {
        self.lock().get(name).cloned().ok_or_else(|| SnapshotError::Unknown(name.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<AccountSnapshot>>> {
        self.0.lock()
    }
}

impl Account {
    /// Saves a snapshot of the whole account under `name`, replacing the one of that name.
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
        self.events.record(EventKind::SnapshotSaved, None, format!("the account was saved as '{name}'"));
        Ok(())
    }

    /// Restores the whole account atomically: no request sees a part of it, and a process that is killed
    /// meanwhile finds all of it when it opens its directory again, or nothing.
    ///
    /// Costs the same whatever the account holds, unless it has a data directory. There, items written since
    /// the snapshot are written again as they were; a container whose partitions have split or merged since
    /// is compared as a whole, and one that was deleted is written as a whole. The operating system has it
    /// when this returns; the control port responds when it is as durable as `--fsync` promises.
    pub fn restore_snapshot(&self, name: &str) -> Result<(), SnapshotError> {
        let saved = self.snapshots.get(name)?;
        self.catalog.restore(&saved.catalog, |rid| saved.container(rid))?;
        self.events.record(EventKind::SnapshotRestored, None, format!("the account is as in '{name}'"));
        Ok(())
    }

    /// Removes the snapshot with this name.
    pub fn remove_snapshot(&self, name: &str) -> Result<(), SnapshotError> {
        let removed = self.snapshots.lock().remove(name);
        removed.map(drop).ok_or_else(|| SnapshotError::Unknown(name.to_owned()))
    }

    /// All snapshots, in order of their names.
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
