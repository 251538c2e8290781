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

use crate::test_account::{DEADLINE, EAST, TestAccount, WEST, run, within, without_hedging};

async fn feed(
    test_account: &TestAccount,
    driver: &CosmosDriver,
    options: ChangeFeedOptions,
) -> ChangeFeed<ServiceChanges> {
    driver.change_feed(&test_account.container, options, &within(DEADLINE)).await.expect("a feed")
}

/// Everything new, until there is nothing.
pub(crate) async fn drain(feed: &mut ChangeFeed<ServiceChanges>) -> Vec<Value> {
    let mut delivered = Vec::new();
    loop {
        let page = feed.next_page().await.expect("a page");
        if page.caught_up() {
            return delivered;
        }
        delivered.extend(page.items.iter().map(|item| serde_json::from_slice::<Value>(item).expect("JSON")));
    }
}

async fn split_first(test_account: &TestAccount, driver: &CosmosDriver) {
    let container = driver.container(&test_account.container, &Default::default()).await.expect("known");
    let ranges = driver.partitions(&container, &Default::default()).await.expect("listed");
    let first = ranges.map().partitions()[0].id;
    let path = format!("/databases/d/containers/c/partitions/{first}/split");
    test_account.control(http::Method::POST, &path, json!({})).await;
}

fn options() -> ChangeFeedOptions {
    ChangeFeedOptions::new().with_page_items(NonZeroU32::new(3).expect("not zero"))
}

#[tokio::test]
async fn every_item_is_delivered_once_while_partitions_split() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(2)).await;
    let (writer, reader) = (test_account.driver(), test_account.driver());
    for number in 0..20 {
        run(&writer, &test_account.upsert(&format!("i{number}"), 1)).await.expect("written");
    }
    let mut feed = feed(&test_account, &reader, options().with_start(ChangeFeedStart::Beginning)).await;
    let first = feed.next_page().await.expect("a page");
    assert!((1..=3).contains(&first.items.len()), "{}", first.items.len());
    split_first(&test_account, &test_account.driver()).await;
    run(&writer, &test_account.upsert("late", 1)).await.expect("written");
    let mut delivered: BTreeMap<String, u32> = BTreeMap::new();
    let values = first.items.iter().map(|item| serde_json::from_slice::<Value>(item).expect("JSON"));
    for item in values.chain(drain(&mut feed).await) {
        *delivered.entry(item["id"].as_str().expect("text").to_owned()).or_default() += 1;
    }
    assert_eq!(delivered.len(), 21, "{delivered:?}");
    assert!(delivered.values().all(|times| *times == 1), "{delivered:?}");
    assert_eq!(feed.ranges().count(), 3);

    // Another process continues where this one stopped.
    let continuation = feed.continuation();
    run(&writer, &test_account.upsert("i3", 2)).await.expect("written");
    let mut other =
        self::feed(&test_account, &test_account.driver(), options().with_continuation(continuation)).await;
    let news = drain(&mut other).await;
    assert_eq!(news.len(), 1);
    assert_eq!((&news[0]["id"], &news[0]["value"]), (&json!("i3"), &json!(2)));
}

#[tokio::test]
async fn changes_under_faults_equal_changes_without() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let mut feed = feed(&test_account, &driver, options()).await;
    crate::queries::inject_faults(&test_account, &["changeFeed"]).await;
    let mut delivered: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for round in 0..4 {
        for number in 0..10 {
            run(&driver, &test_account.upsert(&format!("i{number}"), round)).await.expect("written");
        }
        for item in drain(&mut feed).await {
            let id = item["id"].as_str().expect("text").to_owned();
            delivered.entry(id).or_default().push(item["value"].as_u64().expect("a number"));
        }
    }
    assert_eq!(delivered.len(), 10);
    assert!(delivered.values().all(|versions| *versions == [0, 1, 2, 3]), "{delivered:?}");
}

#[tokio::test]
async fn from_now_on_means_from_the_call() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    run(&driver, &test_account.upsert("before", 1)).await.expect("written");
    let mut feed = feed(&test_account, &driver, options()).await;
    for id in ["a", "b", "c", "d", "e"] {
        run(&driver, &test_account.upsert(id, 1)).await.expect("written");
    }
    let mut ids: Vec<String> =
        drain(&mut feed).await.iter().map(|item| item["id"].as_str().expect("text").to_owned()).collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn all_versions_tell_every_change_and_every_delete() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let mode = ChangeFeedMode::AllVersionsAndDeletes;
    let mut feed = feed(&test_account, &driver, options().with_mode(mode)).await;
    run(&driver, &test_account.create_item("a")).await.expect("made");
    run(&driver, &test_account.upsert("a", 2)).await.expect("written");
    let delete = Operation::delete_item(&test_account.container, PartitionKey::single("a"), "a");
    run(&driver, &delete).await.expect("removed");
    let delivered = drain(&mut feed).await;
    let kinds: Vec<&str> =
        delivered.iter().map(|change| change["metadata"]["operationType"].as_str().expect("text")).collect();
    assert_eq!(kinds, ["create", "replace", "delete"]);
    let past = options().with_mode(mode).with_start(ChangeFeedStart::Beginning);
    let error =
        driver.change_feed(&test_account.container, past, &within(DEADLINE)).await.expect_err("not kept");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn pages_tell_where_their_requests_went_and_keep_the_last_of_them_only() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(20)).await;
    let driver = test_account.driver_with(without_hedging());
    let mut feed = feed(&test_account, &driver, options()).await;
    let quiet = feed.next_page().await.expect("a page");
    // Twenty to learn where now is, and twenty that found nothing since.
    assert_eq!((quiet.caught_up(), quiet.requests, quiet.diagnostics.len()), (true, 40, 16));
    let cost: f64 = quiet.diagnostics.iter().map(|delivered| delivered.totals().charge).sum();
    assert!(cost > 0.0 && cost < quiet.charge, "{cost} of {}", quiet.charge);

    run(&driver, &test_account.upsert("a", 1)).await.expect("written");
    let sick = FaultRule::status(503, 0).on(Asked::ChangeFeed).in_region(WEST);
    test_account.running.faults().add(sick).expect("a rule");
    let mut regions = Vec::new();
    loop {
        let page = feed.next_page().await.expect("a page");
        assert_eq!(page.diagnostics.len(), page.requests.min(16) as usize);
        for delivered in &page.diagnostics {
            assert_eq!(delivered.operation(), "query_change_feed");
            regions.push(
                delivered
                    .attempts()
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
