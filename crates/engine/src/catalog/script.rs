//! Stored procedures, triggers and user-defined functions of a container, as resources.
//!
//! They are stored and returned; nothing here runs them.

use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;
use protocol::resource::SystemProperties;
use protocol::resource_id::{ChildKind, ChildRid};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::snapshot::{CatalogSnapshot, ListPosition, as_rid, list};
use super::{Catalog, CatalogError, ContainerEntry, DatabaseEntry, to_bytes};
use clock::Ticks;

/// What a client defines of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScriptDefinition {
    /// The name of the script.
    pub id: String,
    /// The source text, which is neither checked nor changed.
    pub body: String,
    /// `Pre` or `Post` for a trigger, as the client wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_type: Option<String>,
    /// The operations that a trigger is for, as the client wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_operation: Option<String>,
}

/// A script as clients read it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ScriptBody {
    #[serde(flatten)]
    pub(super) definition: ScriptDefinition,
    #[serde(flatten)]
    pub(super) system: SystemProperties,
}

/// A script as the catalog knows it.
#[derive(Clone, Debug)]
pub struct ScriptEntry {
    /// The name of the script.
    pub id: SmolStr,
    /// The script's `_rid`, typed. It tells what kind of script it is.
    pub rid: ChildRid,
    /// The system properties: `_rid`, `_self`, `_etag`, `_ts`.
    pub system: SystemProperties,
    /// The resource as clients read it.
    pub json: Bytes,
}

/// The scripts of a container, in order of their kind and creation.
pub(super) type Scripts = OrdMap<ChildRid, Arc<ScriptEntry>>;

/// A container and a kind of scripts in it.
#[derive(Clone, Copy, Debug)]
pub struct ScriptAddress<'a> {
    /// The name or `_rid` of the database.
    pub database: &'a str,
    /// The name or `_rid` of the container.
    pub container: &'a str,
    /// The kind of the script.
    pub kind: ChildKind,
}

impl ScriptEntry {
    pub(super) fn new(rid: ChildRid, body: ScriptBody) -> ScriptEntry {
        let json = to_bytes(&body);
        ScriptEntry { id: body.definition.id.into(), rid, system: body.system, json }
    }
}

impl ContainerEntry {
    /// The scripts of this kind from a position on: after a script, oldest first, or before it in reverse. Cost grows with them.
    pub fn scripts_after(
        &self,
        kind: ChildKind,
        after: impl Into<ListPosition<ChildRid>>,
    ) -> impl Iterator<Item = &Arc<ScriptEntry>> {
        list(&self.scripts, after).filter(move |entry| entry.rid.kind == kind)
    }

    /// A script of this kind, by name or `_rid`. A container has few, so they are searched in turn.
    pub fn script(&self, kind: ChildKind, id: &str) -> Option<&Arc<ScriptEntry>> {
        let rid: Option<ChildRid> = as_rid(id);
        self.scripts_after(kind, None).find(|entry| Some(entry.rid) == rid || entry.id == id)
    }
}

impl Catalog {
    /// Adds a script to a container.
    pub fn create_script(
        &self,
        address: ScriptAddress<'_>,
        definition: ScriptDefinition,
        now: Ticks,
    ) -> Result<Arc<ScriptEntry>, CatalogError> {
        self.update(|snapshot, allocator| {
            let (database, mut container) = container_to_change(snapshot, address)?;
            if is_taken(&container, address.kind, &definition.id, None) {
                return Err(CatalogError::AlreadyExists);
            }
            let ordinal = allocator.script();
            let rid = ChildRid { container: container.rid, kind: address.kind, ordinal };
            let system = allocator.new_resource(rid, rid.self_link(), now);
            let entry = Arc::new(ScriptEntry::new(rid, ScriptBody { definition, system }));
            container.scripts.insert(rid, Arc::clone(&entry));
            publish(snapshot, database, container);
            Ok(entry)
        })
    }

    /// Gives a script a new definition, perhaps with another name.
    ///
    /// `permit` gets the script as it is now and may return an error.
    pub fn replace_script<E: From<CatalogError>>(
        &self,
        (address, id): (ScriptAddress<'_>, &str),
        definition: ScriptDefinition,
        now: Ticks,
        permit: impl FnOnce(&ScriptEntry) -> Result<(), E>,
    ) -> Result<Arc<ScriptEntry>, E> {
        self.update(|snapshot, allocator| {
            let (database, mut container) = container_to_change(snapshot, address)?;
            let old = Arc::clone(container.script(address.kind, id).ok_or(CatalogError::NotFound)?);
            permit(&old)?;
            if is_taken(&container, address.kind, &definition.id, Some(old.rid)) {
                return Err(CatalogError::AlreadyExists.into());
            }
            let system = allocator.next_version(&old.system, now);
            let entry = Arc::new(ScriptEntry::new(old.rid, ScriptBody { definition, system }));
            container.scripts.insert(old.rid, Arc::clone(&entry));
            publish(snapshot, database, container);
            Ok(entry)
        })
    }

    /// Removes a script from its container.
    ///
    /// `permit` gets the script as it is now and may return an error.
    pub fn delete_script<E: From<CatalogError>>(
        &self,
        (address, id): (ScriptAddress<'_>, &str),
        permit: impl FnOnce(&ScriptEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        self.update(|snapshot, _| {
            let (database, mut container) = container_to_change(snapshot, address)?;
            let old = Arc::clone(container.script(address.kind, id).ok_or(CatalogError::NotFound)?);
            permit(&old)?;
            container.scripts.remove(&old.rid);
            publish(snapshot, database, container);
            Ok(())
        })
    }
}

fn is_taken(container: &ContainerEntry, kind: ChildKind, name: &str, except: Option<ChildRid>) -> bool {
    container.scripts_after(kind, None).any(|entry| entry.id == name && Some(entry.rid) != except)
}

fn container_to_change(
    snapshot: &CatalogSnapshot,
    address: ScriptAddress<'_>,
) -> Result<(DatabaseEntry, ContainerEntry), CatalogError> {
    let database = snapshot.database_to_change(address.database)?;
    let container = database.container(address.container).ok_or(CatalogError::OwnerNotFound)?;
    let container = ContainerEntry::clone(container);
    Ok((database, container))
}

fn publish(snapshot: &mut CatalogSnapshot, mut database: DatabaseEntry, container: ContainerEntry) {
    database.put_container(Arc::new(container));
    snapshot.put_database(Arc::new(database));
}
