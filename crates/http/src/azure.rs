//! The client behind `azure_core`'s trait `HttpClient`, and a shortcut around that trait for a driver.
//!
//! Both are on the path of every request, so both avoid allocations. A request's path and header values are written into
//! one buffer and split from it; header names are interned (`header_names`).

mod header_names;

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll};

use azure_core::http::headers::Headers;
use azure_core::http::response::PinnedStream;
use azure_core::http::{AsyncRawResponse, HttpClient, Method as AzureMethod, Request as AzureRequest, Url};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderValue, Method, Request, Response};

use crate::call::{Call, StepError};
use crate::client::{Client, is_retryable};
use crate::connection::ResponseBody;
use crate::error::{BoxError, Error, ErrorKind};
use crate::origin::{InvalidOrigin, OriginRef, Scheme};
use crate::request_body::RequestBody;
use crate::trace::Step;

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn execute_request(&self, request: &AzureRequest) -> azure_core::Result<AsyncRawResponse> {
        Ok(to_azure(self.send_built(request.url(), || from_azure(request)).await?))
    }
}

/// The parts of a request, borrowed, for a caller that builds no request object. Sending leaves them unchanged, so that
/// they can be sent again.
#[derive(Clone, Debug)]
pub struct RequestParts<'a, H> {
    /// The URL whose scheme, host and port the request is sent to.
    pub origin: &'a Url,
    /// The path and query, percent-encoded. The leading slash is optional.
    pub path: &'a str,
    /// The method of the request.
    pub method: AzureMethod,
    /// The headers, each name with one value.
    pub headers: H,
    /// The body of the request.
    pub body: &'a Bytes,
}

impl Client {
    /// Sends a request that is given as parts, and waits for the status and headers of the response.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use azure_core::http::{Method, Url};
    /// use perihelion_http::{Client, RequestParts};
    ///
    /// let origin = Url::parse("http://localhost:8081")?;
    /// let (path, method) = ("dbs/shop", Method::Get);
    /// let headers = [("accept", "application/json")].into_iter();
    /// let parts = RequestParts { origin: &origin, path, method, headers, body: &bytes::Bytes::new() };
    /// println!("{}", Client::new().send_parts(&parts).await?.status());
    /// # Ok(()) }
    /// ```
    pub async fn send_parts<'a, H>(
        &self,
        parts: &RequestParts<'a, H>,
    ) -> Result<Response<ResponseBody>, Error>
    where
        H: Iterator<Item = (&'a str, &'a str)> + Clone,
    {
        let RequestParts { origin, path, method, headers, body } = parts;
        let build = || {
            let mut request = build_head(path, None, || headers.clone())?;
            *request.method_mut() = to_method(*method)?;
            *request.body_mut() = RequestBody::from(Bytes::clone(body));
            Ok(request)
        };
        self.send_built(origin, build).await
    }

    /// Sends the request that `build` returns. Builds it again if a closed connection consumed it without sending it.
    async fn send_built(
        &self,
        url: &Url,
        build: impl Fn() -> Result<Request<RequestBody>, BoxError>,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut call = Call::start(self.call_timeout());
        let prepared = origin_of(url)
            .map_err(BoxError::from)
            .and_then(|origin| self.host(&origin))
            .and_then(|host| Ok((host, build()?)));
        let (host, request) = match prepared {
            Ok(prepared) => prepared,
            Err(invalid) => {
                let error = StepError::new(ErrorKind::Invalid, Step::Prepare).with_source(invalid);
                return Err(call.fail(error, url));
            }
        };
        let mut result = self.send_to(&host, request, &mut call).await;
        if let Err(error) = &result
            && is_retryable(&call.trace, error.kind())
            && let Ok(request) = build()
        {
            result = self.send_to(&host, request, &mut call).await;
        }
        result
    }
}

/// The origin of a URL, without an allocation.
fn origin_of(url: &Url) -> Result<OriginRef<'_>, InvalidOrigin> {
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(InvalidOrigin::Scheme),
    };
    let host = url.host_str().ok_or(InvalidOrigin::Host)?;
    Ok(OriginRef { scheme, host, port: url.port().unwrap_or(scheme.default_port()) })
}

fn from_azure(request: &AzureRequest) -> Result<Request<RequestBody>, BoxError> {
    let url = request.url();
    let headers = || request.headers().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut http_request = build_head(url.path(), url.query(), headers)?;
    *http_request.method_mut() = to_method(request.method())?;
    *http_request.body_mut() = RequestBody::from(request.body());
    Ok(http_request)
}

/// Builds a request without a body, whose URI is a path: the connection knows scheme and host.
fn build_head<'a, H: Iterator<Item = (&'a str, &'a str)>>(
    path: &str,
    query: Option<&str>,
    headers: impl Fn() -> H,
) -> Result<Request<RequestBody>, BoxError> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let (mut count, mut bytes) = (0, slash.len() + path.len() + query.map_or(0, |query| query.len() + 1));
    for (_, value) in headers() {
        count += 1;
        bytes += value.len();
    }

    let mut buffer = BytesMut::with_capacity(bytes);
    buffer.extend_from_slice(slash.as_bytes());
    buffer.extend_from_slice(path.as_bytes());
    if let Some(query) = query {
        buffer.extend_from_slice(b"?");
        buffer.extend_from_slice(query.as_bytes());
    }
    let path_end = buffer.len();
    for (_, value) in headers() {
        buffer.extend_from_slice(value.as_bytes());
    }
    let mut buffer = buffer.freeze();
    let path = PathAndQuery::from_maybe_shared(buffer.split_to(path_end))?;

    let names = header_names::names();
    // One more for `Host`.
    let mut map = HeaderMap::with_capacity(count + 1);
    for (name, value) in headers() {
        let value = HeaderValue::from_maybe_shared(buffer.split_to(value.len()))?;
        map.insert(header_names::to_http_name(&names, name)?, value);
    }

    let mut request = Request::new(RequestBody::empty());
    *request.uri_mut() = Uri::from(path);
    *request.headers_mut() = map;
    Ok(request)
}

fn to_method(method: AzureMethod) -> Result<Method, http::method::InvalidMethod> {
    Ok(match method {
        AzureMethod::Delete => Method::DELETE,
        AzureMethod::Get => Method::GET,
        AzureMethod::Head => Method::HEAD,
        AzureMethod::Patch => Method::PATCH,
        AzureMethod::Post => Method::POST,
        AzureMethod::Put => Method::PUT,
        other => Method::from_bytes(other.as_ref().as_bytes())?,
    })
}

fn to_azure(response: Response<ResponseBody>) -> AsyncRawResponse {
    let (parts, mut body) = response.into_parts();
    let status = parts.status.as_u16().into();
    let headers = to_azure_headers(&parts.headers);
    match body.take_complete() {
        Some(bytes) => AsyncRawResponse::from_bytes(status, headers, bytes),
        None => {
            let stream: PinnedStream = Box::pin(AzureBody(body));
            AsyncRawResponse::new(status, headers, stream)
        }
    }
}

/// Converts headers. A value that is not text is left out with a warning, because azure_core's type cannot hold it.
fn to_azure_headers(map: &HeaderMap) -> Headers {
    let names = header_names::names();
    let mut headers = HashMap::with_capacity(map.len());
    for (name, value) in map {
        match value.to_str() {
            Ok(value) => {
                let (name, value) = header_names::to_azure_header(&names, name, value);
                headers.insert(name, value);
            }
            Err(_) => tracing::warn!(%name, "a response header is left out: its value is not text"),
        }
    }
    Headers::from(headers)
}

struct AzureBody(ResponseBody);

impl Stream for AzureBody {
    type Item = azure_core::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map_err(Error::into)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> AzureRequest {
        AzureRequest::new(Url::parse(url).expect("a URL"), AzureMethod::Post)
    }

    #[test]
    fn a_request_keeps_its_path_headers_and_body() {
        let mut given = request("https://host:8081/dbs/a%20b?x=1&y=%C3%A4");
        given.insert_header("x-ms-date", "Mon, 01 Jan 2024 00:00:00 GMT");
        given.insert_header("x-ms-version", "2020-07-15");
        given.insert_header("x-empty", "");
        given.set_body("hello");
        // The second time, the names are interned.
        for _ in 0..2 {
            let built = from_azure(&given).expect("it is valid");
            assert_eq!(built.method(), Method::POST);
            assert_eq!(built.uri(), "/dbs/a%20b?x=1&y=%C3%A4");
            assert_eq!(built.headers()["x-ms-date"], "Mon, 01 Jan 2024 00:00:00 GMT");
            assert_eq!(built.headers()["x-ms-version"], "2020-07-15");
            assert_eq!(built.headers()["x-empty"], "");
            assert_eq!(built.body().len(), Some(5));
        }
    }

    #[test]
    fn the_leading_slash_of_a_path_is_optional() {
        let headers = [("x-ms-date", "now"), ("x-empty", "")];
        for (path, expected) in [("dbs/d", "/dbs/d"), ("/dbs/d", "/dbs/d"), ("", "/"), ("a?b=c", "/a?b=c")] {
            let built = build_head(path, None, || headers.into_iter()).expect("it is valid");
            assert_eq!(built.uri(), expected);
            assert_eq!(built.headers()["x-ms-date"], "now");
        }
        assert!(build_head("a b", None, || headers.into_iter()).is_err(), "the caller encodes the path");
    }

    #[test]
    fn the_origin_of_a_url_has_its_scheme_host_and_port() {
        for (url, expected) in [
            ("https://HOST/", (Scheme::Https, "host", 443)),
            ("http://host:81/a", (Scheme::Http, "host", 81)),
            ("http://[::1]/", (Scheme::Http, "[::1]", 80)),
        ] {
            let given = request(url);
            let found = origin_of(given.url()).expect("it is valid");
            assert_eq!((found.scheme, found.host, found.port), expected, "{url}");
        }
        assert!(origin_of(request("ftp://host/").url()).is_err());
    }

    #[test]
    fn an_invalid_header_is_an_error() {
        let mut given = request("http://host/");
        given.insert_header("x-split", "a\r\nb: c");
        assert!(from_azure(&given).is_err());
        let mut given = request("http://host/");
        given.insert_header("x split", "a");
        assert!(from_azure(&given).is_err());
    }

    #[test]
    fn headers_are_converted_equally_whether_interned_or_not() {
        let mut map = HeaderMap::new();
        map.insert("x-ms-activity-id", HeaderValue::from_static("1"));
        assert_eq!(to_azure_headers(&map), to_azure_headers(&map));
    }

    #[test]
    fn a_header_that_is_not_text_is_left_out() {
        let mut map = HeaderMap::new();
        map.insert("x-odd", HeaderValue::from_bytes(b"\xff").expect("a header may hold it"));
        map.insert("x-even", HeaderValue::from_static("2"));
        let headers = to_azure_headers(&map);
        assert_eq!(headers.iter().count(), 1);
    }
}
