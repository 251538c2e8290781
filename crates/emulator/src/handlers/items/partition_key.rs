//! The partition key of a request: parsing, and the logical partition that it addresses.

use std::borrow::Cow;

use protocol::container::KeyCompleteness;
use protocol::headers as name;
use protocol::partition::{
    EffectivePartitionKey, EpkRange, PartitionKey, PartitionKeyComponent, PartitionKeyHeader, effective_key,
    prefix_range,
};
use protocol::resource_id::ItemRid;
use protocol::status::{Status, SubStatus};

use super::scope::range_splitting;
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::ServiceError;
use engine::items::Ordinal;
use engine::store::{ContainerSchema, Document, PartitionView, SplitMark};

/// The service's message for a key that does not match the document or the definition.
const MISMATCH: &str = "Partition key provided either doesn't correspond to definition in the collection or doesn't \
                        match partition key field values specified in the document.";

/// Characters of an item's `_rid`: sixteen bytes in base64.
const RID_LENGTH: usize = 24;

/// The logical partition a point operation addresses.
pub(super) struct PartitionAddress {
    pub(super) epk: EffectivePartitionKey,
    pub(super) partition: PartitionView,
}

impl PartitionAddress {
    /// The logical partition with this effective partition key, if the caller may use it; 410/1007 while its range is
    /// being swapped.
    pub(super) fn at(
        request: &ItemRequest<'_>,
        epk: EffectivePartitionKey,
    ) -> Result<PartitionAddress, ServiceError> {
        request.authorized.check_key(&epk)?;
        let partition = request.container.store.partition_of(&epk);
        if partition.has_split_mark(SplitMark::Swapping, request.call.uptime) {
            return Err(range_splitting(&partition.identity.id));
        }
        let partition = PartitionView::new(partition, request.call.read_context);
        Ok(PartitionAddress { epk, partition })
    }

    /// The id of the item in a path, which may contain its `_rid` instead.
    pub(super) fn item_id<'a>(&self, request: &ItemRequest<'_>, named: &'a str) -> Cow<'a, str> {
        if named.len() != RID_LENGTH || self.partition.head().get(&self.epk, named).is_some() {
            return Cow::Borrowed(named);
        }
        let state = self.partition.snapshot();
        let item = named
            .parse::<ItemRid>()
            .ok()
            .filter(|rid| rid.container == request.container.rid)
            .and_then(|rid| state.item(Ordinal(rid.ordinal)))
            .filter(|item| item.epk == self.epk);
        item.map_or(Cow::Borrowed(named), |item| Cow::Owned(item.id.to_string()))
    }
}

/// The partition key in the headers of a request.
pub(super) fn of_request(
    headers: &RequestHeaders<'_>,
    schema: &ContainerSchema,
) -> Result<Option<PartitionKey>, ServiceError> {
    match RequestHeaders::text(headers.partition_key, name::PARTITION_KEY)? {
        // Clients of the time when containers had no partition keys send no header.
        None if schema.partition_key.system_key && headers.partition_key_range_id.is_none() => {
            Ok(Some(PartitionKey::single(PartitionKeyComponent::Undefined)))
        }
        None => Ok(None),
        Some(text) => parse(text, schema),
    }
}

/// Parses the header form; `None` is the empty key.
pub(super) fn parse(text: &str, schema: &ContainerSchema) -> Result<Option<PartitionKey>, ServiceError> {
    let header = PartitionKey::parse_header(text)
        .map_err(|error| ServiceError::bad_request(format!("Partition key {text} is invalid: {error}")))?;
    match header {
        // Containers without a partition key have one value for all their items.
        PartitionKeyHeader::Empty if schema.partition_key.system_key => {
            Ok(Some(PartitionKey::single(PartitionKeyComponent::Undefined)))
        }
        PartitionKeyHeader::Empty => Ok(None),
        PartitionKeyHeader::Key(key) => match schema.partition_key.completeness(&key) {
            KeyCompleteness::TooLong => Err(ServiceError::bad_request(format!(
                "The partition key {text} has {} components; the container has {} partition key paths.",
                key.components().len(),
                schema.partition_key.paths.len()
            ))),
            KeyCompleteness::Complete | KeyCompleteness::Prefix => Ok(Some(key)),
        },
    }
}

/// The EPK range of a key: a point when it is complete, a range when it is a prefix.
pub(super) fn range_of(key: &PartitionKey, schema: &ContainerSchema) -> EpkRange {
    match schema.partition_key.completeness(key) {
        KeyCompleteness::Prefix => prefix_range(&schema.partition_key, key),
        KeyCompleteness::Complete | KeyCompleteness::TooLong => {
            EpkRange::point(effective_key(&schema.partition_key, key))
        }
    }
}

/// The logical partition of a point operation, which needs a complete key, once it is admitted there.
pub(super) fn address(
    request: &ItemRequest<'_>,
    schema: &ContainerSchema,
) -> Result<PartitionAddress, ServiceError> {
    let Some(key) = of_request(request.call.headers, schema)? else {
        // Of a caller with rights to some partition keys only, this is a request for all of them.
        request.authorized.check_range(&EpkRange::FULL)?;
        return Err(ServiceError::bad_request(format!(
            "PartitionKey extracted from document doesn't match the one specified in the header: \
             this operation needs the header {}",
            name::PARTITION_KEY
        )));
    };
    let address = address_of(request, schema, &key)?;
    request.admit(&address.partition)?;
    Ok(address)
}

/// The logical partition of a key that is already parsed.
pub(super) fn address_of(
    request: &ItemRequest<'_>,
    schema: &ContainerSchema,
    key: &PartitionKey,
) -> Result<PartitionAddress, ServiceError> {
    if schema.partition_key.completeness(key) != KeyCompleteness::Complete {
        return Err(mismatch());
    }
    PartitionAddress::at(request, effective_key(&schema.partition_key, key))
}

/// Rejects a document whose partition key is not the one in the header.
pub(super) fn check_document(document: &Document, address: &PartitionAddress) -> Result<(), ServiceError> {
    if document.epk == address.epk { Ok(()) } else { Err(mismatch()) }
}

/// 400/1001: the key does not match the document or the definition.
pub(super) fn mismatch() -> ServiceError {
    ServiceError::backend(Status::BAD_REQUEST, MISMATCH).with_sub_status(SubStatus::PARTITION_KEY_MISMATCH)
}
