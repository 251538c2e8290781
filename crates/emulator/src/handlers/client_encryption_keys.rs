//! Client encryption keys: `/dbs/{database}/clientencryptionkeys` and `…/clientencryptionkeys/{key}`.

use std::sync::Arc;

use protocol::client_encryption_key::ClientEncryptionKeyDefinition;
use protocol::resource_id::ClientEncryptionKeyRid;
use protocol::resource_path::ResourceType;

use super::feed::{Feed, FeedEntry, parse_position};
use super::{condition, metadata_query};
use crate::request::{Call, ClientEncryptionKeyIds, FeedVerb, ResourceVerb};
use crate::response::{Reply, ServiceError};
use engine::catalog::{ClientEncryptionKeyAddress, ClientEncryptionKeyEntry, DatabaseEntry, ListPosition};

/// Request units of creating, replacing or deleting a client encryption key.
const WRITE_CHARGE: f64 = 4.95;

/// Handles an operation on a database's client encryption keys.
pub(crate) fn handle_feed(call: &Call<'_>, database: &str, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list(call, database),
        FeedVerb::Query => query(call, database),
        FeedVerb::Create => create(call, database),
        FeedVerb::Upsert => Err(ServiceError::bad_request("A client encryption key cannot be upserted.")),
    }
}

/// Handles an operation on one client encryption key.
pub(crate) fn handle(
    call: &Call<'_>,
    ids: &ClientEncryptionKeyIds<'_>,
    verb: ResourceVerb,
) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read(call, ids),
        ResourceVerb::Replace => replace(call, ids),
        ResourceVerb::Delete => delete(call, ids),
    }
}

/// `GET …/clientencryptionkeys`: lists the keys of a database, oldest first.
fn list(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find_database(call, database)?;
    let position: ListPosition<ClientEncryptionKeyRid> = parse_position(call.headers)?;
    let keys = database.client_encryption_keys_after(position);
    let entry = |key: &Arc<ClientEncryptionKeyEntry>| FeedEntry {
        rid: key.system.rid.clone(),
        json: key.json.clone(),
    };
    key_feed(&database).page(call, keys.map(entry))
}

/// `POST …/clientencryptionkeys` with a query.
fn query(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find_database(call, database)?;
    let keys = database.client_encryption_keys_after(None);
    metadata_query::run_query(call, key_feed(&database), keys.map(|key| &key.json))
}

/// `POST …/clientencryptionkeys`: creates a key; 409 if the id is taken.
fn create(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let definition = ClientEncryptionKeyDefinition::parse(&call.body)?;
    let key = call.account.catalog.create_client_encryption_key(database, definition, call.now)?;
    Ok(Reply::created(key.json.clone()).version(&key.system).charge(WRITE_CHARGE))
}

/// `GET …/clientencryptionkeys/{key}`: reads a key.
fn read(call: &Call<'_>, ids: &ClientEncryptionKeyIds<'_>) -> Result<Reply, ServiceError> {
    let database = find_database(call, &ids.database)?;
    let key = database.client_encryption_key(&ids.key).ok_or_else(ServiceError::not_found)?;
    if let Some(reply) = condition::not_modified(call.headers, &key.system) {
        return Ok(reply);
    }
    Ok(Reply::ok(key.json.clone()).version(&key.system))
}

/// `PUT …/clientencryptionkeys/{key}`: replaces a key by the same key, wrapped anew. Its id stays, because the
/// policies of containers refer to it.
fn replace(call: &Call<'_>, ids: &ClientEncryptionKeyIds<'_>) -> Result<Reply, ServiceError> {
    let definition = ClientEncryptionKeyDefinition::parse(&call.body)?;
    let id = definition.id.clone();
    let permit = |key: &ClientEncryptionKeyEntry| {
        condition::check_if_match(call.headers, &key.system)?;
        match key.id == id.as_str() {
            true => Ok(()),
            false => {
                Err(ServiceError::bad_request("Replacing the id of a client encryption key is not allowed."))
            }
        }
    };
    let catalog = &call.account.catalog;
    let key = catalog.replace_client_encryption_key(address(ids), definition, call.now, permit)?;
    Ok(Reply::ok(key.json.clone()).version(&key.system).charge(WRITE_CHARGE))
}

/// `DELETE …/clientencryptionkeys/{key}`: deletes a key. What was encrypted with it stays as it is.
fn delete(call: &Call<'_>, ids: &ClientEncryptionKeyIds<'_>) -> Result<Reply, ServiceError> {
    call.account.catalog.delete_client_encryption_key(address(ids), |key| {
        condition::check_if_match(call.headers, &key.system)
    })?;
    Ok(Reply::no_content().charge(WRITE_CHARGE))
}

fn find_database(call: &Call<'_>, database: &str) -> Result<Arc<DatabaseEntry>, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    snapshot.database(database).cloned().ok_or_else(ServiceError::owner_not_found)
}

fn key_feed(database: &DatabaseEntry) -> Feed<'_> {
    Feed { parent: &database.system.rid, plural: ResourceType::ClientEncryptionKey.feed_property() }
}

fn address<'a>(ids: &'a ClientEncryptionKeyIds<'_>) -> ClientEncryptionKeyAddress<'a> {
    ClientEncryptionKeyAddress { database: &ids.database, key: &ids.key }
}
