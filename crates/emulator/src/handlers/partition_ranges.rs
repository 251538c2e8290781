//! Partition key ranges, `GET …/pkranges`: all live ranges, or those that were added since the last read.
//!
//! Range ids only grow and are never reused, so the next unused id is a version of the whole list: a client
//! with version 3 lacks exactly the ranges from 3 upwards. While ranges are shown as splitting, the version also
//! has a number that changes with each such mark: `3.1`. Two SDKs poll with `a-im` and the last version until
//! they get a 304.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use bytes::Bytes;
use http::HeaderValue;
use protocol::headers as name;
use protocol::partition_range::{PartitionKeyRange, RangeId};

use super::feed::{Feed, invalid_continuation};
use crate::request::{Call, RequestHeaders, invalid_value};
use crate::response::{Reply, ServiceError};
use engine::catalog::ContainerEntry;
use engine::store::{self, SplitMark};

/// Lists the partition key ranges of `container`.
pub(crate) fn list(call: &Call<'_>, container: &ContainerEntry) -> Result<Reply, ServiceError> {
    let partitions = container.store.partitions();
    let version = partitions.iter().map(|partition| partition.identity.id + 1).max().unwrap_or(0);
    let current = ListVersion { next_id: version, marks: container.store.split_marks(call.uptime) };
    let etag = HeaderValue::try_from(format!("\"{current}\"")).expect("digits fit a header");
    let seen = seen_version(call.headers)?;
    if seen.is_some_and(|seen| seen.has_all_of(current)) {
        return Ok(Reply::not_modified().etag(etag));
    }
    let start = parse_position(call.headers)?;
    let new = partitions.iter().filter(|partition| match seen {
        None => true,
        // Which of the known ranges have another status now is not remembered, so all are listed.
        Some(seen) => seen.marks != current.marks || partition.identity.id >= seen.next_id,
    });
    let mut rest = new.skip(start);
    let limit = call.headers.page_size()?.limit(usize::MAX);
    let share = 1.0 / partitions.len().max(1) as f64;
    let page: Vec<Bytes> =
        rest.by_ref().take(limit).map(|partition| to_json(call, container, partition, share)).collect();
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

/// A version of the list of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ListVersion {
    /// The next unused range id.
    next_id: u32,
    /// A number for the ranges that are shown as splitting; zero if there are none.
    marks: u64,
}

impl ListVersion {
    /// Whether a client with this version misses nothing of `current`.
    fn has_all_of(self, current: ListVersion) -> bool {
        self.next_id >= current.next_id && (self.marks == current.marks || self.next_id == u32::MAX)
    }
}

impl fmt::Display for ListVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.marks {
            0 => self.next_id.fmt(f),
            marks => write!(f, "{}.{marks}", self.next_id),
        }
    }
}

impl FromStr for ListVersion {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<ListVersion, ParseIntError> {
        let (next_id, marks) = text.split_once('.').unwrap_or((text, "0"));
        Ok(ListVersion { next_id: next_id.parse()?, marks: marks.parse()? })
    }
}

/// The version that a polling client has; `None` for a plain read.
fn seen_version(headers: &RequestHeaders<'_>) -> Result<Option<ListVersion>, ServiceError> {
    let (Some(_), Some(etag)) = (headers.a_im, headers.if_none_match) else { return Ok(None) };
    let text = etag.to_str().unwrap_or_default().trim_matches('"');
    match text {
        "" => Ok(None),
        "*" => Ok(Some(ListVersion { next_id: u32::MAX, marks: 0 })),
        version => version.parse().map(Some).map_err(|_| invalid_value(name::IF_NONE_MATCH, etag)),
    }
}

fn to_json(call: &Call<'_>, container: &ContainerEntry, partition: &store::Partition, share: f64) -> Bytes {
    let mut range =
        PartitionKeyRange::new(container.rid, RangeId(partition.identity.id), partition.range.clone());
    if partition.has_split_mark(SplitMark::Announced, call.uptime) {
        "splitting".clone_into(&mut range.status);
    }
    range.throughput_fraction = share;
    range.parents = partition.parents.iter().copied().map(RangeId).collect();
    range.lsn = partition.latest_head().lsn;
    range.system.etag.clone_from(&container.system.etag);
    range.system.ts = container.system.ts;
    serde_json::to_vec(&range).expect("strings and numbers always serialise").into()
}
