//! Writes of whole items: parsing the document, storing it, and the reply.

use bytes::Bytes;
use http::HeaderValue;
use protocol::headers as name;
use protocol::status::Status;

use super::body;
use super::partition_key::{self, PartitionAddress};
use super::partition_response::PartitionResponse;
use crate::handlers::ItemRequest;
use crate::request::{ItemOperation, RequestHeaders, invalid_value};
use crate::response::{Reply, ServiceError};
use engine::charge;
use engine::items::Item;
use engine::store::{Document, Partition, Precondition, Transaction, WriteError, WriteOutcome, WrittenItem};

/// The precondition of the write, from the headers.
pub(super) fn precondition<'a>(headers: &RequestHeaders<'a>) -> Result<Precondition<'a>, ServiceError> {
    if let Some(etag) = RequestHeaders::text(headers.if_match, name::IF_MATCH)? {
        return Ok(Precondition::IfMatch(etag));
    }
    Ok(match RequestHeaders::text(headers.if_none_match, name::IF_NONE_MATCH)? {
        Some("*") => Precondition::IfAbsent,
        _ => Precondition::None,
    })
}

/// Whether the response omits the item.
pub(super) fn is_minimal(headers: &RequestHeaders<'_>) -> Result<bool, ServiceError> {
    let prefers =
        headers.prefer.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"return=minimal"));
    let header = name::POPULATE_CONTENT_RESPONSE_ON_WRITE;
    let declines = headers.populate_content_response_on_write.is_some()
        && !RequestHeaders::flag(headers.populate_content_response_on_write, header)?;
    Ok(prefers || declines)
}

/// Whether an indexing directive lets the properties of an item be indexed; `None` if it is unknown. The Python
/// SDK sends the numbers of its own enumeration.
pub(super) fn indexes(directive: &[u8]) -> Option<bool> {
    let is = |word: &str| directive.eq_ignore_ascii_case(word.as_bytes());
    match ["exclude", "1"].into_iter().any(is) {
        true => Some(false),
        false => ["", "default", "0", "include", "2"].into_iter().any(is).then_some(true),
    }
}

/// Whether the properties of the item are indexed, by `x-ms-indexing-directive`.
fn is_indexed(headers: &RequestHeaders<'_>) -> Result<bool, ServiceError> {
    let Some(directive) = headers.indexing_directive else { return Ok(true) };
    indexes(directive.as_bytes()).ok_or_else(|| invalid_value(name::INDEXING_DIRECTIVE, directive))
}

/// A parsed write: the document, its logical partition and its precondition.
pub(super) struct ItemWrite<'a> {
    document: Document,
    pub(super) address: PartitionAddress,
    precondition: Precondition<'a>,
}

impl<'a> ItemWrite<'a> {
    /// Parses the body as a document and checks that its partition key is the one in the headers.
    pub(super) fn read(request: &ItemRequest<'a>) -> Result<ItemWrite<'a>, ServiceError> {
        let schema = request.container.store.schema();
        let mut document = body::document(request, &schema)?.indexed(is_indexed(request.call.headers)?);
        let address = partition_key::address(request, &schema)?;
        if let Err(error) = partition_key::check_document(&document, &address) {
            return Err(match &request.operation {
                // What does not exist cannot be replaced, whatever its key would be.
                ItemOperation::Replace(id) => missing(request, &address, id).unwrap_or(error),
                _ => error,
            });
        }
        if let Some(old) = address.partition.head().get(&document.epk, &document.id) {
            document.prepare_replacement(old);
        }
        Ok(ItemWrite { document, address, precondition: precondition(request.call.headers)? })
    }

    /// The id of the document in the body.
    pub(super) fn id(&self) -> &str {
        &self.document.id
    }

    /// Stores the document with `write`. Only `write` runs under the partition's write lock.
    pub(super) fn store(
        self,
        request: &ItemRequest<'_>,
        write: impl FnOnce(&mut Transaction<'_>, &Document, Precondition<'a>) -> Result<WrittenItem, WriteError>,
    ) -> Result<Reply, ServiceError> {
        let ItemWrite { document, address, precondition } = self;
        let (partition, commit) =
            request.container.store.write(&address.epk, request.write_context(), |transaction| {
                write(transaction, &document, precondition)
            })?;
        write_reply(request, &partition, commit)
    }
}

/// 404 if there is no item with this id.
fn missing(request: &ItemRequest<'_>, address: &PartitionAddress, id: &str) -> Option<ServiceError> {
    let id = address.item_id(request, id);
    let state = address.partition.head();
    let partition_response = PartitionResponse::new(request.container, &address.partition, state.progress());
    let is_missing = state.get_live(&address.epk, &id, request.now_seconds()).is_none();
    is_missing.then(|| partition_response.error(ServiceError::not_found().with_charge(charge::NOT_FOUND)))
}

/// The reply to a write that stored a version.
pub(super) fn write_reply(
    request: &ItemRequest<'_>,
    partition: &Partition,
    commit: WriteOutcome<WrittenItem, WriteError>,
) -> Result<Reply, ServiceError> {
    let partition_response = PartitionResponse::new(request.container, partition, commit.progress.clone());
    let written = commit.result.map_err(|error| partition_response.error(error.into()))?;
    let status = if written.previous.is_some() { Status::OK } else { Status::CREATED };
    let body = (!is_minimal(request.call.headers)?).then(|| written.item.body());
    let reply = Reply::stored(status, etag_header(&written.item), body).charge(write_charge(&written));
    Ok(partition_response.add_headers(reply.committed_at(commit.quorum_at)))
}

/// The request charge of a write.
pub(super) fn write_charge(written: &WrittenItem) -> f64 {
    match &written.previous {
        Some(previous) => charge::replace(previous.size(), written.item.size(), written.terms_changed),
        None => charge::create(written.item.size(), written.terms_changed),
    }
}

/// The `etag` header of an item.
pub(super) fn etag_header(item: &Item) -> HeaderValue {
    let etag: Bytes = item.etag();
    HeaderValue::from_maybe_shared(etag).expect("an entity tag is printable ASCII")
}
