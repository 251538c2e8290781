//! An answer on its way out.
//!
//! In: what a handler decided (status, body, the headers that belong to the operation). Out: the
//! HTTP response, with the headers every answer carries stamped in one place, [`Stamp::finish`].
//! A handler never writes those itself. `date` is left to the transport, which caches it.

use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use protocol::headers as name;
use protocol::lsn::Lsn;
use protocol::resource::SystemProperties;
use protocol::status::{Status, SubStatus};

use super::figures;
use crate::sight::Answerer;
use engine::disk::SyncSequence;
use engine::store::Progress;

/// Room for every header of a point read and some more, so that the map's index never grows.
const HEADERS_EXPECTED: usize = 32;

/// Holds a place in a map that will be copied: a copy has room for what it holds and no more.
const PLACE: HeaderValue = HeaderValue::from_static("");

/// What never changes, after places for what [`Stamp::finish`] always sets. Every answer starts as a
/// copy of it: copying a map costs less than hashing the same names again.
static CONSTANT: LazyLock<HeaderMap> = LazyLock::new(|| constant_headers(&[]));

/// What the answer to a write without the item starts as: places for what each such answer sets, what
/// never changes, and places for what [`Reply::served_by`] sets.
static STORED: LazyLock<HeaderMap> = LazyLock::new(|| stored_headers(&VERSION[..1]));

/// The same for an answer with the item.
static STORED_WITH_BODY: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = stored_headers(&VERSION[..1]);
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers
});

/// What [`Stamp::finish`] sets in every answer. First, so that its places are found at once.
static STAMPED: [HeaderName; 4] = [ACTIVITY_ID, REQUEST_CHARGE, REQUEST_DURATION, LAST_STATE_CHANGE];
/// What tells apart one version of an item from another. Next, because no two items share it.
static VERSION: [HeaderName; 3] = [http::header::ETAG, ITEM_LSN, ITEM_LOCAL_LSN];
/// What [`Reply::served_by`] sets: the same for all items of a partition until it is written to.
static SERVED: [HeaderName; 12] = [
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
];

fn constant_headers(version: &[HeaderName]) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
    for name in STAMPED.iter().chain(version) {
        headers.insert(name, PLACE);
    }
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
    headers.insert(GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
    headers.insert(SERVICE_VERSION, HeaderValue::from_static("version=2.14.0.0"));
    headers.insert(SCHEMA_VERSION, HeaderValue::from_static("1.16"));
    headers
}

fn stored_headers(version: &[HeaderName]) -> HeaderMap {
    let mut headers = constant_headers(version);
    for name in &SERVED {
        headers.insert(name, PLACE);
    }
    headers
}

/// Sets headers whose places follow each other. Where they do not, or have no places, they are found by
/// their names, which takes longer.
fn put<const N: usize>(
    headers: &mut HeaderMap,
    names: &'static [HeaderName; N],
    mut values: [HeaderValue; N],
) {
    let mut placed = 0;
    let places =
        headers.iter_mut().skip_while(|(name, _)| !names.first().is_some_and(|first| is(name, first)));
    for ((name, place), (wanted, value)) in places.zip(names.iter().zip(&mut values)) {
        if !is(name, wanted) {
            break;
        }
        std::mem::swap(place, value);
        placed += 1;
    }
    for (name, value) in names.iter().zip(values).skip(placed) {
        headers.insert(name, value);
    }
}

/// Whether two names are one. A place was made with the very name that is looked for, so what it is spelt
/// like need not be read.
fn is(name: &HeaderName, wanted: &HeaderName) -> bool {
    std::ptr::eq(name.as_str(), wanted.as_str()) || name == wanted
}

/// What a handler answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The HTTP status.
    pub(crate) status: Status,
    /// `x-ms-substatus`.
    pub(crate) sub_status: SubStatus,
    /// Request units.
    pub(crate) charge: f64,
    /// The headers that belong to this operation.
    pub(crate) headers: HeaderMap,
    /// The body, empty for 204, 304 and minimal answers.
    pub(crate) body: Bytes,
    /// The uptime at which most regions have what was written; zero for everything else.
    pub(crate) quorum_at: Duration,
    /// What has to be on the disk before it may be sent.
    pub(crate) ticket: Option<SyncSequence>,
    /// Who answered, for those who count.
    pub(crate) answerer: Option<Answerer>,
}

/// Which physical partition answered, for which container, and how far it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedBy<'a> {
    /// `x-ms-content-path`.
    pub(crate) content_path: &'a Bytes,
    /// `x-ms-alt-content-path`.
    pub(crate) alt_content_path: &'a Bytes,
    /// The range's id, 0 for the first.
    pub(crate) range_id: u32,
    /// The version of its session tokens.
    pub(crate) token_version: i64,
    /// Regions that read besides the one that writes.
    pub(crate) read_regions: usize,
    /// How far the copy was that answered.
    pub(crate) reach: &'a Progress,
}

impl ServedBy<'_> {
    /// `x-ms-session-token`.
    pub(crate) fn session_token(&self) -> HeaderValue {
        figures::session_token(self.range_id, self.token_version, self.reach)
    }
}

impl Reply {
    /// An empty answer.
    pub(crate) fn new(status: Status) -> Reply {
        Reply {
            status,
            sub_status: SubStatus::NONE,
            charge: 1.0,
            headers: CONSTANT.clone(),
            body: Bytes::new(),
            quorum_at: Duration::ZERO,
            ticket: None,
            answerer: None,
        }
    }

    /// Says when most regions have what was written.
    pub(crate) fn committed_at(mut self, quorum_at: Duration) -> Reply {
        self.quorum_at = quorum_at;
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

    /// 204.
    pub(crate) fn no_content() -> Reply {
        Reply::new(Status::NO_CONTENT)
    }

    /// 304.
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

    /// Sets the sub-status.
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

    /// The answer to a write that stored the version `etag` names: with the item, or without.
    pub(crate) fn stored(status: Status, etag: HeaderValue, body: Option<Bytes>) -> Reply {
        static ETAG: [HeaderName; 1] = [http::header::ETAG];
        let mut headers = if body.is_some() { STORED_WITH_BODY.clone() } else { STORED.clone() };
        put(&mut headers, &ETAG, [etag]);
        Reply {
            status,
            sub_status: SubStatus::NONE,
            charge: 1.0,
            headers,
            body: body.unwrap_or_default(),
            quorum_at: Duration::ZERO,
            ticket: None,
            answerer: None,
        }
    }

    /// Sets what tells apart one version of an item from another.
    pub(crate) fn item_version(mut self, etag: HeaderValue, lsn: Lsn) -> Reply {
        let lsn = figures::whole(lsn.0);
        put(&mut self.headers, &VERSION, [etag, lsn.clone(), lsn]);
        self
    }

    /// Sets what clients need to keep a session: who answered, for which container, and how far
    /// that partition is.
    pub(crate) fn served_by(mut self, served: ServedBy<'_>) -> Reply {
        let range_id = figures::whole(served.range_id.into());
        let lsn = figures::whole(served.reach.lsn.0);
        let container = ascii_value(served.alt_content_path);
        let values = [
            served.session_token(),
            range_id.clone(),
            range_id.clone(),
            range_id,
            // What a region shows is committed, however it is called.
            lsn.clone(),
            lsn.clone(),
            lsn.clone(),
            lsn.clone(),
            lsn,
            figures::whole(served.read_regions as u64),
            ascii_value(served.content_path),
            container.clone(),
        ];
        put(&mut self.headers, &SERVED, values);
        self.answerer = Some(Answerer { container, range: served.range_id });
        self
    }

    /// What 200 with an item starts as. Lacks the body and, in places already held for them, what
    /// [`Reply::item_version`] sets.
    pub(crate) fn item_template(served: ServedBy<'_>) -> Reply {
        let headers = stored_headers(&VERSION);
        Reply { headers, ..Reply::new(Status::OK) }.json(Bytes::new()).served_by(served)
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
const REQUEST_CHARGE: HeaderName = HeaderName::from_static(name::REQUEST_CHARGE);
const REQUEST_DURATION: HeaderName = HeaderName::from_static(name::REQUEST_DURATION_MS);
const SCHEMA_VERSION: HeaderName = HeaderName::from_static(name::SCHEMA_VERSION);
const SERVICE_VERSION: HeaderName = HeaderName::from_static(name::SERVICE_VERSION);
const SESSION_TOKEN: HeaderName = HeaderName::from_static(name::SESSION_TOKEN);
const SUB_STATUS: HeaderName = HeaderName::from_static(name::SUB_STATUS);

/// The headers every answer of one gateway carries.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    last_state_change: HeaderValue,
}

impl Stamp {
    /// `started_at` is reported as the last change of state.
    pub(crate) fn new(started_at: std::time::SystemTime) -> Stamp {
        let text = httpdate::fmt_http_date(started_at);
        let last_state_change = HeaderValue::try_from(text).expect("an HTTP date is plain ASCII");
        Stamp { last_state_change }
    }

    /// Turns `reply` into the response to send.
    pub(crate) fn finish(&self, reply: Reply, activity: HeaderValue, took: Duration) -> Response<Bytes> {
        let Reply { status, sub_status, charge, mut headers, body, .. } = reply;
        let state_change = self.last_state_change.clone();
        let values = [activity, figures::charge(charge), figures::milliseconds(took), state_change];
        put(&mut headers, &STAMPED, values);
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

/// A header value that shares text which is known to be visible ASCII.
pub(crate) fn ascii_value(text: &Bytes) -> HeaderValue {
    HeaderValue::from_maybe_shared(text.clone()).expect("control characters and non-ASCII were escaped")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> Progress {
        Progress { lsn: Lsn(42), ..Progress::default() }
    }

    fn served<'a>(path: &'a Bytes, reach: &'a Progress) -> ServedBy<'a> {
        ServedBy {
            content_path: path,
            alt_content_path: path,
            range_id: 3,
            token_version: -1,
            read_regions: 2,
            reach,
        }
    }

    /// Every header as `name: value`, sorted.
    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn headers_that_have_places_are_those_that_are_set_by_name() {
        let (path, etag) = (Bytes::from_static(b"path"), HeaderValue::from_static("\"1\""));
        let by_name = || Reply::new(Status::CREATED).etag(etag.clone());
        let body = Bytes::from_static(b"{}");
        let minimal = Reply::stored(Status::CREATED, etag.clone(), None).served_by(served(&path, &reach()));
        assert_eq!(shown(&minimal.headers), shown(&by_name().served_by(served(&path, &reach())).headers));
        let whole = Reply::stored(Status::CREATED, etag.clone(), Some(body.clone()))
            .served_by(served(&path, &reach()));
        assert_eq!(
            shown(&whole.headers),
            shown(&by_name().json(body).served_by(served(&path, &reach())).headers)
        );
    }

    #[test]
    fn every_place_of_a_point_read_is_filled() {
        let (path, etag) = (Bytes::from_static(b"path"), HeaderValue::from_static("\"1\""));
        let places = Reply::item_template(served(&path, &reach())).headers.len();
        let reply = Reply::item_template(served(&path, &reach())).item_version(etag, Lsn(41));
        let stamp = Stamp::new(std::time::SystemTime::UNIX_EPOCH);
        let response = stamp.finish(reply, HeaderValue::from_static("activity"), Duration::from_micros(117));
        let headers = response.headers();
        assert_eq!(headers.len(), places);
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
    fn headers_in_other_places_are_found_by_name() {
        let mut headers = HeaderMap::new();
        headers.insert(LSN, PLACE);
        headers.insert(SESSION_TOKEN, HeaderValue::from_static("old"));
        let value = |text| HeaderValue::from_static(text);
        static NAMES: [HeaderName; 3] = [LSN, ITEM_LSN, SESSION_TOKEN];
        put(&mut headers, &NAMES, [value("1"), value("2"), value("new")]);
        let lines = ["lsn: 1", "x-ms-item-lsn: 2", "x-ms-session-token: new"];
        assert_eq!(shown(&headers), lines);
    }
}
