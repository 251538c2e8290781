//! The response to an operation: its value, charge, ETag, session token and diagnostics.

use driver::diagnostics::Diagnostics;
use protocol::status::Status;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::serialize::from_body;

/// The response to an operation: a value with its charge, ETag, session token and diagnostics.
#[derive(Clone, Debug)]
pub struct Response<T> {
    value: T,
    raw: driver::Response,
}

/// The response to an operation on one item.
pub type ItemResponse<T> = Response<T>;

/// An item with its system properties.
///
/// It serializes as the service stores it, with its system properties, so that an item that is put into a cache or a
/// file is read back unchanged. It can be written as well: the service ignores the system properties of an item that
/// it is sent, and gives the item new ones.
///
/// ```
/// # use perihelion::Item;
/// let stored = serde_json::json!({"id": "o-1", "total": 3, "_etag": "\"e\"", "_ts": 1700000000, "_rid": "r=="});
/// let item: Item<serde_json::Value> = serde_json::from_value(stored.clone())?;
/// assert_eq!((item.timestamp, &item.value["total"]), (1700000000, &3.into()));
/// assert_eq!(serde_json::to_value(&item)?, stored);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Item<T> {
    /// The item without its system properties, unless `T` has them too.
    #[serde(flatten)]
    pub value: T,
    /// The ETag, which changes with every write of the item.
    #[serde(rename = "_etag")]
    pub etag: String,
    /// When the item was last written, in seconds since 1970.
    #[serde(rename = "_ts")]
    pub timestamp: u64,
    /// The resource id that the service gave the item.
    #[serde(rename = "_rid")]
    pub rid: String,
}

impl<T> Response<T> {
    /// The value that was read; `()` for operations that return none.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The value alone, by value.
    pub fn into_value(self) -> T {
        self.value
    }

    /// The value and the driver's response.
    pub(crate) fn into_parts(self) -> (T, driver::Response) {
        (self.value, self.raw)
    }

    /// The HTTP status of the response.
    pub fn status(&self) -> Status {
        self.raw.status()
    }

    /// The ETag of what was read or written.
    pub fn etag(&self) -> Option<&str> {
        self.raw.etag()
    }

    /// The request charge of the last attempt; the charge of retries is in the diagnostics.
    pub fn charge(&self) -> f64 {
        self.raw.charge()
    }

    /// The session token: a read with it sees at least this operation. Only needed to pass a session to another process.
    pub fn session_token(&self) -> Option<&str> {
        self.raw.session_token()
    }

    /// The activity id of the request, under which the service logs it.
    pub fn activity_id(&self) -> Option<&str> {
        self.raw.activity_id()
    }

    /// The diagnostics: every attempt with its region, reason, duration and outcome.
    pub fn diagnostics(&self) -> &Diagnostics {
        self.raw.diagnostics()
    }

    /// The driver's response with the body as bytes and all headers.
    pub fn raw(&self) -> &driver::Response {
        &self.raw
    }

    pub(crate) fn with_value(value: T, raw: driver::Response) -> Response<T> {
        Response { value, raw }
    }
}

impl<T: DeserializeOwned> Response<T> {
    pub(crate) fn read(raw: driver::Response) -> Result<Response<T>> {
        let value = from_body(raw.body())?;
        Ok(Response { value, raw })
    }
}

impl Response<()> {
    /// A response whose body is ignored.
    pub(crate) fn without_body(raw: driver::Response) -> Result<Response<()>> {
        Ok(Response { value: (), raw })
    }
}
