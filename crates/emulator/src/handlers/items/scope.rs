//! The scope of a feed or query: the part of the container that its headers select.

use std::fmt::Display;

use protocol::headers as name;
use protocol::partition::{EffectivePartitionKey, EpkRange};
use protocol::status::{Status, SubStatus};

use super::partition_key;
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::ServiceError;
use engine::query::Scope;
use engine::store::{ContainerSchema, SplitMark};

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

/// Parses partition key, partition key range id and EPK range.
pub(super) fn target(request: &ItemRequest<'_>, schema: &ContainerSchema) -> Result<Target, ServiceError> {
    let headers = request.call.headers;
    let store = &request.container.store;
    let read_context = request.call.read_context;
    let within = epk_range(headers)?;
    if let Some(id) = RequestHeaders::text(headers.partition_key_range_id, name::PARTITION_KEY_RANGE_ID)? {
        // Some clients put the container in front: `{rid},{id}`.
        let id = id.rsplit(',').next().unwrap_or(id);
        let partition = store.partition(id).ok_or_else(|| range_gone(id))?;
        if partition.has_split_mark(SplitMark::Locked, read_context.uptime) {
            return Err(range_splitting(&id));
        }
        return Ok(Target::Range(Scope::of_partition(partition, within.as_ref(), read_context)));
    }
    if let Some(key) = partition_key::of_request(headers, schema)? {
        let range = partition_key::range_of(&key, schema);
        if let Some(id) = store.swapping_range(&range, read_context.uptime) {
            return Err(range_splitting(&id));
        }
        return Ok(Target::Key(Scope::of_range(store, range, read_context)));
    }
    Ok(match within {
        Some(within) => Target::Range(Scope::of_range(store, within, read_context)),
        None => Target::Everywhere(Scope::of_range(store, EpkRange::FULL, read_context)),
    })
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
pub(super) fn range_splitting(id: &dyn Display) -> ServiceError {
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
