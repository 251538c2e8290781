//! The account's resources: databases, containers, scripts, users, permissions, client encryption keys, offers.
//!
//! In: changes, one at a time. Out: immutable [`CatalogSnapshot`]s. A lookup loads the current snapshot,
//! locks nothing and allocates nothing; a change builds the next one from it under the writer lock and swaps
//! it in. Maps are persistent, so a change costs the logarithm of what is there. Items are not here: a
//! container's entry points to its store.

mod client_encryption_key;
mod container;
mod database;
mod identity;
mod offer;
mod script;
mod snapshot;
mod stored;
#[cfg(test)]
mod tests;
mod user;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use parking_lot::{Mutex, MutexGuard};
use protocol::resource_id::ContainerRid;
use serde::Serialize;
use smol_str::SmolStr;

pub use client_encryption_key::{ClientEncryptionKeyAddress, ClientEncryptionKeyEntry};
pub use container::{ContainerEntry, NewContainer};
pub use database::DatabaseEntry;
pub use offer::OfferEntry;
pub use script::{ScriptAddress, ScriptDefinition, ScriptEntry};
pub use snapshot::{CatalogSnapshot, ListPosition};
pub use user::{PermissionEntry, UserAddress, UserEntry};

use crate::disk::{Batch, Disk, DiskError};
use crate::store::{ContainerRestore, ContainerSnapshot, FixedLayout, LockedContainer, RegionAddition};
use identity::Allocator;

/// Resources by name: every request looks up two, one for each level of its path.
type ByName<V> = GenericHashMap<SmolStr, V, foldhash::fast::RandomState, DefaultSharedPtr>;

/// The databases, containers, users, permissions and offers of an account.
#[derive(Debug)]
pub struct Catalog {
    current: ArcSwap<CatalogSnapshot>,
    writer: Mutex<Allocator>,
    /// The data directory, if the account has one.
    disk: Option<Arc<Disk>>,
}

/// Why a lookup or a change of the catalog failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogError {
    /// The resource does not exist.
    NotFound,
    /// The resource that should contain it does not exist.
    OwnerNotFound,
    /// Another resource has the id.
    AlreadyExists,
    /// An encryption policy refers to client encryption keys that do not exist, listed with commas.
    UnknownEncryptionKeys(String),
    /// The change could not be persisted, and was not made.
    NotPersisted(DiskError),
}

impl Catalog {
    /// An empty catalog. `first_rid` is where resource ids start: a random one per process, so that a client
    /// that remembers an earlier process does not mistake a new container for an old one.
    pub fn new(first_rid: u32) -> Catalog {
        Catalog {
            current: ArcSwap::from_pointee(CatalogSnapshot::default()),
            writer: Mutex::new(Allocator::new(first_rid)),
            disk: None,
        }
    }

    /// The current snapshot. Never waits.
    pub fn snapshot(&self) -> Guard<Arc<CatalogSnapshot>> {
        self.current.load()
    }

    /// The current snapshot, and one of each container. Costs the same whatever they hold.
    pub(crate) fn save(
        &self,
    ) -> Result<(Arc<CatalogSnapshot>, HashMap<ContainerRid, ContainerSnapshot>), DiskError> {
        // Held so that no container's properties change meanwhile.
        let _guard = self.lock();
        let snapshot = self.current.load_full();
        let saved = snapshot.containers().map(|entry| Ok((entry.rid, entry.store.save()?)));
        let saved = saved.collect::<Result<_, DiskError>>()?;
        Ok((snapshot, saved))
    }

    /// Restores `snapshot`, with each container as `saved` has it, atomically. Ids given out since are not
    /// given out again. Costs what [`ContainerRestore::put`] says in an account with a data directory, and
    /// nothing that grows with the items elsewhere.
    pub(crate) fn restore<'a>(
        &self,
        snapshot: &'a Arc<CatalogSnapshot>,
        saved: impl Fn(ContainerRid) -> Option<&'a ContainerSnapshot>,
    ) -> Result<(), DiskError> {
        let allocator = self.lock();
        let current = self.current.load_full();
        let batch = self.disk.as_ref().map(|_| stored::difference(&current, snapshot, &allocator));
        let exists = |rid: ContainerRid| {
            let database = current.database_by_rid(rid.database);
            database.is_some_and(|database| database.container(&rid.to_string()).is_some())
        };
        // Every layout and every writer waits until all of it is done, so that no request sees a part of it.
        let locked = snapshot.containers().filter_map(|entry| {
            saved(entry.rid).map(|saved| entry.store.lock_for_restore(saved, exists(entry.rid)))
        });
        let mut locked: Vec<LockedContainer<'_>> = locked.collect();
        let restoring: Vec<ContainerRestore<'_>> =
            locked.iter_mut().map(LockedContainer::begin).collect::<Result<_, _>>()?;
        if let (Some(disk), Some(mut batch)) = (&self.disk, batch) {
            restoring.iter().for_each(|container| container.put(&mut batch));
            disk.append(batch)?;
        }
        self.current.store(Arc::clone(snapshot));
        restoring.into_iter().for_each(ContainerRestore::finish);
        Ok(())
    }

    /// Gives every container a replica in a further write region, atomically. `batch` persists the topology of
    /// `regions` regions with it, and `publish` makes that topology the current one.
    pub(crate) fn add_write_region(
        &self,
        regions: usize,
        mut batch: Batch,
        publish: &dyn Fn(),
    ) -> Result<(), DiskError> {
        // Held so that no container is made with the old regions.
        let _guard = self.lock();
        let snapshot = self.current.load_full();
        let mut fixed: Vec<FixedLayout<'_>> =
            snapshot.containers().map(|entry| entry.store.lock_layout()).collect();
        let additions: Vec<RegionAddition<'_>> =
            fixed.iter_mut().map(|layout| layout.begin(regions)).collect::<Result<_, _>>()?;
        if let Some(disk) = &self.disk {
            additions.iter().for_each(|addition| addition.put(&mut batch));
            disk.append(batch)?;
        }
        // Before the partitions: their new replica sends and receives by the topology.
        publish();
        additions.into_iter().for_each(RegionAddition::finish);
        Ok(())
    }

    /// Applies `change` to the current snapshot and publishes the result, unless it fails.
    fn update<T, E: From<CatalogError>>(
        &self,
        change: impl FnOnce(&mut CatalogSnapshot, &mut Allocator) -> Result<T, E>,
    ) -> Result<T, E> {
        self.update_and(change, |_| {})
    }

    /// Applies `change` as [`update`](Catalog::update) does, and calls `finish` with its outcome once nothing
    /// can fail any more.
    fn update_and<T, E: From<CatalogError>>(
        &self,
        change: impl FnOnce(&mut CatalogSnapshot, &mut Allocator) -> Result<T, E>,
        finish: impl FnOnce(&T),
    ) -> Result<T, E> {
        let mut allocator = self.lock();
        let current = self.current.load();
        let mut next = CatalogSnapshot::clone(&current);
        let outcome = change(&mut next, &mut allocator)?;
        if let Some(disk) = &self.disk {
            disk.append(stored::difference(&current, &next, &allocator))
                .map_err(CatalogError::NotPersisted)?;
        }
        finish(&outcome);
        self.current.store(Arc::new(next));
        Ok(outcome)
    }

    /// Takes the writer lock. A change is published as a whole or not at all, so a panic under the lock
    /// leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, Allocator> {
        self.writer.lock()
    }
}

/// A resource as clients read it.
fn to_bytes(resource: &impl Serialize) -> Bytes {
    serde_json::to_vec(resource).expect("resources are strings, numbers and lists of them").into()
}
