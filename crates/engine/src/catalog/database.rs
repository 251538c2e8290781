//! A database: its containers and its users.
//!
//! An entry is immutable once published. Each change makes a new entry that shares everything it
//! does not change with the old one.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use protocol::database::DatabaseBody;
use protocol::resource::SystemProperties;
use protocol::resource_id::{ContainerRid, DatabaseRid, OfferRid, UserRid};
use protocol::throughput::Throughput;
use smol_str::SmolStr;

use super::client_encryption_key::ClientEncryptionKeys;
use super::snapshot::{ListPosition, as_rid, list};
use super::{ByName, Catalog, CatalogError, ContainerEntry, OfferEntry, UserEntry, to_bytes};
use crate::charge::SharedTokenBuckets;
use clock::Ticks;

/// A database as the catalog knows it.
#[derive(Clone, Debug)]
pub struct DatabaseEntry {
    /// The name of the database.
    pub id: SmolStr,
    /// The database's `_rid`, typed.
    pub(crate) rid: DatabaseRid,
    /// The system properties: `_rid`, `_self`, `_etag`, `_ts`.
    pub system: SystemProperties,
    /// The resource as clients read it.
    pub json: Bytes,
    /// Throughput that its containers share, if it has any.
    pub offer: Option<OfferRid>,
    /// The token buckets that its containers share.
    pub(crate) pools: Arc<SharedTokenBuckets>,
    containers_by_name: ByName<Arc<ContainerEntry>>,
    containers: OrdMap<ContainerRid, Arc<ContainerEntry>>,
    users_by_name: ByName<Arc<UserEntry>>,
    users: OrdMap<UserRid, Arc<UserEntry>>,
    /// The keys with which clients encrypt items of its containers.
    pub(super) client_encryption_keys: ClientEncryptionKeys,
}

impl DatabaseEntry {
    /// A database without containers and users.
    pub(super) fn empty(
        rid: DatabaseRid,
        id: &str,
        system: SystemProperties,
        offer: Option<OfferRid>,
    ) -> DatabaseEntry {
        DatabaseEntry {
            id: id.into(),
            rid,
            json: to_bytes(&DatabaseBody::new(id, system.clone())),
            system,
            offer,
            pools: Arc::default(),
            containers_by_name: ByName::default(),
            containers: OrdMap::default(),
            users_by_name: ByName::default(),
            users: OrdMap::default(),
            client_encryption_keys: ClientEncryptionKeys::new(),
        }
    }

    /// A container of this database, by name or `_rid`.
    pub fn container(&self, id: &str) -> Option<&Arc<ContainerEntry>> {
        let by_rid = as_rid(id).and_then(|rid: ContainerRid| self.containers.get(&rid));
        by_rid.or_else(|| self.containers_by_name.get(id))
    }

    /// The containers from a position on: after a resource, oldest first, or before it in reverse.
    pub fn containers_after(
        &self,
        after: impl Into<ListPosition<ContainerRid>>,
    ) -> impl Iterator<Item = &Arc<ContainerEntry>> {
        list(&self.containers, after)
    }

    /// A user of this database, by name or `_rid`.
    pub(crate) fn user(&self, id: &str) -> Option<&Arc<UserEntry>> {
        let by_rid = as_rid(id).and_then(|rid: UserRid| self.users.get(&rid));
        by_rid.or_else(|| self.users_by_name.get(id))
    }

    /// The users from a position on: after a resource, oldest first, or before it in reverse.
    pub fn users_after(
        &self,
        after: impl Into<ListPosition<UserRid>>,
    ) -> impl Iterator<Item = &Arc<UserEntry>> {
        list(&self.users, after)
    }

    pub(super) fn has_container_named(&self, name: &str) -> bool {
        self.containers_by_name.contains_key(name)
    }

    pub(super) fn has_user_named(&self, name: &str) -> bool {
        self.users_by_name.contains_key(name)
    }

    pub(super) fn put_container(&mut self, entry: Arc<ContainerEntry>) {
        self.containers_by_name.insert(entry.id.clone(), Arc::clone(&entry));
        self.containers.insert(entry.rid, entry);
    }

    pub(super) fn remove_container(&mut self, entry: &ContainerEntry) {
        self.containers_by_name.remove(&entry.id);
        self.containers.remove(&entry.rid);
    }

    pub(super) fn put_user(&mut self, entry: Arc<UserEntry>) {
        self.users_by_name.insert(entry.id.clone(), Arc::clone(&entry));
        self.users.insert(entry.rid, entry);
    }

    pub(super) fn remove_user(&mut self, entry: &UserEntry) {
        self.users_by_name.remove(&entry.id);
        self.users.remove(&entry.rid);
    }
}

impl Catalog {
    /// Adds a database, with throughput for its containers to share if `throughput` says so.
    pub fn create_database(
        &self,
        id: &str,
        throughput: Option<Throughput>,
        now: Ticks,
    ) -> Result<Arc<DatabaseEntry>, CatalogError> {
        self.update(|snapshot, allocator| {
            if snapshot.has_database_named(id) {
                return Err(CatalogError::AlreadyExists);
            }
            let rid = DatabaseRid(allocator.database());
            let system = allocator.new_resource(rid, rid.self_link(), now);
            let offer = throughput.map(|throughput| OfferEntry::create(allocator, &system, throughput, now));
            let offer_rid = offer.as_ref().map(|offer| offer.rid);
            let entry = Arc::new(DatabaseEntry::empty(rid, id, system, offer_rid));
            if let Some(offer) = offer {
                snapshot.put_offer(Arc::new(offer));
            }
            snapshot.put_database(Arc::clone(&entry));
            Ok(entry)
        })
    }

    /// Removes a database and everything in it.
    ///
    /// `permit` gets the database as it is now and may return an error.
    pub fn delete_database<E: From<CatalogError>>(
        &self,
        id: &str,
        permit: impl FnOnce(&DatabaseEntry) -> Result<(), E>,
    ) -> Result<Arc<DatabaseEntry>, E> {
        self.update(|snapshot, _| {
            let entry = Arc::clone(snapshot.database(id).ok_or(CatalogError::NotFound)?);
            permit(&entry)?;
            snapshot.remove_database(&entry);
            Ok(entry)
        })
    }
}
