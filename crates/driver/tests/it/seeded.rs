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
use crate::lab::{Clients, DEADLINE, Lab, run, within};
use crate::queries::{expected, fill, split, start};

/// Seeds that are part of the tests.
const SEEDS: u64 = 12;
const QUERIES_PER_SEED: usize = 6;

/// Draws, one after the other, from a seed.
struct Dice(u64);

impl Dice {
    /// Below `count`.
    fn below(&mut self, count: usize) -> usize {
        // splitmix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) >> 33).expect("31 bits") % count
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn page(&mut self) -> NonZeroU32 {
        NonZeroU32::new(u32::try_from(1 + self.below(12)).expect("small")).expect("not zero")
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
fn query(dice: &mut Dice) -> (String, bool) {
    let condition = match dice.below(7) {
        0 => "c.n > 2".to_owned(),
        1 => format!("c.g = {}", dice.below(4)),
        2 => "IS_DEFINED(c.k) AND c.n < 6".to_owned(),
        3 => format!("c.pk IN ('p{}', 'p{}', 'p{}')", dice.below(23), dice.below(23), dice.below(23)),
        4 => "ARRAY_LENGTH(c.tags) = 1 OR c.n = 0".to_owned(),
        5 => format!("c.id >= 'i0{}'", dice.below(10)),
        _ => "true".to_owned(),
    };
    let direction = *dice.one(&["", " DESC"]);
    match dice.below(9) {
        0 => (format!("SELECT c.id, c.n, c.k FROM c WHERE {condition}"), false),
        1 => (format!("SELECT c.id, c.n FROM c WHERE {condition} ORDER BY c.n{direction}, c.id"), true),
        2 => {
            let top = 1 + dice.below(30);
            (format!("SELECT TOP {top} c.id FROM c WHERE {condition} ORDER BY c.id{direction}"), true)
        }
        3 => {
            let (offset, limit) = (dice.below(20), 1 + dice.below(20));
            let order = format!("ORDER BY c.g, c.id{direction} OFFSET {offset} LIMIT {limit}");
            (format!("SELECT c.id, c.g FROM c WHERE {condition} {order}"), true)
        }
        4 => (format!("SELECT DISTINCT c.g, c.n FROM c WHERE {condition}"), false),
        5 => {
            let aggregate = *dice.one(&["COUNT(1)", "SUM(c.n)", "MIN(c.id)", "MAX(c.n)", "AVG(c.g)"]);
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
fn unlucky(lab: &Lab, seed: u64, kind: OperationKind) -> (CosmosDriver, FaultInjector) {
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
    let account = Account::from_connection_string(&lab.running.connection_string()).expect("valid");
    (runtime.driver(&account, DriverOptions::new()).expect("valid"), faults)
}

fn hits(faults: &FaultInjector) -> u64 {
    faults.list().iter().map(|report| report.hits).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries_find_under_faults_what_they_find_without() {
    let lab = Lab::start_with(|config| config.partitions = NonZeroU32::new(3)).await;
    let items = fill(&lab, &lab.driver(), 70).await;
    let mut struck = 0;
    for seed in seeds() {
        let mut dice = Dice(seed);
        let (driver, faults) = unlucky(&lab, seed, OperationKind::Query);
        for _ in 0..QUERIES_PER_SEED {
            let (text, in_order) = query(&mut dice);
            let told = format!("seed {seed}: {text}");
            let options = QueryOptions::new().with_page_items(dice.page());
            let splits_after = (dice.below(8) == 0).then(|| dice.below(3));
            let mut pages = start(&lab, &driver, &text, options).await.expect(&told);
            let mut rows: Vec<Value> = Vec::new();
            for number in 0.. {
                if splits_after == Some(number) {
                    split(&lab, &lab.driver()).await;
                }
                let page = pages.next_page().await.unwrap_or_else(|error| panic!("{told}: {error}"));
                let Some(page) = page else { break };
                rows.extend(page.rows.iter().map(|row| serde_json::from_slice::<Value>(row).expect("JSON")));
            }
            let mut expected = expected(&items, &text);
            if !in_order {
                rows.sort_by_key(Value::to_string);
                expected.sort_by_key(Value::to_string);
            }
            assert_eq!(rows, expected, "{told}");
        }
        struck += hits(&faults);
    }
    assert!(struck as usize >= seeds().len() * QUERIES_PER_SEED / 2, "requests failed: {struck}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_change_feeds_tell_under_faults_what_they_tell_without() {
    let mut struck = 0;
    for seed in seeds() {
        let mut dice = Dice(seed ^ 0xFEED);
        let lab = Lab::start_with(|config| config.partitions = NonZeroU32::new(2)).await;
        let writer = lab.driver();
        let (driver, faults) = unlucky(&lab, seed, OperationKind::ChangeFeed);
        let options = ChangeFeedOptions::new().with_start(ChangeFeedStart::Beginning);
        let mut feeds = Vec::new();
        for driver in [&driver, &writer] {
            let options = options.clone().with_page_items(dice.page());
            feeds.push(driver.change_feed(&lab.container, options, &within(DEADLINE)).await.expect("a feed"));
        }
        let mut told = [BTreeMap::<String, Vec<Value>>::new(), BTreeMap::new()];
        let mut value = 0;
        for _ in 0..4 {
            for _ in 0..1 + dice.below(15) {
                let id = format!("i{}", dice.below(12));
                value += 1;
                run(&writer, &lab.upsert(&id, value)).await.expect("written");
                if dice.below(10) == 0 {
                    let delete =
                        Operation::delete_item(&lab.container, PartitionKey::single(id.as_str()), &id);
                    run(&writer, &delete).await.expect("removed");
                }
            }
            if dice.below(3) == 0 {
                split(&lab, &lab.driver()).await;
            }
            for (feed, told) in feeds.iter_mut().zip(&mut told) {
                for item in drain(feed).await {
                    let id = item["id"].as_str().expect("text").to_owned();
                    told.entry(id).or_default().push(item["value"].clone());
                }
            }
        }
        let [under_faults, without] = told;
        assert!(!without.is_empty());
        assert_eq!(under_faults, without, "seed {seed}");
        struck += hits(&faults);
    }
    assert!(struck as usize >= seeds().len(), "requests failed: {struck}");
}
