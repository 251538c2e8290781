//! Many HTTP/2 connections per endpoint, one pool for HTTP/1.1.
//!
//! The service takes 20 requests at a time on one HTTP/2 connection. A *shard* is a transport of its own, and
//! so a connection of its own, used for one endpoint; this module decides which shard a request goes to
//! ([`select`]), when a shard is evicted ([`health`]), and how many there should be ([`scale`]). Those three
//! are pure. [`ShardedTransport`] sends over the shards, holds them, and runs the task that maintains them. It
//! is shared by all drivers of a process, and decides nothing about repeating a request.

mod clients;
mod config;
mod health;
mod in_flight;
mod processor;
mod protocol;
mod scale;
pub(crate) mod select;
mod shards;
mod sweep;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use azure_core::http::Url;
use futures::future::{Either, select as first_of};
use perihelion_http::trace::{RequestTrace, observe};

use self::clients::{SharedClient, SharedClients};
pub use self::config::{InvalidSharding, LoadSpread, SERVICE_STREAMS_MAX, ShardingConfig};
pub use self::in_flight::InFlight;
use self::protocol::{LearnedProtocol, Strategy, strategy};
use self::shards::Common;
pub use self::shards::EndpointShards;
use self::sweep::WakeSignal;
use crate::background::SupervisedTask;
use crate::clock::Clock;
use crate::routing::Endpoint;
use crate::transport::{HttpClientConfig, Transport, TransportFactory, TransportRequest, TransportResponse};

/// A request that timed out after at least this long counts as a failure of its connection.
const SLOW_THRESHOLD: Duration = Duration::from_secs(1);

/// Endpoints that are remembered. Those of many accounts fit; beyond it the ones without requests are removed.
const ENDPOINTS_MAX: usize = 512;

/// Sends requests to any endpoint: over shards for HTTP/2, over one client for HTTP/1.1.
#[derive(Debug)]
pub struct ShardedTransport {
    inner: Arc<Inner>,
    /// The client of all HTTP/1.1 endpoints, made when there is one.
    http1: OnceLock<Arc<SharedClient>>,
    /// The protocol assumed of an endpoint that has not responded yet: what the last endpoint spoke.
    default_protocol: LearnedProtocol,
    /// By the endpoint's URL. Read without a lock; replaced as a whole when an endpoint is new.
    routes: ArcSwap<HashMap<Box<str>, Arc<EndpointRoute>, foldhash::fast::RandomState>>,
    adding: Mutex<()>,
    /// The maintenance task, which ends with the transport.
    maintenance: SupervisedTask,
}

/// The protocol and the shards of one endpoint.
#[derive(Debug)]
pub struct EndpointRoute {
    protocol: LearnedProtocol,
    shards: Arc<EndpointShards>,
}

impl EndpointRoute {
    /// The shards of the endpoint.
    pub fn shards(&self) -> &EndpointShards {
        &self.shards
    }
}

/// What became of one request.
#[derive(Debug)]
pub struct SendResult {
    /// The response, or why there is none.
    pub result: Result<TransportResponse, SendError>,
    /// What happened on the connection, as far as the transport reported it.
    pub exchange: RequestTrace,
    /// The shard that sent it; none over HTTP/1.1.
    pub shard: Option<u64>,
    /// When the response was complete, or the request failed.
    pub ended: Instant,
}

/// Why a request has no response.
#[derive(Debug)]
pub enum SendError {
    /// The transport returned an error.
    Failed(azure_core::Error),
    /// The deadline passed; the request was dropped, which ends its stream or connection.
    TimedOut,
}

impl SendError {
    fn is_timeout(&self) -> bool {
        match self {
            SendError::TimedOut => true,
            SendError::Failed(error) => {
                perihelion_http::Error::find_in(error).is_some_and(|e| e.is_timeout())
            }
        }
    }
}

struct Inner {
    common: Arc<Common>,
    clock: Clock,
    began: Instant,
    /// The shards of each endpoint, which are owned by the routes.
    endpoints: Mutex<Vec<Weak<EndpointShards>>>,
}

impl ShardedTransport {
    /// A transport without endpoints, whose clients come from `factory`. The maintenance task starts with the
    /// first endpoint, from within a runtime, and again with the next request after that runtime is gone.
    pub fn new(
        factory: Arc<dyn TransportFactory>,
        client: HttpClientConfig,
        sharding: ShardingConfig,
        clock: Clock,
    ) -> Result<ShardedTransport, InvalidSharding> {
        sharding.validate()?;
        let clients = SharedClients::new(factory, client);
        let common =
            Common { config: sharding, clients, wake: WakeSignal::default(), next_shard: AtomicU64::new(0) };
        let began = clock.now();
        let inner = Inner { common: Arc::new(common), clock, began, endpoints: Mutex::default() };
        Ok(ShardedTransport {
            inner: Arc::new(inner),
            http1: OnceLock::new(),
            default_protocol: LearnedProtocol::default(),
            routes: ArcSwap::default(),
            adding: Mutex::new(()),
            maintenance: SupervisedTask::new(began),
        })
    }

    /// Sends `request` to `endpoint` and reads the response, until `deadline` at the latest, over another shard
    /// than `excluded_shard` where there is one.
    ///
    /// Dropping the future cancels the request and ends its count. Cost besides the transport's: one look-up and
    /// one selection, without an allocation; a timer if the transport does not enforce deadlines.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        request: &TransportRequest<'_>,
        excluded_shard: Option<u64>,
        begun: Instant,
        deadline: Instant,
    ) -> SendResult {
        let route = self.route(endpoint);
        self.maintain(begun);
        #[cfg(feature = "fault-injection")]
        self.clients().endpoint_in_use(endpoint);
        match strategy(route.protocol.get(), self.default_protocol.get()) {
            Strategy::Sharded => {
                let in_flight = route.shards.acquire(excluded_shard, self.at(begun));
                let shard = in_flight.shard().id();
                let (result, exchange) = self.exchange(in_flight.transport(), request, deadline).await;
                let ended = self.inner.clock.now();
                self.end(in_flight, &result, ended.saturating_duration_since(begun), ended);
                self.learn_protocol(&route, &exchange);
                SendResult { result, exchange, shard: Some(shard), ended }
            }
            Strategy::Plain => {
                let client = self.http1.get_or_init(|| self.clients().take(|_| false));
                let (result, exchange) = self.exchange(client.transport(), request, deadline).await;
                self.learn_protocol(&route, &exchange);
                SendResult { result, exchange, shard: None, ended: self.inner.clock.now() }
            }
        }
    }

    /// The route to an endpoint; it is made when the endpoint is new.
    pub fn route(&self, endpoint: &Endpoint) -> Arc<EndpointRoute> {
        match self.routes.load().get(endpoint.url().as_str()) {
            Some(route) => Arc::clone(route),
            None => self.new_route(endpoint),
        }
    }

    #[cold]
    fn new_route(&self, endpoint: &Endpoint) -> Arc<EndpointRoute> {
        let _adding = crate::sync::lock(&self.adding);
        let known = self.routes.load();
        let key = endpoint.url().as_str();
        if let Some(route) = known.get(key) {
            return Arc::clone(route);
        }
        let shards = self.new_shards(endpoint.url().clone());
        let route = Arc::new(EndpointRoute { protocol: LearnedProtocol::default(), shards });
        let mut more = HashMap::clone(&known);
        if more.len() >= ENDPOINTS_MAX {
            more.retain(|_, route| route.shards.in_flight() > 0);
        }
        more.insert(key.into(), Arc::clone(&route));
        self.routes.store(Arc::new(more));
        route
    }

    /// New shards for an endpoint; they are maintained for as long as the result lives.
    pub fn new_shards(&self, url: Url) -> Arc<EndpointShards> {
        let shards = Arc::new(EndpointShards::new(url, Arc::clone(&self.inner.common), self.now()));
        self.inner.lock_endpoints().push(Arc::downgrade(&shards));
        self.maintain(self.inner.clock.now());
        shards
    }

    /// Starts the maintenance task on the caller's runtime, unless it runs.
    fn maintain(&self, now: Instant) {
        let transport = &self.inner;
        self.maintenance.ensure_running(now, |heartbeat| sweep::run(heartbeat, Arc::downgrade(transport)));
    }

    /// Sends one request and reads its response, or gives up at the deadline.
    async fn exchange(
        &self,
        transport: &dyn Transport,
        request: &TransportRequest<'_>,
        deadline: Instant,
    ) -> (Result<TransportResponse, SendError>, RequestTrace) {
        let mut observed = pin!(observe(transport.send(request)).with_deadline(deadline));
        if transport.enforces_deadlines() {
            let (exchange, result) = observed.await;
            return (result.map_err(|error| self.send_error(error, deadline)), exchange);
        }
        // A transport that responds at once, from memory, needs no timer.
        if let std::task::Poll::Ready((exchange, result)) = futures::poll!(observed.as_mut()) {
            return (result.map_err(SendError::Failed), exchange);
        }
        match first_of(observed.as_mut(), self.inner.clock.sleep_until(deadline)).await {
            Either::Left(((exchange, result), _)) => (result.map_err(SendError::Failed), exchange),
            Either::Right(_) => (Err(SendError::TimedOut), observed.current_trace()),
        }
    }

    /// The error of a transport that enforces deadlines; its timeout is the same as that of the timer.
    fn send_error(&self, error: azure_core::Error, deadline: Instant) -> SendError {
        let failed = SendError::Failed(error);
        if failed.is_timeout() && self.inner.clock.now() >= deadline { SendError::TimedOut } else { failed }
    }

    fn end(
        &self,
        in_flight: InFlight,
        result: &Result<TransportResponse, SendError>,
        took: Duration,
        ended: Instant,
    ) {
        let now = self.at(ended);
        match result {
            Ok(_) => in_flight.succeeded(now),
            // A short deadline of the caller's says nothing about the connection.
            Err(error) if error.is_timeout() && took < SLOW_THRESHOLD => drop(in_flight),
            Err(_) => in_flight.failed(now),
        }
    }

    fn learn_protocol(&self, route: &EndpointRoute, exchange: &RequestTrace) {
        if exchange.protocol.is_some() {
            route.protocol.learn(exchange.protocol);
            self.default_protocol.learn(exchange.protocol);
        }
    }

    /// Requests in flight over the shards of these endpoints. Two endpoints of one URL, such as an account's
    /// own and its first region's, are counted once.
    pub fn in_flight<'a>(&self, endpoints: impl Iterator<Item = &'a Endpoint>) -> u32 {
        let known = self.routes.load();
        let urls: BTreeSet<_> = endpoints.map(|endpoint| endpoint.url().as_str()).collect();
        urls.into_iter().filter_map(|url| known.get(url)).map(|route| route.shards.in_flight()).sum()
    }

    /// How many clients there are.
    pub fn client_count(&self) -> usize {
        self.clients().count()
    }

    fn clients(&self) -> &SharedClients {
        &self.inner.common.clients
    }

    /// The present time, as shards count it: since the transport was made.
    pub fn now(&self) -> Duration {
        self.inner.now()
    }

    /// A time that was read from the clock before, as shards count it.
    pub fn at(&self, time: Instant) -> Duration {
        time.saturating_duration_since(self.inner.began)
    }

    /// Runs the maintenance of all shards once, with a given share of the processors in use.
    #[cfg(test)]
    pub(crate) async fn sweep(&self, processor: Option<f64>) {
        self.inner.sweep(processor).await;
    }
}

impl Inner {
    fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.began)
    }

    fn endpoints(&self) -> Vec<Arc<EndpointShards>> {
        let mut endpoints = self.lock_endpoints();
        endpoints.retain(|shards| shards.strong_count() > 0);
        endpoints.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock_endpoints(&self) -> std::sync::MutexGuard<'_, Vec<Weak<EndpointShards>>> {
        crate::sync::lock(&self.endpoints)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("config", &self.common.config).finish_non_exhaustive()
    }
}
