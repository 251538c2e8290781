//! Client encryption keys of a database, as resources. The account never unwraps one.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use protocol::client_encryption_key::{ClientEncryptionKey, ClientEncryptionKeyDefinition};
use protocol::container::ClientEncryptionPolicy;
use protocol::resource::SystemProperties;
use protocol::resource_id::ClientEncryptionKeyRid;
use smol_str::SmolStr;

use super::snapshot::{ListPosition, as_rid, list};
use super::{Catalog, CatalogError, DatabaseEntry, to_bytes};
use clock::Ticks;

/// A client encryption key as the catalog knows it.
#[derive(Clone, Debug)]
pub struct ClientEncryptionKeyEntry {
    /// The name of the key.
    pub id: SmolStr,
    /// The key's `_rid`, typed.
    pub(crate) rid: ClientEncryptionKeyRid,
    /// The system properties: `_rid`, `_self`, `_etag`, `_ts`.
    pub system: SystemProperties,
    /// The resource as clients read it.
    pub json: Bytes,
}

/// The client encryption keys of a database, in order of creation.
pub(super) type ClientEncryptionKeys = OrdMap<ClientEncryptionKeyRid, Arc<ClientEncryptionKeyEntry>>;

/// A client encryption key, addressed by names or `_rid`s.
#[derive(Clone, Copy, Debug)]
pub struct ClientEncryptionKeyAddress<'a> {
    /// The name or `_rid` of the database.
    pub database: &'a str,
    /// The name or `_rid` of the key.
    pub key: &'a str,
}

impl ClientEncryptionKeyEntry {
    pub(super) fn new(rid: ClientEncryptionKeyRid, body: &ClientEncryptionKey) -> ClientEncryptionKeyEntry {
        ClientEncryptionKeyEntry {
            id: body.definition.id.as_str().into(),
            rid,
            system: body.system.clone(),
            json: to_bytes(body),
        }
    }
}

impl DatabaseEntry {
    /// The client encryption keys from a position on: after a resource, oldest first, or before it in reverse.
    pub fn client_encryption_keys_after(
        &self,
        after: impl Into<ListPosition<ClientEncryptionKeyRid>>,
    ) -> impl Iterator<Item = &Arc<ClientEncryptionKeyEntry>> {
        list(&self.client_encryption_keys, after)
    }

    /// A client encryption key, by name or `_rid`. A database has few, so they are searched in turn.
    pub fn client_encryption_key(&self, id: &str) -> Option<&Arc<ClientEncryptionKeyEntry>> {
        let by_rid = as_rid(id).and_then(|rid: ClientEncryptionKeyRid| self.client_encryption_keys.get(&rid));
        by_rid.or_else(|| self.client_encryption_keys.values().find(|entry| entry.id == id))
    }

    /// Rejects a policy with a key that this database does not have.
    pub(super) fn check_policy_keys(&self, policy: &ClientEncryptionPolicy) -> Result<(), CatalogError> {
        let known = |id: &str| self.client_encryption_keys.values().any(|entry| entry.id == id);
        let mut unknown: Vec<&str> = policy.key_ids().filter(|id| !known(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        match unknown.is_empty() {
            true => Ok(()),
            false => Err(CatalogError::UnknownEncryptionKeys(unknown.join(","))),
        }
    }
}

impl Catalog {
    /// Adds a client encryption key to a database.
    pub fn create_client_encryption_key(
        &self,
        database: &str,
        definition: ClientEncryptionKeyDefinition,
        now: Ticks,
    ) -> Result<Arc<ClientEncryptionKeyEntry>, CatalogError> {
        self.update(|snapshot, allocator| {
            let mut database = snapshot.database_to_change(database)?;
            if database.client_encryption_keys.values().any(|entry| entry.id == definition.id) {
                return Err(CatalogError::AlreadyExists);
            }
            let rid = ClientEncryptionKeyRid { database: database.rid, key: allocator.in_database() };
            let system = allocator.new_resource(rid, rid.self_link(), now);
            let body = ClientEncryptionKey { definition, system };
            let entry = Arc::new(ClientEncryptionKeyEntry::new(rid, &body));
            database.client_encryption_keys.insert(rid, Arc::clone(&entry));
            snapshot.put_database(Arc::new(database));
            Ok(entry)
        })
    }

    /// Gives a client encryption key a new definition: the same key, wrapped anew.
    ///
    /// `permit` gets the key as it is now and may return an error.
    pub fn replace_client_encryption_key<E: From<CatalogError>>(
        &self,
        address: ClientEncryptionKeyAddress<'_>,
        definition: ClientEncryptionKeyDefinition,
        now: Ticks,
        permit: impl FnOnce(&ClientEncryptionKeyEntry) -> Result<(), E>,
    ) -> Result<Arc<ClientEncryptionKeyEntry>, E> {
        self.update(|snapshot, allocator| {
            let mut database = snapshot.database_to_change(address.database)?;
            let old = database.client_encryption_key(address.key).ok_or(CatalogError::NotFound)?;
            permit(old)?;
            let (rid, system) = (old.rid, allocator.next_version(&old.system, now));
            let body = ClientEncryptionKey { definition, system };
            let entry = Arc::new(ClientEncryptionKeyEntry::new(rid, &body));
            database.client_encryption_keys.insert(rid, Arc::clone(&entry));
            snapshot.put_database(Arc::new(database));
            Ok(entry)
        })
    }

    /// Removes a client encryption key from its database.
    ///
    /// `permit` gets the key as it is now and may return an error.
    pub fn delete_client_encryption_key<E: From<CatalogError>>(
        &self,
        address: ClientEncryptionKeyAddress<'_>,
        permit: impl FnOnce(&ClientEncryptionKeyEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.update(|snapshot, _| {
            let mut database = snapshot.database_to_change(address.database)?;
            let old = database.client_encryption_key(address.key).ok_or(CatalogError::NotFound)?;
            permit(old)?;
            let rid = old.rid;
            database.client_encryption_keys.remove(&rid);
            snapshot.put_database(Arc::new(database));
            Ok(())
        })
    }
}
