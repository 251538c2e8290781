//! What a server calls with each request, and what it gets back.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

/// Answers requests. The body has been read in full; the answer is sent in full.
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. A panic in here becomes a 500 and harms nothing else.
    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> Handling;
}

/// What becomes of a request.
pub enum Handling {
    /// It is answered.
    Now(Response<Bytes>),
    /// Its answer has to wait for something.
    Later(Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>),
}

impl Handling {
    /// The answer, when it is there.
    pub async fn answer(self) -> Response<Bytes> {
        match self {
            Handling::Now(response) => response,
            Handling::Later(waiting) => waiting.await,
        }
    }
}

/// In a request's extensions when it came over TLS. Absent otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encrypted;
