//! What came of an operation: status, headers, bytes, diagnostics.

use bytes::Bytes;
use protocol::headers as names;
use protocol::status::Status;

use crate::diagnostics::Diagnostics;
use crate::operation::ResponseHeaders;

/// The response to an operation that did what it asked.
#[derive(Clone, Debug)]
pub struct Response {
    status: Status,
    headers: ResponseHeaders,
    body: Bytes,
    diagnostics: Diagnostics,
}

impl Response {
    /// A response of these parts.
    pub fn new(status: Status, headers: ResponseHeaders, body: Bytes, diagnostics: Diagnostics) -> Response {
        Response { status, headers, body, diagnostics }
    }

    /// The status: 2xx, or 304 of a feed that has nothing new.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Every header of the response.
    pub fn headers(&self) -> &ResponseHeaders {
        &self.headers
    }

    /// One header of the response.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
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
    pub fn into_parts(self) -> (Status, ResponseHeaders, Bytes, Diagnostics) {
        (self.status, self.headers, self.body, self.diagnostics)
    }

    /// Request units of the response itself; retries are in the diagnostics.
    pub fn charge(&self) -> f64 {
        self.headers.charge()
    }

    /// The ETag of the resource in the response.
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

    /// The activity id of the request, to find it in the service's logs.
    pub fn activity_id(&self) -> Option<&str> {
        self.header(names::ACTIVITY_ID)
    }
}
