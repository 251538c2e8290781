//! The change feed over partitions that split while it is read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use emulator::faults::{FaultRule, OperationKind as Asked};
use perihelion_driver::change_feed::{
    ChangeFeed, ChangeFeedMode, ChangeFeedOptions, ChangeFeedStart, ServiceChanges,
};
use perihelion_driver::operation::Operation;
use perihelion_driver::{CosmosDriver, ErrorKind};
use protocol::partition::PartitionKey;
use serde_json::{Value, json};

use crate::lab::{DEADLINE, EAST, Lab, WEST, run, unraced, within};

async fn feed(lab: &Lab, driver: &CosmosDriver, options: ChangeFeedOptions) -> ChangeFeed<ServiceChanges> {
    driver.change_feed(&lab.container, options, &within(DEADLINE)).await.expect("a feed")
}

/// Everything new, until there is nothing.
pub(crate) async fn drain(feed: &mut ChangeFeed<ServiceChanges>) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let page = feed.next_page().await.expect("a page");
        if page.caught_up() {
            return told;
        }
        told.extend(page.items.iter().map(|item| serde_json::from_slice::<Value>(item).expect("JSON")));
    }
}

async fn split_first(lab: &Lab, driver: &CosmosDriver) {
    let container = driver.container(&lab.container).await.expect("known");
    let ranges = driver.partitions(&container).await.expect("listed");
    let first = ranges.map().partitions()[0].id;
    let path = format!("/databases/d/containers/c/partitions/{first}/split");
    lab.control(http::Method::POST, &path, json!({})).await;
}

fn options() -> ChangeFeedOptions {
    ChangeFeedOptions::new().with_page_items(NonZeroU32::new(3).expect("not zero"))
}

#[tokio::test]
async fn every_item_is_told_once_while_partitions_split() {
    let lab = Lab::start_with(|config| config.partitions = NonZeroU32::new(2)).await;
    let (writer, reader) = (lab.driver(), lab.driver());
    for number in 0..20 {
        run(&writer, &lab.upsert(&format!("i{number}"), 1)).await.expect("written");
    }
    let mut feed = feed(&lab, &reader, options().with_start(ChangeFeedStart::Beginning)).await;
    let first = feed.next_page().await.expect("a page");
    assert!((1..=3).contains(&first.items.len()), "{}", first.items.len());
    split_first(&lab, &lab.driver()).await;
    run(&writer, &lab.upsert("late", 1)).await.expect("written");
    let mut told: BTreeMap<String, u32> = BTreeMap::new();
    let values = first.items.iter().map(|item| serde_json::from_slice::<Value>(item).expect("JSON"));
    for item in values.chain(drain(&mut feed).await) {
        *told.entry(item["id"].as_str().expect("text").to_owned()).or_default() += 1;
    }
    assert_eq!(told.len(), 21, "{told:?}");
    assert!(told.values().all(|times| *times == 1), "{told:?}");
    assert_eq!(feed.ranges().count(), 3);

    // Another process goes on where this one stopped.
    let continuation = feed.continuation();
    run(&writer, &lab.upsert("i3", 2)).await.expect("written");
    let mut other = self::feed(&lab, &lab.driver(), options().with_continuation(continuation)).await;
    let news = drain(&mut other).await;
    assert_eq!(news.len(), 1);
    assert_eq!((&news[0]["id"], &news[0]["value"]), (&json!("i3"), &json!(2)));
}

#[tokio::test]
async fn changes_under_faults_equal_changes_without() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    let mut feed = feed(&lab, &driver, options()).await;
    crate::queries::trouble(&lab, &["changeFeed"]).await;
    let mut told: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for round in 0..4 {
        for number in 0..10 {
            run(&driver, &lab.upsert(&format!("i{number}"), round)).await.expect("written");
        }
        for item in drain(&mut feed).await {
            let id = item["id"].as_str().expect("text").to_owned();
            told.entry(id).or_default().push(item["value"].as_u64().expect("a number"));
        }
    }
    assert_eq!(told.len(), 10);
    assert!(told.values().all(|versions| *versions == [0, 1, 2, 3]), "{told:?}");
}

#[tokio::test]
async fn from_now_on_means_from_the_call() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.upsert("before", 1)).await.expect("written");
    let mut feed = feed(&lab, &driver, options()).await;
    for id in ["a", "b", "c", "d", "e"] {
        run(&driver, &lab.upsert(id, 1)).await.expect("written");
    }
    let mut ids: Vec<String> =
        drain(&mut feed).await.iter().map(|item| item["id"].as_str().expect("text").to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn all_versions_tell_every_change_and_every_delete() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    let mode = ChangeFeedMode::AllVersionsAndDeletes;
    let mut feed = feed(&lab, &driver, options().with_mode(mode)).await;
    run(&driver, &lab.create_item("a")).await.expect("made");
    run(&driver, &lab.upsert("a", 2)).await.expect("written");
    let delete = Operation::delete_item(&lab.container, PartitionKey::single("a"), "a");
    run(&driver, &delete).await.expect("removed");
    let told = drain(&mut feed).await;
    let kinds: Vec<&str> =
        told.iter().map(|change| change["metadata"]["operationType"].as_str().expect("text")).collect();
    assert_eq!(kinds, ["create", "replace", "delete"]);
    let past = options().with_mode(mode).with_start(ChangeFeedStart::Beginning);
    let error = driver.change_feed(&lab.container, past, &within(DEADLINE)).await.expect_err("not kept");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn pages_tell_where_their_requests_went_and_keep_the_last_of_them_only() {
    let lab = Lab::start_with(|config| config.partitions = NonZeroU32::new(20)).await;
    let driver = lab.driver_with(unraced());
    let mut feed = feed(&lab, &driver, options()).await;
    let quiet = feed.next_page().await.expect("a page");
    // Twenty to learn where now is, and twenty that found nothing since.
    assert_eq!((quiet.caught_up(), quiet.requests, quiet.diagnostics.len()), (true, 40, 16));
    let cost: f64 = quiet.diagnostics.iter().map(|told| told.totals().charge).sum();
    assert!(cost > 0.0 && cost < quiet.charge, "{cost} of {}", quiet.charge);

    run(&driver, &lab.upsert("a", 1)).await.expect("written");
    let sick = FaultRule::status(503, 0).on(Asked::ChangeFeed).in_region(WEST);
    lab.running.faults().add(sick).expect("a rule");
    let mut regions = Vec::new();
    loop {
        let page = feed.next_page().await.expect("a page");
        assert_eq!(page.diagnostics.len(), page.requests.min(16) as usize);
        for told in &page.diagnostics {
            assert_eq!(told.operation(), "read_feed");
            regions.push(
                told.attempts()
                    .iter()
                    .map(|attempt| attempt.endpoint.region().as_str())
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
        if page.caught_up() {
            break;
        }
        assert_eq!(page.items.len(), 1);
    }
    assert!(regions.contains(&format!("{WEST} {EAST}")), "{regions:?}");
    assert!(feed.next_page().await.expect("a page").requests == 20, "each page tells of its own requests");
}
