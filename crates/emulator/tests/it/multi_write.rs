//! Tests of multi-write accounts: tentative versions, conflicts and their resolution.

use std::time::Duration;

use http::Method;
use perihelion_emulator::regions::{Lag, Region, RegionId, Topology};
use protocol::account::ConsistencyLevel;
use serde_json::{Value, json};

use crate::client::{TestAccount, TestResponse};

const DOCS: &str = "/dbs/d/colls/c/docs";
const CONFLICTS: &str = "/dbs/d/colls/c/conflicts";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const REGIONS: u8 = 3;

/// Three regions that all write, 30 ms apart, with a container of these properties.
async fn account(properties: Value) -> TestAccount {
    account_at(ConsistencyLevel::Session, properties).await
}

/// A multi-write account with this consistency level.
async fn account_at(level: ConsistencyLevel, properties: Value) -> TestAccount {
    let account = TestAccount::with(|settings| {
        let regions = ["West US", "East US", "North Europe"].map(|name| Region::new(name, 0)).to_vec();
        let lag = "30ms".parse::<Lag>().unwrap();
        settings.topology = Topology::new(regions, true, level, lag).unwrap();
    });
    let mut body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    body.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
    account.create_container("d", &body.to_string()).await;
    account
}

fn wait(account: &TestAccount, milliseconds: u64) {
    account.clock.advance(Duration::from_millis(milliseconds));
}

async fn put(account: &TestAccount, region: u8, item: Value) -> TestResponse {
    let headers = [KEY, ("x-ms-documentdb-is-upsert", "true")];
    let written = account.send_in(RegionId(region), Method::POST, DOCS, &headers, &item.to_string()).await;
    written.expect_status(&[200, 201])
}

async fn upsert(account: &TestAccount, region: u8, value: u32) -> TestResponse {
    put(account, region, json!({"id": "1", "pk": "a", "v": value})).await
}

async fn delete(account: &TestAccount, region: u8) {
    account.send_in(RegionId(region), Method::DELETE, &format!("{DOCS}/1"), &[KEY], "").await.expect(204);
}

/// The value of the item in a region, by a point read and by a query, which must agree.
async fn visible_value(account: &TestAccount, region: u8) -> Option<u64> {
    let read = account.send_in(RegionId(region), Method::GET, &format!("{DOCS}/1"), &[KEY], "").await;
    let value = (read.status == 200).then(|| read.json()["v"].as_u64().unwrap());
    let query = json!({"query": "SELECT VALUE c.v FROM c WHERE c.v > 0"}).to_string();
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let found = account.send_in(RegionId(region), Method::POST, DOCS, &headers, &query).await.expect(200);
    assert_eq!(found.json()["Documents"].as_array().unwrap().first().and_then(Value::as_u64), value);
    value
}

async fn everywhere(account: &TestAccount) -> Vec<Option<u64>> {
    let mut all = Vec::new();
    for region in 0..REGIONS {
        all.push(visible_value(account, region).await);
    }
    all
}

#[tokio::test]
async fn writes_of_every_region_reach_the_others_through_the_hub() {
    let account = account(json!({})).await;
    let body = account.get("/").await.expect(200).json();
    assert_eq!(body["writableLocations"].as_array().unwrap().len(), 3);
    assert_eq!(body["enableMultipleWriteLocations"], true);
    let written = upsert(&account, 1, 7).await;
    assert_eq!(everywhere(&account).await, [None, Some(7), None]);
    wait(&account, 30);
    assert_eq!(everywhere(&account).await, [Some(7), Some(7), None]);
    wait(&account, 30);
    assert_eq!(everywhere(&account).await, [Some(7), Some(7), Some(7)]);
    // One version: the same entity tag, `_rid` and time everywhere.
    let made = written.json();
    for region in 0..REGIONS {
        let read = account.send_in(RegionId(region), Method::GET, &format!("{DOCS}/1"), &[KEY], "").await;
        assert_eq!(read.json(), made, "region {region}");
    }
    // Databases and containers are made in the hub.
    account
        .send_in(RegionId(1), Method::POST, "/dbs", &[], r#"{"id":"x"}"#)
        .await
        .expect_error(403, 3, "West US");
}

#[tokio::test]
async fn the_last_writer_wins_in_every_region() {
    let account = account(json!({})).await;
    upsert(&account, 0, 1).await;
    wait(&account, 100);
    upsert(&account, 1, 2).await;
    wait(&account, 1_000);
    // Now concurrent: West US writes later than North Europe, whose version arrives last.
    upsert(&account, 2, 3).await;
    wait(&account, 1_000);
    for (first, second) in [(2, 0), (1, 2), (0, 1)] {
        upsert(&account, first, 10).await;
        wait(&account, 5);
        upsert(&account, second, 20).await;
        wait(&account, 200);
        let after = everywhere(&account).await;
        assert!(after.iter().all(|value| *value == after[0]), "{after:?}");
        wait(&account, 2_000);
    }
}

#[tokio::test]
async fn the_larger_value_at_the_conflict_resolution_path_wins() {
    let policy =
        json!({"conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/rank"}});
    let account = account(policy).await;
    let item = |v: u32, rank: u32| json!({"id": "1", "pk": "a", "v": v, "rank": rank});
    put(&account, 0, item(1, 1)).await;
    wait(&account, 100);
    put(&account, 1, item(2, 9)).await;
    put(&account, 2, item(3, 5)).await;
    put(&account, 0, item(4, 7)).await;
    assert_eq!(everywhere(&account).await, [Some(4), Some(2), Some(3)]);
    wait(&account, 100);
    assert_eq!(everywhere(&account).await, [Some(2); 3]);
    // Without a conflict a smaller number replaces a larger one.
    put(&account, 2, item(5, 1)).await;
    wait(&account, 100);
    assert_eq!(everywhere(&account).await, [Some(5); 3]);
}

#[tokio::test]
async fn a_deletion_wins_over_a_concurrent_change() {
    let account = account(json!({})).await;
    upsert(&account, 0, 1).await;
    wait(&account, 100);
    delete(&account, 1).await;
    upsert(&account, 2, 5).await;
    wait(&account, 100);
    assert_eq!(everywhere(&account).await, [None; 3]);
}

#[tokio::test]
async fn conflicts_of_custom_resolution_can_be_read_and_deleted() {
    let account = account(json!({"conflictResolutionPolicy": {"mode": "Custom"}})).await;
    upsert(&account, 0, 1).await;
    wait(&account, 100);
    upsert(&account, 1, 2).await;
    upsert(&account, 2, 3).await;
    wait(&account, 100);
    assert_eq!(everywhere(&account).await, [Some(2); 3], "the first to arrive stays");
    let feed = account.get(CONFLICTS).await.expect(200).json();
    let conflicts = feed["Conflicts"].as_array().unwrap();
    assert_eq!((conflicts.len(), &conflicts[0]["operationType"]), (1, &json!("replace")));
    let lost: Value = serde_json::from_str(conflicts[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&lost["v"], &lost["_rid"]), (&json!(3), &conflicts[0]["sourceResourceId"]));
    // They move with their range.
    account.hosted.account.split_partition("d", "c", 0, None, account.clock.uptime()).unwrap();
    let feed = account.get(CONFLICTS).await.expect(200).json();
    let conflicts = feed["Conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1);
    let one = format!("{CONFLICTS}/{}", conflicts[0]["id"].as_str().unwrap());
    account.get(&one).await.expect(200);
    account.delete(&one).await.expect(204);
    account.get(&one).await.expect(404);
    assert_eq!(account.get(CONFLICTS).await.json()["_count"], 0);
}

#[tokio::test]
async fn a_session_follows_its_writes_from_region_to_region() {
    let account = account(json!({})).await;
    let token = upsert(&account, 1, 7).await.header("x-ms-session-token").unwrap().to_owned();
    assert_eq!(token, "0:1#2#1=0#2=1#3=0");
    let session = [KEY, ("x-ms-session-token", token.as_str())];
    let path = format!("{DOCS}/1");
    let read = |region: u8| account.send_in(RegionId(region), Method::GET, &path, &session, "");
    read(1).await.expect(200);
    for region in [0, 2] {
        read(region).await.expect_error(404, 1002, "session");
    }
    wait(&account, 60);
    for region in 0..REGIONS {
        read(region).await.expect(200);
    }
}

#[tokio::test]
async fn a_paused_region_keeps_its_own_writes_and_replicates_them_when_resumed() {
    let account = account(json!({})).await;
    upsert(&account, 0, 1).await;
    wait(&account, 100);
    account.hosted.account.pause_replication("North Europe", account.clock.uptime()).unwrap();
    upsert(&account, 0, 2).await;
    wait(&account, 1_000);
    assert_eq!(everywhere(&account).await, [Some(2), Some(2), Some(1)]);
    upsert(&account, 2, 3).await;
    wait(&account, 1_000);
    assert_eq!(everywhere(&account).await, [Some(3), Some(3), Some(3)], "what it sends arrives");
    account.hosted.account.resume_replication("North Europe", account.clock.uptime()).unwrap();
    wait(&account, 100);
    let after = everywhere(&account).await;
    assert!(after.iter().all(|value| *value == after[0]), "{after:?}");
}

#[tokio::test]
async fn splits_merges_and_snapshots_apply_all_replicated_writes_first() {
    let account = account(json!({})).await;
    upsert(&account, 1, 7).await;
    let uptime = account.clock.uptime();
    let halves = account.hosted.account.split_partition("d", "c", 0, None, uptime).unwrap();
    assert_eq!(everywhere(&account).await, [Some(7); 3]);
    upsert(&account, 2, 8).await;
    account.hosted.account.merge_partitions("d", "c", &halves, uptime).unwrap();
    assert_eq!(everywhere(&account).await, [Some(8); 3]);
    upsert(&account, 1, 9).await;
    account.hosted.account.save_snapshot("s", account.clock.now()).unwrap();
    upsert(&account, 2, 10).await;
    account.hosted.account.restore_snapshot("s").unwrap();
    assert_eq!(everywhere(&account).await, [Some(9); 3]);
    upsert(&account, 2, 11).await;
    wait(&account, 100);
    assert_eq!(everywhere(&account).await, [Some(11); 3]);
}

#[tokio::test]
async fn an_item_created_in_two_regions_at_once_becomes_one_item() {
    let account = account(json!({})).await;
    upsert(&account, 2, 1).await;
    upsert(&account, 0, 2).await;
    wait(&account, 100);
    account.hosted.account.split_partition("d", "c", 0, None, account.clock.uptime()).unwrap();
    let query = json!({"query": "SELECT VALUE c.v FROM c"}).to_string();
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    for region in 0..REGIONS {
        let found = account.send_in(RegionId(region), Method::POST, DOCS, &headers, &query).await;
        assert_eq!(found.expect(200).json()["Documents"].as_array().unwrap().len(), 1, "region {region}");
    }
}

#[tokio::test]
async fn a_region_s_change_feed_continues_through_a_split() {
    let account = account(json!({})).await;
    put(&account, 0, json!({"id": "1", "pk": "a"})).await;
    put(&account, 1, json!({"id": "2", "pk": "a"})).await;
    // East US has not heard of the first one, whose LSN in West US is the one it has given to the second.
    let read = async |position: &str| {
        let headers = [KEY, ("a-im", "Incremental Feed"), ("if-none-match", position)];
        let page = account.send_in(RegionId(1), Method::GET, DOCS, &headers[..], "").await.expect(200);
        let ids: Vec<String> = page.json()["Documents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, page.header("etag").unwrap().to_owned())
    };
    let (ids, position) = read("0").await;
    assert_eq!(ids, ["2"]);
    account.hosted.account.split_partition("d", "c", 0, None, account.clock.uptime()).unwrap();
    assert_eq!(read(&position).await.0, ["1"]);
}

#[tokio::test]
async fn a_renamed_item_is_renamed_in_every_region() {
    let account = account(json!({})).await;
    upsert(&account, 0, 1).await;
    wait(&account, 100);
    let renamed = json!({"id": "2", "pk": "a", "v": 5}).to_string();
    account.send_in(RegionId(1), Method::PUT, &format!("{DOCS}/1"), &[KEY], &renamed).await.expect(200);
    wait(&account, 100);
    for region in 0..REGIONS {
        account.send_in(RegionId(region), Method::GET, &format!("{DOCS}/1"), &[KEY], "").await.expect(404);
        account.send_in(RegionId(region), Method::GET, &format!("{DOCS}/2"), &[KEY], "").await.expect(200);
    }
}

#[tokio::test]
async fn the_change_feed_of_every_region_contains_expired_items_and_ends() {
    let account = account(json!({"defaultTtl": 5})).await;
    let feed = [KEY, ("a-im", "Full-Fidelity Feed"), ("if-none-match", "*")];
    for region in 0..REGIONS {
        let start = account.send_in(RegionId(region), Method::GET, DOCS, &feed, "").await.expect(304);
        let place = start.header("etag").unwrap().to_owned();
        put(&account, region, json!({"id": region.to_string(), "pk": "a"})).await;
        wait(&account, 10_000);
        let rest = [KEY, feed[1], ("if-none-match", place.as_str())];
        let changes =
            account.send_in(RegionId(region), Method::GET, DOCS, &rest, "").await.expect(200).json();
        let last = changes["Documents"].as_array().unwrap().last().unwrap()["metadata"].clone();
        assert_eq!(last["timeToLiveExpired"], true, "region {region}: {changes}");
    }
}

#[tokio::test]
async fn a_change_feed_that_continues_in_another_region_misses_nothing() {
    let account = account(json!({})).await;
    let feed = async |region: u8, mode: &str, position: &str| {
        let headers = [("a-im", mode), ("if-none-match", position)];
        account.send_in(RegionId(region), Method::GET, DOCS, &headers, "").await
    };
    let delivered = |response: &TestResponse| -> Vec<u64> {
        let rows = response.json()["Documents"].as_array().unwrap().clone();
        rows.iter().map(|row| row["v"].as_u64().unwrap()).collect()
    };
    let latest = "Incremental Feed";
    // The third region has an order of its own: its own items come before what it hears of.
    put(&account, 2, json!({"id": "own", "pk": "a", "v": 3})).await;
    put(&account, 1, json!({"id": "other", "pk": "a", "v": 2})).await;
    let read = feed(1, latest, "0").await.expect(200);
    assert_eq!(delivered(&read), [2]);
    let position = read.header("etag").unwrap().to_owned();
    assert_eq!(position, "\"2@2\"");
    feed(1, latest, &position).await.expect(304);
    assert_eq!(delivered(&feed(2, latest, &position).await.expect(200)), [3]);
    wait(&account, 60);
    let everything = feed(2, latest, &position).await.expect(200);
    assert_eq!(delivered(&everything), [3, 2]);
    feed(2, latest, everything.header("etag").unwrap()).await.expect(304);
    // The order of all versions differs between regions, so a continuation cannot move.
    let all = "Full-Fidelity Feed";
    feed(2, all, &position).await.expect_error(400, 0, "another region");
    feed(1, all, &position).await.expect(200);
}

#[tokio::test]
async fn bounded_staleness_holds_where_all_regions_write() {
    let account = account_at(ConsistencyLevel::BoundedStaleness, json!({})).await;
    // Whatever the lag, what is as old as agreed has arrived.
    account.hosted.account.set_lag(None, None, "1h".parse().unwrap()).unwrap();
    upsert(&account, 1, 1).await;
    assert_eq!(everywhere(&account).await, [None, Some(1), None]);
    wait(&account, 300_000);
    assert_eq!(everywhere(&account).await, [Some(1); 3]);
    account.hosted.account.set_lag(None, None, "30ms".parse().unwrap()).unwrap();
    // A region that nothing reaches shows less than that, or nothing.
    account.hosted.account.pause_replication("North Europe", account.clock.uptime()).unwrap();
    upsert(&account, 1, 2).await;
    wait(&account, 60);
    assert_eq!(everywhere(&account).await, [Some(2), Some(2), Some(1)]);
    wait(&account, 300_000);
    let read = async |region: u8| {
        account.send_in(RegionId(region), Method::GET, &format!("{DOCS}/1"), &[KEY], "").await
    };
    read(2).await.expect_error(503, 0, "staler");
    read(0).await.expect(200);
    let item = json!({"id": "1", "pk": "a", "v": 3}).to_string();
    let headers = [KEY, ("x-ms-documentdb-is-upsert", "true")];
    let rejected = account.send_in(RegionId(1), Method::POST, DOCS, &headers, &item).await;
    rejected.expect_error(429, 0, "staler");
    account.hosted.account.resume_replication("North Europe", account.clock.uptime()).unwrap();
    upsert(&account, 1, 4).await;
    wait(&account, 60);
    assert_eq!(everywhere(&account).await, [Some(4); 3]);
}
