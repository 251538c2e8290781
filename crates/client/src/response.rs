//! What came of a call: the value, and what it cost.

use driver::diagnostics::Diagnostics;
use protocol::status::Status;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Result;
use crate::serialize::from_body;

/// A value and what is to be known about how it came.
#[derive(Clone, Debug)]
pub struct Response<T> {
    value: T,
    answer: driver::Response,
}

/// The answer to an operation on one item.
pub type ItemResponse<T> = Response<T>;

/// An item with what the service keeps beside it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Item<T> {
    /// The item.
    #[serde(flatten)]
    pub value: T,
    /// Its version.
    #[serde(rename = "_etag")]
    pub etag: String,
    /// When it was written, in seconds since 1970.
    #[serde(rename = "_ts")]
    pub timestamp: u64,
    /// Its id inside the service.
    #[serde(rename = "_rid")]
    pub rid: String,
}

impl<T> Response<T> {
    /// What was asked for.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The same, without the rest.
    pub fn into_value(self) -> T {
        self.value
    }

    /// Both.
    pub(crate) fn into_parts(self) -> (T, driver::Response) {
        (self.value, self.answer)
    }

    /// The status of the answer.
    pub fn status(&self) -> Status {
        self.answer.status()
    }

    /// The version of what was read or written.
    pub fn etag(&self) -> Option<&str> {
        self.answer.etag()
    }

    /// Request units of the answer; what retries cost is in the diagnostics.
    pub fn charge(&self) -> f64 {
        self.answer.charge()
    }

    /// What a later reader has to have seen to see this. Only needed to hand a session to another process.
    pub fn session_token(&self) -> Option<&str> {
        self.answer.session_token()
    }

    /// The id of the request, for whoever reads the service's logs.
    pub fn activity_id(&self) -> Option<&str> {
        self.answer.activity_id()
    }

    /// Every attempt: where, why, how long, and what it came to.
    pub fn diagnostics(&self) -> &Diagnostics {
        self.answer.diagnostics()
    }

    /// The bytes and headers of the answer.
    pub fn raw(&self) -> &driver::Response {
        &self.answer
    }

    pub(crate) fn with_value(value: T, answer: driver::Response) -> Response<T> {
        Response { value, answer }
    }
}

impl<T: DeserializeOwned> Response<T> {
    pub(crate) fn read(answer: driver::Response) -> Result<Response<T>> {
        let value = from_body(answer.body())?;
        Ok(Response { value, answer })
    }
}

impl Response<()> {
    /// An answer whose body, if it has one, nobody wants.
    pub(crate) fn without_body(answer: driver::Response) -> Result<Response<()>> {
        Ok(Response { value: (), answer })
    }
}
