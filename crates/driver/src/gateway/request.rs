//! One attempt as the gateway client is given it: an operation, an endpoint, and a deadline.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use azure_core::http::Method;
use bytes::Bytes;

use crate::diagnostics::ExecutionContext;
use crate::operation::Operation;
use crate::routing::Endpoint;
use crate::transport::HeaderList;

/// The parts of a request that the signature covers besides the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizationContext<'a> {
    /// The HTTP method in lower case.
    pub verb: &'static str,
    /// The type of the resource: `docs`.
    pub resource_type: &'static str,
    /// The resource's link, or its parent's for a feed.
    pub link: &'a str,
}

/// How far an attempt is.
#[derive(Debug, Default)]
pub struct AttemptProgress(AtomicU8);

impl AttemptProgress {
    const REQUESTED: u8 = 1;
    const RESPONDED: u8 = 2;

    /// The first request has been started.
    pub(crate) fn requested(&self) {
        self.0.fetch_max(AttemptProgress::REQUESTED, Ordering::Relaxed);
    }

    /// The service has responded to a request, with whatever status.
    pub(crate) fn responded(&self) {
        self.0.store(AttemptProgress::RESPONDED, Ordering::Relaxed);
    }

    /// Whether a request was started, and nothing has come back. Not while the attempt waits for a token.
    pub(crate) fn is_silent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == AttemptProgress::REQUESTED
    }
}

/// One attempt at one endpoint. The gateway client adds the headers every request carries and the signature.
#[derive(Clone, Debug)]
pub struct GatewayRequest<'a> {
    /// The operation that is attempted.
    pub operation: &'a Operation,
    /// The endpoint that this attempt is sent to.
    pub endpoint: &'a Endpoint,
    /// The headers of this operation and attempt: partition key, session token, preconditions.
    pub headers: HeaderList,
    /// Why the attempt is made.
    pub context: ExecutionContext,
    /// When the whole operation must be over. Nothing sleeps or waits beyond it.
    pub deadline: Instant,
    /// How far the attempt is, for a caller who may drop it before its result.
    pub progress: Option<&'a AttemptProgress>,
}

impl<'a> GatewayRequest<'a> {
    /// The HTTP method of the operation.
    pub fn method(&self) -> Method {
        self.operation.kind().method()
    }

    /// The body of the operation; empty for none.
    pub fn body(&self) -> &'a Bytes {
        self.operation.body()
    }

    /// The parts of the request that are signed.
    pub fn authorization(&self) -> AuthorizationContext<'a> {
        AuthorizationContext {
            verb: self.operation.kind().signed_verb(),
            resource_type: self.operation.target().resource().path_segment(),
            link: self.operation.target().signed_link(),
        }
    }

    /// Whether it may be sent again although it may have been received.
    pub fn is_idempotent(&self) -> bool {
        self.operation.is_idempotent()
    }
}
