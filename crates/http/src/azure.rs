//! `azure_core`'s trait: its requests to ours, our responses to its; and the way around it.
//!
//! Both directions are on the path of every request, so both avoid the obvious allocations. A request's path and
//! header values are written into one buffer and cut from it. Header names are interned: a process uses the
//! same few dozen over and over. So are the first few values of each: half of what a service sends is the same
//! every time.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, OnceLock};
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use azure_core::http::headers::{HeaderName as AzureName, HeaderValue as AzureValue, Headers};
use azure_core::http::response::PinnedStream;
use azure_core::http::{AsyncRawResponse, HttpClient, Method as AzureMethod, Request as AzureRequest, Url};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};

use crate::authority::{AuthorityRef, BadAuthority, Scheme};
use crate::call::{Call, Cause, Failure};
use crate::client::{Client, may_repeat};
use crate::error::{Error, ErrorKind};
use crate::exchange::Step;
use crate::request::RequestBody;
use crate::response::ResponseBody;

/// No more header names than this are remembered; what a peer invents beyond that costs it allocations.
const NAMES_MAX: usize = 512;
/// Longer names are not remembered.
const NAME_BYTES_MAX: usize = 64;
/// No more values than this are remembered of a name: those that came first.
const VALUES_MAX: usize = 4;
/// Longer values are not remembered.
const VALUE_BYTES_MAX: usize = 64;

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn execute_request(&self, request: &AzureRequest) -> azure_core::Result<AsyncRawResponse> {
        Ok(to_azure(self.send_made(request.url(), || from_azure(request)).await?))
    }
}

/// A request in pieces, for those who have it in none of the usual types. Nothing of it is used up, so that
/// it can be sent again.
#[derive(Clone, Debug)]
pub struct Pieces<'a, H> {
    /// Where to: scheme, host and port of this.
    pub origin: &'a Url,
    /// The path there, and a query if there is one, escaped. A slash in front may be left out.
    pub path: &'a str,
    /// The verb.
    pub method: AzureMethod,
    /// Names and values; a name has one value.
    pub headers: H,
    /// The body.
    pub body: &'a Bytes,
}

impl Client {
    /// Sends a request that is given in pieces, and waits for status and headers of the response.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use azure_core::http::{Method, Url};
    /// use perihelion_http::{Client, Pieces};
    ///
    /// let origin = Url::parse("http://localhost:8081")?;
    /// let (path, method) = ("dbs/shop", Method::Get);
    /// let headers = [("accept", "application/json")].into_iter();
    /// let pieces = Pieces { origin: &origin, path, method, headers, body: &bytes::Bytes::new() };
    /// println!("{}", Client::new().send_pieces(&pieces).await?.status());
    /// # Ok(()) }
    /// ```
    pub async fn send_pieces<'a, H>(&self, request: &Pieces<'a, H>) -> Result<Response<ResponseBody>, Error>
    where
        H: Iterator<Item = (&'a str, &'a str)> + Clone,
    {
        let Pieces { origin, path, method, headers, body } = request;
        let make = || {
            let mut prepared = to_http(path, None, || headers.clone())?;
            *prepared.method_mut() = to_method(*method)?;
            *prepared.body_mut() = RequestBody::from(Bytes::clone(body));
            Ok(prepared)
        };
        self.send_made(origin, make).await
    }

    /// Sends what `make` makes. It is asked again for what a closed connection took with it.
    async fn send_made(
        &self,
        origin: &Url,
        make: impl Fn() -> Result<Request<RequestBody>, Cause>,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut call = Call::begin(self.call_timeout());
        let prepared = authority(origin)
            .map_err(Cause::from)
            .and_then(|authority| self.host(&authority).map_err(Cause::from))
            .and_then(|host| Ok((host, make()?)));
        let (host, prepared) = match prepared {
            Ok(prepared) => prepared,
            Err(bad) => {
                let failure = Failure::new(ErrorKind::Invalid, Step::Prepare).because(bad);
                return Err(call.fail(failure, origin));
            }
        };
        let mut sent = self.run(&host, prepared, &mut call).await;
        if let Err(error) = &sent
            && may_repeat(&call.record, error.kind())
            && let Ok(again) = make()
        {
            sent = self.run(&host, again, &mut call).await;
        }
        sent
    }
}

/// Where a URL leads, without building a string.
fn authority(url: &Url) -> Result<AuthorityRef<'_>, BadAuthority> {
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Err(BadAuthority::Scheme),
    };
    let host = url.host_str().ok_or(BadAuthority::Host)?;
    Ok(AuthorityRef { scheme, host, port: url.port().unwrap_or(scheme.default_port()) })
}

fn from_azure(request: &AzureRequest) -> Result<Request<RequestBody>, Cause> {
    let url = request.url();
    let headers = || request.headers().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut prepared = to_http(url.path(), url.query(), headers)?;
    *prepared.method_mut() = to_method(request.method())?;
    *prepared.body_mut() = RequestBody::from(request.body());
    Ok(prepared)
}

/// A request without a body, whose URL is a path: scheme and host are known by then.
fn to_http<'a, H: Iterator<Item = (&'a str, &'a str)>>(
    path: &str,
    query: Option<&str>,
    headers: impl Fn() -> H,
) -> Result<Request<RequestBody>, Cause> {
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

    let names = NAMES.load();
    // One more for `Host`.
    let mut map = HeaderMap::with_capacity(count + 1);
    for (name, value) in headers() {
        let value = HeaderValue::from_maybe_shared(buffer.split_to(value.len()))?;
        map.insert(http_name(&names, name)?, value);
    }

    let mut prepared = Request::new(RequestBody::empty());
    *prepared.uri_mut() = Uri::from(path);
    *prepared.headers_mut() = map;
    Ok(prepared)
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
    let headers = to_headers(&parts.headers);
    match body.take_complete() {
        Some(bytes) => AsyncRawResponse::from_bytes(status, headers, bytes),
        None => {
            let stream: PinnedStream = Box::pin(AzureBody(body));
            AsyncRawResponse::new(status, headers, stream)
        }
    }
}

/// Values that are not text are left out, with a warning: the trait has no place for them.
fn to_headers(map: &HeaderMap) -> Headers {
    let names = NAMES.load();
    let mut headers = HashMap::with_capacity(map.len());
    for (name, value) in map {
        match value.to_str() {
            Ok(value) => {
                let (name, value) = to_header(&names, name, value);
                headers.insert(name, value);
            }
            Err(_) => tracing::warn!(%name, "a header of the response is left out: its value is not text"),
        }
    }
    Headers::from(headers)
}

struct AzureBody(ResponseBody);

impl Stream for AzureBody {
    type Item = azure_core::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_piece(cx).map(|piece| piece.map(|piece| piece.map_err(Error::into)))
    }
}

/// A header name that was seen before, in both vocabularies, and the values it had first.
struct Name {
    http: HeaderName,
    azure: AzureName,
    values: [OnceLock<&'static str>; VALUES_MAX],
}

impl Name {
    /// A value, without a copy if it is one of those that are remembered.
    fn value(&self, value: &str) -> AzureValue {
        if value.len() <= VALUE_BYTES_MAX {
            for known in &self.values {
                // Leaked on purpose: at most four short values of each name.
                let known: &'static str = known.get_or_init(|| String::leak(value.to_owned()));
                if known == value {
                    return AzureValue::from_static(known);
                }
            }
        }
        AzureValue::from(value.to_owned())
    }
}

type Names = HashMap<&'static str, &'static Name, foldhash::fast::RandomState>;

/// All names that were seen before. Read with every request, written when a name is seen for the first time.
static NAMES: LazyLock<ArcSwap<Names>> = LazyLock::new(|| ArcSwap::from_pointee(Names::default()));

fn http_name(names: &Names, name: &str) -> Result<HeaderName, http::header::InvalidHeaderName> {
    match names.get(name) {
        Some(known) => Ok(known.http.clone()),
        None => {
            let new = HeaderName::from_bytes(name.as_bytes())?;
            learn(&new);
            Ok(new)
        }
    }
}

fn to_header(names: &Names, name: &HeaderName, value: &str) -> (AzureName, AzureValue) {
    match names.get(name.as_str()) {
        Some(known) => (known.azure.clone(), known.value(value)),
        None => {
            learn(name);
            (AzureName::from(name.as_str().to_owned()), AzureValue::from(value.to_owned()))
        }
    }
}

/// Remembers a name for the life of the process, unless there are too many already.
fn learn(name: &HeaderName) {
    if name.as_str().len() > NAME_BYTES_MAX || NAMES.load().len() >= NAMES_MAX {
        return;
    }
    // Leaked on purpose: at most 512 short names, which then cost nothing to hand out.
    let text: &'static str = String::leak(name.as_str().to_owned());
    let new: &'static Name = Box::leak(Box::new(Name {
        http: HeaderName::from_static(text),
        azure: AzureName::from_static(text),
        values: [const { OnceLock::new() }; VALUES_MAX],
    }));
    NAMES.rcu(|names| {
        if names.len() >= NAMES_MAX || names.contains_key(text) {
            return Arc::clone(names);
        }
        let mut more = Names::clone(names);
        more.insert(text, new);
        Arc::new(more)
    });
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
        // The second time, the names are known.
        for _ in 0..2 {
            let prepared = from_azure(&given).expect("it is valid");
            assert_eq!(prepared.method(), Method::POST);
            assert_eq!(prepared.uri(), "/dbs/a%20b?x=1&y=%C3%A4");
            assert_eq!(prepared.headers()["x-ms-date"], "Mon, 01 Jan 2024 00:00:00 GMT");
            assert_eq!(prepared.headers()["x-ms-version"], "2020-07-15");
            assert_eq!(prepared.headers()["x-empty"], "");
            assert_eq!(prepared.body().len(), Some(5));
        }
    }

    #[test]
    fn a_path_in_pieces_begins_with_a_slash_whether_it_was_given_or_not() {
        let sent = [("x-ms-date", "now"), ("x-empty", "")];
        for (path, expected) in [("dbs/d", "/dbs/d"), ("/dbs/d", "/dbs/d"), ("", "/"), ("a?b=c", "/a?b=c")] {
            let prepared = to_http(path, None, || sent.into_iter()).expect("it is valid");
            assert_eq!(prepared.uri(), expected);
            assert_eq!(prepared.headers()["x-ms-date"], "now");
        }
        assert!(to_http("a b", None, || sent.into_iter()).is_err(), "escaping is the caller's");
    }

    #[test]
    fn a_url_leads_where_it_says() {
        for (url, expected) in [
            ("https://HOST/", (Scheme::Https, "host", 443)),
            ("http://host:81/a", (Scheme::Http, "host", 81)),
            ("http://[::1]/", (Scheme::Http, "[::1]", 80)),
        ] {
            let given = request(url);
            let found = authority(given.url()).expect("it leads somewhere");
            assert_eq!((found.scheme, found.host, found.port), expected, "{url}");
        }
        assert!(authority(request("ftp://host/").url()).is_err());
    }

    #[test]
    fn a_value_no_header_may_have_is_refused() {
        let mut given = request("http://host/");
        given.insert_header("x-split", "a\r\nb: c");
        assert!(from_azure(&given).is_err());
        let mut given = request("http://host/");
        given.insert_header("x split", "a");
        assert!(from_azure(&given).is_err());
    }

    #[test]
    fn names_are_known_the_second_time() {
        let mut map = HeaderMap::new();
        map.insert("x-ms-request-charge", HeaderValue::from_static("1"));
        let first = to_headers(&map);
        let second = to_headers(&map);
        assert_eq!(first, second);
        assert!(NAMES.load().contains_key("x-ms-request-charge"));
        let long = HeaderName::from_bytes(&[b'x'; NAME_BYTES_MAX + 1]).expect("it is valid");
        learn(&long);
        assert!(!NAMES.load().contains_key(long.as_str()));
    }

    #[test]
    fn the_first_values_of_a_name_are_shared_and_later_ones_are_as_good() {
        let name = HeaderName::from_static("x-values");
        learn(&name);
        for round in 0..2 {
            for number in 0..VALUES_MAX + 2 {
                let text = format!("value {number}");
                let (_, value) = to_header(&NAMES.load(), &name, &text);
                assert_eq!(value.as_str(), text, "round {round}");
            }
            let long = "x".repeat(VALUE_BYTES_MAX + 1);
            assert_eq!(to_header(&NAMES.load(), &name, &long).1.as_str(), long);
        }
        let known = NAMES.load();
        let remembered = known["x-values"].values.each_ref().map(|value| value.get().copied());
        assert_eq!(remembered, ["value 0", "value 1", "value 2", "value 3"].map(Some));
    }

    #[test]
    fn a_header_that_is_not_text_is_left_out() {
        let mut map = HeaderMap::new();
        map.insert("x-odd", HeaderValue::from_bytes(b"\xff").expect("a header may hold it"));
        map.insert("x-even", HeaderValue::from_static("2"));
        let headers = to_headers(&map);
        assert_eq!(headers.iter().count(), 1);
    }
}
