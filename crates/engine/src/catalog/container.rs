//! A container as the catalog knows it: its properties, its paths, and the store behind it.

use std::sync::Arc;

use bytes::Bytes;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use protocol::container::{ContainerBody, ContainerProperties};
use protocol::resource::SystemProperties;
use protocol::resource_id::{ContainerRid, OfferRid};
use protocol::throughput::Throughput;
use smol_str::SmolStr;

use super::identity::Allocator;
use super::script::Scripts;
use super::{Catalog, CatalogError, CatalogSnapshot, OfferEntry, to_bytes};
use crate::regions::Regions;
use crate::store::{self, Partitioning};
use clock::Ticks;

/// A container as the catalog knows it.
#[derive(Clone, Debug)]
pub struct ContainerEntry {
    /// The name of the container.
    pub id: SmolStr,
    /// The container's `_rid`, typed.
    pub rid: ContainerRid,
    /// The system properties: `_rid`, `_self`, `_etag`, `_ts`.
    pub system: SystemProperties,
    /// The client's properties, completed with defaults.
    pub properties: Arc<ContainerProperties>,
    /// The resource as clients read it.
    pub json: Bytes,
    /// Its own throughput; a container that shares its database's has none.
    pub(crate) offer: Option<OfferRid>,
    /// `x-ms-content-path` of its items: the `_rid`.
    pub content_path: Bytes,
    /// `x-ms-alt-content-path` of its items: the path by name.
    pub alt_content_path: Bytes,
    /// The store with the container's items.
    pub store: Arc<store::Container>,
    /// Its stored procedures, triggers and user-defined functions.
    pub(super) scripts: Scripts,
}

impl ContainerEntry {
    /// Whether it has no throughput of its own, and shares that of its database.
    pub fn shares_throughput(&self) -> bool {
        self.offer.is_none()
    }
}

/// What a new container is made of.
#[derive(Debug)]
pub struct NewContainer<'a> {
    /// The database it goes into, by name or `_rid`.
    pub database: &'a str,
    /// The properties, validated and completed with defaults.
    pub properties: ContainerProperties,
    /// Its own throughput, or `None` to share the database's.
    pub throughput: Option<Throughput>,
    /// How it is divided into physical partitions.
    pub partitions: Partitioning,
    /// The regions of the account.
    pub regions: Arc<Regions>,
}

impl Catalog {
    /// Adds a container. Cost is the logarithm of the containers there.
    pub fn create_container(
        &self,
        new: NewContainer<'_>,
        now: Ticks,
    ) -> Result<Arc<ContainerEntry>, CatalogError> {
        self.update(|snapshot, allocator| {
            let mut database = snapshot.database_to_change(new.database)?;
            if database.has_container_named(&new.properties.id) {
                return Err(CatalogError::AlreadyExists);
            }
            if let Some(policy) = &new.properties.client_encryption_policy {
                database.check_policy_keys(policy)?;
            }
            let rid = ContainerRid { database: database.rid, container: allocator.in_database() };
            let system = allocator.new_resource(rid, rid.self_link(), now);
            let offer =
                new.throughput.map(|throughput| OfferEntry::create(allocator, &system, throughput, now));
            let properties = Arc::new(new.properties);
            let new_store =
                store::Container::new(rid, &properties, new.partitions, new.regions, self.disk.clone());
            let entry = Arc::new(ContainerEntry {
                id: properties.id.as_str().into(),
                rid,
                json: to_bytes(&ContainerBody::new(&properties, system.clone())),
                content_path: ascii_text(&system.rid),
                alt_content_path: path_by_name(&database.id, &properties.id),
                system,
                offer: offer.as_ref().map(|offer| offer.rid),
                store: Arc::new(new_store),
                scripts: Scripts::new(),
                properties,
            });
            if let Some(offer) = offer {
                snapshot.put_offer(Arc::new(offer));
            }
            database.put_container(Arc::clone(&entry));
            snapshot.put_database(Arc::new(database));
            Ok(entry)
        })
    }

    /// Gives a container new properties; its `_rid` and its items stay.
    ///
    /// `decide` gets the container as it is now and returns its new properties.
    pub fn replace_container<E: From<CatalogError>>(
        &self,
        database: &str,
        container: &str,
        now: Ticks,
        decide: impl FnOnce(&ContainerEntry) -> Result<ContainerProperties, E>,
    ) -> Result<Arc<ContainerEntry>, E> {
        let replace = |snapshot: &mut CatalogSnapshot, allocator: &mut Allocator| {
            let mut database = snapshot.database_to_change(database)?;
            let old = database.container(container).ok_or(CatalogError::NotFound)?;
            let properties = Arc::new(decide(old)?);
            let system = allocator.next_version(&old.system, now);
            let entry = Arc::new(ContainerEntry {
                json: to_bytes(&ContainerBody::new(&properties, system.clone())),
                system,
                properties: Arc::clone(&properties),
                ..ContainerEntry::clone(old)
            });
            database.put_container(Arc::clone(&entry));
            snapshot.put_database(Arc::new(database));
            Ok(entry)
        };
        self.update_and(replace, |entry| entry.store.replace_properties(&entry.properties))
    }

    /// Removes a container and its items.
    ///
    /// `permit` gets the container as it is now and may return an error.
    pub fn delete_container<E: From<CatalogError>>(
        &self,
        database: &str,
        container: &str,
        permit: impl FnOnce(&ContainerEntry) -> Result<(), E>,
    ) -> Result<Arc<ContainerEntry>, E> {
        self.update(|snapshot, _| {
            let mut database = snapshot.database_to_change(database)?;
            let entry = Arc::clone(database.container(container).ok_or(CatalogError::NotFound)?);
            permit(&entry)?;
            database.remove_container(&entry);
            snapshot.put_database(Arc::new(database));
            if let Some(offer) = entry.offer {
                snapshot.remove_offer(offer);
            }
            Ok(entry)
        })
    }
}

/// Header values are ASCII, so names that are not have those characters escaped.
pub(super) fn path_by_name(database: &str, container: &str) -> Bytes {
    const NOT_IN_HEADERS: &AsciiSet = CONTROLS;
    let database = utf8_percent_encode(database, NOT_IN_HEADERS);
    let container = utf8_percent_encode(container, NOT_IN_HEADERS);
    ascii_text(&format!("dbs/{database}/colls/{container}"))
}

pub(super) fn ascii_text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
