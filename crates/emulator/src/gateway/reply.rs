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
use protocol::resource::SystemProperties;
use protocol::status::{Status, SubStatus};

use crate::catalog::ContainerEntry;

/// Room for every header of a point read, so that the map is allocated once.
const HEADERS_EXPECTED: usize = 24;

/// What never changes. Every answer starts as a copy of it: copying a map costs less than hashing the
/// same names again.
static CONSTANT: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-cache"));
    headers.insert(GATEWAY_VERSION, HeaderValue::from_static("version=2.14.0"));
    headers.insert(SERVICE_VERSION, HeaderValue::from_static("version=2.14.0.0"));
    headers.insert(SCHEMA_VERSION, HeaderValue::from_static("1.16"));
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
}

/// Which physical partition answered, and how far it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedBy<'a> {
    /// The range's id, `0` for the first.
    pub(crate) range_id: &'a HeaderValue,
    /// The partition's log sequence number after the operation.
    pub(crate) lsn: u64,
    /// `x-ms-session-token`.
    pub(crate) session_token: &'a HeaderValue,
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
        }
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

    /// Sets what clients need to keep a session: who answered, for which container, and how far
    /// that partition is.
    pub(crate) fn served_by(mut self, container: &ContainerEntry, served: ServedBy<'_>) -> Reply {
        let headers = &mut self.headers;
        headers.insert(SESSION_TOKEN, served.session_token.clone());
        headers.insert(PARTITION_KEY_RANGE_ID, served.range_id.clone());
        headers.insert(INTERNAL_PARTITION_ID, served.range_id.clone());
        headers.insert(PHYSICAL_PARTITION_ID, served.range_id.clone());
        // One region and one copy: what is written here is committed everywhere.
        let lsn = HeaderValue::from(served.lsn);
        for name in [LOCAL_LSN, GLOBAL_COMMITTED_LSN, QUORUM_ACKED_LSN, QUORUM_ACKED_LOCAL_LSN] {
            headers.insert(name, lsn.clone());
        }
        headers.insert(LSN, lsn);
        headers.insert(NUMBER_OF_READ_REGIONS, HeaderValue::from_static("0"));
        headers.insert(CONTENT_PATH, container.content_path.clone());
        headers.insert(ALT_CONTENT_PATH, container.alt_content_path.clone());
        self
    }
}

const ACTIVITY_ID: HeaderName = HeaderName::from_static(name::ACTIVITY_ID);
const ALT_CONTENT_PATH: HeaderName = HeaderName::from_static(name::ALT_CONTENT_PATH);
const CONTENT_PATH: HeaderName = HeaderName::from_static(name::CONTENT_PATH);
const GATEWAY_VERSION: HeaderName = HeaderName::from_static(name::GATEWAY_VERSION);
const INTERNAL_PARTITION_ID: HeaderName = HeaderName::from_static(name::INTERNAL_PARTITION_ID);
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
        let Reply { status, sub_status, charge, mut headers, body } = reply;
        headers.insert(ACTIVITY_ID, activity);
        headers.insert(REQUEST_CHARGE, charge_value(charge));
        headers.insert(REQUEST_DURATION, duration_value(took));
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

/// Two decimals at most, none for whole charges: `1`, `6.29`.
fn charge_value(charge: f64) -> HeaderValue {
    if charge == 1.0 {
        return HeaderValue::from_static("1");
    }
    let text = format!("{charge:.2}");
    let trimmed = text.trim_end_matches('0').trim_end_matches('.');
    HeaderValue::try_from(trimmed).expect("digits are valid in a header")
}

/// Milliseconds with microseconds as decimals.
fn duration_value(took: Duration) -> HeaderValue {
    let micros = took.as_micros();
    let text = format!("{}.{:03}", micros / 1000, micros % 1000);
    HeaderValue::try_from(text).expect("digits are valid in a header")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_printed_without_needless_digits() {
        for (charge, text) in
            [(1.0, "1"), (6.29, "6.29"), (2.5, "2.5"), (10.0, "10"), (0.0, "0"), (100.0, "100")]
        {
            assert_eq!(charge_value(charge), text, "{charge}");
        }
    }

    #[test]
    fn durations_are_milliseconds() {
        assert_eq!(duration_value(Duration::from_micros(1_234)), "1.234");
        assert_eq!(duration_value(Duration::from_micros(7)), "0.007");
    }
}
