//! What one attempt sends, and where to.

use std::time::Instant;

use azure_core::http::{Method, Request, Url};
use bytes::Bytes;

use super::header_list::HeaderList;
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
    /// The headers of this operation and attempt: partition, session, conditions.
    pub headers: HeaderList,
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
            resource_type: self.operation.target().resource().path_segment(),
            link: self.operation.target().signed_link(),
        }
    }

    /// Whether it may be sent again although it may have been received.
    pub fn is_idempotent(&self) -> bool {
        self.operation.is_idempotent()
    }
}

/// A request as it is sent.
#[derive(Clone, Debug)]
pub struct Outgoing<'a> {
    /// Where to: scheme, host and port of this.
    pub endpoint: &'a Url,
    /// The path there, escaped, without its first slash.
    pub path: &'a str,
    /// The verb.
    pub method: Method,
    /// The headers.
    pub headers: HeaderList,
    /// The body; empty for none.
    pub body: &'a Bytes,
}

impl Outgoing<'_> {
    /// The same as `azure_core` has it.
    pub fn to_azure(&self) -> Request {
        let mut url = self.endpoint.clone();
        url.set_path(self.path);
        let mut request = Request::new(url, self.method);
        *request.headers_mut() = self.headers.to_azure();
        if !self.body.is_empty() {
            request.set_body(self.body.clone());
        }
        request
    }

    /// Host and port, as endpoints name them.
    pub fn authority(&self) -> String {
        let url = self.endpoint;
        let port = url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", url.host_str().unwrap_or_default())
    }
}
