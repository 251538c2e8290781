//! The one way down to the network: [`Transport`] sends a request and reads the whole response.
//!
//! In: a [`TransportRequest`], headers and signature included. Out: a [`TransportResponse`], or an error. The
//! product's HTTP client is a transport (feature `connections`), and so is every `HttpClient` of `azure_core`,
//! through `AzureCoreAdapter` (feature `azure-core-adapter`). Which transport a request takes is decided in
//! `sharding`; what the request says, in `gateway`.

#[cfg(feature = "azure-core-adapter")]
mod azure_core_adapter;
#[cfg(any(feature = "azure-core-adapter", feature = "connections"))]
mod body;
mod factory;
mod header_list;
#[cfg(feature = "connections")]
mod http_client;

use std::fmt;

use azure_core::http::{Method, Url};
use bytes::Bytes;
use futures::future::{BoxFuture, ready};
use protocol::status::{Status, SubStatus};

#[cfg(feature = "azure-core-adapter")]
pub use self::azure_core_adapter::AzureCoreAdapter;
pub use self::factory::{HttpClientConfig, ProxyConfig, TransportFactory};
pub use self::header_list::HeaderList;
use crate::operation::ResponseHeaders;

/// Sends requests over connections of its own.
///
/// Transports that know what happens on the connection report it to the scope around the call
/// ([`perihelion_http::trace`]). Dropping the future cancels the request.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a request and reads the response to its last byte, up to 128 MB.
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>>;

    /// Whether [`send`](Transport::send) ends by itself at the deadline of the scope around it. For a transport
    /// that does not, the caller holds a timer.
    fn enforces_deadlines(&self) -> bool {
        false
    }

    /// Opens a connection to `endpoint` before the first request needs one. Does nothing by default: the
    /// connection is then opened by the first request.
    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        let _ = endpoint;
        Box::pin(ready(Ok(())))
    }
}

/// A request as it is sent.
#[derive(Clone, Debug)]
pub struct TransportRequest<'a> {
    /// The endpoint, of which scheme, host and port are used.
    pub endpoint: &'a Url,
    /// The path below the endpoint, escaped, without its first slash.
    pub path: &'a str,
    /// The HTTP method of the request.
    pub method: Method,
    /// All headers, the authorization included.
    pub headers: HeaderList,
    /// The body; empty for none.
    pub body: &'a Bytes,
}

impl TransportRequest<'_> {
    /// Host and port, as [`Endpoint::authority`](crate::routing::Endpoint::authority) writes them.
    pub fn authority(&self) -> String {
        let url = self.endpoint;
        let port = url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", url.host_str().unwrap_or_default())
    }
}

/// A response of the service, whatever its status.
#[derive(Clone, Debug)]
pub struct TransportResponse {
    /// The HTTP status of the response.
    pub status: Status,
    /// The sub-status, 0 for none.
    pub sub_status: SubStatus,
    /// All headers of the response.
    pub headers: ResponseHeaders,
    /// The body, read to its end.
    pub body: Bytes,
}

impl TransportResponse {
    /// A response of these parts; the sub-status is read from the headers.
    pub fn new(status: Status, headers: ResponseHeaders, body: Bytes) -> TransportResponse {
        TransportResponse { status, sub_status: headers.sub_status(), headers, body }
    }
}
