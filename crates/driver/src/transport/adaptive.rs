//! One request over the right kind of connection: shards for HTTP/2, one client for HTTP/1.1.
//!
//! [`AdaptiveTransport`] is shared by all drivers of a process, and so are its connections. It sends, waits
//! no longer than told, reads the whole body, and says what happened. It decides nothing about repeating.

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::{Either, select};
use perihelion_http::trace::{RequestTrace, observe};

use super::carrier::Carrier;
use super::gateway::{LearnedProtocol, Strategy, strategy};
use super::outcome::Answer;
use super::request::Outgoing;
use crate::clock::Clock;
use crate::routing::Endpoint;
use crate::sharding::{
    BadSharding, EndpointShards, HttpClientConfig, HttpClientFactory, InFlight, ShardedTransport,
    ShardingConfig, SharedClient, SharedClients,
};

/// A request that was not answered for this long counts against its connection.
const PATIENCE: Duration = Duration::from_secs(1);

/// Endpoints that are remembered. Those of many accounts fit; beyond it the ones in no use are forgotten.
const ENDPOINTS_MAX: usize = 512;

/// Sends requests to any endpoint, in the way that suits it.
#[derive(Debug)]
pub struct AdaptiveTransport {
    sharded: ShardedTransport,
    /// The client of all HTTP/1.1 endpoints, made when there is one.
    plain: OnceLock<Arc<SharedClient>>,
    /// What the last endpoint spoke about which nothing was known.
    elsewhere: LearnedProtocol,
    /// By the endpoint's URL. Read without a lock; replaced as a whole when an endpoint is new.
    gateways: ArcSwap<HashMap<Box<str>, Arc<Gateway>, foldhash::fast::RandomState>>,
    adding: Mutex<()>,
    clock: Clock,
}

/// What is known about one endpoint.
#[derive(Debug)]
pub struct Gateway {
    protocol: LearnedProtocol,
    shards: Arc<EndpointShards>,
}

impl Gateway {
    /// The endpoint's shards.
    pub fn shards(&self) -> &EndpointShards {
        &self.shards
    }
}

/// What became of one request.
#[derive(Debug)]
pub struct Delivery {
    /// The answer, or why there is none.
    pub result: Result<Answer, Undelivered>,
    /// What happened on the connection, as far as the client reported it.
    pub exchange: RequestTrace,
    /// Which shard carried it; none over HTTP/1.1.
    pub shard: Option<u64>,
    /// When it was over.
    pub ended: Instant,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Undelivered {
    /// The client says so.
    Failed(azure_core::Error),
    /// The time was up; the request was dropped, which ends its stream or connection.
    TimedOut,
}

impl Undelivered {
    fn is_timeout(&self) -> bool {
        match self {
            Undelivered::TimedOut => true,
            Undelivered::Failed(error) => {
                perihelion_http::Error::find_in(error).is_some_and(|e| e.is_timeout())
            }
        }
    }
}

impl AdaptiveTransport {
    /// A transport whose clients come from `factory`.
    pub fn new(
        factory: Arc<dyn HttpClientFactory>,
        client: HttpClientConfig,
        sharding: ShardingConfig,
        clock: Clock,
    ) -> Result<AdaptiveTransport, BadSharding> {
        let clients = SharedClients::new(factory, client);
        Ok(AdaptiveTransport {
            sharded: ShardedTransport::new(sharding, clients, clock.clone())?,
            plain: OnceLock::new(),
            elsewhere: LearnedProtocol::default(),
            gateways: ArcSwap::default(),
            adding: Mutex::new(()),
            clock,
        })
    }

    /// Sends `request` to `endpoint` and reads the answer, until `deadline` at the longest, over another
    /// shard than `except` where there is one.
    ///
    /// Dropping it ends the request and leaves no count behind. Cost besides the client's: one look-up and
    /// one selection, without an allocation; a timer if the client is not done at once.
    pub async fn send(
        &self,
        endpoint: &Endpoint,
        request: &Outgoing<'_>,
        except: Option<u64>,
        begun: Instant,
        deadline: Instant,
    ) -> Delivery {
        let gateway = self.gateway(endpoint);
        #[cfg(feature = "fault-injection")]
        self.sharded.clients().endpoint_in_use(endpoint);
        match strategy(gateway.protocol.get(), self.elsewhere.get()) {
            Strategy::Sharded => {
                let in_flight = gateway.shards.acquire(except, self.sharded.at(begun));
                let shard = in_flight.shard().id();
                let (result, exchange) = self.exchange(in_flight.carrier(), request, deadline).await;
                let ended = self.clock.now();
                self.end(in_flight, &result, ended.saturating_duration_since(begun), ended);
                self.learn(&gateway, &exchange);
                Delivery { result, exchange, shard: Some(shard), ended }
            }
            Strategy::Plain => {
                let client = self.plain.get_or_init(|| self.sharded.clients().take(|_| false));
                let (result, exchange) = self.exchange(client.carrier(), request, deadline).await;
                self.learn(&gateway, &exchange);
                Delivery { result, exchange, shard: None, ended: self.clock.now() }
            }
        }
    }

    /// What is known about an endpoint; what there is to know is made when it is new.
    pub fn gateway(&self, endpoint: &Endpoint) -> Arc<Gateway> {
        let key = endpoint.url().as_str();
        match self.gateways.load().get(key) {
            Some(gateway) => Arc::clone(gateway),
            None => self.new_gateway(endpoint),
        }
    }

    #[cold]
    fn new_gateway(&self, endpoint: &Endpoint) -> Arc<Gateway> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.gateways.load();
        let key = endpoint.url().as_str();
        if let Some(gateway) = known.get(key) {
            return Arc::clone(gateway);
        }
        let shards = self.sharded.endpoint(endpoint.url().clone());
        let gateway = Arc::new(Gateway { protocol: LearnedProtocol::default(), shards });
        let mut more = HashMap::clone(&known);
        if more.len() >= ENDPOINTS_MAX {
            more.retain(|_, gateway| gateway.shards.in_flight() > 0);
        }
        more.insert(key.into(), Arc::clone(&gateway));
        self.gateways.store(Arc::new(more));
        gateway
    }

    /// One request to its last byte, or to the deadline.
    async fn exchange(
        &self,
        carrier: &dyn Carrier,
        request: &Outgoing<'_>,
        deadline: Instant,
    ) -> (Result<Answer, Undelivered>, RequestTrace) {
        let mut observed = pin!(observe(carrier.carry(request)).with_deadline(deadline));
        if carrier.keeps_deadlines() {
            let (exchange, result) = observed.await;
            return (result.map_err(|error| self.undelivered(error, deadline)), exchange);
        }
        // Most clients have to wait; one that answers from memory is spared the timer.
        if let std::task::Poll::Ready((exchange, result)) = futures::poll!(observed.as_mut()) {
            return (result.map_err(Undelivered::Failed), exchange);
        }
        match select(observed.as_mut(), self.clock.sleep_until(deadline)).await {
            Either::Left(((exchange, result), _)) => (result.map_err(Undelivered::Failed), exchange),
            Either::Right(_) => (Err(Undelivered::TimedOut), observed.current_trace()),
        }
    }

    /// A carrier that kept the deadline says the same as the timer would have.
    fn undelivered(&self, error: azure_core::Error, deadline: Instant) -> Undelivered {
        let undelivered = Undelivered::Failed(error);
        if undelivered.is_timeout() && self.clock.now() >= deadline {
            return Undelivered::TimedOut;
        }
        undelivered
    }

    fn end(&self, in_flight: InFlight, result: &Result<Answer, Undelivered>, took: Duration, ended: Instant) {
        let now = self.sharded.at(ended);
        match result {
            Ok(_) => in_flight.answered(now),
            // A caller in a hurry says nothing about the connection.
            Err(undelivered) if undelivered.is_timeout() && took < PATIENCE => drop(in_flight),
            Err(_) => in_flight.failed(now),
        }
    }

    fn learn(&self, gateway: &Gateway, exchange: &RequestTrace) {
        if exchange.protocol.is_some() {
            gateway.protocol.learn(exchange.protocol);
            self.elsewhere.learn(exchange.protocol);
        }
    }

    /// One look at all shards, as the background task takes it.
    #[cfg(test)]
    pub(crate) async fn sweep(&self, processor: Option<f64>) {
        self.sharded.sweep(processor).await;
    }

    /// Requests under way over the shards of these endpoints. Two endpoints of one URL, such as an account's
    /// own and its first region's, are counted once.
    pub fn in_flight<'a>(&self, endpoints: impl Iterator<Item = &'a Endpoint>) -> u32 {
        let known = self.gateways.load();
        let urls: BTreeSet<_> = endpoints.map(|endpoint| endpoint.url().as_str()).collect();
        urls.into_iter().filter_map(|url| known.get(url)).map(|gateway| gateway.shards.in_flight()).sum()
    }

    /// How many clients there are.
    pub fn clients(&self) -> usize {
        self.sharded.clients().count()
    }
}
