//! What the account contains: databases, containers, users, permissions, offers.
//!
//! In: named changes, one at a time. Out: immutable [`CatalogSnapshot`]s. A lookup takes the current
//! snapshot, locks nothing and allocates nothing; a change builds the next one from it under the
//! one writer lock and swaps it in. Maps are persistent, so a change costs the logarithm of what is
//! there, and a thousand containers cost no more to add to than ten. Items are not here: a
//! container's entry points to its store.

mod container;
mod database;
mod identity;
mod kept;
mod offer;
mod snapshot;
#[cfg(test)]
mod tests;
mod user;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use protocol::resource_id::ContainerRid;
use serde::Serialize;
use smol_str::SmolStr;

pub use container::{ContainerEntry, NewContainer};
pub use database::DatabaseEntry;
pub use offer::OfferEntry;
pub use snapshot::CatalogSnapshot;
pub use user::{PermissionEntry, UserAddress, UserEntry};

use crate::disk::{Disk, DiskError};
use crate::store::{ContainerSnapshot, Held, Restoring};
use identity::Allocator;

/// Resources by their names: what every request asks for twice, once for each level of its path.
type ByName<V> = GenericHashMap<SmolStr, V, foldhash::fast::RandomState, DefaultSharedPtr>;

/// The account's resources.
#[derive(Debug)]
pub struct Catalog {
    current: ArcSwap<CatalogSnapshot>,
    writer: Mutex<Allocator>,
    /// Where changes are kept, if anywhere.
    disk: Option<Arc<Disk>>,
}

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogError {
    /// The resource to change is not there.
    NotFound,
    /// The resource it would be in is not there.
    OwnerNotFound,
    /// The id is taken.
    AlreadyExists,
    /// It could not be written down.
    NotPersisted(DiskError),
}

impl Catalog {
    /// An empty catalog. `first_rid` is where ids start: a fresh draw per process keeps a client
    /// that remembers an earlier process from mistaking a new container for an old one.
    pub fn new(first_rid: u32) -> Catalog {
        Catalog {
            current: ArcSwap::from_pointee(CatalogSnapshot::default()),
            writer: Mutex::new(Allocator::new(first_rid)),
            disk: None,
        }
    }

    /// What is there now. Never waits.
    pub fn snapshot(&self) -> Guard<Arc<CatalogSnapshot>> {
        self.current.load()
    }

    /// Everything as it is now, and what is in each container. Costs the same whatever they hold.
    pub(crate) fn save(
        &self,
    ) -> Result<(Arc<CatalogSnapshot>, HashMap<ContainerRid, ContainerSnapshot>), DiskError> {
        // No container gets other rules meanwhile.
        let _turn = self.lock();
        let snapshot = self.current.load_full();
        let saved = snapshot.containers().map(|entry| Ok((entry.rid, entry.store.save()?)));
        let saved = saved.collect::<Result<_, DiskError>>()?;
        Ok((snapshot, saved))
    }

    /// Makes everything as it was in `snapshot`, and what is in each container as `saved` has it: as one,
    /// or not at all. Ids given out since are not given out again. Costs what [`Restoring::put`] says where
    /// it has to be written down, and nothing that grows with the items elsewhere.
    pub(crate) fn restore<'a>(
        &self,
        snapshot: &'a Arc<CatalogSnapshot>,
        saved: impl Fn(ContainerRid) -> Option<&'a ContainerSnapshot>,
    ) -> Result<(), DiskError> {
        let allocator = self.lock();
        let current = self.current.load_full();
        let batch = self.disk.as_ref().map(|_| kept::difference(&current, snapshot, &allocator));
        let exists = |rid: ContainerRid| {
            let database = current.database_by_rid(rid.database);
            database.is_some_and(|database| database.container(&rid.to_string()).is_some())
        };
        // Every range and every writer waits until all of it is done, so that nobody sees a part of it.
        let holds = snapshot
            .containers()
            .filter_map(|entry| saved(entry.rid).map(|saved| entry.store.hold(saved, exists(entry.rid))));
        let mut holds: Vec<Held<'_>> = holds.collect();
        let restoring: Vec<Restoring<'_>> = holds.iter_mut().map(Held::begin).collect::<Result<_, _>>()?;
        if let (Some(disk), Some(mut batch)) = (&self.disk, batch) {
            restoring.iter().for_each(|container| container.put(&mut batch));
            disk.append(batch)?;
        }
        self.current.store(Arc::clone(snapshot));
        restoring.into_iter().for_each(Restoring::finish);
        Ok(())
    }

    /// Applies `change` to the newest snapshot and publishes the result, unless it is refused.
    fn update<T, E: From<CatalogError>>(
        &self,
        change: impl FnOnce(&mut CatalogSnapshot, &mut Allocator) -> Result<T, E>,
    ) -> Result<T, E> {
        self.update_and(change, |_| {})
    }

    /// The same; what cannot be taken back is left to `finish`, when nothing can go wrong any more.
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
            disk.append(kept::difference(&current, &next, &allocator)).map_err(CatalogError::NotPersisted)?;
        }
        finish(&outcome);
        self.current.store(Arc::new(next));
        Ok(outcome)
    }

    /// A change is published whole or not at all, so a panic between leaves nothing half done and
    /// the lock can be taken again.
    fn lock(&self) -> MutexGuard<'_, Allocator> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A resource as clients read it.
fn to_bytes(resource: &impl Serialize) -> Bytes {
    serde_json::to_vec(resource).expect("resources are strings, numbers and lists of them").into()
}
