//! One host as a client knows it: the connections that wait, and what was learnt about it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use http::HeaderValue;
use http::uri;
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
use crate::sharing::{Asked, Sharing, Turn};

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
    shared: Arc<Sharing>,
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
    fn new(
        authority: Authority,
        idle: HostPool<Box<Http1>>,
        shared_max: usize,
    ) -> Result<Self, uri::InvalidUri> {
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
            shared: Sharing::new(shared_max),
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
        if call.is_late(now) {
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
                Plan::Shared => match connection.turn().await? {
                    Turn::Place(place) => return Ok(Place::Http2(place)),
                    Turn::Connect(turn) => {
                        let place = connection.make(call).await?;
                        if let Place::Http1(_) = place {
                            self.shared.dismiss();
                        }
                        drop(turn);
                        return Ok(place);
                    }
                    Turn::Elsewhere => {}
                },
            }
        }
    }

    /// Closes the shared connections that nobody uses, and says how many that were.
    pub(crate) fn clear_shared(&self) -> usize {
        self.shared.clear()
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
    /// A place on a shared connection, or the turn to make one; waits in line for either.
    async fn turn(&self) -> Result<Turn, Failure> {
        match self.host.shared.ask() {
            Asked::Now(turn) => Ok(turn),
            Asked::Later(told) => match deadline::within(self.deadline, told).await {
                Ok(turn) => Ok(turn.unwrap_or(Turn::Elsewhere)),
                Err(Passed) => Err(Failure::timed_out(Step::Wait)),
            },
        }
    }

    /// A place on a new connection.
    async fn make(&mut self, call: &mut Call) -> Result<Place, Failure> {
        let mut step = Step::Connect;
        let span =
            tracing::debug_span!(target: TARGET, "http.connect", server.address = %self.host.authority);
        // Boxed, because it is rare and long: a call that finds a connection need not carry it along.
        let making = Box::pin(self.connect(call, &mut step).instrument(span));
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
                let http2 = Http2::begin(stream, info, settings, &host.shared).await?;
                let place = http2.place(Reuse::New);
                host.shared.add(http2);
                place.map(Place::Http2).ok_or_else(|| {
                    Failure::new(ErrorKind::Closed, Step::Connect)
                        .because("the peer closed a new connection at once")
                })
            }
        }
    }
}

/// All hosts a client knows.
#[derive(Debug)]
pub(crate) struct Hosts {
    pool: ConnectionPool<Box<Http1>>,
    known: RwLock<HashMap<Authority, Arc<Host>>>,
    /// HTTP/2 connections per host.
    shared_max: usize,
}

impl Hosts {
    pub(crate) fn new(config: PoolConfig, shared_max: usize) -> Self {
        Hosts { pool: ConnectionPool::new(config), known: RwLock::default(), shared_max }
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
        let host = Arc::new(Host::new(authority.clone(), self.pool.host(&authority), self.shared_max)?);
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
