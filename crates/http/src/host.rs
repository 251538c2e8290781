//! The connections of each host: acquires one for a request, idle, shared or new.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Instant;

use http::uri::InvalidUri;
use tracing::Instrument;

use crate::call::{Call, StepError, TRACING_TARGET};
use crate::clock;
use crate::connect::{Connector, NewConnection};
use crate::connection::http1::{self, Http1};
use crate::connection::http2::pool::{Acquire, ConnectPermit, Grant, Http2Pool};
use crate::connection::http2::{Http2, StreamPermit};
use crate::deadline::{self, DeadlineElapsed};
use crate::endpoint::Endpoint;
use crate::error::ErrorKind;
use crate::origin::{Origin, OriginKey, Scheme};
use crate::pool::{ConnectionPool, HostPool, Lease, PoolConfig};
use crate::settings::Settings;
use crate::stream::age_limit;
use crate::sync::ignore_poison;
use crate::trace::{Protocol, Reuse, Step};

/// One host: its connections, and the protocol it negotiated.
#[derive(Debug)]
pub(crate) struct Host {
    endpoint: Arc<Endpoint>,
    /// The pool of idle HTTP/1.1 connections.
    http1: HostPool<Box<Http1>>,
    /// HTTP/2 connections, in use or not.
    http2: Arc<Http2Pool>,
    /// The protocol that ALPN chose last.
    negotiated: AtomicU8,
    /// The number of the request that used the host last, by which the host that was not used for longest is found.
    last_use: AtomicU64,
}

/// A connection that one request may use.
pub(crate) enum AcquiredConnection {
    Http1(Lease<Box<Http1>>),
    Http2(StreamPermit),
}

/// How requests use the connections of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionKind {
    /// HTTP/1.1: each request has a connection to itself.
    Exclusive,
    /// HTTP/2: requests share connections. A new connection may turn out to speak HTTP/1.1 only.
    Multiplexed,
}

/// The values that [`Host::negotiated`] can have.
const NEGOTIATED_NOTHING: u8 = 0;
const NEGOTIATED_HTTP1: u8 = 1;
const NEGOTIATED_HTTP2: u8 = 2;

/// Chooses the kind of connection for a request that requires `protocol`, or any if it is `None`.
///
/// Before the first negotiation all requests but one wait for that one's connection: if it speaks HTTP/2, no other is
/// needed.
fn connection_kind(scheme: Scheme, protocol: Option<Protocol>, negotiated: u8) -> ConnectionKind {
    match (protocol, scheme, negotiated) {
        (Some(Protocol::Http1), _, _) => ConnectionKind::Exclusive,
        (Some(Protocol::Http2), _, _) => ConnectionKind::Multiplexed,
        (None, Scheme::Http, _) | (None, Scheme::Https, NEGOTIATED_HTTP1) => ConnectionKind::Exclusive,
        (None, Scheme::Https, _) => ConnectionKind::Multiplexed,
    }
}

impl Host {
    fn new(
        origin: Origin,
        http1: HostPool<Box<Http1>>,
        http2_connections_max: usize,
    ) -> Result<Self, InvalidUri> {
        Ok(Host {
            endpoint: Arc::new(Endpoint::new(origin)?),
            http1,
            http2: Http2Pool::new(http2_connections_max),
            negotiated: AtomicU8::new(NEGOTIATED_NOTHING),
            last_use: AtomicU64::new(0),
        })
    }

    /// Scheme, name and port of the host.
    pub(crate) fn origin(&self) -> &Origin {
        &self.endpoint.origin
    }

    /// Acquires a connection for one request, and opens one if necessary. If `skip_idle`, no idle HTTP/1.1 connection
    /// is used.
    pub(crate) async fn acquire(
        &self,
        connector: &Connector,
        settings: &Settings,
        call: &mut Call,
        skip_idle: bool,
    ) -> Result<AcquiredConnection, StepError> {
        let now = clock::now();
        if call.is_expired(now) {
            return Err(StepError::timed_out(Step::Wait));
        }
        let protocol = call.protocol().or(settings.protocol);
        let deadline = deadline::earlier(call.deadline(), deadline::after(now, settings.connect_timeout));
        let mut acquisition = Acquisition { host: self, connector, settings, protocol, deadline };
        // Another round follows when another connection changed what the host speaks: to HTTP/1.1 (`UseHttp1`), or to
        // HTTP/2 with no room for the connection that found out. Each of them has a deadline.
        loop {
            // Acquire and Release pair up so that a waiter that is sent to HTTP/1.1 sees what was negotiated.
            let negotiated = self.negotiated.load(Ordering::Acquire);
            match connection_kind(self.origin().scheme(), protocol, negotiated) {
                ConnectionKind::Exclusive => {
                    if !skip_idle && let Some(lease) = http1::checkout(&self.http1, now) {
                        return Ok(AcquiredConnection::Http1(lease));
                    }
                    if let Some(acquired) = acquisition.connect(call, None).await? {
                        return Ok(acquired);
                    }
                }
                ConnectionKind::Multiplexed => match acquisition.acquire_stream().await? {
                    Grant::Stream(permit) => return Ok(AcquiredConnection::Http2(permit)),
                    Grant::Connect(permit) => {
                        let acquired = acquisition.connect(call, Some(permit)).await?;
                        if let Some(AcquiredConnection::Http1(_)) = acquired {
                            self.http2.send_waiters_to_http1();
                        }
                        if let Some(acquired) = acquired {
                            return Ok(acquired);
                        }
                    }
                    Grant::UseHttp1 => {}
                },
            }
        }
    }
}

/// The acquisition of one connection: what it may use, and until when.
struct Acquisition<'a> {
    host: &'a Host,
    connector: &'a Connector,
    settings: &'a Settings,
    protocol: Option<Protocol>,
    deadline: Option<Instant>,
}

impl Acquisition<'_> {
    /// Acquires a stream of an HTTP/2 connection, or the permit to open one; waits in the queue for either.
    async fn acquire_stream(&self) -> Result<Grant, StepError> {
        match self.host.http2.acquire() {
            Acquire::Granted(grant) => Ok(grant),
            Acquire::Queued(receiver) => match deadline::timeout_at(self.deadline, receiver).await {
                Ok(grant) => Ok(grant.unwrap_or(Grant::UseHttp1)),
                Err(DeadlineElapsed) => Err(StepError::timed_out(Step::Wait)),
            },
        }
    }

    /// Opens a connection before the deadline. `None` if it speaks HTTP/2, and the host has enough of those.
    async fn connect(
        &mut self,
        call: &mut Call,
        permit: Option<ConnectPermit>,
    ) -> Result<Option<AcquiredConnection>, StepError> {
        let mut step = Step::Connect;
        let origin = self.host.origin();
        let span = tracing::debug_span!(
            target: TRACING_TARGET,
            "http.connect",
            server.address = origin.host_name(),
            server.port = origin.port(),
        );
        // Boxed, because it is rare and large: the future of a call on a warm connection stays small.
        let connecting = Box::pin(self.open(call, permit, &mut step).instrument(span));
        match deadline::timeout_at(self.deadline, connecting).await {
            Ok(acquired) => acquired,
            Err(DeadlineElapsed) => Err(StepError::timed_out(step)),
        }
    }

    async fn open(
        &self,
        call: &mut Call,
        permit: Option<ConnectPermit>,
        step: &mut Step,
    ) -> Result<Option<AcquiredConnection>, StepError> {
        let Acquisition { host, connector, settings, protocol, .. } = *self;
        let endpoint = Arc::clone(&host.endpoint);
        let connection = connector.connect(host.origin(), protocol, call, step).await?;
        let NewConnection { stream, mut info, protocol: negotiated } = connection;
        let age_max = settings.connection_age_max.map(|age| age_limit(age, fastrand::f64()));
        info.retire_at = deadline::after(clock::now(), age_max);
        if protocol.is_none() {
            let stored = match negotiated {
                Protocol::Http1 => NEGOTIATED_HTTP1,
                Protocol::Http2 => NEGOTIATED_HTTP2,
            };
            host.negotiated.store(stored, Ordering::Release);
        }
        match negotiated {
            Protocol::Http1 => {
                let http1 = Http1::handshake(stream, info, endpoint, settings).await.map_err(|error| {
                    StepError::new(ErrorKind::Unreachable, Step::Connect).with_source(error)
                })?;
                Ok(Some(AcquiredConnection::Http1(host.http1.lease(http1, clock::now()))))
            }
            Protocol::Http2 => {
                // The host spoke HTTP/1.1 until now, so this request did not ask for the permit.
                let Some(_permit) = permit.or_else(|| host.http2.try_connect()) else { return Ok(None) };
                let http2 = Http2::handshake(stream, info, endpoint, settings, &host.http2).await?;
                let permit = http2.try_acquire(Reuse::New);
                host.http2.add(http2);
                permit.map(|permit| Some(AcquiredConnection::Http2(permit))).ok_or_else(|| {
                    StepError::new(ErrorKind::Closed, Step::Connect)
                        .with_source("the peer closed a new connection at once")
                })
            }
        }
    }
}

/// The hosts of a client, by origin.
#[derive(Debug)]
pub(crate) struct Hosts {
    pool: ConnectionPool<Box<Http1>>,
    by_origin: RwLock<HashMap<Origin, Arc<Host>>>,
    /// The number of lookups so far.
    uses: AtomicU64,
    /// The limit of HTTP/2 connections per host.
    http2_connections_max: usize,
}

impl Hosts {
    pub(crate) fn new(config: PoolConfig, http2_connections_max: usize) -> Self {
        Hosts {
            pool: ConnectionPool::new(config),
            by_origin: RwLock::default(),
            uses: AtomicU64::new(0),
            http2_connections_max,
        }
    }

    /// The pool of idle HTTP/1.1 connections of all hosts.
    pub(crate) fn pool(&self) -> &ConnectionPool<Box<Http1>> {
        &self.pool
    }

    /// Closes all connections that no request uses, and returns their number.
    pub(crate) fn clear(&self) -> usize {
        let hosts: Vec<_> = ignore_poison(self.by_origin.read()).values().cloned().collect();
        self.pool.clear() + hosts.iter().map(|host| host.http2.clear()).sum::<usize>()
    }

    /// Finds or adds the host of an origin. Allocates only if it is new.
    pub(crate) fn get(&self, origin: &(dyn OriginKey + '_)) -> Result<Arc<Host>, InvalidUri> {
        let by_origin = ignore_poison(self.by_origin.read());
        let found = by_origin.get(origin).cloned();
        drop(by_origin);
        let host = match found {
            Some(host) => host,
            None => self.insert(origin)?,
        };
        // Relaxed: the numbers only order the uses, and two at the same time have no order.
        host.last_use.store(self.uses.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(host)
    }

    fn insert(&self, origin: &(dyn OriginKey + '_)) -> Result<Arc<Host>, InvalidUri> {
        // First, so that the pool finds the removed host unused, and closes its connections too.
        drop(self.remove_unused_above(self.pool.config().max_hosts() - 1));
        let origin = origin.parts().to_owned();
        let host = Host::new(origin.clone(), self.pool.host(&origin), self.http2_connections_max)?;
        let mut by_origin = ignore_poison(self.by_origin.write());
        // Another thread may have added it since `get` looked.
        Ok(Arc::clone(by_origin.entry(origin).or_insert_with(|| Arc::new(host))))
    }

    /// Removes the hosts that no request uses, those that were not used for longest first, until at most `max` are
    /// left. The caller drops them, because that closes connections, which must not happen under the lock.
    fn remove_unused_above(&self, max: usize) -> Vec<Arc<Host>> {
        let mut removed = Vec::new();
        let mut by_origin = ignore_poison(self.by_origin.write());
        // Each round removes a host, or ends.
        while by_origin.len() > max {
            let unused = by_origin.iter().filter(|(_, host)| Arc::strong_count(host) == 1);
            let oldest = unused.min_by_key(|(_, host)| host.last_use.load(Ordering::Relaxed));
            let Some(oldest) = oldest.map(|(origin, _)| origin.clone()) else { break };
            removed.extend(by_origin.remove(&oldest));
        }
        removed
    }
}
