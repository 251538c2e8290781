//! The client: acquires a connection for a request, sends it, and returns the response.

mod builder;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::uri::{PathAndQuery, Uri};
use http::{Request, Response};
use tracing::{Instrument, Span, field};

pub use self::builder::{BuildError, ClientBuilder};
use crate::call::{Call, StepError, TRACING_TARGET};
use crate::clock;
use crate::connect::Connector;
use crate::connection::{ResponseBody, TrySendError, http1, http2};
use crate::error::{BoxError, Error, ErrorKind};
use crate::host::{AcquiredConnection, Host, Hosts};
use crate::origin::OriginRef;
use crate::pool::PoolMetrics;
use crate::request_body::RequestBody;
use crate::settings::Settings;
use crate::trace::{RequestTrace, Reuse, Sent, Step};

/// An HTTP client with pooled connections and a trace of each request. Cheap to clone; clones share connections.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use perihelion_http::Client;
///
/// let client = Client::new();
/// let response = client.send(http::Request::get("http://localhost:8081/").body(())?).await?;
/// println!("{} over a {} connection", response.status(), response.body().trace().reuse.unwrap());
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
    /// Creates a client with the default settings.
    pub fn new() -> Self {
        ClientBuilder::new().assemble()
    }

    /// Creates a builder, which configures a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    fn from_parts(settings: Settings, connector: Connector, hosts: Hosts) -> Self {
        Client { inner: Arc::new(Inner { settings, connector, hosts }) }
    }

    /// Creates a client with the same settings and connections of its own. Both share the TLS configuration and its
    /// sessions.
    pub fn with_separate_pool(&self) -> Self {
        let Inner { settings, connector, hosts } = &*self.inner;
        let hosts = Hosts::new(hosts.pool().config().clone(), settings.http2.connections_max);
        Client::from_parts(settings.clone(), connector.clone(), hosts)
    }

    /// Sends a request to the host of its URL, and waits for the status and headers of the response.
    ///
    /// Dropping the future cancels the request: an HTTP/1.1 connection is closed, an HTTP/2 stream is reset.
    pub async fn send<B: Into<RequestBody>>(
        &self,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut call = Call::start(self.call_timeout());
        let (mut parts, body) = request.into_parts();
        let host =
            OriginRef::from_uri(&parts.uri).map_err(BoxError::from).and_then(|origin| self.host(&origin));
        let host = match host {
            Ok(host) => host,
            Err(invalid) => {
                let error = StepError::new(ErrorKind::Invalid, Step::Prepare).with_source(invalid);
                return Err(call.fail(error, &parts.uri));
            }
        };
        // The connection adds scheme and authority again, where its protocol needs them.
        parts.uri = path_only(parts.uri);
        self.send_to(&host, Request::from_parts(parts, body.into()), &mut call).await
    }

    /// Opens a connection to the host of `uri` and keeps it for the next request. Does nothing if the host has an idle
    /// or shared connection already.
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
        let mut call = Call::start(self.call_timeout());
        let host = OriginRef::from_uri(uri).map_err(BoxError::from).and_then(|origin| self.host(&origin));
        let acquired = match host {
            Ok(host) => host.acquire(connector, settings, &mut call, false).await,
            Err(invalid) => Err(StepError::new(ErrorKind::Invalid, Step::Prepare).with_source(invalid)),
        };
        match acquired {
            Ok(AcquiredConnection::Http1(lease)) => lease.checkin(clock::now()),
            // The pool keeps the connection; only its stream is freed.
            Ok(AcquiredConnection::Http2(permit)) => drop(permit),
            Err(error) => return Err(call.fail(error, uri)),
        }
        Ok(())
    }

    /// How long a call may take, unless the trace scope has an earlier deadline.
    pub(crate) fn call_timeout(&self) -> Option<Duration> {
        self.inner.settings.call_timeout
    }

    /// Finds or adds the host of an origin.
    pub(crate) fn host(&self, origin: &OriginRef<'_>) -> Result<Arc<Host>, BoxError> {
        Ok(self.inner.hosts.get(origin)?)
    }

    /// Sends a request, whose URI is a path, to a host, in a span of `tracing`.
    pub(crate) async fn send_to(
        &self,
        host: &Host,
        request: Request<RequestBody>,
        call: &mut Call,
    ) -> Result<Response<ResponseBody>, Error> {
        let span = tracing::debug_span!(
            target: TRACING_TARGET,
            "http.request",
            otel.kind = "client",
            http.request.method = %request.method(),
            server.address = host.origin().host_name(),
            server.port = host.origin().port(),
            http.response.status_code = field::Empty,
            connection.id = field::Empty,
            connection.reused = field::Empty,
            network.protocol.name = field::Empty,
            request.sent = field::Empty,
            error = field::Empty,
        );
        if span.is_disabled() {
            return self.send_with_retry(host, request, call).await;
        }
        let result = self.send_with_retry(host, request, call).instrument(span.clone()).await;
        record_in_span(&span, &call.trace, &result);
        result
    }

    async fn send_with_retry(
        &self,
        host: &Host,
        mut request: Request<RequestBody>,
        call: &mut Call,
    ) -> Result<Response<ResponseBody>, Error> {
        let Inner { settings, connector, .. } = &*self.inner;
        // Ends after the second attempt at the latest: see `is_retryable`.
        loop {
            call.trace.attempts += 1;
            call.trace.failed_step = None;
            let is_retry = call.trace.attempts > 1;
            let connection = match host.acquire(connector, settings, call, is_retry).await {
                Ok(connection) => connection,
                Err(error) => return Err(call.fail(error, host.origin())),
            };
            let sent = match connection {
                AcquiredConnection::Http1(lease) => http1::send(lease, request, call, settings).await,
                AcquiredConnection::Http2(permit) => http2::send(permit, request, call, settings).await,
            };
            let TrySendError { request: unsent, error } = match sent {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            match unsent {
                // The peer had closed the connection while it was idle.
                Some(unsent) if is_retryable(&call.trace, error.kind) => request = unsent,
                _ => return Err(call.fail(error, host.origin())),
            }
        }
    }

    /// The counters of the pool of HTTP/1.1 connections, per host and in total.
    pub fn pool_metrics(&self) -> PoolMetrics {
        self.inner.hosts.pool().metrics(clock::now())
    }

    /// Closes the connections that were idle for too long, and returns their number.
    ///
    /// The client has no background task for it, and each request closes the expired connections of its own host. Call
    /// this now and then if the client talks to many hosts, or to none for a long time.
    pub fn cleanup_stale(&self) -> usize {
        self.inner.hosts.pool().cleanup_stale(clock::now())
    }

    /// Closes all connections that no request uses, and returns their number.
    pub fn clear(&self) -> usize {
        self.inner.hosts.clear()
    }
}

/// Whether the client itself retries a failed request: once, and only if a reused connection was closed before any byte
/// of the request was sent.
pub(crate) fn is_retryable(trace: &RequestTrace, kind: ErrorKind) -> bool {
    trace.attempts < 2
        && trace.reuse == Some(Reuse::Reused)
        && trace.sent == Sent::NotSent
        && kind == ErrorKind::Closed
}

/// Records the outcome of a request in its span.
fn record_in_span(span: &Span, trace: &RequestTrace, result: &Result<Response<ResponseBody>, Error>) {
    if let Some(connection) = trace.connection {
        span.record("connection.id", connection.get());
    }
    if let Some(reuse) = trace.reuse {
        span.record("connection.reused", reuse == Reuse::Reused);
    }
    if let Some(protocol) = trace.protocol {
        span.record("network.protocol.name", field::display(protocol));
    }
    span.record("request.sent", field::display(trace.sent));
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
