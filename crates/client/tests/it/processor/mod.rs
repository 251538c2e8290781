//! The change feed processor, over sockets: instances that start, stop and crash, partitions that split, handlers that
//! fail.

mod deletion;
mod failures;
mod interrupted;
mod positions;
mod random_histories;
mod sharing;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use driver::operation::ContainerName;
use emulator::{Emulator, EmulatorConfig, RunningEmulator};
use perihelion::{
    Account, BatchContext, ChangeFeedProcessor, ContainerClient, ContainerProperties, CosmosClient,
    HandlerError, PartitionKeyDefinition, ProcessorStart, RunningProcessor,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;

use crate::control;

/// How long a test waits for an event before it fails.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Reading {
    id: String,
    sensor: String,
    number: u32,
}

/// An account with a container of readings in several partitions, and one for leases.
struct Fixture {
    running: RunningEmulator,
    client: CosmosClient,
}

impl Fixture {
    async fn start(partitions: u32) -> Fixture {
        Fixture::start_with(partitions, |_| ()).await
    }

    async fn start_with(partitions: u32, configure: impl FnOnce(&mut EmulatorConfig)) -> Fixture {
        let mut config = EmulatorConfig::default();
        config.partitions = NonZeroU32::new(partitions);
        configure(&mut config);
        let running = Emulator::start(config).await.expect("the emulator starts");
        let client = CosmosClient::from_connection_string(&running.connection_string()).expect("valid");
        client.create_database("plant").await.expect("created");
        let fixture = Fixture { running, client };
        fixture.create("readings", "/sensor").await;
        fixture.create("leases", "/id").await;
        fixture
    }

    async fn create(&self, id: &str, path: &str) {
        let key = PartitionKeyDefinition::hash(path).expect("a path");
        let properties = ContainerProperties::new(id, key);
        self.client.database("plant").create_container(&properties).await.expect("created");
    }

    fn container(&self, id: &str) -> ContainerClient {
        self.client.database("plant").container(id)
    }

    /// A client with its own caches that prefers this region, as another process would have it.
    fn other_process_in(&self, region: &str) -> OtherProcess {
        let account = Account::from_connection_string(&self.running.connection_string()).expect("valid");
        OtherProcess(CosmosClient::builder(account).preferred_regions([region]).build().expect("valid"))
    }

    /// A client with its own caches, as another process would have it.
    fn other_process(&self) -> OtherProcess {
        let text = self.running.connection_string();
        OtherProcess(CosmosClient::from_connection_string(&text).expect("valid"))
    }

    /// Writes a reading of each of `sensors`, all at once.
    async fn write(&self, sensors: std::ops::Range<u32>, number: u32) {
        let readings = self.container("readings");
        let write = async |sensor: u32| {
            let sensor = format!("s{sensor}");
            let reading = Reading { id: sensor.clone(), sensor: sensor.clone(), number };
            readings.upsert_item(&sensor, &reading).await.expect("written");
        };
        futures::future::join_all(sensors.map(write)).await;
    }

    /// The ids of the physical partitions, read without a cache.
    async fn partitions(&self) -> Vec<u32> {
        let client = self.other_process().0;
        let name = ContainerName::new("plant", "readings");
        let container = client.driver().container(&name, &Default::default()).await.expect("known");
        let ranges = client.driver().partitions(&container, &Default::default()).await.expect("listed");
        ranges.map().partitions().iter().map(|partition| partition.id.0).collect()
    }

    async fn split(&self, partition: u32) {
        let path = format!("/databases/plant/containers/readings/partitions/{partition}/split");
        control(&self.running, &path, json!({})).await;
    }

    /// Merges partitions that are adjacent.
    async fn merge(&self, neighbours: &[u32]) {
        let path = "/databases/plant/containers/readings/partitions/merge";
        control(&self.running, path, json!({"partitionIds": neighbours})).await;
    }

    /// A processor with short intervals.
    fn processor(&self, name: &str) -> ChangeFeedProcessor {
        fast_processor(&self.container("readings"), &self.container("leases"), name)
    }
}

/// A client of the same account with caches and sessions of its own.
struct OtherProcess(CosmosClient);

impl OtherProcess {
    fn processor(&self, name: &str) -> ChangeFeedProcessor {
        let fixture = self.0.database("plant");
        fast_processor(&fixture.container("readings"), &fixture.container("leases"), name)
    }
}

fn fast_processor(readings: &ContainerClient, leases: &ContainerClient, name: &str) -> ChangeFeedProcessor {
    readings
        .change_feed_processor(name)
        .lease_container(leases)
        .from(ProcessorStart::Beginning)
        .page_size(NonZeroU32::new(5).expect("not zero"))
        .poll_interval(Duration::from_millis(20))
        // Long enough for a busy machine; tests that wait for the expiry set a shorter one.
        .lease_expiry(Duration::from_secs(20))
        .renew_interval(Duration::from_millis(200))
        .acquire_interval(Duration::from_millis(100))
        .retries(NonZeroU32::new(3).expect("not zero"), Duration::from_millis(1), Duration::from_millis(20))
}

/// The changes that handlers received, with the instance that received each.
#[derive(Clone)]
struct Received {
    seen: Arc<Mutex<Vec<(String, Reading)>>>,
    count: Arc<watch::Sender<usize>>,
}

impl Received {
    fn new() -> Received {
        Received { seen: Arc::default(), count: Arc::new(watch::Sender::new(0)) }
    }

    fn record(&self, readings: Vec<Reading>, context: &BatchContext) {
        let mut seen = self.seen.lock().expect("no panic");
        seen.extend(readings.into_iter().map(|reading| (context.instance.clone(), reading)));
        self.count.send_replace(seen.len());
    }

    /// Starts an instance whose handler records all changes.
    async fn start(&self, processor: ChangeFeedProcessor) -> RunningProcessor {
        let received = self.clone();
        let handler = move |readings: Vec<Reading>, context: BatchContext| {
            received.record(readings, &context);
            async { Ok::<_, HandlerError>(()) }
        };
        processor.start(handler).await.expect("started")
    }

    /// The numbers of each sensor, in the order in which they were received.
    fn by_sensor(&self) -> BTreeMap<String, Vec<u32>> {
        let mut numbers: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (_, reading) in self.seen.lock().expect("no panic").iter() {
            numbers.entry(reading.sensor.clone()).or_default().push(reading.number);
        }
        numbers
    }

    fn len(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits until the received changes satisfy `enough`.
    async fn until(&self, what: &str, enough: impl Fn(&Received) -> bool) {
        let mut count = self.count.subscribe();
        let waiting = async {
            while !enough(self) {
                count.changed().await.expect("the sender is alive");
            }
        };
        if tokio::time::timeout(EVENT_TIMEOUT, waiting).await.is_err() {
            panic!("{what}: {:?}", self.by_sensor());
        }
    }

    /// Waits until this number of each of these sensors was received.
    async fn until_all(&self, sensors: std::ops::Range<u32>, number: u32) {
        let what = format!("number {number} of {sensors:?}");
        self.until(&what, |received| {
            let numbers = received.by_sensor();
            sensors.clone().all(|sensor| {
                numbers.get(&format!("s{sensor}")).is_some_and(|received| received.contains(&number))
            })
        })
        .await;
    }
}

/// Polls until `poll` returns a value, for events that nothing notifies of.
async fn eventually<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let polling = async {
        loop {
            if let Some(found) = poll().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(EVENT_TIMEOUT, polling).await {
        Ok(found) => found,
        Err(_) => panic!("it did not happen in time: {what}"),
    }
}
