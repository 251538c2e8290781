//! One host as a client knows it: the connections that wait, and what was learnt about it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use http::HeaderValue;
use http::uri;
use tokio::sync::Notify;
use tracing::Instrument;

use crate::authority::{Authority, Key, Scheme};
use crate::call::{Call, Failure};
use crate::client::TARGET;
use crate::clock;
use crate::connect::{Connected, Connector};
use crate::connection::http1::{self, Http1};
use crate::connection::http2::{self, Http2};
use crate::deadline::{self, Passed};
use crate::error::ErrorKind;
use crate::exchange::{Protocol, Reuse, Step};
use crate::pool::{ConnectionPool, HostPool, Lease, PoolConfig};
use crate::settings::Settings;

/// More hosts than this are not remembered while nobody uses them.
const HOSTS_MAX: usize = 1024;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    authority: Authority,
    /// `Host: …`, as it is sent over HTTP/1.1.
    pub(crate) header: HeaderValue,
    /// The parts of a URL that all requests to this host have in common.
    pub(crate) uri_scheme: uri::Scheme,
    pub(crate) uri_authority: uri::Authority,
    /// HTTP/1.1 connections that wait.
    idle: HostPool<Box<Http1>>,
    /// HTTP/2 connections, in use or not.
    shared: Mutex<Vec<Arc<Http2>>>,
    /// Told when a place on a shared connection may have become free, or a connection was made, or was not.
    changed: Arc<Notify>,
    /// Whether a connection to be shared is being made: one at a time.
    connecting: AtomicBool,
    /// What was last agreed on with the peer.
    spoken: AtomicU8,
}

/// A place on a connection, for one request.
pub(crate) enum Place {
    Http1(Lease<Box<Http1>>),
    Http2(http2::Place),
}

/// Which connections serve a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// One to itself.
    Own,
    /// A shared one; a new one may turn out not to be.
    Shared,
}

/// What was last agreed on, as it is stored.
const SPOKEN_NOTHING: u8 = 0;
const SPOKEN_HTTP1: u8 = 1;
const SPOKEN_HTTP2: u8 = 2;

/// Which connections serve a request that is for `wanted`, or any, where `spoken` was spoken before.
///
/// With a peer that nobody has spoken to, all but the first wait for the first one's connection: if it can be
/// shared, it is the only one that is needed.
fn plan(scheme: Scheme, wanted: Option<Protocol>, spoken: u8) -> Plan {
    match (wanted, scheme, spoken) {
        (Some(Protocol::Http1), _, _) => Plan::Own,
        (Some(Protocol::Http2), _, _) => Plan::Shared,
        (None, Scheme::Http, _) | (None, Scheme::Https, SPOKEN_HTTP1) => Plan::Own,
        (None, Scheme::Https, _) => Plan::Shared,
    }
}

impl Host {
    fn new(authority: Authority, idle: HostPool<Box<Http1>>) -> Result<Self, uri::InvalidUri> {
        let (scheme, host, port) = (authority.scheme(), authority.host(), authority.port());
        let uri_authority: uri::Authority = match port == scheme.default_port() {
            true => host.parse()?,
            false => format!("{host}:{port}").parse()?,
        };
        let header =
            HeaderValue::from_str(uri_authority.as_str()).expect("what a URL may hold, a header may");
        let uri_scheme = match scheme {
            Scheme::Http => uri::Scheme::HTTP,
            Scheme::Https => uri::Scheme::HTTPS,
        };
        Ok(Host {
            authority,
            header,
            uri_scheme,
            uri_authority,
            idle,
            shared: Mutex::default(),
            changed: Arc::default(),
            connecting: AtomicBool::new(false),
            spoken: AtomicU8::new(SPOKEN_NOTHING),
        })
    }

    /// Who it is.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A place on a connection: on one that waits or is shared, or on a new one. If `fresh`, not on one that
    /// waits.
    pub(crate) async fn place(
        &self,
        connector: &Connector,
        settings: &Settings,
        call: &mut Call,
        fresh: bool,
    ) -> Result<Place, Failure> {
        let now = clock::now();
        if call.deadline().is_some_and(|deadline| deadline <= now) {
            return Err(Failure::timed_out(Step::Wait));
        }
        let wanted = call.protocol().or(settings.protocol);
        let deadline = deadline::earlier(call.deadline(), deadline::after(now, settings.connect));
        let mut connection = Connecting { host: self, connector, settings, wanted, deadline };
        loop {
            match plan(self.authority.scheme(), wanted, self.spoken.load(Ordering::Acquire)) {
                Plan::Own => {
                    if !fresh && let Some(lease) = http1::checkout(&self.idle, now) {
                        return Ok(Place::Http1(lease));
                    }
                    return connection.make(call).await;
                }
                Plan::Shared => {
                    if let Some(place) = self.shared_place() {
                        return Ok(Place::Http2(place));
                    }
                    if let Some(place) = connection.make_or_wait(call).await? {
                        return Ok(place);
                    }
                }
            }
        }
    }

    /// A place on a shared connection, if one is free.
    fn shared_place(&self) -> Option<http2::Place> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let place = shared.iter().find_map(|http2| http2.place(Reuse::Reused));
        if place.is_none() {
            // Those that still have requests on them live on with these.
            let closed: Vec<_> = shared.extract_if(.., |http2| http2.is_closed()).collect();
            drop(shared);
            drop(closed);
        }
        place
    }

    fn shared_count(&self) -> usize {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Closes the shared connections that nobody uses, and says how many that were.
    pub(crate) fn clear_shared(&self) -> usize {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let idle: Vec<_> = shared.extract_if(.., |http2| http2.is_idle()).collect();
        drop(shared);
        idle.len()
    }
}

/// A connection being made.
struct Connecting<'a> {
    host: &'a Host,
    connector: &'a Connector,
    settings: &'a Settings,
    wanted: Option<Protocol>,
    deadline: Option<Instant>,
}

impl Connecting<'_> {
    /// A place on a new connection, or nothing when something has changed, so that looking again is worth it.
    async fn make_or_wait(&mut self, call: &mut Call) -> Result<Option<Place>, Failure> {
        let Connecting { host, settings, deadline, .. } = *self;
        let mut changed = pin!(host.changed.notified());
        changed.as_mut().enable();
        // What changed before this moment was not heard.
        if let Some(place) = host.shared_place() {
            return Ok(Some(Place::Http2(place)));
        }
        if host.shared_count() < settings.http2.connections_max
            && let Some(turn) = Turn::take(host)
        {
            let made = self.make(call).await;
            drop(turn);
            return made.map(Some);
        }
        match deadline::within(deadline, changed).await {
            Ok(()) => Ok(None),
            Err(Passed) => Err(Failure::timed_out(Step::Wait)),
        }
    }

    /// A place on a new connection.
    async fn make(&mut self, call: &mut Call) -> Result<Place, Failure> {
        let mut step = Step::Connect;
        let span =
            tracing::debug_span!(target: TARGET, "http.connect", server.address = %self.host.authority);
        let making = self.connect(call, &mut step).instrument(span);
        match deadline::within(self.deadline, making).await {
            Ok(made) => made,
            Err(Passed) => Err(Failure::timed_out(step)),
        }
    }

    async fn connect(&self, call: &mut Call, step: &mut Step) -> Result<Place, Failure> {
        let Connecting { host, connector, settings, wanted, .. } = *self;
        let Connected { stream, info, protocol } =
            connector.connect(&host.authority, wanted, call, step).await?;
        if wanted.is_none() {
            let spoken = if protocol == Protocol::Http2 { SPOKEN_HTTP2 } else { SPOKEN_HTTP1 };
            host.spoken.store(spoken, Ordering::Release);
        }
        match protocol {
            Protocol::Http1 => {
                let http1 = Http1::begin(stream, info, settings)
                    .await
                    .map_err(|error| Failure::new(ErrorKind::Unreachable, Step::Connect).because(error))?;
                Ok(Place::Http1(host.idle.lease(http1, clock::now())))
            }
            Protocol::Http2 => {
                let http2 = Http2::begin(stream, info, settings, Arc::clone(&host.changed)).await?;
                let place = http2.place(Reuse::New);
                host.shared.lock().unwrap_or_else(PoisonError::into_inner).push(http2);
                host.changed.notify_waiters();
                place.map(Place::Http2).ok_or_else(|| {
                    Failure::new(ErrorKind::Closed, Step::Connect)
                        .because("the peer closed a new connection at once")
                })
            }
        }
    }
}

/// The turn to make a connection to be shared. Dropped, for whatever reason, the next may.
struct Turn<'a>(&'a Host);

impl<'a> Turn<'a> {
    fn take(host: &'a Host) -> Option<Self> {
        let taken = host.connecting.swap(true, Ordering::AcqRel);
        // Not `then_some`: a turn that was not had must not be given back.
        (!taken).then(|| Turn(host))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.connecting.store(false, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}
/// All hosts a client knows.
#[derive(Debug)]
pub(crate) struct Hosts {
    pool: ConnectionPool<Box<Http1>>,
    known: RwLock<HashMap<Authority, Arc<Host>>>,
}

impl Hosts {
    pub(crate) fn new(config: PoolConfig) -> Self {
        Hosts { pool: ConnectionPool::new(config), known: RwLock::default() }
    }

    /// The connections that wait, of all hosts.
    pub(crate) fn pool(&self) -> &ConnectionPool<Box<Http1>> {
        &self.pool
    }

    /// Closes all connections that wait or are shared and unused, and says how many that were.
    pub(crate) fn clear(&self) -> usize {
        let known: Vec<_> =
            self.known.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        self.pool.clear() + known.iter().map(|host| host.clear_shared()).sum::<usize>()
    }

    /// The host that a request goes to. Builds no string unless it is new.
    pub(crate) fn get(&self, authority: &(dyn Key + '_)) -> Result<Arc<Host>, uri::InvalidUri> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(host) = known.get(authority) {
            return Ok(Arc::clone(host));
        }
        drop(known);
        self.meet(authority)
    }

    fn meet(&self, authority: &(dyn Key + '_)) -> Result<Arc<Host>, uri::InvalidUri> {
        let authority = authority.parts().to_owned();
        let host = Arc::new(Host::new(authority.clone(), self.pool.host(&authority))?);
        let forgotten: Vec<_>;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        forgotten = match known.len() < HOSTS_MAX {
            true => Vec::new(),
            false => known.extract_if(|_, host| Arc::strong_count(host) == 1).collect(),
        };
        // Somebody else may have been faster.
        let host = Arc::clone(known.entry(authority).or_insert(host));
        drop(known);
        // Closes their connections, which is done outside of the lock.
        drop(forgotten);
        Ok(host)
    }
}
