//! The background task: when it runs, what it gets ready, and that it ends.

use std::sync::atomic::{AtomicUsize, Ordering};

use azure_core::error::ErrorKind;
use futures::future::BoxFuture;

use super::testing::Factory;
use super::*;
use crate::clock::ManualTime;

const SECOND: Duration = Duration::from_secs(1);

/// Makes scripted transports that open connections when the test permits it.
#[derive(Debug)]
struct GatedFactory {
    factory: Factory,
    connects: Arc<Connects>,
}

/// A scripted transport whose connections the test permits.
#[derive(Debug)]
struct GatedTransport {
    inner: Arc<dyn Transport>,
    connects: Arc<Connects>,
}

/// The connections that transports were asked to open.
#[derive(Debug)]
struct Connects {
    /// One permit for each connection that may be opened.
    permits: tokio::sync::Semaphore,
    fails: bool,
    requested: AtomicUsize,
}

impl TransportFactory for GatedFactory {
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport> {
        let inner = self.factory.create(config);
        Arc::new(GatedTransport { inner, connects: Arc::clone(&self.connects) })
    }
}

impl Transport for GatedTransport {
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        self.inner.send(request)
    }

    fn connect<'a>(&'a self, _: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        let connects = &*self.connects;
        Box::pin(async move {
            connects.requested.fetch_add(1, Ordering::Relaxed);
            connects.permits.acquire().await.expect("open").forget();
            match connects.fails {
                true => Err(azure_core::Error::with_message(ErrorKind::Io, "no listener")),
                false => Ok(()),
            }
        })
    }
}

struct Fixture {
    time: ManualTime,
    connects: Arc<Connects>,
    transport: ShardedTransport,
    shards: Arc<EndpointShards>,
}

fn fixture(connections: usize, fails: bool) -> Fixture {
    let time = ManualTime::new();
    let permits = tokio::sync::Semaphore::new(connections);
    let connects = Arc::new(Connects { permits, fails, requested: AtomicUsize::new(0) });
    let factory = Arc::new(GatedFactory { factory: Factory::default(), connects: Arc::clone(&connects) });
    let (client, sharding) = (HttpClientConfig::default(), ShardingConfig::default());
    let transport = ShardedTransport::new(factory, client, sharding, time.clock()).expect("valid");
    let shards = transport.new_shards(Url::parse("https://one.example/").expect("a URL"));
    Fixture { time, connects, transport, shards }
}

impl Fixture {
    fn requested(&self) -> usize {
        self.connects.requested.load(Ordering::Relaxed)
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
async fn an_endpoint_that_does_not_respond_does_not_delay_the_others() {
    let fixture = fixture(0, false);
    let others: Vec<_> = (0..9)
        .map(|number| Url::parse(&format!("https://{number}.example/")).expect("a URL"))
        .map(|url| fixture.transport.new_shards(url))
        .collect();
    let _load: Vec<_> = others
        .iter()
        .chain([&fixture.shards])
        .flat_map(|shards| (0..13).map(|_| shards.acquire(None, fixture.transport.now())))
        .collect();
    until(|| fixture.requested() == 10).await;
}

#[tokio::test]
async fn maintenance_goes_on_after_the_runtime_it_was_started_on_is_gone() {
    let first = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async { fixture(0, false) })
    });
    let fixture = first.join().expect("no panic");
    assert_eq!(fixture.time.sleepers(), 0, "the task went with its runtime");
    let _load = fixture.begin(13);
    // As the next request does, on its own runtime.
    fixture.transport.maintain(fixture.time.clock().now());
    until(|| fixture.requested() == 1).await;
}

#[tokio::test]
async fn a_shard_is_ready_before_the_others_are_full_and_no_request_waits_for_it() {
    let fixture = fixture(0, false);
    let mut requests = fixture.begin(12);
    settle().await;
    assert_eq!(fixture.requested(), 0, "three quarters are fine");
    requests.extend(fixture.begin(1));
    until(|| fixture.requested() == 1).await;
    assert_eq!(fixture.shards.count(), 1, "it is not offered before its connection stands");
    requests.extend(fixture.begin(2));
    fixture.connects.permits.add_permits(1);
    until(|| fixture.shards.count() == 2).await;
    assert_eq!(fixture.requested(), 1);
    drop(requests);
}

#[tokio::test]
async fn an_early_connect_that_hangs_or_fails_delays_no_request() {
    let fixture = fixture(0, false);
    let mut requests = fixture.begin(13);
    until(|| fixture.requested() == 1).await;
    requests.extend(fixture.begin(3));
    requests.extend(fixture.begin(1));
    assert_eq!(fixture.shards.count(), 2, "the seventeenth request gets its own at once");
    until(|| fixture.time.sleepers() > 0).await;
    fixture.time.advance(HttpClientConfig::default().connect_timeout);
    settle().await;
    assert_eq!(fixture.shards.count(), 2, "what does not connect in time is not added");

    let failing = self::fixture(100, true);
    let _requests = failing.begin(13);
    until(|| failing.requested() == 1).await;
    settle().await;
    drop(failing.begin(1));
    settle().await;
    assert_eq!(failing.requested(), 1, "it is not tried again within the second");
    failing.time.advance(SECOND);
    drop(failing.begin(1));
    until(|| failing.requested() == 2).await;
}

#[tokio::test]
async fn every_interval_idle_shards_are_closed_without_anybody_asking() {
    let fixture = fixture(100, false);
    drop(fixture.begin(40));
    settle().await;
    assert!(fixture.shards.count() >= 3);
    // The first look comes after ten seconds, and a minute of idling is allowed.
    for _ in 0..8 {
        until(|| fixture.time.sleepers() > 0).await;
        fixture.time.advance(10 * SECOND);
        settle().await;
    }
    assert_eq!(fixture.shards.count(), 1);
    assert_eq!(fixture.transport.clients().count(), 1);
}

#[tokio::test]
async fn the_task_ends_with_the_transport() {
    let fixture = fixture(100, false);
    until(|| fixture.time.sleepers() == 1).await;
    let Fixture { time, transport, shards, .. } = fixture;
    let inner = Arc::downgrade(&transport.inner);
    drop(transport);
    until(|| time.sleepers() == 0).await;
    assert!(inner.upgrade().is_none());
    let request = shards.acquire(None, SECOND);
    assert_eq!(shards.in_flight(), 1, "who still holds the shards can use them");
    request.succeeded(SECOND);
}
