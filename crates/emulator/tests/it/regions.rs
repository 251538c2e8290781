//! An account in several regions: who writes, who lags, and what a session may see.

use std::time::Duration;

use http::Method;
use perihelion_emulator::regions::{Lag, Region, RegionId, Topology};
use protocol::account::ConsistencyLevel;
use serde_json::json;

use crate::client::{TestAccount, TestResponse};

const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const NAMES: [&str; 3] = ["West US", "East US", "North Europe"];

/// Three regions, 30 ms apart, with an empty container `d/c` in them.
async fn account(multi_write: bool, level: ConsistencyLevel) -> TestAccount {
    let account = TestAccount::with(|settings| {
        let regions = NAMES.iter().map(|name| Region::new(*name, 0)).collect();
        let lag = "30ms".parse::<Lag>().unwrap();
        settings.topology = Topology::new(regions, multi_write, level, lag).unwrap();
    });
    account.create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await;
    account
}

fn wait(account: &TestAccount, milliseconds: u64) {
    account.clock.advance(Duration::from_millis(milliseconds));
}

async fn upsert(account: &TestAccount, region: u8, value: u32) -> TestResponse {
    let body = json!({"id": "1", "pk": "a", "v": value}).to_string();
    let headers = [KEY, ("x-ms-documentdb-is-upsert", "true")];
    account.send_in(RegionId(region), Method::POST, DOCS, &headers, &body).await
}

async fn read(account: &TestAccount, region: u8, headers: &[(&str, &str)]) -> TestResponse {
    let headers = [&[KEY], headers].concat();
    account.send_in(RegionId(region), Method::GET, &format!("{DOCS}/1"), &headers, "").await
}

/// The value of the item in a region, by a point read and by a query, which must agree.
async fn visible_value(account: &TestAccount, region: u8) -> Option<u64> {
    let response = read(account, region, &[]).await;
    let value = (response.status == 200).then(|| response.json()["v"].as_u64().unwrap());
    let query = json!({"query": "SELECT VALUE c.v FROM c WHERE c.v > 0"}).to_string();
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let found = account.send_in(RegionId(region), Method::POST, DOCS, &headers, &query).await.expect(200);
    assert_eq!(found.json()["Documents"].as_array().unwrap().first().and_then(|v| v.as_u64()), value);
    value
}

#[tokio::test]
async fn a_commit_reaches_the_other_regions_after_their_lag_and_in_order() {
    let account = account(false, ConsistencyLevel::Session).await;
    for value in 1..=3 {
        upsert(&account, 0, value).await.expect_status(&[200, 201]);
        wait(&account, 20);
    }
    // 60 ms have passed: the first two were written 60 and 40 ms ago, the third 20 ms ago.
    assert_eq!(visible_value(&account, 0).await, Some(3));
    assert_eq!(visible_value(&account, 1).await, Some(2));
    wait(&account, 10);
    assert_eq!(visible_value(&account, 2).await, Some(3));
}

#[tokio::test]
async fn deleted_items_are_seen_until_the_deletion_arrives() {
    let account = account(false, ConsistencyLevel::Session).await;
    upsert(&account, 0, 7).await.expect(201);
    wait(&account, 30);
    account.send(Method::DELETE, &format!("{DOCS}/1"), &[KEY], "").await.expect(204);
    assert_eq!((visible_value(&account, 0).await, visible_value(&account, 1).await), (None, Some(7)));
    wait(&account, 30);
    assert_eq!(visible_value(&account, 1).await, None);
}

#[tokio::test]
async fn a_region_behind_a_session_responds_404_1002() {
    let account = account(false, ConsistencyLevel::Session).await;
    let token = upsert(&account, 0, 1).await.expect(201).header("x-ms-session-token").unwrap().to_owned();
    let session = [("x-ms-session-token", token.as_str())];
    read(&account, 1, &session).await.expect_error(404, 1002, "session");
    let weaker = [session[0], ("x-ms-consistency-level", "Eventual")];
    read(&account, 1, &weaker).await.expect_error(404, 0, "");
    wait(&account, 30);
    read(&account, 1, &session).await.expect(200);
}

#[tokio::test]
async fn only_the_write_region_writes_and_a_failover_moves_it_without_loss() {
    let account = account(false, ConsistencyLevel::Session).await;
    upsert(&account, 1, 1).await.expect_error(403, 3, "West US");
    account.send_in(RegionId(1), Method::POST, "/dbs", &[], r#"{"id":"x"}"#).await.expect(403);
    upsert(&account, 0, 1).await.expect(201);
    account.hosted.account.fail_over("North Europe").unwrap();
    assert_eq!(visible_value(&account, 2).await, Some(1), "it has caught up before it writes");
    upsert(&account, 0, 2).await.expect_error(403, 3, "North Europe");
    upsert(&account, 2, 2).await.expect(200);
    assert_eq!(visible_value(&account, 0).await, Some(1));
    wait(&account, 30);
    assert_eq!(visible_value(&account, 0).await, Some(2));
    let body = account.get("/").await.expect(200).json();
    assert_eq!(body["writableLocations"][0]["name"], "North Europe");
    assert_eq!(body["readableLocations"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_paused_region_stands_still_and_catches_up_when_resumed() {
    let account = account(false, ConsistencyLevel::Session).await;
    upsert(&account, 0, 1).await.expect(201);
    wait(&account, 30);
    account.hosted.account.pause_replication("eastus", account.clock.uptime()).unwrap();
    upsert(&account, 0, 2).await.expect(200);
    wait(&account, 10_000);
    assert_eq!((visible_value(&account, 1).await, visible_value(&account, 2).await), (Some(1), Some(2)));
    account.hosted.account.resume_replication("eastus", account.clock.uptime()).unwrap();
    assert_eq!(visible_value(&account, 1).await, Some(1));
    wait(&account, 30);
    assert_eq!(visible_value(&account, 1).await, Some(2));
    let unknown = account.hosted.account.pause_replication("Mars", Duration::ZERO).unwrap_err().to_string();
    assert!(unknown.contains("Mars") && unknown.contains("East US"), "{unknown}");
}

#[tokio::test]
async fn lag_is_set_per_pair_while_running() {
    let account = account(false, ConsistencyLevel::Session).await;
    account.hosted.account.set_lag(None, Some("East US"), "1s".parse().unwrap()).unwrap();
    upsert(&account, 0, 1).await.expect(201);
    wait(&account, 30);
    assert_eq!((visible_value(&account, 1).await, visible_value(&account, 2).await), (None, Some(1)));
    wait(&account, 970);
    assert_eq!(visible_value(&account, 1).await, Some(1));
}

#[tokio::test]
async fn strong_reads_are_the_newest_everywhere_and_strong_writes_wait_for_most_regions() {
    let account = account(false, ConsistencyLevel::Strong).await;
    let clock = account.clock.clone();
    let started = clock.uptime();
    let (written, ()) = tokio::join!(upsert(&account, 0, 1), async {
        for _ in 0..30 {
            tokio::task::yield_now().await;
            clock.advance(Duration::from_millis(1));
        }
    });
    written.expect(201);
    assert_eq!(clock.uptime() - started, Duration::from_millis(30));
    let slow = tokio::time::timeout(Duration::from_millis(20), upsert(&account, 0, 2)).await;
    assert!(slow.is_err(), "it waits for the other regions, and time stands still");
    assert_eq!(visible_value(&account, 1).await, Some(2));
}

#[tokio::test]
async fn bounded_reads_are_no_staler_than_agreed() {
    let account = account(false, ConsistencyLevel::BoundedStaleness).await;
    account.hosted.account.set_lag(None, None, "1h".parse().unwrap()).unwrap();
    upsert(&account, 0, 1).await.expect(201);
    assert_eq!(visible_value(&account, 1).await, None);
    wait(&account, 300_001);
    assert_eq!(visible_value(&account, 1).await, Some(1));
    let eventual = [("x-ms-consistency-level", "Eventual")];
    upsert(&account, 0, 2).await.expect(200);
    assert_eq!(read(&account, 2, &eventual).await.expect_status(&[200, 404]).status, 404);
}

#[tokio::test]
async fn bounded_staleness_holds_while_a_region_is_paused() {
    let account = account(false, ConsistencyLevel::BoundedStaleness).await;
    upsert(&account, 0, 1).await.expect(201);
    wait(&account, 30);
    account.hosted.account.pause_replication("East US", account.clock.uptime()).unwrap();
    wait(&account, 1_000_000);
    assert_eq!(visible_value(&account, 1).await, Some(1), "there is nothing it misses");
    upsert(&account, 0, 2).await.expect(200);
    wait(&account, 300_000);
    assert_eq!(visible_value(&account, 1).await, Some(1), "it is as stale as it may be");
    wait(&account, 1);
    for _ in 0..2 {
        read(&account, 1, &[]).await.expect_error(503, 0, "staler");
        let eventual = [("x-ms-consistency-level", "Eventual")];
        assert_eq!(read(&account, 1, &eventual).await.expect(200).json()["v"], 1);
        assert_eq!((visible_value(&account, 0).await, visible_value(&account, 2).await), (Some(2), Some(2)));
        let rejected = upsert(&account, 0, 3).await.expect_error(429, 0, "staler");
        assert_eq!(rejected.header("x-ms-retry-after-ms"), Some("1000"));
        // The children of a range are as stale as it was.
        let range = read(&account, 0, &[]).await;
        let range = range.header("x-ms-documentdb-partitionkeyrangeid").unwrap().parse().unwrap();
        account.hosted.account.split_partition("d", "c", range, None, account.clock.uptime()).unwrap();
    }
    account.hosted.account.resume_replication("East US", account.clock.uptime()).unwrap();
    assert_eq!(visible_value(&account, 1).await, Some(2), "so old a write is seen at once");
    upsert(&account, 0, 3).await.expect(200);
}

#[tokio::test]
async fn a_region_paused_again_without_reads_in_between_has_the_old_writes() {
    let account = account(false, ConsistencyLevel::BoundedStaleness).await;
    account.hosted.account.pause_replication("East US", account.clock.uptime()).unwrap();
    upsert(&account, 0, 1).await.expect(201);
    wait(&account, 300_001);
    upsert(&account, 0, 2).await.expect_error(429, 0, "staler");
    account.hosted.account.resume_replication("East US", account.clock.uptime()).unwrap();
    account.hosted.account.pause_replication("East US", account.clock.uptime()).unwrap();
    wait(&account, 1);
    upsert(&account, 0, 2).await.expect(200);
    assert_eq!(visible_value(&account, 1).await, Some(1));
}

#[tokio::test]
async fn only_the_hub_serves_hub_only_requests() {
    let account = account(false, ConsistencyLevel::Session).await;
    upsert(&account, 0, 1).await.expect(201);
    let hub_only = [("x-ms-cosmos-hub-region-processing-only", "true")];
    read(&account, 0, &hub_only).await.expect(200);
    read(&account, 1, &hub_only).await.expect_error(403, 3, "West US");
}
