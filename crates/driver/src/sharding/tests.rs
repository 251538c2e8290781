//! The background task: when it runs, what it gets ready, and that it ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use azure_core::error::ErrorKind;
use futures::future::BoxFuture;

use super::testing::Factory;
use super::*;
use crate::clock::ManualTime;

const SECOND: Duration = Duration::from_secs(1);

/// Scripted clients that connect ahead when the test lets them.
#[derive(Debug)]
struct Warmable {
    factory: Factory,
    ahead: Arc<Ahead>,
}

#[derive(Debug)]
struct Ahead {
    /// Connections that may be made; each that is takes one.
    gate: tokio::sync::Semaphore,
    fails: bool,
    asked: AtomicUsize,
}

impl HttpClientFactory for Warmable {
    fn create(&self, config: &HttpClientConfig) -> NewClient {
        self.factory.create(config).with_connect(Arc::clone(&self.ahead) as Arc<dyn ConnectAhead>)
    }
}

impl ConnectAhead for Ahead {
    fn connect<'a>(&'a self, _: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            self.gate.acquire().await.expect("open").forget();
            match self.fails {
                true => Err(azure_core::Error::with_message(ErrorKind::Io, "nobody there")),
                false => Ok(()),
            }
        })
    }
}

struct World {
    time: ManualTime,
    ahead: Arc<Ahead>,
    transport: ShardedTransport,
    shards: Arc<EndpointShards>,
}

fn world(connections: usize, fails: bool) -> World {
    let time = ManualTime::new();
    let gate = tokio::sync::Semaphore::new(connections);
    let ahead = Arc::new(Ahead { gate, fails, asked: AtomicUsize::new(0) });
    let factory = Warmable { factory: Factory::default(), ahead: Arc::clone(&ahead) };
    let clients = SharedClients::new(Arc::new(factory), HttpClientConfig::default());
    let transport = ShardedTransport::new(ShardingConfig::default(), clients, time.clock()).expect("valid");
    let shards = transport.endpoint(Url::parse("https://one.example/").expect("a URL"));
    World { time, ahead, transport, shards }
}

impl World {
    fn asked(&self) -> usize {
        self.ahead.asked.load(Ordering::Relaxed)
    }

    fn begin(&self, requests: usize) -> Vec<InFlight> {
        (0..requests).map(|_| self.shards.acquire(None, self.transport.now())).collect()
    }
}

async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::task::yield_now().await;
    }
}

/// Lets everything happen that can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_shard_is_ready_before_the_others_are_full_and_no_request_waits_for_it() {
    let world = world(0, false);
    let mut requests = world.begin(12);
    settle().await;
    assert_eq!(world.asked(), 0, "three quarters are fine");
    requests.extend(world.begin(1));
    until(|| world.asked() == 1).await;
    assert_eq!(world.shards.count(), 1, "it is not offered before its connection stands");
    requests.extend(world.begin(2));
    world.ahead.gate.add_permits(1);
    until(|| world.shards.count() == 2).await;
    assert_eq!(world.asked(), 1);
    drop(requests);
}

#[tokio::test]
async fn connecting_ahead_that_hangs_or_fails_holds_up_nobody() {
    let world = world(0, false);
    let mut requests = world.begin(13);
    until(|| world.asked() == 1).await;
    requests.extend(world.begin(3));
    requests.extend(world.begin(1));
    assert_eq!(world.shards.count(), 2, "the seventeenth request gets its own at once");
    until(|| world.time.sleepers() > 0).await;
    world.time.advance(HttpClientConfig::default().connect_timeout);
    settle().await;
    assert_eq!(world.shards.count(), 2, "what does not connect in time is not added");

    let failing = self::world(100, true);
    let _requests = failing.begin(13);
    until(|| failing.asked() == 1).await;
    settle().await;
    drop(failing.begin(1));
    settle().await;
    assert_eq!(failing.asked(), 1, "it is not tried again within the second");
    failing.time.advance(SECOND);
    drop(failing.begin(1));
    until(|| failing.asked() == 2).await;
}

#[tokio::test]
async fn every_interval_idle_shards_are_closed_without_anybody_asking() {
    let world = world(100, false);
    drop(world.begin(40));
    settle().await;
    assert!(world.shards.count() >= 3);
    // The first look comes after ten seconds, and a minute of idling is allowed.
    for _ in 0..8 {
        until(|| world.time.sleepers() > 0).await;
        world.time.advance(10 * SECOND);
        settle().await;
    }
    assert_eq!(world.shards.count(), 1);
    assert_eq!(world.transport.clients().count(), 1);
}

#[tokio::test]
async fn the_task_ends_with_the_transport() {
    let world = world(100, false);
    until(|| world.time.sleepers() == 1).await;
    let World { time, transport, shards, .. } = world;
    let inner = Arc::downgrade(&transport.inner);
    drop(transport);
    until(|| time.sleepers() == 0).await;
    assert!(inner.upgrade().is_none());
    let request = shards.acquire(None, SECOND);
    assert_eq!(shards.in_flight(), 1, "who still holds the shards can use them");
    request.answered(SECOND);
}
