//! Users of a database and their permissions.
//!
//! A permission takes effect through the resource token that is made from it when it is read (by the HTTP
//! layer). Authorizing a request looks at the token alone, never at this module.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use protocol::resource::SystemProperties;
use protocol::resource_id::{PermissionRid, UserRid};
use protocol::user::{Permission, User};
use smol_str::SmolStr;

use super::snapshot::{CatalogSnapshot, ListPosition, as_rid, list};
use super::{ByName, Catalog, CatalogError, DatabaseEntry, to_bytes};
use clock::Ticks;

/// A user as the catalog knows it.
#[derive(Clone, Debug)]
pub struct UserEntry {
    /// The name of the user.
    pub id: SmolStr,
    /// The `_rid` of the user, typed.
    pub(crate) rid: UserRid,
    /// The system properties: `_rid`, `_self`, `_etag`, `_ts`.
    pub system: SystemProperties,
    /// The resource as clients read it.
    pub json: Bytes,
    permissions_by_name: ByName<Arc<PermissionEntry>>,
    permissions: OrdMap<PermissionRid, Arc<PermissionEntry>>,
}

/// A permission as the catalog knows it.
#[derive(Clone, Debug)]
pub struct PermissionEntry {
    /// The permission's `_rid`, typed.
    pub(crate) rid: PermissionRid,
    /// The resource without its token, which is made when it is read.
    pub permission: Permission,
}

/// A user, addressed by names or `_rid`s.
#[derive(Clone, Copy, Debug)]
pub struct UserAddress<'a> {
    /// The name or `_rid` of the database.
    pub database: &'a str,
    /// The name or `_rid` of the user.
    pub user: &'a str,
}

impl UserEntry {
    /// A user without permissions.
    pub(super) fn empty(rid: UserRid, id: &str, system: SystemProperties) -> UserEntry {
        UserEntry {
            id: id.into(),
            rid,
            json: to_bytes(&User::new(id, system.clone())),
            system,
            permissions_by_name: ByName::default(),
            permissions: OrdMap::default(),
        }
    }

    /// A permission of this user, by name or `_rid`.
    pub fn permission(&self, id: &str) -> Option<&Arc<PermissionEntry>> {
        let by_rid = as_rid(id).and_then(|rid: PermissionRid| self.permissions.get(&rid));
        by_rid.or_else(|| self.permissions_by_name.get(id))
    }

    /// The permissions from a position on: after a resource, oldest first, or before it in reverse.
    pub fn permissions_after(
        &self,
        after: impl Into<ListPosition<PermissionRid>>,
    ) -> impl Iterator<Item = &Arc<PermissionEntry>> {
        list(&self.permissions, after)
    }

    pub(super) fn put(&mut self, entry: Arc<PermissionEntry>) {
        self.permissions_by_name.insert(entry.permission.id.as_str().into(), Arc::clone(&entry));
        self.permissions.insert(entry.rid, entry);
    }

    fn remove(&mut self, entry: &PermissionEntry) {
        self.permissions_by_name.remove(entry.permission.id.as_str());
        self.permissions.remove(&entry.rid);
    }

    /// Whether a permission other than `except` has this name, or is for the same resource: there is
    /// one per resource.
    fn collides(&self, wanted: &Permission, except: Option<PermissionRid>) -> bool {
        let link = wanted.resource.trim_matches('/');
        self.permissions.values().filter(|entry| Some(entry.rid) != except).any(|entry| {
            entry.permission.id == wanted.id || entry.permission.resource.trim_matches('/') == link
        })
    }
}

impl Catalog {
    /// Adds a user to a database.
    pub fn create_user(&self, database: &str, id: &str, now: Ticks) -> Result<Arc<UserEntry>, CatalogError> {
        self.update(|snapshot, allocator| {
            let mut database = snapshot.database_to_change(database)?;
            if database.has_user_named(id) {
                return Err(CatalogError::AlreadyExists);
            }
            let rid = UserRid { database: database.rid, user: allocator.in_database() };
            let system = allocator.new_resource(rid, rid.self_link(), now);
            let entry = Arc::new(UserEntry::empty(rid, id, system));
            database.put_user(Arc::clone(&entry));
            snapshot.put_database(Arc::new(database));
            Ok(entry)
        })
    }

    /// Renames a user, or just gives it a new version. Permissions stay.
    ///
    /// `permit` gets the user as it is now and may return an error.
    pub fn replace_user<E: From<CatalogError>>(
        &self,
        address: UserAddress<'_>,
        id: &str,
        now: Ticks,
        permit: impl FnOnce(&UserEntry) -> Result<(), E>,
    ) -> Result<Arc<UserEntry>, E> {
        self.update(|snapshot, allocator| {
            let (mut database, old) = user_to_change(snapshot, address)?;
            permit(&old)?;
            if old.id != id && database.has_user_named(id) {
                return Err(CatalogError::AlreadyExists.into());
            }
            let system = allocator.next_version(&old.system, now);
            let entry = Arc::new(UserEntry {
                id: id.into(),
                json: to_bytes(&User::new(id, system.clone())),
                system,
                ..old.clone()
            });
            database.remove_user(&old);
            database.put_user(Arc::clone(&entry));
            snapshot.put_database(Arc::new(database));
            Ok(entry)
        })
    }

    /// Removes a user and its permissions. Tokens already handed out live until they expire.
    ///
    /// `permit` gets the user as it is now and may return an error.
    pub fn delete_user<E: From<CatalogError>>(
        &self,
        address: UserAddress<'_>,
        permit: impl FnOnce(&UserEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.update(|snapshot, _| {
            let (mut database, user) = user_to_change(snapshot, address)?;
            permit(&user)?;
            database.remove_user(&user);
            snapshot.put_database(Arc::new(database));
            Ok(())
        })
    }

    /// Adds a permission to a user. Grows with the user's permissions.
    pub fn create_permission(
        &self,
        address: UserAddress<'_>,
        wanted: Permission,
        now: Ticks,
    ) -> Result<Arc<PermissionEntry>, CatalogError> {
        self.update(|snapshot, allocator| {
            let (database, mut user) = user_to_change(snapshot, address).map_err(as_owner)?;
            if user.collides(&wanted, None) {
                return Err(CatalogError::AlreadyExists);
            }
            let rid = PermissionRid { user: user.rid, permission: allocator.permission() };
            let system = allocator.new_resource(rid, rid.self_link(), now);
            let entry = Arc::new(PermissionEntry { rid, permission: Permission { system, ..wanted } });
            user.put(Arc::clone(&entry));
            publish(snapshot, database, user);
            Ok(entry)
        })
    }

    /// Gives a permission a new name or new terms.
    ///
    /// `decide` gets the permission as it is now and returns what it becomes.
    pub fn replace_permission<E: From<CatalogError>>(
        &self,
        address: UserAddress<'_>,
        permission: &str,
        now: Ticks,
        decide: impl FnOnce(&PermissionEntry) -> Result<Permission, E>,
    ) -> Result<Arc<PermissionEntry>, E> {
        self.update(|snapshot, allocator| {
            let (database, mut user) = user_to_change(snapshot, address).map_err(as_owner)?;
            let old = Arc::clone(user.permission(permission).ok_or(CatalogError::NotFound)?);
            let wanted = decide(&old)?;
            if user.collides(&wanted, Some(old.rid)) {
                return Err(CatalogError::AlreadyExists.into());
            }
            let system = allocator.next_version(&old.permission.system, now);
            let entry =
                Arc::new(PermissionEntry { rid: old.rid, permission: Permission { system, ..wanted } });
            user.remove(&old);
            user.put(Arc::clone(&entry));
            publish(snapshot, database, user);
            Ok(entry)
        })
    }

    /// Removes a permission. Tokens already handed out live until they expire.
    ///
    /// `permit` gets the permission as it is now and may return an error.
    pub fn delete_permission<E: From<CatalogError>>(
        &self,
        address: UserAddress<'_>,
        permission: &str,
        permit: impl FnOnce(&PermissionEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.update(|snapshot, _| {
            let (database, mut user) = user_to_change(snapshot, address).map_err(as_owner)?;
            let old = Arc::clone(user.permission(permission).ok_or(CatalogError::NotFound)?);
            permit(&old)?;
            user.remove(&old);
            publish(snapshot, database, user);
            Ok(())
        })
    }
}

fn user_to_change(
    snapshot: &CatalogSnapshot,
    address: UserAddress<'_>,
) -> Result<(DatabaseEntry, UserEntry), CatalogError> {
    let database = snapshot.database_to_change(address.database)?;
    let user =
        database.user(address.user).map(|entry| UserEntry::clone(entry)).ok_or(CatalogError::NotFound)?;
    Ok((database, user))
}

/// For an operation on a permission, a missing user is a missing owner.
fn as_owner(error: CatalogError) -> CatalogError {
    match error {
        CatalogError::NotFound => CatalogError::OwnerNotFound,
        other => other,
    }
}

fn publish(snapshot: &mut CatalogSnapshot, mut database: DatabaseEntry, user: UserEntry) {
    database.put_user(Arc::new(user));
    snapshot.put_database(Arc::new(database));
}
