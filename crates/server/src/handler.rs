//! The interface between a server and what it serves: [`Handler`].

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};

/// Produces the response to each request. The request body has been read in full; the response body is
/// sent in full.
pub trait Handler: Send + Sync + 'static {
    /// Decides from the head of a request whether its body is read at all; a response refuses it. Asked only before
    /// a long body is read, and not a replacement for the checks of [`handle`](Handler::handle).
    fn refuse_unread(self: &Arc<Self>, _head: &Parts) -> Option<Response<Bytes>> {
        None
    }

    /// Handles one request. A panic in here becomes a 500 and affects no other request.
    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> HandlerResponse;
}

/// A response, or the future that will produce it.
pub enum HandlerResponse {
    /// The response is complete.
    Ready(Response<Bytes>),
    /// The response has to wait for something, such as a write to disk.
    Pending(Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>),
}

impl HandlerResponse {
    /// Waits for the response.
    pub async fn into_response(self) -> Response<Bytes> {
        match self {
            HandlerResponse::Ready(response) => response,
            HandlerResponse::Pending(future) => future.await,
        }
    }
}

/// Marks a request that came over TLS, in its extensions. Absent otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encrypted;
