//! Handlers: what each operation does, one file per resource, and for items one file per operation.
//!
//! Input: an authorized [`Call`] and its [`Operation`]. Output: a [`Reply`] or a [`ServiceError`]. Handlers use
//! the catalog and the store, and know HTTP headers but no sockets.
//!
//! To add an operation: add a variant to [`Operation`] or [`ItemOperation`] in `request/operation.rs`, route to
//! it in `request/route.rs`, name it in `request/label.rs` and `gateway/request_description.rs`, write its
//! function in the file of its resource (or a file under `items`), and call it from the `match` in this file
//! (or in `items/mod.rs`). The compiler lists the places that are missing.

mod account;
pub(crate) mod addresses;
mod client_encryption_keys;
mod condition;
mod conflicts;
mod containers;
mod databases;
mod feed;
pub(crate) mod items;
mod metadata_query;
mod offers;
mod partition_ranges;
mod permissions;
mod scripts;
mod unsupported;
mod users;

use std::fmt::Write;
use std::sync::Arc;

use http::HeaderValue;
use percent_encoding::{CONTROLS, utf8_percent_encode};

use crate::request::{AuthorizedItems, Call, ContainerIds, ItemOperation, Operation, RequestHeaders};
use crate::response::{Reply, ServiceError};
use engine::catalog::{CatalogError, CatalogSnapshot, ContainerEntry};
use engine::store::WriteContext;
use protocol::headers as name;
use protocol::status::{Status, SubStatus};

/// An operation on the items of one container: everything a handler under `items` needs.
#[derive(Debug)]
pub(crate) struct ItemRequest<'a> {
    /// The request with its account, headers, body and time.
    pub(crate) call: Call<'a>,
    /// The container, found by name or `_rid`; the caller is allowed to use it.
    pub(crate) container: &'a Arc<ContainerEntry>,
    /// The operation to carry out.
    pub(crate) operation: ItemOperation<'a>,
    /// The items that the caller may use: everything that the operation selects is checked against it.
    pub(crate) authorized: AuthorizedItems,
    /// Admission by request units, and the partition that is charged.
    pub(crate) ru_admission: items::RuAdmission,
}

impl ItemRequest<'_> {
    /// When the request arrived, in seconds since the epoch, as in `_ts`.
    pub(crate) fn now_seconds(&self) -> u64 {
        u64::try_from(self.call.now.seconds()).unwrap_or(0)
    }

    /// The time and region of its writes.
    pub(crate) fn write_context(&self) -> WriteContext {
        WriteContext {
            region: self.call.read_context.region,
            now: self.now_seconds(),
            uptime: self.call.uptime,
        }
    }
}

/// Carries out `operation` if the caller is allowed to.
pub(crate) fn handle(call: Call<'_>, operation: Operation<'_>) -> Result<Reply, ServiceError> {
    let parent = parent_resource(&call, &operation);
    let reply = dispatch(call, operation)?;
    Ok(match parent {
        Some((rid, path)) => reply.parent(rid, path),
        None => reply,
    })
}

/// The parent of a container, user, permission or client encryption key, by `_rid` and by name, for the headers of the response.
fn parent_resource(call: &Call<'_>, operation: &Operation<'_>) -> Option<(HeaderValue, HeaderValue)> {
    let (database, user) = match operation {
        Operation::Containers(database, _)
        | Operation::Users(database, _)
        | Operation::ClientEncryptionKeys(database, _) => (database, None),
        Operation::ClientEncryptionKey(ids, _) => (&ids.database, None),
        Operation::Container(ids, _) => (&ids.database, None),
        Operation::User(ids, _) => (&ids.database, None),
        Operation::Permissions(ids, _) | Operation::Permission(ids, ..) => (&ids.database, Some(ids)),
        _ => return None,
    };
    let catalog = call.account.catalog.snapshot();
    let entry = catalog.database(database)?;
    let mut path = format!("dbs/{}", utf8_percent_encode(&entry.id, CONTROLS));
    let mut rid = entry.system.rid.as_str();
    if let Some(ids) = user {
        let user = catalog.user(users::address(ids)).ok()?;
        write!(path, "/users/{}", utf8_percent_encode(&user.id, CONTROLS)).ok()?;
        rid = &user.system.rid;
    }
    Some((HeaderValue::try_from(rid).ok()?, HeaderValue::try_from(path).ok()?))
}

fn dispatch(call: Call<'_>, operation: Operation<'_>) -> Result<Reply, ServiceError> {
    // Borrowed, not cloned: a reference count that all cores share costs more than the look-up.
    let catalog = call.account.catalog.snapshot();
    match operation {
        Operation::Items(ids, operation) => {
            let container = find_container(&call, &catalog, &ids)?;
            let authorized = call.principal.authorize_items(container, &operation, call.read_context)?;
            let ru_admission = items::RuAdmission::new(&call, &operation);
            items::handle(ItemRequest { call, container, operation, authorized, ru_admission })
        }
        Operation::PartitionRanges(ids) => {
            let container = find_container(&call, &catalog, &ids)?;
            call.principal.check_read(container)?;
            partition_ranges::list(&call, container)
        }
        Operation::Container(ids, verb) => containers::handle(&call, &ids, verb),
        // Every valid signature is enough: clients read the account first, whatever their rights.
        Operation::ReadAccount => Ok(account::read(&call)),
        operation => {
            call.principal.check_whole_account()?;
            handle_outside_containers(&call, operation)
        }
    }
}

/// Carries out an operation that no resource token covers.
fn handle_outside_containers(call: &Call<'_>, operation: Operation<'_>) -> Result<Reply, ServiceError> {
    match operation {
        Operation::Databases(verb) => databases::handle_feed(call, verb),
        Operation::Database(id, verb) => databases::handle(call, &id, verb),
        Operation::Containers(database, verb) => containers::handle_feed(call, &database, verb),
        Operation::Conflicts(ids, verb) => {
            conflicts::handle(call, find_container(call, &call.account.catalog.snapshot(), &ids)?, verb)
        }
        Operation::Offers(verb) => offers::handle_feed(call, verb),
        Operation::Offer(id, verb) => offers::handle(call, &id, verb),
        Operation::Users(database, verb) => users::handle_feed(call, &database, verb),
        Operation::User(ids, verb) => users::handle(call, &ids, verb),
        Operation::Permissions(ids, verb) => permissions::handle_feed(call, &ids, verb),
        Operation::Permission(ids, id, verb) => permissions::handle(call, &ids, &id, verb),
        Operation::ClientEncryptionKeys(database, verb) => {
            client_encryption_keys::handle_feed(call, &database, verb)
        }
        Operation::ClientEncryptionKey(ids, verb) => client_encryption_keys::handle(call, &ids, verb),
        Operation::Scripts(ids, kind, verb) => scripts::handle_feed(call, &ids, kind, verb),
        Operation::Script(ids, (kind, id), verb) => scripts::handle(call, &ids, (kind, &id), verb),
        Operation::Unsupported(request) => unsupported::handle(call, &request),
        Operation::ReadAccount
        | Operation::Container(..)
        | Operation::Items(..)
        | Operation::PartitionRanges(_) => {
            unreachable!("`handle` carries these out for token holders as well")
        }
    }
}

/// Finds the container that an operation works in. A missing one is 404/1003, one with another `_rid` than
/// the client expects is 400/1024.
fn find_container<'c>(
    call: &Call<'_>,
    catalog: &'c CatalogSnapshot,
    ids: &ContainerIds<'_>,
) -> Result<&'c Arc<ContainerEntry>, ServiceError> {
    let container =
        catalog.container(&ids.database, &ids.container).map_err(|_| ServiceError::owner_not_found())?;
    check_container_rid(call.headers, container)?;
    Ok(container)
}

/// Rejects a request that was meant for an earlier container of the same name.
fn check_container_rid(headers: &RequestHeaders<'_>, container: &ContainerEntry) -> Result<(), ServiceError> {
    match headers.intended_collection_rid {
        Some(intended) if !intended.is_empty() && intended != container.system.rid.as_str() => {
            let message = format!(
                "The container was recreated: {} names '{}', the container is now '{}'.",
                name::INTENDED_COLLECTION_RID,
                String::from_utf8_lossy(intended.as_bytes()),
                container.system.rid,
            );
            Err(ServiceError::backend(Status::BAD_REQUEST, &message)
                .with_sub_status(SubStatus::COLLECTION_RID_MISMATCH))
        }
        _ => Ok(()),
    }
}

impl From<CatalogError> for ServiceError {
    fn from(error: CatalogError) -> ServiceError {
        match error {
            CatalogError::NotFound => ServiceError::not_found(),
            CatalogError::OwnerNotFound => ServiceError::owner_not_found(),
            CatalogError::AlreadyExists => ServiceError::conflict(),
            CatalogError::UnknownEncryptionKeys(ids) => {
                ServiceError::bad_request(format!("ClientEncryptionKey with id '[{ids}]' does not exist."))
            }
            CatalogError::NotPersisted(error) => error.into(),
        }
    }
}
