//! Random queries and change feeds while requests fail at random in ways an operation outlives: what is found
//! is what is found without faults.
//!
//! A seed decides everything. `PERI_SEED=7` plays one again, `PERI_SEEDS=500` plays more of them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use perihelion_driver::change_feed::{ChangeFeedOptions, ChangeFeedStart};
use perihelion_driver::faults::{
    ConnectionEffect, FaultInjectingHttpClientFactory, FaultInjector, FaultRule, OperationKind,
};
use perihelion_driver::operation::Operation;
use perihelion_driver::options::DriverOptions;
use perihelion_driver::query::QueryOptions;
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime};
use protocol::partition::PartitionKey;
use serde_json::Value;

use crate::change_feed::drain;
use crate::queries::{expected, fill, split, start};
use crate::test_account::{Clients, DEADLINE, TestAccount, run, within};

/// Seeds that are part of the tests.
const SEEDS: u64 = 12;
const QUERIES_PER_SEED: usize = 6;

/// A random source whose seed decides every query and write of a test.
struct Random(fastrand::Rng);

fn random_source(seed: u64) -> Random {
    Random(fastrand::Rng::with_seed(seed))
}

impl Random {
    /// A number below `count`.
    fn below(&mut self, count: usize) -> usize {
        self.0.usize(..count)
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn page(&mut self) -> NonZeroU32 {
        NonZeroU32::new(self.0.u32(1..=12)).expect("not zero")
    }
}

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    match number("PERI_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("PERI_SEEDS").unwrap_or(SEEDS)).collect(),
    }
}

/// A query, and whether the order of its rows is decided by it.
fn query(rng: &mut Random) -> (String, bool) {
    let condition = match rng.below(7) {
        0 => "c.n > 2".to_owned(),
        1 => format!("c.g = {}", rng.below(4)),
        2 => "IS_DEFINED(c.k) AND c.n < 6".to_owned(),
        3 => format!("c.pk IN ('p{}', 'p{}', 'p{}')", rng.below(23), rng.below(23), rng.below(23)),
        4 => "ARRAY_LENGTH(c.tags) = 1 OR c.n = 0".to_owned(),
        5 => format!("c.id >= 'i0{}'", rng.below(10)),
        _ => "true".to_owned(),
    };
    let direction = *rng.one(&["", " DESC"]);
    match rng.below(9) {
        0 => (format!("SELECT c.id, c.n, c.k FROM c WHERE {condition}"), false),
        1 => (format!("SELECT c.id, c.n FROM c WHERE {condition} ORDER BY c.n{direction}, c.id"), true),
        2 => {
            let top = 1 + rng.below(30);
            (format!("SELECT TOP {top} c.id FROM c WHERE {condition} ORDER BY c.id{direction}"), true)
        }
        3 => {
            let (offset, limit) = (rng.below(20), 1 + rng.below(20));
            let order = format!("ORDER BY c.g, c.id{direction} OFFSET {offset} LIMIT {limit}");
            (format!("SELECT c.id, c.g FROM c WHERE {condition} {order}"), true)
        }
        4 => (format!("SELECT DISTINCT c.g, c.n FROM c WHERE {condition}"), false),
        5 => {
            let aggregate = *rng.one(&["COUNT(1)", "SUM(c.n)", "MIN(c.id)", "MAX(c.n)", "AVG(c.g)"]);
            (format!("SELECT VALUE {aggregate} FROM c WHERE {condition}"), true)
        }
        6 => {
            let text = "SELECT c.g, COUNT(1) AS many, MAX(c.id) AS last FROM c WHERE";
            (format!("{text} {condition} GROUP BY c.g"), false)
        }
        7 => (format!("SELECT c.id, t FROM c JOIN t IN c.tags WHERE {condition}"), false),
        _ => (format!("SELECT DISTINCT VALUE c.n FROM c WHERE {condition} ORDER BY c.n{direction}"), true),
    }
}

/// A driver whose requests of this kind fail at random, each way as often as the others, about one in four.
fn unlucky(test_account: &TestAccount, seed: u64, kind: OperationKind) -> (CosmosDriver, FaultInjector) {
    let faults = FaultInjector::new(seed);
    for (name, rule) in [
        ("503", FaultRule::status(503, 0)),
        ("500", FaultRule::status(500, 0)),
        ("408", FaultRule::status(408, 0)),
        ("429", FaultRule::throttle(Duration::from_millis(1))),
        ("429-3092", FaultRule::status(429, 3092)),
        ("410-1007", FaultRule::status(410, 1007)),
        ("404-1002", FaultRule::status(404, 1002)),
        ("unreachable", FaultRule::connection(ConnectionEffect::FailBeforeSending)),
        ("lost", FaultRule::connection(ConnectionEffect::CloseAfter)),
    ] {
        faults.add(rule.named(name).on(kind).in_container("d", "c").share(0.03)).expect("a rule");
    }
    let clients = FaultInjectingHttpClientFactory::new(Arc::new(Clients), faults.clone());
    let runtime = CosmosRuntime::builder(Arc::new(clients)).build().expect("valid");
    let account = Account::from_connection_string(&test_account.running.connection_string()).expect("valid");
    (runtime.driver(&account, DriverOptions::new()).expect("valid"), faults)
}

fn hits(faults: &FaultInjector) -> u64 {
    faults.list().iter().map(|report| report.hits).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_find_under_faults_what_they_find_without() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(3)).await;
    let items = fill(&test_account, &test_account.driver(), 70).await;
    let mut struck = 0;
    for seed in seeds() {
        let mut rng = random_source(seed);
        let (driver, faults) = unlucky(&test_account, seed, OperationKind::Query);
        for _ in 0..QUERIES_PER_SEED {
            let (text, in_order) = query(&mut rng);
            let label = format!("seed {seed}: {text}");
            let options = QueryOptions::new().with_page_items(rng.page());
            let splits_after = (rng.below(8) == 0).then(|| rng.below(3));
            let mut pages = start(&test_account, &driver, &text, options).await.expect(&label);
            let mut rows: Vec<Value> = Vec::new();
            for number in 0.. {
                if splits_after == Some(number) {
                    split(&test_account, &test_account.driver()).await;
                }
                let page = pages.next_page().await.unwrap_or_else(|error| panic!("{label}: {error}"));
                let Some(page) = page else { break };
                rows.extend(page.rows.iter().map(|row| serde_json::from_slice::<Value>(row).expect("JSON")));
            }
            let mut expected = expected(&items, &text);
            if !in_order {
                rows.sort_by_key(Value::to_string);
                expected.sort_by_key(Value::to_string);
            }
            assert_eq!(rows, expected, "{label}");
        }
        struck += hits(&faults);
    }
    assert!(struck as usize >= seeds().len() * QUERIES_PER_SEED / 2, "requests failed: {struck}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_change_feeds_tell_under_faults_what_they_tell_without() {
    let mut struck = 0;
    for seed in seeds() {
        let mut rng = random_source(seed ^ 0xFEED);
        let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(2)).await;
        let writer = test_account.driver();
        let (driver, faults) = unlucky(&test_account, seed, OperationKind::ChangeFeed);
        let options = ChangeFeedOptions::new().with_start(ChangeFeedStart::Beginning);
        let mut feeds = Vec::new();
        for driver in [&driver, &writer] {
            let options = options.clone().with_page_items(rng.page());
            feeds.push(
                driver
                    .change_feed(&test_account.container, options, &within(DEADLINE))
                    .await
                    .expect("a feed"),
            );
        }
        let mut delivered = [BTreeMap::<String, Vec<Value>>::new(), BTreeMap::new()];
        let mut value = 0;
        for _ in 0..4 {
            for _ in 0..1 + rng.below(15) {
                let id = format!("i{}", rng.below(12));
                value += 1;
                run(&writer, &test_account.upsert(&id, value)).await.expect("written");
                if rng.below(10) == 0 {
                    let delete = Operation::delete_item(
                        &test_account.container,
                        PartitionKey::single(id.as_str()),
                        &id,
                    );
                    run(&writer, &delete).await.expect("removed");
                }
            }
            if rng.below(3) == 0 {
                split(&test_account, &test_account.driver()).await;
            }
            for (feed, delivered) in feeds.iter_mut().zip(&mut delivered) {
                for item in drain(feed).await {
                    let id = item["id"].as_str().expect("text").to_owned();
                    delivered.entry(id).or_default().push(item["value"].clone());
                }
            }
        }
        let [under_faults, without] = delivered;
        assert!(!without.is_empty());
        assert_eq!(under_faults, without, "seed {seed}");
        struck += hits(&faults);
    }
    assert!(struck as usize >= seeds().len(), "requests failed: {struck}");
}
