//! An origin in the forms that requests to it need, parsed once per host instead of once per request.

use http::HeaderValue;
use http::uri::{self, InvalidUri};

use crate::origin::{Origin, Scheme};

/// An origin, with the `Host` header and the URI parts that all requests to it have in common.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) origin: Origin,
    /// The value of `Host` in an HTTP/1.1 request.
    pub(crate) host_header: HeaderValue,
    /// The value of `:scheme` in an HTTP/2 request.
    pub(crate) uri_scheme: uri::Scheme,
    /// The value of `:authority` in an HTTP/2 request.
    pub(crate) uri_authority: uri::Authority,
}

impl Endpoint {
    /// Parses the parts of `origin`. Fails for a host that no URI may contain.
    pub(crate) fn new(origin: Origin) -> Result<Self, InvalidUri> {
        let (scheme, host, port) = (origin.scheme(), origin.host(), origin.port());
        let uri_authority: uri::Authority = match port == scheme.default_port() {
            true => host.parse()?,
            false => format!("{host}:{port}").parse()?,
        };
        let host_header = HeaderValue::from_str(uri_authority.as_str())
            .expect("every character of a URI authority is allowed in a header value");
        let uri_scheme = match scheme {
            Scheme::Http => uri::Scheme::HTTP,
            Scheme::Https => uri::Scheme::HTTPS,
        };
        Ok(Endpoint { origin, host_header, uri_scheme, uri_authority })
    }
}
