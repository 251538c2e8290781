//! An immutable snapshot of the account's resources, and lookups in it.
//!
//! Every id position of a path may hold a name or a `_rid`. An id that has the shape of a `_rid` is
//! tried as one first, below the parent it was given; otherwise, and when there is no such `_rid`,
//! it is a name.

use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use imbl::OrdMap;
use protocol::resource_id::{DatabaseRid, OfferRid};

use super::{ByName, CatalogError, ContainerEntry, DatabaseEntry, OfferEntry, UserAddress, UserEntry};

/// The account's resources at one point in time.
#[derive(Clone, Debug, Default)]
pub struct CatalogSnapshot {
    databases_by_name: ByName<Arc<DatabaseEntry>>,
    databases: OrdMap<DatabaseRid, Arc<DatabaseEntry>>,
    offers: OrdMap<OfferRid, Arc<OfferEntry>>,
}

impl CatalogSnapshot {
    /// A database by name or `_rid`. Constant time.
    pub fn database(&self, id: &str) -> Option<&Arc<DatabaseEntry>> {
        let by_rid = as_rid(id).and_then(|rid: DatabaseRid| self.databases.get(&rid));
        by_rid.or_else(|| self.databases_by_name.get(id))
    }

    /// A database by its `_rid`.
    pub(crate) fn database_by_rid(&self, rid: DatabaseRid) -> Option<&Arc<DatabaseEntry>> {
        self.databases.get(&rid)
    }

    /// A container by name or `_rid`, in a database by name or `_rid`. Constant time.
    pub fn container(&self, database: &str, container: &str) -> Result<&Arc<ContainerEntry>, CatalogError> {
        let database = self.database(database).ok_or(CatalogError::OwnerNotFound)?;
        database.container(container).ok_or(CatalogError::NotFound)
    }

    /// A user of a database. Constant time.
    pub fn user(&self, address: UserAddress<'_>) -> Result<&Arc<UserEntry>, CatalogError> {
        let database = self.database(address.database).ok_or(CatalogError::OwnerNotFound)?;
        database.user(address.user).ok_or(CatalogError::NotFound)
    }

    /// Whether a database has this name, which is not the same as being found under it.
    pub(super) fn has_database_named(&self, name: &str) -> bool {
        self.databases_by_name.contains_key(name)
    }

    /// The databases from a position on: after a resource, oldest first, or before it in reverse.
    pub fn databases_after(
        &self,
        after: impl Into<ListPosition<DatabaseRid>>,
    ) -> impl Iterator<Item = &Arc<DatabaseEntry>> {
        list(&self.databases, after)
    }

    /// Every container there is.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &Arc<ContainerEntry>> {
        self.databases.values().flat_map(|database| database.containers_after(None))
    }

    /// An offer by its `_rid`.
    pub fn offer(&self, rid: OfferRid) -> Option<&Arc<OfferEntry>> {
        self.offers.get(&rid)
    }

    /// The offers from a position on: after a resource, oldest first, or before it in reverse.
    pub fn offers_after(
        &self,
        after: impl Into<ListPosition<OfferRid>>,
    ) -> impl Iterator<Item = &Arc<OfferEntry>> {
        list(&self.offers, after)
    }

    /// A clone of a database for a change inside it; everything large in the clone is shared.
    pub(super) fn database_to_change(&self, id: &str) -> Result<DatabaseEntry, CatalogError> {
        self.database(id).map(|entry| DatabaseEntry::clone(entry)).ok_or(CatalogError::OwnerNotFound)
    }

    pub(super) fn put_database(&mut self, entry: Arc<DatabaseEntry>) {
        self.databases_by_name.insert(entry.id.clone(), Arc::clone(&entry));
        self.databases.insert(entry.rid, entry);
    }

    pub(super) fn remove_database(&mut self, entry: &DatabaseEntry) {
        self.databases_by_name.remove(&entry.id);
        self.databases.remove(&entry.rid);
        for offer in entry.offer.into_iter().chain(entry.containers_after(None).filter_map(|c| c.offer)) {
            self.offers.remove(&offer);
        }
    }

    pub(super) fn put_offer(&mut self, entry: Arc<OfferEntry>) {
        self.offers.insert(entry.rid, entry);
    }

    pub(super) fn remove_offer(&mut self, rid: OfferRid) {
        self.offers.remove(&rid);
    }
}

/// An id as a `_rid`. Those of named resources are padded, which most names are not.
pub(super) fn as_rid<T: FromStr>(id: &str) -> Option<T> {
    if id.ends_with('=') { id.parse().ok() } else { None }
}

/// The position at which a list of resources continues, and its direction.
#[derive(Clone, Copy, Debug)]
pub struct ListPosition<K> {
    /// The last resource that was listed before, if any.
    pub after: Option<K>,
    /// Whether the newest resources come first.
    pub is_reversed: bool,
}

/// A list in the order of creation, after a resource or from the start.
impl<K> From<Option<K>> for ListPosition<K> {
    fn from(after: Option<K>) -> ListPosition<K> {
        ListPosition { after, is_reversed: false }
    }
}

/// The entries from a position on. Costs the logarithm of the map, and each entry that is taken.
pub(super) fn list<K: Ord + Copy, V>(
    map: &OrdMap<K, V>,
    position: impl Into<ListPosition<K>>,
) -> impl Iterator<Item = &V> {
    let ListPosition { after, is_reversed } = position.into();
    let bound = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut range = match is_reversed {
        true => map.range((Bound::Unbounded, bound)),
        false => map.range((bound, Bound::Unbounded)),
    };
    std::iter::from_fn(move || if is_reversed { range.next_back() } else { range.next() })
        .map(|(_, entry)| entry)
}
