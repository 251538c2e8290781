//! Partition key ranges, `GET …/pkranges`: all live ranges, or those that were added since the last read.
//!
//! Range ids only grow and are never reused, so the next unused id is a version of the whole list: a client
//! with version 3 lacks exactly the ranges from 3 upwards. Two SDKs poll with `a-im` and the last version until
//! they get a 304.

use bytes::Bytes;
use http::HeaderValue;
use protocol::headers as name;
use protocol::partition_range::{PartitionKeyRange, RangeId};

use super::feed::{Feed, invalid_continuation};
use crate::request::{Call, RequestHeaders, invalid_value};
use crate::response::{Reply, ServiceError};
use engine::catalog::ContainerEntry;
use engine::store;

/// Lists the partition key ranges of `container`.
pub(crate) fn list(call: &Call<'_>, container: &ContainerEntry) -> Result<Reply, ServiceError> {
    let partitions = container.store.partitions();
    let version = partitions.iter().map(|partition| partition.identity.id + 1).max().unwrap_or(0);
    let etag = HeaderValue::try_from(format!("\"{version}\"")).expect("digits fit a header");
    let seen = seen_version(call.headers)?;
    if seen.is_some_and(|seen| seen >= version) {
        return Ok(Reply::not_modified().etag(etag));
    }
    let start = parse_position(call.headers)?;
    let new = partitions.iter().filter(|partition| seen.is_none_or(|seen| partition.identity.id >= seen));
    let mut rest = new.skip(start);
    let limit = call.headers.page_size()?.limit(usize::MAX);
    let share = 1.0 / partitions.len().max(1) as f64;
    let page: Vec<Bytes> =
        rest.by_ref().take(limit).map(|partition| to_json(container, partition, share)).collect();
    let more = rest.next().is_some();
    let feed = Feed { parent: &container.system.rid, plural: "PartitionKeyRanges" };
    let reply = feed.reply(page.iter()).etag(etag).header(name::LSN, HeaderValue::from(version));
    Ok(if more {
        let next = HeaderValue::try_from(format!("{CONTINUATION_PREFIX}{}", start + page.len()));
        reply.header(name::CONTINUATION, next.expect("digits fit a header"))
    } else {
        reply
    })
}

/// Prefix of a continuation, which is a position in the list.
const CONTINUATION_PREFIX: &str = "+PKR:";

fn parse_position(headers: &RequestHeaders<'_>) -> Result<usize, ServiceError> {
    match RequestHeaders::text(headers.continuation, name::CONTINUATION)? {
        None => Ok(0),
        Some(token) => token
            .strip_prefix(CONTINUATION_PREFIX)
            .and_then(|position| position.parse().ok())
            .ok_or_else(|| invalid_continuation(token)),
    }
}

/// The version that a polling client has; `None` for a plain read.
fn seen_version(headers: &RequestHeaders<'_>) -> Result<Option<u32>, ServiceError> {
    let (Some(_), Some(etag)) = (headers.a_im, headers.if_none_match) else { return Ok(None) };
    let text = etag.to_str().unwrap_or_default().trim_matches('"');
    match text {
        "" => Ok(None),
        "*" => Ok(Some(u32::MAX)),
        digits => digits.parse().map(Some).map_err(|_| invalid_value(name::IF_NONE_MATCH, etag)),
    }
}

fn to_json(container: &ContainerEntry, partition: &store::Partition, share: f64) -> Bytes {
    let mut range =
        PartitionKeyRange::new(container.rid, RangeId(partition.identity.id), partition.range.clone());
    range.throughput_fraction = share;
    range.parents = partition.parents.iter().copied().map(RangeId).collect();
    range.lsn = partition.latest_head().lsn;
    range.system.etag.clone_from(&container.system.etag);
    range.system.ts = container.system.ts;
    serde_json::to_vec(&range).expect("strings and numbers always serialise").into()
}
