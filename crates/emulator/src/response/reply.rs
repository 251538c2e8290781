//! The reply of a handler, and its conversion into an HTTP response.
//!
//! Input: status, body and the headers of the operation. Output: the HTTP response, with the headers of every
//! response added in one place, [`CommonHeaders::to_response`]. Handlers never set those. `date` is left to
//! hyper, which caches it.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use protocol::headers as name;
use protocol::lsn::Lsn;
use protocol::resource::SystemProperties;
use protocol::status::{Status, SubStatus};

use super::header_numbers;
use crate::request_log::ServingPartition;
use engine::disk::SyncSequence;
use engine::store::Progress;

/// Capacity for every header of a point read and some more, so that the map's index never grows.
const HEADERS_EXPECTED: usize = 48;

/// A value to be replaced, in a map that will be cloned: a clone has capacity for its entries and no more.
const PLACEHOLDER: HeaderValue = HeaderValue::from_static("");

/// The headers that never change, after placeholders for those that [`CommonHeaders::to_response`] sets.
/// Every reply starts as a clone of it: cloning a map costs less than hashing the same names again.
static COMMON_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| common_headers(&[]));

/// The initial headers of a reply to a write without the item: the common headers, and placeholders for the
/// etag and for what [`Reply::partition_headers`] sets.
static WRITE_HEADERS: LazyLock<HeaderMap> = LazyLock::new(|| write_headers(&VERSION_NAMES[..1]));

/// The initial headers of a reply to a write with the item.
static WRITE_HEADERS_WITH_BODY: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = write_headers(&VERSION_NAMES[..1]);
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
});

/// The headers that [`CommonHeaders::to_response`] sets. First, so that their placeholders are found at once.
static COMMON_NAMES: [HeaderName; 4] = [ACTIVITY_ID, REQUEST_CHARGE, REQUEST_DURATION, LAST_STATE_CHANGE];
/// The headers that identify a version of an item. Next, because every item has its own.
static VERSION_NAMES: [HeaderName; 3] = [http::header::ETAG, ITEM_LSN, ITEM_LOCAL_LSN];
/// The headers that [`Reply::partition_headers`] sets: equal for all items of a partition until a write.
static PARTITION_NAMES: [HeaderName; 14] = [
    SESSION_TOKEN,
    PARTITION_KEY_RANGE_ID,
    INTERNAL_PARTITION_ID,
    PHYSICAL_PARTITION_ID,
    LOCAL_LSN,
    GLOBAL_COMMITTED_LSN,
    QUORUM_ACKED_LSN,
    QUORUM_ACKED_LOCAL_LSN,
    LSN,
    NUMBER_OF_READ_REGIONS,
    CONTENT_PATH,
    ALT_CONTENT_PATH,
    RESOURCE_QUOTA,
    RESOURCE_USAGE,
];

fn common_headers(version: &[HeaderName]) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
    for name in COMMON_NAMES.iter().chain(version) {
        headers.insert(name, PLACEHOLDER);
    }
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
    headers.insert(GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
    headers.insert(SERVICE_VERSION, HeaderValue::from_static("version=2.14.0.0"));
    headers.insert(SCHEMA_VERSION, HeaderValue::from_static("1.16"));
    headers
}

fn write_headers(version: &[HeaderName]) -> HeaderMap {
    let mut headers = common_headers(version);
    for name in &PARTITION_NAMES {
        headers.insert(name, PLACEHOLDER);
    }
    headers
}

/// Sets headers whose placeholders follow each other. Where they do not, or are missing, headers are inserted
/// by name, which takes longer.
fn fill_placeholders<const N: usize>(
    headers: &mut HeaderMap,
    names: &'static [HeaderName; N],
    mut values: [HeaderValue; N],
) {
    let mut filled = 0;
    let slots = headers
        .iter_mut()
        .skip_while(|(name, _)| !names.first().is_some_and(|first| is_same_name(name, first)));
    for ((name, slot), (wanted, value)) in slots.zip(names.iter().zip(&mut values)) {
        if !is_same_name(name, wanted) {
            break;
        }
        std::mem::swap(slot, value);
        filled += 1;
    }
    for (name, value) in names.iter().zip(values).skip(filled) {
        headers.insert(name, value);
    }
}

/// Whether two names are equal. A placeholder was inserted under the very constant that is looked for, so
/// comparing pointers usually suffices.
fn is_same_name(name: &HeaderName, wanted: &HeaderName) -> bool {
    std::ptr::eq(name.as_str(), wanted.as_str()) || name == wanted
}

/// The outcome of a handler: status, headers and body.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The HTTP status of the response.
    pub(crate) status: Status,
    /// The value of `x-ms-substatus`.
    pub(crate) sub_status: SubStatus,
    /// The request charge, in request units.
    pub(crate) charge: f64,
    /// The headers of this operation.
    pub(crate) headers: HeaderMap,
    /// The body, empty for 204, 304 and minimal responses.
    pub(crate) body: Bytes,
    /// The uptime at which a quorum of regions has the write; zero for everything else.
    pub(crate) quorum_at: Duration,
    /// The write to disk that has to be durable before the response is sent.
    pub(crate) sync_sequence: Option<SyncSequence>,
    /// The partition that served the request, for the request log.
    pub(crate) partition: Option<ServingPartition>,
}

/// The physical partition that served a request, as response headers state it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartitionHeaders<'a> {
    /// The value of `x-ms-content-path`: the container by `_rid`.
    pub(crate) content_path: &'a Bytes,
    /// The value of `x-ms-alt-content-path`: the container by name.
    pub(crate) alt_content_path: &'a Bytes,
    /// The id of the partition key range, 0 for the first.
    pub(crate) range_id: u32,
    /// The version of its session tokens.
    pub(crate) token_version: i64,
    /// Number of read regions besides the write region.
    pub(crate) read_regions: usize,
    /// The progress of the replica that served the request.
    pub(crate) progress: &'a Progress,
    /// How much of its quota is used.
    pub(crate) usage: QuotaUsage,
}

/// The quota of a container, in kilobytes; clients compare with this number.
pub(crate) const QUOTA: &str =
    "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";

/// How much of its quota a container or a partition uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotaUsage {
    /// The number of items.
    pub(crate) items: u64,
    /// The bytes of all items.
    pub(crate) bytes: u64,
}

impl QuotaUsage {
    /// The value of `x-ms-resource-usage`.
    pub(crate) fn to_header(self) -> HeaderValue {
        let QuotaUsage { items, bytes } = self;
        let kilobytes = bytes.div_ceil(1024);
        let text = format!(
            "documentSize=0;documentsSize={kilobytes};documentsCount={items};collectionSize={kilobytes};"
        );
        HeaderValue::try_from(text).expect("digits and words fit a header")
    }
}

impl PartitionHeaders<'_> {
    /// The value of `x-ms-session-token`.
    pub(crate) fn session_token(&self) -> HeaderValue {
        header_numbers::session_token(self.range_id, self.token_version, self.progress)
    }
}

impl Reply {
    /// A reply without a body.
    pub(crate) fn new(status: Status) -> Reply {
        Reply {
            status,
            sub_status: SubStatus::NONE,
            charge: 1.0,
            headers: COMMON_HEADERS.clone(),
            body: Bytes::new(),
            quorum_at: Duration::ZERO,
            sync_sequence: None,
            partition: None,
        }
    }

    /// Sets when a quorum of regions has the write, and states the replicas of its partition in this region.
    pub(crate) fn committed_at(mut self, quorum_at: Duration) -> Reply {
        self.quorum_at = quorum_at;
        self.headers.insert(WRITE_QUORUM, HeaderValue::from_static("3"));
        self.headers.insert(REPLICA_SET_SIZE, HeaderValue::from_static("4"));
        self
    }

    /// Sets the parent of a resource, by `_rid` and by name.
    pub(crate) fn parent(mut self, rid: HeaderValue, path: HeaderValue) -> Reply {
        self.headers.insert(CONTENT_PATH, rid);
        self.headers.insert(ALT_CONTENT_PATH, path);
        self
    }

    /// 200 with a JSON body.
    pub(crate) fn ok(body: Bytes) -> Reply {
        Reply::new(Status::OK).json(body)
    }

    /// 201 with a JSON body.
    pub(crate) fn created(body: Bytes) -> Reply {
        Reply::new(Status::CREATED).json(body)
    }

    /// 204 without a body.
    pub(crate) fn no_content() -> Reply {
        Reply::new(Status::NO_CONTENT)
    }

    /// 304 without a body.
    pub(crate) fn not_modified() -> Reply {
        Reply::new(Status::NOT_MODIFIED)
    }

    /// Sets a JSON body.
    pub(crate) fn json(mut self, body: Bytes) -> Reply {
        self.headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.body = body;
        self
    }

    /// Sets the request charge.
    pub(crate) fn charge(mut self, request_units: f64) -> Reply {
        self.charge = request_units;
        self
    }

    /// Sets the sub-status of the reply.
    pub(crate) fn sub_status(mut self, sub_status: SubStatus) -> Reply {
        self.sub_status = sub_status;
        self
    }

    /// Sets a header by its name, one of `protocol::headers`.
    pub(crate) fn header(mut self, name: &'static str, value: HeaderValue) -> Reply {
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    /// Sets the `etag` header to the version of a resource.
    pub(crate) fn version(self, system: &SystemProperties) -> Reply {
        self.etag(
            HeaderValue::try_from(system.etag.as_str()).expect("etags are hexadecimal digits and dashes"),
        )
    }

    /// Sets the `etag` header; `etag` already contains its quotes.
    pub(crate) fn etag(mut self, etag: HeaderValue) -> Reply {
        self.headers.insert(http::header::ETAG, etag);
        self
    }

    /// The reply to a write that stored the version `etag`: with the item, or without.
    pub(crate) fn stored(status: Status, etag: HeaderValue, body: Option<Bytes>) -> Reply {
        static ETAG: [HeaderName; 1] = [http::header::ETAG];
        let mut headers =
            if body.is_some() { WRITE_HEADERS_WITH_BODY.clone() } else { WRITE_HEADERS.clone() };
        fill_placeholders(&mut headers, &ETAG, [etag]);
        Reply {
            status,
            sub_status: SubStatus::NONE,
            charge: 1.0,
            headers,
            body: body.unwrap_or_default(),
            quorum_at: Duration::ZERO,
            sync_sequence: None,
            partition: None,
        }
    }

    /// Sets the headers that identify a version of an item.
    pub(crate) fn item_version(mut self, etag: HeaderValue, lsn: Lsn) -> Reply {
        let lsn = header_numbers::integer(lsn.0);
        fill_placeholders(&mut self.headers, &VERSION_NAMES, [etag, lsn.clone(), lsn]);
        self
    }

    /// Sets the headers that clients need for their sessions: the partition, its container and its progress.
    pub(crate) fn partition_headers(mut self, partition: PartitionHeaders<'_>) -> Reply {
        let range_id = header_numbers::integer(partition.range_id.into());
        let lsn = header_numbers::integer(partition.progress.lsn.0);
        let container = ascii_value(partition.alt_content_path);
        let values = [
            partition.session_token(),
            range_id.clone(),
            range_id.clone(),
            range_id,
            // Whatever a region returns is committed, so all these LSNs are equal.
            lsn.clone(),
            lsn.clone(),
            lsn.clone(),
            lsn.clone(),
            lsn,
            header_numbers::integer(partition.read_regions as u64),
            ascii_value(partition.content_path),
            container.clone(),
            HeaderValue::from_static(QUOTA),
            partition.usage.to_header(),
        ];
        fill_placeholders(&mut self.headers, &PARTITION_NAMES, values);
        self.partition = Some(ServingPartition { container, range: partition.range_id });
        self
    }

    /// The template of a 200 with an item. It lacks the body, and has placeholders for what
    /// [`Reply::item_version`] sets.
    pub(crate) fn item_template(partition: PartitionHeaders<'_>) -> Reply {
        let headers = write_headers(&VERSION_NAMES);
        Reply { headers, ..Reply::new(Status::OK) }.json(Bytes::new()).partition_headers(partition)
    }
}

const ACTIVITY_ID: HeaderName = HeaderName::from_static(name::ACTIVITY_ID);
const ALT_CONTENT_PATH: HeaderName = HeaderName::from_static(name::ALT_CONTENT_PATH);
const CONTENT_PATH: HeaderName = HeaderName::from_static(name::CONTENT_PATH);
const GATEWAY_VERSION: HeaderName = HeaderName::from_static(name::GATEWAY_VERSION);
const INTERNAL_PARTITION_ID: HeaderName = HeaderName::from_static(name::INTERNAL_PARTITION_ID);
const ITEM_LSN: HeaderName = HeaderName::from_static(name::ITEM_LSN);
const ITEM_LOCAL_LSN: HeaderName = HeaderName::from_static(name::ITEM_LOCAL_LSN);
const LAST_STATE_CHANGE: HeaderName = HeaderName::from_static(name::LAST_STATE_CHANGE_UTC);
const GLOBAL_COMMITTED_LSN: HeaderName = HeaderName::from_static(name::GLOBAL_COMMITTED_LSN);
const LOCAL_LSN: HeaderName = HeaderName::from_static(name::LOCAL_LSN);
const NUMBER_OF_READ_REGIONS: HeaderName = HeaderName::from_static(name::NUMBER_OF_READ_REGIONS);
const PHYSICAL_PARTITION_ID: HeaderName = HeaderName::from_static(name::PHYSICAL_PARTITION_ID);
const QUORUM_ACKED_LSN: HeaderName = HeaderName::from_static(name::QUORUM_ACKED_LSN);
const QUORUM_ACKED_LOCAL_LSN: HeaderName = HeaderName::from_static(name::QUORUM_ACKED_LOCAL_LSN);
const LSN: HeaderName = HeaderName::from_static(name::LSN);
const PARTITION_KEY_RANGE_ID: HeaderName = HeaderName::from_static(name::PARTITION_KEY_RANGE_ID);
const REPLICA_SET_SIZE: HeaderName = HeaderName::from_static(name::CURRENT_REPLICA_SET_SIZE);
const RESOURCE_QUOTA: HeaderName = HeaderName::from_static(name::RESOURCE_QUOTA);
const RESOURCE_USAGE: HeaderName = HeaderName::from_static(name::RESOURCE_USAGE);
const WRITE_QUORUM: HeaderName = HeaderName::from_static(name::CURRENT_WRITE_QUORUM);
const REQUEST_CHARGE: HeaderName = HeaderName::from_static(name::REQUEST_CHARGE);
const REQUEST_DURATION: HeaderName = HeaderName::from_static(name::REQUEST_DURATION_MS);
const SCHEMA_VERSION: HeaderName = HeaderName::from_static(name::SCHEMA_VERSION);
const SERVICE_VERSION: HeaderName = HeaderName::from_static(name::SERVICE_VERSION);
const SESSION_TOKEN: HeaderName = HeaderName::from_static(name::SESSION_TOKEN);
const SUB_STATUS: HeaderName = HeaderName::from_static(name::SUB_STATUS);

/// The headers that every response of one gateway has.
#[derive(Clone, Debug)]
pub(crate) struct CommonHeaders {
    last_state_change: HeaderValue,
}

impl CommonHeaders {
    /// Makes the headers of a gateway; `started_at` is reported as the last change of state.
    pub(crate) fn new(started_at: std::time::SystemTime) -> CommonHeaders {
        let text = httpdate::fmt_http_date(started_at);
        let last_state_change = HeaderValue::try_from(text).expect("an HTTP date is plain ASCII");
        CommonHeaders { last_state_change }
    }

    /// Converts `reply` into the response to send.
    pub(crate) fn to_response(&self, reply: Reply, activity: HeaderValue, took: Duration) -> Response<Bytes> {
        let Reply { status, sub_status, charge, mut headers, body, .. } = reply;
        let state_change = self.last_state_change.clone();
        let values =
            [activity, header_numbers::charge(charge), header_numbers::milliseconds(took), state_change];
        fill_placeholders(&mut headers, &COMMON_NAMES, values);
        if !sub_status.is_none() {
            headers.insert(SUB_STATUS, HeaderValue::from(sub_status.0));
        }
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(status.0).expect("named statuses are valid HTTP statuses");
        *response.headers_mut() = headers;
        response
    }
}

/// A header value that shares text known to be visible ASCII.
pub(crate) fn ascii_value(text: &Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text.clone()).expect("control characters and non-ASCII were escaped")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        Progress { lsn: Lsn(42), ..Progress::default() }
    }

    fn partition_headers<'a>(path: &'a Bytes, progress: &'a Progress) -> PartitionHeaders<'a> {
        PartitionHeaders {
            content_path: path,
            alt_content_path: path,
            range_id: 3,
            token_version: -1,
            read_regions: 2,
            progress,
            usage: QuotaUsage::default(),
        }
    }

    /// Formats every header as `name: value`, sorted.
    fn sorted_lines(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn headers_set_in_placeholders_equal_those_set_by_name() {
        let (path, etag) = (Bytes::from_static(b"path"), HeaderValue::from_static("\"1\""));
        let by_name = || Reply::new(Status::CREATED).etag(etag.clone());
        let body = Bytes::from_static(b"{}");
        let minimal = Reply::stored(Status::CREATED, etag.clone(), None)
            .partition_headers(partition_headers(&path, &progress()));
        assert_eq!(
            sorted_lines(&minimal.headers),
            sorted_lines(&by_name().partition_headers(partition_headers(&path, &progress())).headers)
        );
        let whole = Reply::stored(Status::CREATED, etag.clone(), Some(body.clone()))
            .partition_headers(partition_headers(&path, &progress()));
        assert_eq!(
            sorted_lines(&whole.headers),
            sorted_lines(
                &by_name().json(body).partition_headers(partition_headers(&path, &progress())).headers
            )
        );
    }

    #[test]
    fn every_placeholder_of_a_point_read_is_filled() {
        let (path, etag) = (Bytes::from_static(b"path"), HeaderValue::from_static("\"1\""));
        let slots = Reply::item_template(partition_headers(&path, &progress())).headers.len();
        let reply = Reply::item_template(partition_headers(&path, &progress())).item_version(etag, Lsn(41));
        let common_headers = CommonHeaders::new(std::time::SystemTime::UNIX_EPOCH);
        let response = common_headers.to_response(
            reply,
            HeaderValue::from_static("activity"),
            Duration::from_micros(117),
        );
        let headers = response.headers();
        assert_eq!(headers.len(), slots);
        assert!(headers.values().all(|value| !value.is_empty()), "{headers:?}");
        for (name, value) in [
            (name::SESSION_TOKEN, "3:-1#42"),
            (name::LSN, "42"),
            (name::ITEM_LSN, "41"),
            (name::PARTITION_KEY_RANGE_ID, "3"),
            (name::NUMBER_OF_READ_REGIONS, "2"),
            (name::REQUEST_DURATION_MS, "0.117"),
            ("etag", "\"1\""),
            ("content-type", "application/json"),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
    }

    #[test]
    fn headers_in_another_order_are_found_by_name() {
        let mut headers = HeaderMap::new();
        headers.insert(LSN, PLACEHOLDER);
        headers.insert(SESSION_TOKEN, HeaderValue::from_static("old"));
        let value = |text| HeaderValue::from_static(text);
        static NAMES: [HeaderName; 3] = [LSN, ITEM_LSN, SESSION_TOKEN];
        fill_placeholders(&mut headers, &NAMES, [value("1"), value("2"), value("new")]);
        let lines = ["lsn: 1", "x-ms-item-lsn: 2", "x-ms-session-token: new"];
        assert_eq!(sorted_lines(&headers), lines);
    }
}
