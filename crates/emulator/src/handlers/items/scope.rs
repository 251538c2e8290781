//! The scope of a feed or query: the part of the container that its headers select.

use protocol::headers as name;
use protocol::partition::{EffectivePartitionKey, EpkRange};
use protocol::status::{Status, SubStatus};

use super::partition_key;
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::ServiceError;
use engine::query::Scope;
use engine::store::ContainerSchema;

/// How a request selects its part of the container.
pub(super) enum Target {
    /// One logical partition or hierarchical prefix.
    Key(Scope),
    /// One physical partition, or a part of it.
    Range(Scope),
    /// All partitions: the request selects nothing.
    Everywhere(Scope),
}

impl Target {
    /// The selected part of the container.
    pub(super) fn scope(self) -> Scope {
        match self {
            Target::Key(scope) | Target::Range(scope) | Target::Everywhere(scope) => scope,
        }
    }
}

/// The part of the container that partition key, partition key range id and EPK range select together: each of
/// them narrows it. An error if the caller may not read all of it.
pub(super) fn target(request: &ItemRequest<'_>, schema: &ContainerSchema) -> Result<Target, ServiceError> {
    let key = key_range(request, schema)?;
    if let Some(scope) = range_scope(request)? {
        let within = match &key {
            Some(key) => scope.within.intersect(key).unwrap_or_else(|| nothing_of(&scope.within)),
            None => scope.within,
        };
        request.authorized.check_range(key.as_ref().unwrap_or(&within))?;
        return Ok(Target::Range(Scope { within, ..scope }));
    }
    let within = match (key, epk_range(request.call.headers)?) {
        (Some(key), Some(within)) => key.intersect(&within).unwrap_or_else(|| nothing_of(&key)),
        (Some(key), None) => return Ok(Target::Key(authorized_scope(request, key)?)),
        (None, Some(within)) => within,
        (None, None) => return Ok(Target::Everywhere(authorized_scope(request, EpkRange::FULL)?)),
    };
    Ok(Target::Range(authorized_scope(request, within)?))
}

/// The scope of an EPK range, if the caller may read all of it.
pub(super) fn authorized_scope(request: &ItemRequest<'_>, within: EpkRange) -> Result<Scope, ServiceError> {
    request.authorized.check_range(&within)?;
    Ok(Scope::of_range(&request.container.store, within, request.call.read_context))
}

/// The EPK range of the partition key in the headers, if there is one.
pub(super) fn key_range(
    request: &ItemRequest<'_>,
    schema: &ContainerSchema,
) -> Result<Option<EpkRange>, ServiceError> {
    let key = partition_key::of_request(request.call.headers, schema)?;
    Ok(key.map(|key| partition_key::range_of(&key, schema)))
}

/// The physical partition that the headers name, or the part of it that they name too; `None` if they name
/// none. Whether the caller may read it is not checked.
pub(super) fn range_scope(request: &ItemRequest<'_>) -> Result<Option<Scope>, ServiceError> {
    let headers = request.call.headers;
    let read_context = request.call.read_context;
    let Some(id) = RequestHeaders::text(headers.partition_key_range_id, name::PARTITION_KEY_RANGE_ID)? else {
        return Ok(None);
    };
    let within = epk_range(headers)?;
    // Some clients put the container in front: `{rid},{id}`.
    let id = id.rsplit(',').next().unwrap_or(id);
    let partition = request.container.store.partition(id).ok_or_else(|| range_gone(id))?;
    if partition.is_splitting(read_context.uptime) {
        return Err(range_splitting(id));
    }
    Ok(Some(Scope::of_partition(partition, within.as_ref(), read_context)))
}

/// The empty range at the beginning of `range`.
fn nothing_of(range: &EpkRange) -> EpkRange {
    EpkRange::new(range.min.clone(), range.min.clone())
}

fn epk_range(headers: &RequestHeaders<'_>) -> Result<Option<EpkRange>, ServiceError> {
    if let Some(kind) = RequestHeaders::text(headers.read_key_type, name::READ_KEY_TYPE)?
        && !kind.eq_ignore_ascii_case("EffectivePartitionKeyRange")
    {
        return Err(ServiceError::bad_request(format!(
            "The value '{kind}' of the header {} is not supported here; use EffectivePartitionKeyRange.",
            name::READ_KEY_TYPE
        )));
    }
    let start = epk_bound(headers, RangeBound::Start)?;
    let end = epk_bound(headers, RangeBound::End)?;
    if start.is_none() && end.is_none() {
        return Ok(None);
    }
    let (start, end) =
        (start.unwrap_or(EffectivePartitionKey::MIN), end.unwrap_or(EffectivePartitionKey::MAX));
    if start >= end.clone().min(EffectivePartitionKey::MAX) {
        return Err(ServiceError::bad_request(format!(
            "There is nothing between the values of the headers {} and {}.",
            name::START_EPK,
            name::END_EPK
        )));
    }
    Ok(Some(EpkRange::new(start, end)))
}

enum RangeBound {
    Start,
    End,
}

fn epk_bound(
    headers: &RequestHeaders<'_>,
    side: RangeBound,
) -> Result<Option<EffectivePartitionKey>, ServiceError> {
    let (value, header) = match side {
        RangeBound::Start => (headers.start_epk, name::START_EPK),
        RangeBound::End => (headers.end_epk, name::END_EPK),
    };
    let Some(hex) = RequestHeaders::text(value, header)? else { return Ok(None) };
    EffectivePartitionKey::from_hex(hex).map(Some).map_err(|error| {
        ServiceError::bad_request(format!("The header {header} with the value '{hex}' is invalid: {error}"))
    })
}

/// 410/1007: the range is being split or merged.
fn range_splitting(id: &str) -> ServiceError {
    let message = format!("The partition key range '{id}' is being split or merged; try again in a moment.");
    ServiceError::backend(Status::GONE, &message).with_sub_status(SubStatus::COMPLETING_SPLIT)
}

/// 410/1002: the client's routing map is out of date.
pub(super) fn range_gone(id: &str) -> ServiceError {
    ServiceError::backend(
        Status::GONE,
        &format!("The requested partition key range '{id}' does not exist or no longer does; read the ranges again."),
    )
    .with_sub_status(SubStatus::PARTITION_KEY_RANGE_GONE)
}
