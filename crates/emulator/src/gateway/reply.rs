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
use crate::store::Reach;

/// Room for every header of a point read and some more, so that the map's index never grows.
const HEADERS_EXPECTED: usize = 32;

/// Holds a place in a map that will be copied: a copy has room for what it holds and no more.
const PLACE: HeaderValue = HeaderValue::from_static("");

/// What never changes, with places for what [`Stamp::finish`] always adds. Every answer starts as a
/// copy of it: copying a map costs less than hashing the same names again.
static CONSTANT: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
    headers.insert(GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
    headers.insert(SERVICE_VERSION, HeaderValue::from_static("version=2.14.0.0"));
    headers.insert(SCHEMA_VERSION, HeaderValue::from_static("1.16"));
    for name in [ACTIVITY_ID, REQUEST_CHARGE, REQUEST_DURATION, LAST_STATE_CHANGE] {
        headers.insert(name, PLACE);
    }
    headers
});

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
}

/// Which physical partition answered, for which container, and how far it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedBy<'a> {
    /// `x-ms-content-path`.
    pub(crate) content_path: &'a HeaderValue,
    /// `x-ms-alt-content-path`.
    pub(crate) alt_content_path: &'a HeaderValue,
    /// The range's id, 0 for the first.
    pub(crate) range_id: u32,
    /// The version of its session tokens.
    pub(crate) token_version: i64,
    /// Regions that read besides the one that writes.
    pub(crate) read_regions: usize,
    /// How far the copy was that answered.
    pub(crate) reach: &'a Reach,
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

    /// Sets what tells apart one version of an item from another.
    ///
    /// Setting both at once keeps the places [`Reply::item_template`] holds for them together.
    pub(crate) fn item_version(mut self, etag: HeaderValue, lsn: Lsn) -> Reply {
        self.headers.insert(http::header::ETAG, etag);
        let lsn = figures::whole(lsn.0);
        self.headers.insert(ITEM_LOCAL_LSN, lsn.clone());
        self.headers.insert(ITEM_LSN, lsn);
        self
    }

    /// Sets what clients need to keep a session: who answered, for which container, and how far
    /// that partition is.
    pub(crate) fn served_by(mut self, served: ServedBy<'_>) -> Reply {
        let headers = &mut self.headers;
        headers.insert(SESSION_TOKEN, served.session_token());
        let range_id = figures::whole(served.range_id.into());
        headers.insert(PARTITION_KEY_RANGE_ID, range_id.clone());
        headers.insert(INTERNAL_PARTITION_ID, range_id.clone());
        headers.insert(PHYSICAL_PARTITION_ID, range_id);
        // What a region shows is committed.
        let lsn = figures::whole(served.reach.lsn.0);
        for name in [LOCAL_LSN, GLOBAL_COMMITTED_LSN, QUORUM_ACKED_LSN, QUORUM_ACKED_LOCAL_LSN] {
            headers.insert(name, lsn.clone());
        }
        headers.insert(LSN, lsn);
        headers.insert(NUMBER_OF_READ_REGIONS, figures::whole(served.read_regions as u64));
        headers.insert(CONTENT_PATH, served.content_path.clone());
        headers.insert(ALT_CONTENT_PATH, served.alt_content_path.clone());
        self
    }

    /// What 200 with an item starts as. Lacks the body and, in places already held for them, what
    /// [`Reply::item_version`] sets.
    pub(crate) fn item_template(served: ServedBy<'_>) -> Reply {
        let mut template = Reply::ok(Bytes::new()).served_by(served);
        template.headers.insert(http::header::ETAG, PLACE);
        template.headers.insert(ITEM_LSN, PLACE);
        template.headers.insert(ITEM_LOCAL_LSN, PLACE);
        template
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
        headers.insert(ACTIVITY_ID, activity);
        headers.insert(REQUEST_CHARGE, figures::charge(charge));
        headers.insert(REQUEST_DURATION, figures::milliseconds(took));
        headers.insert(LAST_STATE_CHANGE, self.last_state_change.clone());
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
