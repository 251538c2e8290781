//! The client: finds a connection, sends, and hands the answer back as it arrives.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{InvalidUri, PathAndQuery, Uri};
use http::{Request, Response};
use tracing::{Instrument, Span, field};

use crate::authority::AuthorityRef;
use crate::call::{Call, Cause, Failure};
use crate::client_builder::ClientBuilder;
use crate::clock;
use crate::connect::Connector;
use crate::connection::{Unsent, http1, http2};
use crate::error::{Error, ErrorKind};
use crate::exchange::{Exchange, Reuse, Sent, Step};
use crate::host::{Host, Hosts, Place};
use crate::pool::PoolMetrics;
use crate::request::RequestBody;
use crate::response::ResponseBody;
use crate::settings::Settings;

/// Target of all spans of the client.
pub(crate) const TARGET: &str = "perihelion_http";

/// An HTTP client that reuses connections and says what happened. Cheap to clone; clones share connections.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use perihelion_http::Client;
///
/// let client = Client::new();
/// let response = client.send(http::Request::get("http://localhost:8081/").body(())?).await?;
/// println!("{} over a {} connection", response.status(), response.body().exchange().reuse.unwrap());
/// let body = response.into_body().bytes(1024 * 1024).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    connector: Connector,
    hosts: Hosts,
}

impl Client {
    /// A client with the defaults.
    ///
    /// Unlike [`builder`](Client::builder) it cannot fail: proxies that the environment names but that are not
    /// understood are reported and left out.
    pub fn new() -> Self {
        ClientBuilder::new().build_leniently()
    }

    /// A client to be configured.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(crate) fn from_parts(settings: Settings, connector: Connector, hosts: Hosts) -> Self {
        Client { inner: Arc::new(Inner { settings, connector, hosts }) }
    }

    /// Another client with the same settings and connections of its own. They share the configuration of TLS
    /// and its sessions.
    pub fn sibling(&self) -> Self {
        let Inner { settings, connector, hosts } = &*self.inner;
        let hosts = Hosts::new(hosts.pool().config().clone(), settings.http2.connections_max);
        Client::from_parts(settings.clone(), connector.clone(), hosts)
    }

    /// Sends a request to the host its URL names, and waits for status and headers of the response.
    ///
    /// Dropped before its end, the call leaves nothing behind: an HTTP/1.1 connection is closed, an HTTP/2
    /// stream is reset.
    pub async fn send<B: Into<RequestBody>>(
        &self,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut call = Call::begin(self.inner.settings.call);
        let (mut parts, body) = request.into_parts();
        let host = AuthorityRef::of(&parts.uri)
            .map_err(Cause::from)
            .and_then(|authority| self.host(&authority).map_err(Cause::from));
        let host = match host {
            Ok(host) => host,
            Err(bad) => {
                let failure = Failure::new(ErrorKind::Invalid, Step::Prepare).because(bad);
                return Err(call.fail(failure, &parts.uri));
            }
        };
        // Scheme and authority are the host's, and put back where the protocol wants them.
        parts.uri = path_only(parts.uri);
        self.run(&host, Request::from_parts(parts, body.into()), &mut call).await
    }

    /// Makes a connection to the host that `uri` names and keeps it, so that the next request finds one that
    /// waits. Does nothing if one does already.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), perihelion_http::Error> {
    /// let client = perihelion_http::Client::new();
    /// client.connect(&http::Uri::from_static("https://localhost:8081/")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(&self, uri: &Uri) -> Result<(), Error> {
        let Inner { settings, connector, .. } = &*self.inner;
        let mut call = Call::begin(settings.call);
        let host = AuthorityRef::of(uri)
            .map_err(Cause::from)
            .and_then(|authority| self.host(&authority).map_err(Cause::from));
        let placed = match &host {
            Ok(host) => host.place(connector, settings, &mut call, false).await,
            Err(_) => Err(Failure::new(ErrorKind::Invalid, Step::Prepare)),
        };
        match (placed, host) {
            (Ok(Place::Http1(lease)), _) => lease.checkin(clock::now()),
            // The connection stays with its host; only the place on it is given back.
            (Ok(Place::Http2(place)), _) => drop(place),
            (Err(failure), Err(bad)) => return Err(call.fail(failure.because(bad), uri)),
            (Err(failure), Ok(_)) => return Err(call.fail(failure, uri)),
        }
        Ok(())
    }

    /// How long a call may take, unless the scope around it wants less.
    pub(crate) fn call_timeout(&self) -> Option<Duration> {
        self.inner.settings.call
    }

    /// A host, by its authority.
    pub(crate) fn host(&self, authority: &AuthorityRef<'_>) -> Result<Arc<Host>, InvalidUri> {
        self.inner.hosts.get(authority)
    }

    /// Takes a request, whose URL is a path, to a host.
    pub(crate) async fn run(
        &self,
        host: &Host,
        request: Request<RequestBody>,
        call: &mut Call,
    ) -> Result<Response<ResponseBody>, Error> {
        let span = tracing::debug_span!(
            target: TARGET,
            "http.request",
            http.request.method = %request.method(),
            server.address = %host.authority(),
            http.response.status_code = field::Empty,
            connection.id = field::Empty,
            connection.reused = field::Empty,
            network.protocol.name = field::Empty,
            request.sent = field::Empty,
            error = field::Empty,
        );
        if span.is_disabled() {
            return self.attempt(host, request, call).await;
        }
        let result = self.attempt(host, request, call).instrument(span.clone()).await;
        describe(&span, &call.record, &result);
        result
    }

    async fn attempt(
        &self,
        host: &Host,
        mut request: Request<RequestBody>,
        call: &mut Call,
    ) -> Result<Response<ResponseBody>, Error> {
        let Inner { settings, connector, .. } = &*self.inner;
        loop {
            call.record.attempts += 1;
            call.record.failed = None;
            let fresh = call.record.attempts > 1;
            let place = match host.place(connector, settings, call, fresh).await {
                Ok(place) => place,
                Err(failure) => return Err(call.fail(failure, host.authority())),
            };
            let sent = match place {
                Place::Http1(lease) => http1::send(lease, request, host, call, settings).await,
                Place::Http2(place) => http2::send(place, request, host, call, settings).await,
            };
            let Unsent { request: unsent, failure } = match sent {
                Ok(response) => return Ok(response),
                Err(unsent) => unsent,
            };
            match unsent {
                // The connection had been closed while it waited, which is nobody's fault.
                Some(unsent) if may_repeat(&call.record, failure.kind) => request = unsent,
                _ => return Err(call.fail(failure, host.authority())),
            }
        }
    }

    /// What happened to the connections that wait for HTTP/1.1 requests, per host.
    pub fn pool_metrics(&self) -> PoolMetrics {
        self.inner.hosts.pool().metrics(clock::now())
    }

    /// Closes the connections that have waited for too long, and says how many that were. To be called now and
    /// then where many hosts are met, or none for long: nothing runs in the background while no request does.
    /// A host that is asked regularly is looked after on the way.
    pub fn cleanup_stale(&self) -> usize {
        self.inner.hosts.pool().cleanup_stale(clock::now())
    }

    /// Closes all connections that no request is on, and says how many that were.
    pub fn clear(&self) -> usize {
        self.inner.hosts.clear()
    }
}

/// Whether a request that failed may be sent again, once, without asking anybody: only if the connection was a
/// reused one and provably nothing left.
pub(crate) fn may_repeat(record: &Exchange, kind: ErrorKind) -> bool {
    record.attempts < 2
        && record.reuse == Some(Reuse::Reused)
        && record.sent == Sent::NotSent
        && kind == ErrorKind::Closed
}

/// Tells the span of a request what came of it.
fn describe(span: &Span, record: &Exchange, result: &Result<Response<ResponseBody>, Error>) {
    if let Some(connection) = record.connection {
        span.record("connection.id", connection.get());
    }
    if let Some(reuse) = record.reuse {
        span.record("connection.reused", reuse == Reuse::Reused);
    }
    if let Some(protocol) = record.protocol {
        span.record("network.protocol.name", field::display(protocol));
    }
    span.record("request.sent", field::display(record.sent));
    match result {
        Ok(response) => span.record("http.response.status_code", response.status().as_u16()),
        Err(error) => span.record("error", field::display(error)),
    };
}

fn path_only(uri: Uri) -> Uri {
    let mut parts = uri.into_parts();
    parts.scheme = None;
    parts.authority = None;
    let path = parts.path_and_query.get_or_insert(PathAndQuery::from_static("/"));
    if path.as_str().is_empty() {
        *path = PathAndQuery::from_static("/");
    }
    Uri::from_parts(parts).unwrap_or_default()
}

impl Default for Client {
    fn default() -> Self {
        Client::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { settings, connector, hosts } = &*self.inner;
        f.debug_struct("Client")
            .field("settings", settings)
            .field("connector", connector)
            .field("pool", hosts.pool())
            .finish()
    }
}

#[cfg(test)]
mod tests;
