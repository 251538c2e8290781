//! What an operator does to an account while it serves: regions, partitions, snapshots, time, and
//! looking at it. Each probe has an account of its own: these things are everybody's.

use std::time::Duration;

use http::Method;
use perihelion_emulator::ConsistencyLevel;
use perihelion_emulator::faults::DownMode;
use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{Probes, supported};
use crate::live::{LiveAccount, LiveResponse};

const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "true");

pub(super) fn probes() -> Probes {
    vec![
        ("account-endpoint", supported!(account_endpoint)),
        ("region-add", supported!(region_add)),
        ("regions", supported!(regions)),
        ("replication-lag", supported!(lag)),
        ("replication-pause", supported!(pause)),
        ("region-failover", supported!(failover)),
        ("partition-failover", supported!(partition_failover)),
        ("region-removal", supported!(removal)),
        ("multi-write", supported!(multi_write)),
        ("consistency-strong", supported!(strong)),
        ("consistency-bounded", supported!(bounded)),
        ("partition-split", supported!(split)),
        ("partition-merge", supported!(merge)),
        ("partition-split-size", supported!(split_by_size)),
        ("snapshots", supported!(snapshots)),
        ("query-as-of", supported!(as_of)),
        ("account-clock", supported!(clock)),
        ("event-log", supported!(event_log)),
        ("request-counts", supported!(request_counts)),
        ("request-log", supported!(request_log)),
        ("prometheus-metrics", supported!(metrics)),
    ]
}

/// Two regions 30 ms apart whose clock stands still, with an empty container.
async fn two_regions(level: ConsistencyLevel, multi_write: bool) -> LiveAccount {
    let account = LiveAccount::with(|config| {
        config.regions = ["West US", "East US"].map(str::to_owned).to_vec().into();
        config.lag = "30ms".parse().unwrap();
        config.consistency = level;
        config.multi_write = multi_write;
    })
    .await;
    account.create_container(json!({})).await;
    account.clock.advance(Duration::from_millis(30));
    account
}

async fn control_post(account: &LiveAccount, path: &str, body: Value) -> LiveResponse {
    account.control(Method::POST, path, &body.to_string()).await
}

async fn put(account: &LiveAccount, value: u32) -> LiveResponse {
    account.post(DOCS, &[KEY, UPSERT], json!({"id": "1", "pk": "a", "v": value})).await
}

async fn value(account: &LiveAccount) -> Option<u64> {
    let read = account.get(&format!("{DOCS}/1"), &[KEY]).await;
    (read.status == 200).then(|| read.body["v"].as_u64().unwrap())
}

async fn account_endpoint(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await.at_account();
    account.running().region("westus").unwrap().down(DownMode::Refused).unwrap();
    account.get("/", &[]).await.expect(200);
    account.running().region("eastus").unwrap().fail_over().unwrap();
    put(&account, 1).await.expect(201);
}

async fn region_add(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    put(&account, 1).await.expect(201);
    control_post(&account, "/regions/UK%20South/add", json!({})).await.expect(200);
    let document = account.get("/", &[]).await.expect(200).body;
    assert_eq!(document["readableLocations"][2]["name"], "UK South");
    assert_eq!(value(&account.in_region(2)).await, Some(1), "at once");
    let all_write = two_regions(ConsistencyLevel::Session, true).await;
    put(&all_write, 1).await.expect(201);
    control_post(&all_write, "/regions/UK%20South/add", json!({})).await.expect(200);
    assert_eq!(value(&all_write.in_region(2)).await, Some(1), "at once");
    put(&all_write.in_region(2), 2).await.expect(200);
}

async fn event_log(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    account.running().region("eastus").unwrap().fail_over().unwrap();
    let events = account.control(Method::GET, "/events", "").await.expect(200).body;
    assert_eq!((&events["events"][0]["kind"], &events["newest"]), (&json!("failover"), &json!(1)));
}

async fn regions(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    let document = account.in_region(1).get("/", &[]).await.expect(200).body;
    assert_eq!(document["readableLocations"].as_array().unwrap().len(), 2);
    assert_eq!(document["writableLocations"][0]["name"], "West US");
    assert_eq!(put(&account.in_region(1), 1).await.expect(403).sub_status(), "3");
}

async fn lag(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    put(&account, 1).await.expect(201);
    assert_eq!((value(&account).await, value(&account.in_region(1)).await), (Some(1), None));
    account.clock.advance(Duration::from_millis(30));
    assert_eq!(value(&account.in_region(1)).await, Some(1));
}

async fn pause(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    control_post(&account, "/regions/eastus/replication/pause", json!({})).await.expect(200);
    put(&account, 1).await.expect(201);
    account.advance(60);
    assert_eq!(value(&account.in_region(1)).await, None);
    control_post(&account, "/regions/eastus/replication/resume", json!({})).await.expect(200);
    account.clock.advance(Duration::from_millis(30));
    assert_eq!(value(&account.in_region(1)).await, Some(1));
}

async fn partition_failover(_: &CompatibilityFixture) {
    let account = LiveAccount::with(|config| {
        config.regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec().into();
        config.lag = "30ms".parse().unwrap();
        config.partitions = 2.try_into().ok();
        config.partition_failover = true;
    })
    .await;
    account.create_container(json!({})).await;
    let reported = account.get("/", &[]).await.expect(200).body;
    assert_eq!(reported["enablePerPartitionFailoverBehavior"], true);
    let (east, north) = (account.in_region(1), account.in_region(2));
    let range = put(&account, 1).await.expect(201).header("x-ms-documentdb-partitionkeyrangeid").to_owned();
    assert_eq!(put(&east, 9).await.expect(403).sub_status(), "3", "it has not moved");
    // Some key of the other range.
    let mut stays = None;
    for number in 0..20 {
        let key = (KEY.0, format!(r#"["{number}"]"#));
        let body = json!({"id": "1", "pk": number.to_string()});
        let made = account.post(DOCS, &[(key.0, &key.1), UPSERT], body.clone()).await.expect(201);
        if made.header("x-ms-documentdb-partitionkeyrangeid") != range {
            stays = Some((key, body));
        }
    }
    let ((name, key), body) = stays.expect("twenty keys lie in both ranges");
    let path = format!("/databases/d/containers/c/partitions/{range}/failover");
    control_post(&account, &path, json!({"region": "East US"})).await.expect(200);
    assert_eq!(value(&east).await, Some(1), "it has caught up");
    assert_eq!(put(&account, 9).await.expect(403).sub_status(), "3");
    let written = put(&east, 2).await.expect(200);
    let session = ("x-ms-session-token", written.header("x-ms-session-token"));
    east.get(&format!("{DOCS}/1"), &[KEY, session]).await.expect(200);
    assert_eq!((value(&east).await, value(&north).await), (Some(2), None), "the lag of the new region");
    account.clock.advance(Duration::from_millis(30));
    assert_eq!(value(&north).await, Some(2));
    // The other range stays.
    account.post(DOCS, &[(name, &key), UPSERT], body.clone()).await.expect(200);
    assert_eq!(east.post(DOCS, &[(name, &key), UPSERT], body).await.expect(403).sub_status(), "3");
    let listed = account.control(Method::GET, "/partitions", "").await.expect(200).body;
    let moved = listed["partitions"].as_array().unwrap().iter().filter(|one| one["writeRegion"] == "East US");
    assert_eq!(moved.count(), 1);
    // Its successors stay with it, and a failover of the account ends it.
    let split = format!("/databases/d/containers/c/partitions/{range}/split");
    control_post(&account, &split, json!({})).await.expect(202);
    put(&east, 3).await.expect(200);
    control_post(&account, "/regions/northeurope/failover", json!({})).await.expect(200);
    put(&north, 4).await.expect(200);
    assert_eq!(put(&east, 9).await.expect(403).sub_status(), "3");
    // Elsewhere there is nothing of the kind.
    let plain = two_regions(ConsistencyLevel::Session, false).await;
    let rejected = control_post(&plain, &path, json!({"region": "East US"})).await.expect(409);
    assert!(rejected.body.to_string().contains("--partition-failover"), "{}", rejected.body);
}

async fn failover(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    put(&account, 1).await.expect(201);
    control_post(&account, "/regions/eastus/failover", json!({})).await.expect(200);
    assert_eq!(put(&account, 2).await.expect(403).sub_status(), "3");
    let east = account.in_region(0);
    assert_eq!(value(&east).await, Some(1), "nothing is lost");
    put(&east, 2).await.expect(200);
}

async fn removal(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, false).await;
    let east = account.in_region(1);
    control_post(&account, "/regions/eastus/remove", json!({})).await.expect(200);
    assert_eq!(
        account.get("/", &[]).await.expect(200).body["readableLocations"].as_array().unwrap().len(),
        1
    );
    assert_eq!(east.get("/", &[]).await.expect(403).sub_status(), "1008");
    control_post(&account, "/regions/eastus/add", json!({})).await.expect(200);
    east.get("/", &[]).await.expect(200);
}

async fn multi_write(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Session, true).await;
    let east = account.in_region(1);
    put(&account, 1).await.expect(201);
    account.clock.advance(Duration::from_secs(1));
    put(&east, 2).await.expect(200);
    account.clock.advance(Duration::from_secs(1));
    assert_eq!((value(&account).await, value(&east).await), (Some(2), Some(2)), "the last writer wins");
    assert_eq!(account.get("/", &[]).await.expect(200).body["enableMultipleWriteLocations"], true);
}

async fn strong(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::Strong, false).await;
    // A write waits for most regions, and time stands still unless somebody moves it.
    let east = account.in_region(1);
    let writing = put(&account, 1);
    tokio::pin!(writing);
    let written = loop {
        tokio::select! {
            written = &mut writing => break written,
            () = tokio::task::yield_now() => account.clock.advance(Duration::from_millis(1)),
        }
    };
    written.expect(201);
    assert_eq!(value(&east).await, Some(1));
}

async fn bounded(_: &CompatibilityFixture) {
    let account = two_regions(ConsistencyLevel::BoundedStaleness, false).await;
    control_post(&account, "/regions/lag", json!({"lag": "1h"})).await.expect(200);
    put(&account, 1).await.expect(201);
    assert_eq!(value(&account.in_region(1)).await, None);
    account.advance(301);
    assert_eq!(value(&account.in_region(1)).await, Some(1), "never staler than five minutes");
}

/// An account with two items in one container.
async fn two_items() -> LiveAccount {
    let account = LiveAccount::with_container(1, json!({})).await;
    for id in ["1", "2"] {
        account.create(json!({"id": id, "pk": id})).await.expect(201);
    }
    account
}

/// The ids of a page of one item, and where the next one is.
async fn page(account: &LiveAccount, from: Option<&str>) -> (Value, String) {
    let mut headers =
        vec![("x-ms-documentdb-query-enablecrosspartition", "true"), ("x-ms-max-item-count", "1")];
    headers.extend(from.map(|from| ("x-ms-continuation", from)));
    let page = account.query("SELECT VALUE c.id FROM c", &headers).await.expect(200);
    (page.body["Documents"].clone(), page.header("x-ms-continuation").to_owned())
}

async fn split(_: &CompatibilityFixture) {
    let account = two_items().await;
    let (first, mut from) = page(&account, None).await;
    let mut seen = first.as_array().unwrap().clone();
    control_post(&account, "/databases/d/containers/c/partitions/0/split", json!({})).await.expect(202);
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    assert_eq!(account.get(DOCS, &[range]).await.expect(410).sub_status(), "1002");
    let listed = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
    assert_eq!(listed["PartitionKeyRanges"][1]["parents"], json!(["0"]));
    while !from.is_empty() {
        let (ids, next) = page(&account, Some(&from)).await;
        seen.extend(ids.as_array().unwrap().clone());
        from = next;
    }
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, [json!("1"), json!("2")], "a page taken before goes on");
}

async fn merge(_: &CompatibilityFixture) {
    let account = two_items().await;
    let partitions = "/databases/d/containers/c/partitions";
    control_post(&account, &format!("{partitions}/0/split"), json!({})).await.expect(202);
    control_post(&account, &format!("{partitions}/merge"), json!({"partitionIds": [1, 2]})).await.expect(202);
    let listed = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
    assert_eq!(listed["PartitionKeyRanges"][0]["parents"], json!(["0", "1", "2"]));
    for id in ["1", "2"] {
        let key = json!([id]).to_string();
        account.get(&format!("{DOCS}/{id}"), &[("x-ms-documentdb-partitionkey", &key)]).await.expect(200);
    }
}

async fn split_by_size(_: &CompatibilityFixture) {
    let account = LiveAccount::with(|config| config.partition_bytes_max = 10_000).await;
    account.create_container(json!({})).await;
    for number in 0..40 {
        let item = json!({"id": "1", "pk": number.to_string(), "text": "x".repeat(1_000)});
        account.create(item).await.expect(201);
    }
    loop {
        let listed = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
        if listed["PartitionKeyRanges"].as_array().unwrap().len() > 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
}

async fn snapshots(_: &CompatibilityFixture) {
    let account = two_items().await;
    control_post(&account, "/snapshots/clean", json!({})).await.expect(200);
    account.delete("/dbs/d", &[]).await.expect(204);
    control_post(&account, "/snapshots/clean/restore", json!({})).await.expect(200);
    let key = ("x-ms-documentdb-partitionkey", r#"["1"]"#);
    account.get(&format!("{DOCS}/1"), &[key]).await.expect(200);
}

async fn as_of(_: &CompatibilityFixture) {
    let account = two_items().await;
    control_post(&account, "/snapshots/before", json!({})).await.expect(200);
    let key = ("x-ms-documentdb-partitionkey", r#"["1"]"#);
    account.delete(&format!("{DOCS}/1"), &[key]).await.expect(204);
    let count = "SELECT VALUE COUNT(1) FROM c";
    assert_eq!(account.query(count, &[key]).await.expect(200).documents(), [json!(0)]);
    let then = account.query(count, &[key, ("x-perihelion-as-of", "snapshot=before")]).await.expect(200);
    assert_eq!(then.documents(), [json!(1)]);
}

async fn clock(_: &CompatibilityFixture) {
    let account = LiveAccount::with_container(1, json!({"defaultTtl": 60})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    control_post(&account, "/clock/freeze", json!({})).await.expect(200);
    control_post(&account, "/clock/advance", json!({"by": "61s"})).await.expect(200);
    account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(404);
}

async fn request_counts(fixture: &CompatibilityFixture) {
    let ready = fixture.account.control(Method::GET, "/health/ready", "").await.expect(200).body;
    assert!(ready["requests"]["binary"]["hybridRow"].is_u64(), "{ready}");
    assert!(ready["requests"]["consistency"]["Eventual"].is_u64(), "{ready}");
}

async fn request_log(_: &CompatibilityFixture) {
    let account = two_items().await;
    let log = account.control(Method::GET, "/requests?limit=1", "").await.expect(200).body;
    let last = &log["requests"][0];
    assert_eq!((&last["operation"], &last["region"]), (&json!("create_item"), &json!("South Central US")));
    assert_eq!((&last["range"], &last["status"]), (&json!(0), &json!(201)));
    assert!(last["charge"].as_f64().unwrap() > 0.0, "{last}");
}

async fn metrics(_: &CompatibilityFixture) {
    let account = two_items().await;
    let metrics = account.control(Method::GET, "/metrics", "").await.expect(200);
    let text = metrics.body.as_str().unwrap();
    let created = r#"perihelion_requests_total{region="South Central US",operation="create_item",status="201",sub_status="0"} 2"#;
    assert!(text.lines().any(|line| line == created), "{text}");
}
