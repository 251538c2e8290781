//! What came of an operation: status, headers, bytes, diagnostics.

use azure_core::http::headers::Headers;
use bytes::Bytes;
use protocol::headers as names;
use protocol::status::{Status, SubStatus};

use crate::diagnostics::Diagnostics;

/// The answer to an operation that did what it asked.
#[derive(Clone, Debug)]
pub struct Response {
    status: Status,
    headers: Headers,
    body: Bytes,
    diagnostics: Diagnostics,
}

impl Response {
    /// An answer of these parts.
    pub fn new(status: Status, headers: Headers, body: Bytes, diagnostics: Diagnostics) -> Response {
        Response { status, headers, body, diagnostics }
    }

    /// The status: 2xx, or 304 of a feed that has nothing new.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Every header of the answer.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// One header of the answer.
    pub fn header(&self, name: &'static str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The body, as it came.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The body, without the rest.
    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// What happened on the way.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Status, headers, body and diagnostics.
    pub fn into_parts(self) -> (Status, Headers, Bytes, Diagnostics) {
        (self.status, self.headers, self.body, self.diagnostics)
    }

    /// Request units of the answer itself; retries are in the diagnostics.
    pub fn charge(&self) -> f64 {
        charge(&self.headers)
    }

    /// The version of what was answered with.
    pub fn etag(&self) -> Option<&str> {
        self.header(names::ETAG)
    }

    /// What a later reader has to have seen to see this.
    pub fn session_token(&self) -> Option<&str> {
        self.header(names::SESSION_TOKEN)
    }

    /// Where the next page starts; none on the last.
    pub fn continuation(&self) -> Option<&str> {
        self.header(names::CONTINUATION)
    }

    /// The id of the request, for whoever reads the service's logs.
    pub fn activity_id(&self) -> Option<&str> {
        self.header(names::ACTIVITY_ID)
    }
}

/// One header, without making an error when it is not there. Names are lower case on both sides.
pub(crate) fn header<'a>(headers: &'a Headers, name: &'static str) -> Option<&'a str> {
    // `Headers::get_optional_with` formats its error before it knows that there is none. An answer has a dozen
    // headers of different lengths, so looking at all of them is cheaper than hashing one.
    headers.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value.as_str())
}

/// The request units an answer says it cost.
pub(crate) fn charge(headers: &Headers) -> f64 {
    header(headers, names::REQUEST_CHARGE).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// The sub-status of an answer.
pub(crate) fn sub_status(headers: &Headers) -> SubStatus {
    header(headers, names::SUB_STATUS).and_then(|text| text.parse().ok()).map_or(SubStatus::NONE, SubStatus)
}
