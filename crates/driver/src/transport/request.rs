//! What one attempt sends, and where to.

use std::time::Instant;

use azure_core::http::headers::Headers;
use azure_core::http::{Method, Url};
use bytes::Bytes;

use crate::operation::Operation;
use crate::routing::Endpoint;

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecutionContext {
    /// The first.
    Initial,
    /// Again, in the region that was tried before.
    Retry,
    /// Again, in another region.
    Failover,
    /// Beside the first, because that one is slow.
    Hedging,
    /// To see whether a partition or region has come back.
    Probe,
}

impl ExecutionContext {
    /// The word of diagnostics.
    pub fn name(self) -> &'static str {
        match self {
            ExecutionContext::Initial => "initial",
            ExecutionContext::Retry => "retry",
            ExecutionContext::Failover => "failover",
            ExecutionContext::Hedging => "hedging",
            ExecutionContext::Probe => "probe",
        }
    }
}

/// What the signature covers besides the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizationContext<'a> {
    /// The verb, lower case.
    pub verb: &'static str,
    /// The type of the resource: `docs`.
    pub resource_type: &'static str,
    /// The resource's link, or its parent's for a feed.
    pub link: &'a str,
}

/// One attempt at one endpoint. The transport adds the headers every request carries and the signature.
#[derive(Clone, Debug)]
pub struct TransportRequest<'a> {
    /// What is wanted.
    pub operation: &'a Operation,
    /// Where this attempt goes.
    pub endpoint: &'a Endpoint,
    /// The whole URL.
    pub url: Url,
    /// The headers of this operation and attempt: partition, session, conditions.
    pub headers: Headers,
    /// Why the attempt is made.
    pub context: ExecutionContext,
    /// When the whole operation ends, whatever has become of it. Nothing sleeps or waits beyond it.
    pub deadline: Instant,
}

impl<'a> TransportRequest<'a> {
    /// The verb.
    pub fn method(&self) -> Method {
        self.operation.kind().method()
    }

    /// The body; empty for none.
    pub fn body(&self) -> &'a Bytes {
        self.operation.body()
    }

    /// What is signed.
    pub fn authorization(&self) -> AuthorizationContext<'a> {
        AuthorizationContext {
            verb: self.operation.kind().signed_verb(),
            resource_type: self.operation.target().resource().word(),
            link: self.operation.target().signed_link(),
        }
    }

    /// Whether it may be sent again although it may have been received.
    pub fn is_idempotent(&self) -> bool {
        self.operation.is_idempotent()
    }
}
