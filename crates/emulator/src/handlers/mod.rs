//! One file per operation, and the table that finds it.
//!
//! In: a [`Call`] that is authorized, and what it asks for. Out: a [`Reply`] or the reason there is
//! none. Handlers look things up in the catalog, decide, and answer; they know HTTP headers but no
//! sockets.

mod account;
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
mod throughput;
mod unsupported;
mod users;

use std::sync::Arc;

use crate::request::{Call, ContainerIds, ItemOperation, Operation, RequestHeaders};
use crate::response::{Reply, ServiceError};
use engine::catalog::{ContainerEntry, Refusal, Snapshot};
use engine::store::Moment;
use protocol::headers as name;
use protocol::status::{Status, SubStatus};

/// An operation on the items of one container: everything a handler under `items` needs.
#[derive(Debug)]
pub(crate) struct ItemRequest<'a> {
    /// The request: account, headers, body, time.
    pub(crate) call: Call<'a>,
    /// The container, found by name or `_rid`; the caller may act on it.
    pub(crate) container: &'a Arc<ContainerEntry>,
    /// What to do.
    pub(crate) operation: ItemOperation<'a>,
    /// What it may cost, and whom.
    pub(crate) ru_admission: items::RuAdmission,
}

impl ItemRequest<'_> {
    /// When it arrived, in seconds since the epoch: what `_ts` and expiry count in.
    pub(crate) fn now_seconds(&self) -> u64 {
        u64::try_from(self.call.now.seconds()).unwrap_or(0)
    }

    /// When and where it writes.
    pub(crate) fn write_timestamp(&self) -> Moment {
        Moment { region: self.call.read_context.region, now: self.now_seconds(), uptime: self.call.uptime }
    }
}

/// Carries out `operation`, if the caller may.
pub(crate) fn handle(call: Call<'_>, operation: Operation<'_>) -> Result<Reply, ServiceError> {
    // Held, not copied: counting the users of what all cores share costs more than looking it up.
    let catalog = call.account.catalog.snapshot();
    match operation {
        Operation::Items(ids, operation) => {
            let container = find_container(&call, &catalog, &ids)?;
            call.principal.check_items(container, &operation, call.headers)?;
            let bill = items::RuAdmission::new(&call, &operation);
            items::handle(ItemRequest { call, container, operation, ru_admission: bill })
        }
        Operation::PartitionRanges(ids) => {
            let container = find_container(&call, &catalog, &ids)?;
            call.principal.check_read(container)?;
            partition_ranges::list(&call, container)
        }
        Operation::Container(ids, verb) => containers::one(&call, &ids, verb),
        // Any signature will do: clients read the account before they know what they may see.
        Operation::ReadAccount => Ok(account::read(&call)),
        reserved => {
            call.principal.check_owner()?;
            handle_owner_only(&call, reserved)
        }
    }
}

/// What only the account's owner may do.
fn handle_owner_only(call: &Call<'_>, operation: Operation<'_>) -> Result<Reply, ServiceError> {
    match operation {
        Operation::Databases(verb) => databases::feed(call, verb),
        Operation::Database(id, verb) => databases::one(call, &id, verb),
        Operation::Containers(database, verb) => containers::feed(call, &database, verb),
        Operation::Conflicts(ids, verb) => {
            conflicts::handle(call, find_container(call, &call.account.catalog.snapshot(), &ids)?, verb)
        }
        Operation::Offers(verb) => offers::feed(call, verb),
        Operation::Offer(id, verb) => offers::one(call, &id, verb),
        Operation::Users(database, verb) => users::feed(call, &database, verb),
        Operation::User(ids, verb) => users::one(call, &ids, verb),
        Operation::Permissions(ids, verb) => permissions::feed(call, &ids, verb),
        Operation::Permission(ids, id, verb) => permissions::one(call, &ids, &id, verb),
        Operation::Unsupported(request) => unsupported::handle(call, &request),
        Operation::ReadAccount
        | Operation::Container(..)
        | Operation::Items(..)
        | Operation::PartitionRanges(_) => unreachable!("answered by `handle`, which lets others in too"),
    }
}

/// The container that an operation works inside. Its absence is 404/1003, its absence under the
/// `_rid` that the client remembers is 400/1024.
fn find_container<'c>(
    call: &Call<'_>,
    catalog: &'c Snapshot,
    ids: &ContainerIds<'_>,
) -> Result<&'c Arc<ContainerEntry>, ServiceError> {
    let container =
        catalog.container(&ids.database, &ids.container).map_err(|_| ServiceError::owner_not_found())?;
    check_container_rid(call.headers, container)?;
    Ok(container)
}

/// Refuses a request meant for an earlier container of the same name.
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

impl From<Refusal> for ServiceError {
    fn from(error: Refusal) -> ServiceError {
        match error {
            Refusal::Missing => ServiceError::not_found(),
            Refusal::OwnerMissing => ServiceError::owner_not_found(),
            Refusal::Taken => ServiceError::conflict(),
            Refusal::NotKept(error) => error.into(),
        }
    }
}
