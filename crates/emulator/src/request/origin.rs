//! The scheme, host and port that a client used, so that the endpoints in responses lead back the same way.
//!
//! Behind a port mapping or in a container the server cannot know its outside address; the request has it.

use http::HeaderValue;
use http::request::Parts;

use super::headers::RequestHeaders;
use server::Encrypted;

/// The scheme, host and port a client used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin<'a> {
    scheme: &'a str,
    authority: &'a str,
}

impl<'a> Origin<'a> {
    /// Reads the origin of a request. HTTP/2 names the authority in the URL, HTTP/1.1 in `host`;
    /// whether it was encrypted is known to the socket.
    pub(crate) fn of(parts: &'a Parts, headers: &RequestHeaders<'a>) -> Origin<'a> {
        let scheme = if parts.extensions.get::<Encrypted>().is_some() { "https" } else { "http" };
        let authority = parts
            .uri
            .authority()
            .map(http::uri::Authority::as_str)
            .or_else(|| headers.host.and_then(|value: &HeaderValue| value.to_str().ok()))
            .filter(|authority| !authority.is_empty());
        Origin { scheme, authority: authority.unwrap_or("localhost") }
    }

    /// The endpoint as the client knows it, or at another host with the same port.
    pub(crate) fn endpoint(&self, host: Option<&str>) -> String {
        let (own, port) = self.host_and_port();
        format!("{}://{}{port}/", self.scheme, host.unwrap_or(own))
    }

    /// The URL of a path, as the client asked for it.
    pub(crate) fn location(&self, path: &str) -> Vec<u8> {
        [self.scheme, "://", self.authority, path].concat().into_bytes()
    }

    /// The endpoint on another port, of the same host or of another one.
    pub(crate) fn endpoint_on(&self, host: Option<&str>, port: u16) -> String {
        format!("{}://{}:{port}/", self.scheme, host.unwrap_or(self.host_and_port().0))
    }

    /// The host, where an IPv6 address keeps its brackets, and the port with its colon, if there is one.
    fn host_and_port(&self) -> (&'a str, &'a str) {
        match self.authority.rfind(':') {
            Some(at) if self.authority[at + 1..].bytes().all(|byte| byte.is_ascii_digit()) => {
                self.authority.split_at(at)
            }
            _ => (self.authority, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[track_caller]
    fn check(uri: &str, host: Option<&str>, tls: bool, same: &str, sibling: &str) {
        let mut request = Request::builder().uri(uri);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        if tls {
            request = request.extension(Encrypted);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let headers = RequestHeaders::scan(&parts.headers);
        let origin = Origin::of(&parts, &headers);
        assert_eq!(origin.endpoint(None), same);
        assert_eq!(origin.endpoint_on(None, 8082), sibling);
        let port = origin.host_and_port().1;
        let scheme = if tls { "https" } else { "http" };
        assert_eq!(origin.endpoint(Some("a.test")), format!("{scheme}://a.test{port}/"));
        assert_eq!(origin.endpoint_on(Some("a.test"), 1), format!("{scheme}://a.test:1/"));
    }

    #[test]
    fn endpoints_have_the_scheme_and_host_of_the_request() {
        check("/", Some("localhost:8081"), false, "http://localhost:8081/", "http://localhost:8082/");
        check("/", Some("localhost:8081"), true, "https://localhost:8081/", "https://localhost:8082/");
        check("/", Some("[::1]:8081"), false, "http://[::1]:8081/", "http://[::1]:8082/");
        check("/", Some("cosmos.local"), true, "https://cosmos.local/", "https://cosmos.local:8082/");
        check("https://127.0.0.1:9/", None, true, "https://127.0.0.1:9/", "https://127.0.0.1:8082/");
        check("/", None, false, "http://localhost/", "http://localhost:8082/");
    }
}
