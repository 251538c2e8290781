//! The shards of one endpoint: a list that readers take as it is and writers replace.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use azure_core::http::Url;

use super::clients::{SharedClient, SharedClients};
use super::config::ShardingConfig;
use super::health::{EvictionReason, Observation};
use super::in_flight::{InFlight, Shard};
use super::scale::{self, AdaptiveSpread, ScalePlan};
use super::select::{Selection, SelectionLimits, select};
use super::sweep::WakeSignal;
use crate::sync::lock;

/// How often a request looks for another shard when others are quicker, before it takes what there is.
const SELECTIONS_MAX: usize = 8;

/// After connecting ahead failed, how long until it is tried again: requests find out sooner.
const GROWTH_PAUSE: Duration = Duration::from_secs(1);

/// What the shards of all endpoints have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) config: ShardingConfig,
    pub(super) clients: SharedClients,
    pub(super) wake: WakeSignal,
    pub(super) next_shard: AtomicU64,
}

/// The shards of one endpoint.
#[derive(Debug)]
pub struct EndpointShards {
    url: Url,
    common: Arc<Common>,
    /// Oldest first, and never empty. Read without a lock; replaced as a whole.
    list: ArcSwap<Vec<Arc<Shard>>>,
    /// Held while the list is replaced.
    changing: Mutex<()>,
    active_per_mille: AtomicU32,
    /// Nanoseconds before which no growth is asked for.
    growth_not_before: AtomicU64,
    traffic: Mutex<Traffic>,
}

#[derive(Debug)]
struct Traffic {
    spread: AdaptiveSpread,
    /// All requests up to the last look, those of shards that are gone included.
    requests_before: u64,
    requests_gone: u64,
}

impl EndpointShards {
    pub(super) fn new(url: Url, common: Arc<Common>, now: Duration) -> EndpointShards {
        let spread = AdaptiveSpread::new(&common.config);
        let shards = EndpointShards {
            url,
            list: ArcSwap::from_pointee(Vec::new()),
            changing: Mutex::new(()),
            active_per_mille: AtomicU32::new(spread.per_mille()),
            growth_not_before: AtomicU64::new(0),
            traffic: Mutex::new(Traffic { spread, requests_before: 0, requests_gone: 0 }),
            common,
        };
        let mut first = Vec::new();
        for _ in 0..shards.config().min_clients_per_endpoint {
            first.push(shards.new_shard(&first, now));
        }
        shards.list.store(Arc::new(first));
        shards
    }

    /// Counts a request on the best shard, other than `excluded` if there is any other.
    ///
    /// Cost: linear in the shards, without a lock or an allocation, unless all are full and one is added.
    pub fn acquire(&self, excluded: Option<u64>, now: Duration) -> InFlight {
        let config = self.config();
        let limits = SelectionLimits {
            streams_max: config.max_streams_per_client,
            suspect_at_failures: config.consecutive_failure_threshold,
            active_per_mille: self.active_per_mille.load(Ordering::Relaxed),
        };
        for _ in 0..SELECTIONS_MAX {
            let list = self.list.load();
            let avoided = excluded.and_then(|id| list.iter().position(|shard| shard.id() == id));
            let candidates = list.iter().map(|shard| shard.candidate());
            match select(candidates, list.len(), &limits, avoided) {
                Selection::Use { index, total_in_flight } => {
                    if let Some(request) = InFlight::try_begin(&list[index], limits.streams_max, now) {
                        self.signal_growth(total_in_flight + 1, list.len(), now);
                        return request;
                    }
                    // A concurrent request took the last stream; the next selection sees that.
                }
                Selection::Full { least_busy } => match self.grow_now(&list, now) {
                    ScaleOut::Added(shard) => {
                        if let Some(request) = InFlight::try_begin(&shard, limits.streams_max, now) {
                            return request;
                        }
                    }
                    ScaleOut::AddedByOthers => {}
                    ScaleOut::AtMaximum => {
                        // Beyond the limit, where requests wait for each other in the client; with nothing
                        // else left even the one to avoid.
                        let index = least_busy.or(avoided).unwrap_or(0);
                        return InFlight::begin(&list[index], now);
                    }
                },
            }
        }
        let list = self.list.load();
        let least_busy = list.iter().min_by_key(|shard| shard.in_flight());
        InFlight::begin(least_busy.expect("the list is never empty"), now)
    }

    /// The observations of each shard, oldest first.
    pub fn observations(&self) -> Vec<Observation> {
        self.list.load().iter().map(|shard| shard.observation()).collect()
    }

    /// How many shards there are.
    pub fn count(&self) -> usize {
        self.list.load().len()
    }

    /// Requests in flight on shards in use.
    pub fn in_flight(&self) -> u32 {
        self.list.load().iter().map(|shard| shard.in_flight()).sum()
    }

    /// The share of the shards that gets new requests, as it is now.
    pub fn spread(&self) -> f64 {
        lock(&self.traffic).spread.ratio()
    }

    /// The URL of the endpoint.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Looks at every shard, takes out what is unhealthy or idle, and says what was done and how many are to
    /// be added with [`EndpointShards::add`].
    pub(super) fn sweep(&self, now: Duration, processor: Option<f64>) -> ScalePlan {
        let _changing = lock(&self.changing);
        let list = self.list.load_full();
        let all: Vec<_> = list.iter().map(|shard| shard.observation()).collect();
        let mut plan = scale::plan(&all, self.config(), now, processor);
        let mut traffic = lock(&self.traffic);
        let requests = traffic.requests_gone + list.iter().map(|shard| shard.requests()).sum::<u64>();
        let arrived = requests.saturating_sub(traffic.requests_before);
        traffic.requests_before = requests;
        traffic.spread = traffic.spread.after(arrived, self.config());
        self.active_per_mille.store(traffic.spread.per_mille(), Ordering::Relaxed);
        if plan.evict.is_empty() {
            return plan;
        }
        let mut kept = Vec::with_capacity(list.len());
        for shard in list.iter() {
            match plan.evict.iter().find(|(id, _)| *id == shard.id()) {
                None => kept.push(Arc::clone(shard)),
                Some((_, reason)) => {
                    traffic.requests_gone += shard.requests();
                    self.evict(shard, *reason);
                }
            }
        }
        if kept.is_empty() {
            // A request may need a shard before a connection is open.
            kept.push(self.new_shard(&list, now));
            plan.add = plan.add.saturating_sub(1);
        }
        self.list.store(Arc::new(kept));
        plan
    }

    /// How many shards the present load calls for beyond those there are.
    pub(super) fn missing(&self) -> u32 {
        let wanted = scale::wanted_by_load(self.in_flight(), self.config());
        wanted.saturating_sub(u32::try_from(self.count()).unwrap_or(u32::MAX))
    }

    /// Adds up to `count` shards, each once `connect` has a connection for it.
    pub(super) async fn add<F>(
        &self,
        count: u32,
        now: Duration,
        connect: impl Fn(Arc<SharedClient>, Url) -> F,
    ) where
        F: Future<Output = bool>,
    {
        let list = self.list.load_full();
        let mut taken: Vec<Arc<SharedClient>> = Vec::new();
        for _ in 0..count {
            let in_use = |id| uses(&list, id) || taken.iter().any(|client| client.id() == id);
            let client = self.common.clients.take(in_use);
            taken.push(client);
        }
        drop(list);
        let connecting = taken.into_iter().map(|client| {
            let connected = connect(Arc::clone(&client), self.url.clone());
            async move { connected.await.then_some(client) }
        });
        let connected = futures::future::join_all(connecting).await;
        if connected.iter().any(Option::is_none) {
            self.growth_not_before.store(nanos(now + GROWTH_PAUSE), Ordering::Relaxed);
        }
        let _changing = lock(&self.changing);
        let mut list = Vec::clone(&self.list.load());
        for client in connected.into_iter().flatten() {
            // While this one connected, a request may have added it, or filled the list.
            if list.len() < self.config().max_clients_per_endpoint as usize && !uses(&list, client.id()) {
                list.push(Shard::new(self.next_id(), client, now));
            }
        }
        self.list.store(Arc::new(list));
    }

    /// Wakes the background task when load comes near what the shards take comfortably.
    fn signal_growth(&self, in_flight: u32, count: usize, now: Duration) {
        let config = self.config();
        let per_shard = f64::from(config.max_streams_per_client) * config.scale_up_threshold_ratio;
        if f64::from(in_flight) > per_shard * count as f64
            && count < config.max_clients_per_endpoint as usize
            && self.growth_not_before.load(Ordering::Relaxed) <= nanos(now)
        {
            self.common.wake.signal();
        }
    }

    /// Adds a shard for a request that found all of `seen` full.
    fn grow_now(&self, seen: &Arc<Vec<Arc<Shard>>>, now: Duration) -> ScaleOut {
        if seen.len() >= self.config().max_clients_per_endpoint as usize {
            return ScaleOut::AtMaximum;
        }
        let _changing = lock(&self.changing);
        let list = self.list.load_full();
        if !Arc::ptr_eq(&list, seen) {
            return ScaleOut::AddedByOthers;
        }
        let shard = self.new_shard(&list, now);
        let mut longer = Vec::with_capacity(list.len() + 1);
        longer.extend_from_slice(&list);
        longer.push(Arc::clone(&shard));
        self.list.store(Arc::new(longer));
        ScaleOut::Added(shard)
    }

    fn new_shard(&self, list: &[Arc<Shard>], now: Duration) -> Arc<Shard> {
        Shard::new(self.next_id(), self.common.clients.take(|id| uses(list, id)), now)
    }

    fn next_id(&self) -> u64 {
        self.common.next_shard.fetch_add(1, Ordering::Relaxed)
    }

    /// Requests in flight keep the shard and its client alive, and each has a deadline: draining ends by
    /// itself.
    fn evict(&self, shard: &Shard, reason: EvictionReason) {
        if reason != EvictionReason::IdleTimeout {
            shard.client().retire();
        }
        tracing::debug!(
            endpoint = self.url.as_str(),
            shard = shard.id(),
            in_flight = shard.in_flight(),
            ?reason,
            "shard evicted"
        );
    }

    fn config(&self) -> &ShardingConfig {
        &self.common.config
    }
}

/// The result of adding a shard for a request.
enum ScaleOut {
    Added(Arc<Shard>),
    AddedByOthers,
    AtMaximum,
}

fn uses(list: &[Arc<Shard>], client: u64) -> bool {
    list.iter().any(|shard| shard.client().id() == client)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharding::testing::{self, Factory};

    const NOW: Duration = Duration::from_secs(100);

    fn shards(config: ShardingConfig) -> (EndpointShards, Factory) {
        let factory = Factory::default();
        let url = Url::parse("https://one.example/").expect("a URL");
        (EndpointShards::new(url, testing::common(config, &factory), NOW), factory)
    }

    fn limited(streams: u32, clients: u32) -> ShardingConfig {
        ShardingConfig {
            max_streams_per_client: streams,
            max_clients_per_endpoint: clients,
            ..ShardingConfig::default()
        }
    }

    fn loads(shards: &EndpointShards) -> Vec<u32> {
        shards.observations().iter().map(|shard| shard.in_flight).collect()
    }

    #[test]
    fn a_burst_fills_one_shard_after_the_other_and_no_stream_limit_is_broken() {
        let (shards, factory) = shards(limited(16, 32));
        let requests: Vec<_> = (0..64).map(|_| shards.acquire(None, NOW)).collect();
        assert_eq!(loads(&shards), [16, 16, 16, 16]);
        assert_eq!(factory.created(), 4);
        drop(requests);
        assert_eq!(shards.in_flight(), 0);
    }

    #[test]
    fn at_the_maximum_the_least_busy_shard_takes_more() {
        let (shards, _) = shards(limited(2, 2));
        let _requests: Vec<_> = (0..7).map(|_| shards.acquire(None, NOW)).collect();
        assert_eq!(loads(&shards), [4, 3]);
    }

    #[test]
    fn a_retry_gets_another_shard_and_a_new_one_if_there_is_none() {
        let (shards, _) = shards(limited(16, 2));
        let first = shards.acquire(None, NOW);
        let other = shards.acquire(Some(first.shard().id()), NOW);
        assert_ne!(first.shard().id(), other.shard().id());
        assert_eq!(shards.count(), 2);
        let back = shards.acquire(Some(other.shard().id()), NOW);
        assert_eq!(back.shard().id(), first.shard().id());
    }

    #[test]
    fn with_one_client_allowed_a_retry_uses_it_again() {
        let (shards, _) = shards(limited(16, 1));
        let first = shards.acquire(None, NOW);
        assert_eq!(shards.acquire(Some(first.shard().id()), NOW).shard().id(), first.shard().id());
    }

    #[test]
    fn many_threads_neither_lose_a_count_nor_exceed_a_limit() {
        let (shards, factory) = shards(limited(16, 32));
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    for round in 0..200 {
                        let held: Vec<_> = (0..=(round % 16)).map(|_| shards.acquire(None, NOW)).collect();
                        let most = loads(&shards).into_iter().max();
                        assert!(most <= Some(16), "{most:?}");
                        held.into_iter().for_each(|request| request.succeeded(NOW));
                    }
                });
            }
        });
        assert_eq!(shards.in_flight(), 0);
        assert!(factory.created() <= 8, "128 at a time need eight at most, not {}", factory.created());
    }

    #[test]
    fn endpoints_share_clients_but_not_counts() {
        let factory = Factory::default();
        let common = testing::common(limited(16, 32), &factory);
        let make = |name| EndpointShards::new(Url::parse(name).expect("a URL"), Arc::clone(&common), NOW);
        let (one, two) = (make("https://one.example/"), make("https://two.example/"));
        let _ones: Vec<_> = (0..40).map(|_| one.acquire(None, NOW)).collect();
        let _twos: Vec<_> = (0..20).map(|_| two.acquire(None, NOW)).collect();
        assert_eq!((loads(&one), loads(&two)), (vec![16, 16, 8], vec![16, 4]));
        assert_eq!(factory.created(), 3, "the second endpoint uses the clients of the first");
    }

    #[tokio::test]
    async fn shards_are_added_once_their_connection_stands() {
        let (shards, factory) = shards(limited(16, 32));
        let _requests: Vec<_> = (0..14).map(|_| shards.acquire(None, NOW)).collect();
        assert_eq!((shards.count(), shards.missing()), (1, 1), "14 of 16 is more than three quarters");
        shards.add(1, NOW, |_, _| async { false }).await;
        assert_eq!(shards.count(), 1, "there is no connection to offer");
        shards.add(1, NOW, |_, _| async { true }).await;
        assert_eq!((shards.count(), shards.missing()), (2, 0));
        assert_eq!(factory.created(), 3);
        shards.add(100, NOW, |_, _| async { true }).await;
        assert_eq!(shards.count(), 32, "never more than allowed");
    }
}
