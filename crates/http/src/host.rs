//! One host as a client knows it: the connections that wait, and what was learnt about it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use http::HeaderValue;
use http::uri;

use crate::authority::{Authority, Key, Scheme};
use crate::call::{Call, Failure};
use crate::clock;
use crate::connect::{Connected, Connector};
use crate::connection::http1::{self, Http1};
use crate::deadline::{self, Passed};
use crate::error::ErrorKind;
use crate::exchange::{Protocol, Step};
use crate::pool::{ConnectionPool, HostPool, Lease, PoolConfig};
use crate::settings::Settings;

/// More hosts than this are not remembered while nobody uses them.
const HOSTS_MAX: usize = 1024;

/// One host.
#[derive(Debug)]
#[allow(dead_code, reason = "for HTTP/2, which comes next")]
pub(crate) struct Host {
    authority: Authority,
    /// `Host: …`, as it is sent over HTTP/1.1.
    pub(crate) header: HeaderValue,
    /// The parts of a URL that all requests to this host have in common.
    pub(crate) uri_scheme: uri::Scheme,
    pub(crate) uri_authority: uri::Authority,
    idle: HostPool<Box<Http1>>,
}

/// A place on a connection, for one request.
pub(crate) enum Place {
    Http1(Lease<Box<Http1>>),
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
        Ok(Host { authority, header, uri_scheme, uri_authority, idle })
    }

    /// Who it is.
    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// A place on a connection: on one that waits, unless `fresh`, or on a new one.
    pub(crate) async fn place(
        &self,
        connector: &Connector,
        settings: &Settings,
        call: &mut Call,
        fresh: bool,
    ) -> Result<Place, Failure> {
        let now = clock::now();
        if !fresh && let Some(lease) = http1::checkout(&self.idle, now) {
            return Ok(Place::Http1(lease));
        }
        let deadline = deadline::earlier(call.deadline(), deadline::after(now, settings.connect));
        let protocol = call.protocol().or(settings.protocol).or(Some(Protocol::Http1));
        let connected = self.connect(connector, protocol, call, deadline).await?;
        match connected.protocol {
            Protocol::Http1 | Protocol::Http2 => {
                let http1 = Http1::begin(connected.stream, connected.info, settings)
                    .await
                    .map_err(|error| Failure::new(ErrorKind::Unreachable, Step::Connect).because(error))?;
                Ok(Place::Http1(self.idle.lease(http1, clock::now())))
            }
        }
    }

    async fn connect(
        &self,
        connector: &Connector,
        protocol: Option<Protocol>,
        call: &mut Call,
        deadline: Option<Instant>,
    ) -> Result<Connected, Failure> {
        let mut step = Step::Connect;
        let connecting = connector.connect(&self.authority, protocol, call, &mut step);
        match deadline::within(deadline, connecting).await {
            Ok(connected) => connected,
            Err(Passed) => Err(Failure::timed_out(step)),
        }
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
