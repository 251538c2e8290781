//! The catalog as the data directory stores it.
//!
//! A change is persisted as the difference between two snapshots, so no change can be missed. Computing it
//! looks at every database, and into those that changed: one comparison of pointers for each resource.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;
use protocol::container::{ContainerBody, ContainerProperties};
use protocol::database::DatabaseBody;
use protocol::resource::SystemProperties;
use protocol::resource_id::{ContainerRid, OfferRid};
use protocol::throughput::Offer;
use protocol::user::{Permission, User};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client_encryption_key::ClientEncryptionKeyEntry;
use super::identity::Allocator;
use super::script::{ScriptEntry, Scripts};
use super::user::{PermissionEntry, UserEntry};
use super::{Catalog, CatalogSnapshot, ContainerEntry, DatabaseEntry, OfferEntry, to_bytes};
use crate::disk::{
    Batch, CatalogKey, Keyspace, Malformed, OpenError, Reader, StoredAccount, StoredContents, StoredLayout,
    put_bytes, put_number,
};
use crate::store::{self, RestoreContext};

/// The batch that turns one stored snapshot into the next.
pub(super) fn difference(old: &CatalogSnapshot, new: &CatalogSnapshot, allocator: &Allocator) -> Batch {
    let mut batch = Batch::new(1024);
    each_difference(
        (old.databases_after(None), new.databases_after(None)),
        |entry| entry.rid,
        |old, new| database(&mut batch, old, new),
    );
    each_difference(
        (old.offers_after(None), new.offers_after(None)),
        |entry| entry.rid,
        |old, new| put(&mut batch, old, new, |entry| CatalogKey::Offer(entry.rid), offer),
    );
    if !batch.is_empty() {
        batch.put(Keyspace::Catalog, &CatalogKey::Allocator.to_bytes(), |to| {
            allocator.counters().into_iter().for_each(|number| put_number(to, number));
        });
    }
    batch
}

fn database(batch: &mut Batch, old: Option<&DatabaseEntry>, new: Option<&DatabaseEntry>) {
    // Most changes are to something in it.
    if old.map(|entry| &entry.json) != new.map(|entry| &entry.json) {
        put(
            batch,
            old,
            new,
            |entry| CatalogKey::Database(entry.rid),
            |to, entry| {
                put_offer(to, entry.offer);
                put_bytes(to, &entry.json);
            },
        );
    }
    let containers = |entry: Option<&DatabaseEntry>| -> Vec<Arc<ContainerEntry>> {
        entry.map(|entry| entry.containers_after(None).cloned().collect()).unwrap_or_default()
    };
    each_difference(
        (containers(old).iter(), containers(new).iter()),
        |entry| entry.rid,
        |old, new| {
            put(batch, old, new, |entry| CatalogKey::Container(entry.rid), container);
            scripts(batch, old, new);
            match (old, new) {
                (None, Some(new)) => {
                    let layout = new.store.stored_layout();
                    let key = CatalogKey::Layout(new.rid).to_bytes();
                    batch.put(Keyspace::Catalog, &key, |to| layout.put(to));
                }
                (Some(old), None) => {
                    batch.remove(Keyspace::Catalog, &CatalogKey::Layout(old.rid).to_bytes());
                    batch.remove_contents(old.rid);
                }
                _ => {}
            }
        },
    );
    let users = |entry: Option<&DatabaseEntry>| -> Vec<Arc<UserEntry>> {
        entry.map(|entry| entry.users_after(None).cloned().collect()).unwrap_or_default()
    };
    each_difference(
        (users(old).iter(), users(new).iter()),
        |entry| entry.rid,
        |old, new| user(batch, old, new),
    );
    let keys = |entry: Option<&DatabaseEntry>| -> Vec<Arc<ClientEncryptionKeyEntry>> {
        entry.map(|entry| entry.client_encryption_keys_after(None).cloned().collect()).unwrap_or_default()
    };
    each_difference(
        (keys(old).iter(), keys(new).iter()),
        |entry| entry.rid,
        |old, new| {
            let key = |entry: &ClientEncryptionKeyEntry| CatalogKey::ClientEncryptionKey(entry.rid);
            put(batch, old, new, key, |to, entry| put_bytes(to, &entry.json));
        },
    );
}

fn scripts(batch: &mut Batch, old: Option<&ContainerEntry>, new: Option<&ContainerEntry>) {
    let scripts = |entry: Option<&ContainerEntry>| -> Vec<Arc<ScriptEntry>> {
        entry.map(|entry| entry.scripts.values().cloned().collect()).unwrap_or_default()
    };
    each_difference(
        (scripts(old).iter(), scripts(new).iter()),
        |entry| entry.rid,
        |old, new| {
            let key = |entry: &ScriptEntry| CatalogKey::Script(entry.rid);
            put(batch, old, new, key, |to, entry| put_bytes(to, &entry.json));
        },
    );
}

fn user(batch: &mut Batch, old: Option<&UserEntry>, new: Option<&UserEntry>) {
    if old.map(|entry| &entry.json) != new.map(|entry| &entry.json) {
        put(batch, old, new, |entry| CatalogKey::User(entry.rid), |to, entry| put_bytes(to, &entry.json));
    }
    let permissions = |entry: Option<&UserEntry>| -> Vec<Arc<PermissionEntry>> {
        entry.map(|entry| entry.permissions_after(None).cloned().collect()).unwrap_or_default()
    };
    each_difference(
        (permissions(old).iter(), permissions(new).iter()),
        |entry| entry.rid,
        |old, new| {
            let key = |entry: &PermissionEntry| CatalogKey::Permission(entry.rid);
            put(batch, old, new, key, |to, entry| put_bytes(to, &to_bytes(&entry.permission)));
        },
    );
}

/// Adds the new entry to the batch, or its removal.
fn put<T>(
    batch: &mut Batch,
    old: Option<&T>,
    new: Option<&T>,
    key: impl Fn(&T) -> CatalogKey,
    write: impl FnOnce(&mut Vec<u8>, &T),
) {
    match (old, new) {
        (_, Some(new)) => batch.put(Keyspace::Catalog, &key(new).to_bytes(), |to| write(to, new)),
        (Some(old), None) => batch.remove(Keyspace::Catalog, &key(old).to_bytes()),
        (None, None) => {}
    }
}

/// Calls `visit` with the entries that differ between two lists, both in order of `key`.
fn each_difference<'a, T: 'a, K: Ord>(
    (old, new): (impl Iterator<Item = &'a Arc<T>>, impl Iterator<Item = &'a Arc<T>>),
    key: impl Fn(&T) -> K,
    mut visit: impl FnMut(Option<&T>, Option<&T>),
) {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => key(old).cmp(&key(new)),
        };
        match order {
            Ordering::Less => visit(old.next().map(|entry| &**entry), None),
            Ordering::Greater => visit(None, new.next().map(|entry| &**entry)),
            Ordering::Equal => {
                if let (Some(old), Some(new)) = (old.next(), new.next())
                    && !Arc::ptr_eq(old, new)
                {
                    visit(Some(old), Some(new));
                }
            }
        }
    }
}

fn offer(to: &mut Vec<u8>, entry: &OfferEntry) {
    put_bytes(to, &entry.json);
}

fn container(to: &mut Vec<u8>, entry: &ContainerEntry) {
    put_offer(to, entry.offer);
    put_json(to, &*entry.properties);
    put_json(to, &entry.system);
}

fn put_json(to: &mut Vec<u8>, value: &impl Serialize) {
    put_bytes(to, &to_bytes(value));
}

fn put_offer(to: &mut Vec<u8>, offer: Option<OfferRid>) {
    put_number(to, offer.map_or(0, |rid| u64::from(rid.0) + 1));
}

fn read_offer(reader: &mut Reader<'_>) -> Result<Option<OfferRid>, Malformed> {
    match reader.number()? {
        0 => Ok(None),
        number => Ok(Some(OfferRid(u32::try_from(number - 1).map_err(|_| Malformed)?))),
    }
}

fn read_json<T: DeserializeOwned>(reader: &mut Reader<'_>) -> Result<T, Malformed> {
    serde_json::from_slice(reader.bytes()?).map_err(|_| Malformed)
}

impl Catalog {
    /// The catalog that was stored on `disk`, which continues being persisted there.
    pub(crate) fn restored(
        context: &RestoreContext,
        opened: StoredAccount,
        first_rid: u32,
    ) -> Result<Catalog, OpenError> {
        let path = context.disk.path().to_owned();
        let catalog = restore(context, opened, first_rid);
        catalog.map_err(|error| OpenError::damaged(path, format!("in the catalog, a {error}")))
    }

    /// Builds the indexes of what was read from disk. Cost grows with the items.
    pub(crate) fn make_indexes(&self) {
        let snapshot = Arc::clone(&self.snapshot());
        for database in snapshot.databases_after(None) {
            database.containers_after(None).for_each(|container| container.store.build_index());
        }
    }
}

fn restore(context: &RestoreContext, opened: StoredAccount, first_rid: u32) -> Result<Catalog, Malformed> {
    let StoredAccount { catalog, mut containers, .. } = opened;
    let mut snapshot = CatalogSnapshot::default();
    let mut allocator = Allocator::new(first_rid);
    let layouts: HashMap<ContainerRid, &Bytes> = catalog
        .iter()
        .filter_map(|(key, value)| match key {
            CatalogKey::Layout(rid) => Some((*rid, value)),
            _ => None,
        })
        .collect();
    // Owners before what they own.
    let rank = |key: &CatalogKey| match key {
        CatalogKey::Allocator | CatalogKey::Checkpointed | CatalogKey::Regions | CatalogKey::Layout(_) => 0,
        CatalogKey::Offer(_) | CatalogKey::Database(_) => 1,
        CatalogKey::Container(_) | CatalogKey::User(_) | CatalogKey::ClientEncryptionKey(_) => 2,
        CatalogKey::Permission(_) | CatalogKey::Script(_) => 3,
    };
    let mut entries: Vec<&(CatalogKey, Bytes)> = catalog.iter().collect();
    entries.sort_by_key(|(key, _)| rank(key));
    for (key, value) in entries {
        let mut reader = Reader::new(value);
        match *key {
            CatalogKey::Checkpointed | CatalogKey::Regions | CatalogKey::Layout(_) => continue,
            CatalogKey::Allocator => {
                let mut counters = [0; 5];
                for number in &mut counters {
                    *number = reader.number()?;
                }
                allocator = Allocator::from_counters(counters).ok_or(Malformed)?;
            }
            CatalogKey::Offer(rid) => {
                let offer: Offer = read_json(&mut reader)?;
                let throughput = offer.throughput().map_err(|_| Malformed)?;
                let entry = OfferEntry { rid, throughput, json: to_bytes(&offer), offer };
                snapshot.put_offer(Arc::new(entry));
            }
            CatalogKey::Database(rid) => {
                let offer = read_offer(&mut reader)?;
                let DatabaseBody { id, system, .. } = read_json(&mut reader)?;
                snapshot.put_database(Arc::new(DatabaseEntry::empty(rid, &id, system, offer)));
            }
            CatalogKey::Container(rid) => {
                let layout = StoredLayout::read(layouts.get(&rid).ok_or(Malformed)?)?;
                let stored = (layout, containers.remove(&rid).ok_or(Malformed)?);
                let mut database = owner(&snapshot, rid.database)?;
                let entry = restore_container(rid, &database.id, &mut reader, context, stored)?;
                database.put_container(Arc::new(entry));
                snapshot.put_database(Arc::new(database));
            }
            CatalogKey::User(rid) => {
                let User { id, system, .. } = read_json(&mut reader)?;
                let mut database = owner(&snapshot, rid.database)?;
                database.put_user(Arc::new(UserEntry::empty(rid, &id, system)));
                snapshot.put_database(Arc::new(database));
            }
            CatalogKey::ClientEncryptionKey(rid) => {
                let mut database = owner(&snapshot, rid.database)?;
                let entry = ClientEncryptionKeyEntry::new(rid, &read_json(&mut reader)?);
                database.client_encryption_keys.insert(rid, Arc::new(entry));
                snapshot.put_database(Arc::new(database));
            }
            CatalogKey::Script(rid) => {
                let mut database = owner(&snapshot, rid.container.database)?;
                let container = database.container(&rid.container.to_string()).ok_or(Malformed)?;
                let mut container = ContainerEntry::clone(container);
                let entry = ScriptEntry::new(rid, read_json(&mut reader)?);
                container.scripts.insert(rid, Arc::new(entry));
                database.put_container(Arc::new(container));
                snapshot.put_database(Arc::new(database));
            }
            CatalogKey::Permission(rid) => {
                let permission: Permission = read_json(&mut reader)?;
                let mut database = owner(&snapshot, rid.user.database)?;
                let user = database.user(&rid.user.to_string()).ok_or(Malformed)?;
                let mut user = UserEntry::clone(user);
                user.put(Arc::new(PermissionEntry { rid, permission }));
                database.put_user(Arc::new(user));
                snapshot.put_database(Arc::new(database));
            }
        }
        reader.end()?;
    }
    Ok(Catalog {
        current: ArcSwap::from_pointee(snapshot),
        writer: Mutex::new(allocator),
        disk: Some(Arc::clone(&context.disk)),
    })
}

fn owner(
    snapshot: &CatalogSnapshot,
    rid: protocol::resource_id::DatabaseRid,
) -> Result<DatabaseEntry, Malformed> {
    snapshot.database_to_change(&rid.to_string()).map_err(|_| Malformed)
}

fn restore_container(
    rid: ContainerRid,
    database: &str,
    reader: &mut Reader<'_>,
    context: &RestoreContext,
    stored: (StoredLayout, StoredContents),
) -> Result<ContainerEntry, Malformed> {
    let offer = read_offer(reader)?;
    let properties: ContainerProperties = read_json(reader)?;
    let system: SystemProperties = read_json(reader)?;
    let store = store::Container::restored(rid, &properties, context, stored)?;
    Ok(ContainerEntry {
        id: properties.id.as_str().into(),
        rid,
        json: to_bytes(&ContainerBody::new(&properties, system.clone())),
        content_path: super::container::ascii_text(&system.rid),
        alt_content_path: super::container::path_by_name(database, &properties.id),
        system,
        offer,
        store: Arc::new(store),
        scripts: Scripts::new(),
        properties: Arc::new(properties),
    })
}
