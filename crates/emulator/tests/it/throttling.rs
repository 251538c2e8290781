//! Tests of throughput limits: which requests get 429, and for how long.

use std::time::Duration;

use perihelion_emulator::regions::RegionId;
use perihelion_emulator::{ConsistencyLevel, RequestUnitMode};
use serde_json::{Value, json};

use crate::live::{LiveAccount, LiveResponse};

pub(crate) const MANUAL: &str = "x-ms-offer-throughput";
pub(crate) const AUTOSCALE: &str = "x-ms-cosmos-offer-autopilot-settings";
const KEY: &str = "x-ms-documentdb-partitionkey";

/// An account in this mode with a database `d`, which has throughput if `database` says so.
pub(crate) async fn account(mode: RequestUnitMode, database: &[(&str, &str)]) -> LiveAccount {
    let account = LiveAccount::with(|config| config.request_units = mode).await;
    account.post("/dbs", database, json!({"id": "d"})).await.expect(201);
    account
}

/// Adds a container that indexes nothing, so that writes cost what their size costs: 4.95.
pub(crate) async fn add_container(account: &LiveAccount, name: &str, throughput: &[(&str, &str)]) {
    let body = json!({"id": name, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"indexingMode": "none", "automatic": false}});
    account.post("/dbs/d/colls", throughput, body).await.expect(201);
}

/// A container `c` with 400 RU/s whose requests are throttled beyond that.
pub(crate) async fn enforced() -> LiveAccount {
    let account = account(RequestUnitMode::Enforce, &[]).await;
    add_container(&account, "c", &[(MANUAL, "400")]).await;
    account
}

pub(crate) fn charge(response: &LiveResponse) -> f64 {
    response.header("x-ms-request-charge").parse().unwrap()
}

pub(crate) fn wait(response: &LiveResponse) -> Duration {
    Duration::from_millis(response.header("x-ms-retry-after-ms").parse().unwrap())
}

/// Upserts one item of `container`.
pub(crate) async fn write(
    account: &LiveAccount,
    container: &str,
    key: &str,
    extra: &[(&str, &str)],
) -> LiveResponse {
    let key_header = json!([key]).to_string();
    let mut headers = vec![(KEY, key_header.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    headers.extend_from_slice(extra);
    account.post(&format!("/dbs/d/colls/{container}/docs"), &headers, json!({"id": "1", "pk": key})).await
}

/// Writes without a pause until one is throttled. Returns what the others cost, and that one.
pub(crate) async fn exhaust(account: &LiveAccount, container: &str, key: &str) -> (f64, LiveResponse) {
    let mut spent = 0.0;
    loop {
        let response = write(account, container, key, &[]).await;
        match response.status {
            429 => return (spent, response),
            200 | 201 => spent += charge(&response),
            _ => panic!("{response:?}"),
        }
        assert!(spent < 20_000.0, "nothing stopped it");
    }
}

#[track_caller]
fn assert_about(found: f64, expected: f64) {
    assert!((expected..expected + 15.0).contains(&found), "{found} instead of {expected}");
}

#[tokio::test]
async fn requests_beyond_the_throughput_get_429_with_a_retry_after() {
    let account = enforced().await;
    let (spent, throttled) = exhaust(&account, "c", "a").await;
    assert_about(spent, 400.0);
    assert_eq!(throttled.sub_status(), "3200");
    assert_eq!(throttled.body["code"], "TooManyRequests");
    assert_eq!(throttled.header("x-ms-request-charge"), "0.38");
    assert!(throttled.message().contains("raise the throughput"), "{}", throttled.message());
    for header in ["x-ms-session-token", "x-ms-documentdb-partitionkeyrangeid", "lsn"] {
        assert_ne!(throttled.header(header), "", "{header}");
    }
    let owed = Duration::from_secs_f64((spent - 400.0) / 400.0);
    let wait = wait(&throttled);
    assert!(wait >= owed && wait <= owed + Duration::from_millis(1), "{wait:?} for {owed:?}");
    account.clock.advance(wait - Duration::from_millis(1));
    write(&account, "c", "a", &[]).await.expect(429);
    account.clock.advance(Duration::from_millis(1));
    write(&account, "c", "a", &[]).await.expect(200);
}

#[tokio::test]
async fn every_kind_of_operation_waits_for_its_partition() {
    let account = enforced().await;
    exhaust(&account, "c", "a").await;
    let (docs, item, key) = ("/dbs/d/colls/c/docs", "/dbs/d/colls/c/docs/1", (KEY, r#"["a"]"#));
    let document = || json!({"id": "1", "pk": "a"});
    let batch = json!([{"operationType": "Read", "id": "1"}]);
    let atomic = [key, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let change_feed = [("a-im", "Incremental Feed"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    for (name, response) in [
        ("read", account.get(item, &[key]).await),
        ("replace", account.put(item, &[key], document()).await),
        ("delete", account.delete(item, &[key]).await),
        ("patch", account.patch(item, &[key], json!([{"op": "set", "path": "/x", "value": 1}])).await),
        ("batch", account.post(docs, &atomic, batch).await),
        ("query", account.query("SELECT * FROM c", &[key]).await),
        ("feed", account.get(docs, &[]).await),
        ("change feed", account.get(docs, &change_feed).await),
    ] {
        assert_eq!((response.status, response.sub_status()), (429, "3200"), "{name}: {response:?}");
    }
    // What is not about items is not paid from the items' budget.
    account.get("/dbs/d/colls/c", &[]).await.expect(200);
    account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200);
    account.get("/offers", &[]).await.expect(200);
}

/// One batch of a hundred new items, which is let in whatever it costs: 495 RU.
async fn write_a_hundred(account: &LiveAccount) -> LiveResponse {
    let operations: Vec<Value> = (0..100)
        .map(|n| json!({"operationType": "Upsert", "resourceBody": {"id": n.to_string(), "pk": "a"}}))
        .collect();
    let headers =
        [(KEY, r#"["a"]"#), ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    account.post("/dbs/d/colls/c/docs", &headers, json!(operations)).await.expect(200)
}

#[tokio::test]
async fn queries_and_batches_are_charged_what_they_state() {
    let account = enforced().await;
    let batch = write_a_hundred(&account).await;
    assert!((charge(&batch) - 495.0).abs() < 0.01, "{}", charge(&batch));
    let throttled = account.query("SELECT * FROM c", &[(KEY, r#"["a"]"#)]).await.expect(429);
    assert_eq!(wait(&throttled), Duration::from_millis(238), "95 RU at 400 RU/s");
    account.advance(1);
    let mut spent = 0.0;
    loop {
        let page = account.query("SELECT * FROM c", &[(KEY, r#"["a"]"#)]).await;
        if page.status == 429 {
            break;
        }
        spent += charge(&page.expect(200));
    }
    assert_about(spent, 305.0);
}

#[tokio::test]
async fn a_bulk_request_is_throttled_where_the_budget_ends() {
    let account = enforced().await;
    let create = |n: usize| {
        json!({"operationType": "Create", "partitionKey": "[\"a\"]",
        "resourceBody": {"id": n.to_string(), "pk": "a"}})
    };
    let headers = [
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-atomic", "False"),
        ("x-ms-cosmos-batch-continue-on-error", "True"),
    ];
    let list = json!((0..100).map(create).collect::<Vec<_>>());
    let response = account.post("/dbs/d/colls/c/docs", &headers, list.clone()).await.expect(207);
    let results = response.body.as_array().unwrap();
    let stored = results.iter().filter(|result| result["statusCode"] == 201).count();
    assert_eq!(stored, 81, "81 × 4.95 RU are more than 400");
    assert_eq!(results[stored]["retryAfterMilliseconds"], 3, "0.95 RU at 400 RU/s");
    for (before, rejected) in results[stored..].iter().zip(&results[stored + 1..]) {
        assert_eq!((&rejected["statusCode"], &rejected["subStatusCode"]), (&json!(429), &json!(3200)));
        let wait = |result: &Value| result["retryAfterMilliseconds"].as_u64();
        assert!(wait(rejected) > wait(before), "one after the other");
    }
    account.post("/dbs/d/colls/c/docs", &headers, list).await.expect(429);
}

#[tokio::test]
async fn a_hot_partition_throttles_alone() {
    let account = account(RequestUnitMode::Enforce, &[]).await;
    add_container(&account, "c", &[(MANUAL, "12000")]).await;
    let ranges = account.get("/dbs/d/colls/c/pkranges", &[]).await.body["_count"].clone();
    assert_eq!(ranges, 2, "6,000 RU/s each");
    // Many items are cheaper to send than six thousand units' worth of requests.
    let large = "x".repeat(900 * 1024);
    let first = account.create(json!({"id": "1", "pk": "a", "large": large})).await.expect(201);
    let hot = first.header("x-ms-documentdb-partitionkeyrangeid").to_owned();
    let mut throttled = None;
    for _ in 0..30 {
        let key = r#"["a"]"#;
        let headers = [(KEY, key), ("x-ms-documentdb-is-upsert", "true")];
        let body = json!({"id": "1", "pk": "a", "large": large});
        let response = account.post("/dbs/d/colls/c/docs", &headers, body).await;
        if response.status == 429 {
            throttled = Some(response);
            break;
        }
    }
    let throttled = throttled.expect("6,000 RU are spent by then");
    assert_eq!(throttled.header("x-ms-documentdb-partitionkeyrangeid"), hot);
    let mut elsewhere = 0;
    for n in 0..20 {
        let response = write(&account, "c", &format!("k{n}"), &[]).await;
        let range = response.header("x-ms-documentdb-partitionkeyrangeid").to_owned();
        assert_eq!(response.status == 429, range == hot, "k{n} in {range}");
        elsewhere += usize::from(range != hot);
    }
    assert!(elsewhere > 0);
    // A query over both needs both; one over the idle partition does not.
    let cross = ("x-ms-documentdb-query-enablecrosspartition", "true");
    account.query("SELECT * FROM c", &[cross]).await.expect(429);
    let idle = if hot == "0" { "1" } else { "0" };
    account.query("SELECT c.id FROM c", &[("x-ms-documentdb-partitionkeyrangeid", idle)]).await.expect(200);
}

#[tokio::test]
async fn containers_compete_for_the_throughput_of_their_database() {
    let account = account(RequestUnitMode::Enforce, &[(MANUAL, "400")]).await;
    add_container(&account, "c", &[]).await;
    add_container(&account, "other", &[]).await;
    add_container(&account, "own", &[(MANUAL, "400")]).await;
    let (spent, _) = exhaust(&account, "c", "a").await;
    assert_about(spent, 400.0);
    let throttled = write(&account, "other", "b", &[]).await.expect(429);
    write(&account, "own", "a", &[]).await.expect(201);
    account.clock.advance(wait(&throttled));
    write(&account, "other", "b", &[]).await.expect(201);
}

#[tokio::test]
async fn autoscale_is_limited_by_its_maximum() {
    let account = account(RequestUnitMode::Enforce, &[]).await;
    add_container(&account, "c", &[(AUTOSCALE, r#"{"maxThroughput":1000}"#)]).await;
    let (spent, _) = exhaust(&account, "c", "a").await;
    assert_about(spent, 1_000.0);
}

#[tokio::test]
async fn unused_throughput_accumulates_for_a_burst() {
    let account = enforced().await;
    write(&account, "c", "a", &[]).await.expect(201);
    account.advance(1_000);
    let (spent, throttled) = exhaust(&account, "c", "a").await;
    assert_about(spent, 3_000.0);
    assert!(wait(&throttled) <= Duration::from_millis(5), "a burst goes on at 3,000 RU/s");
    account.advance(1);
    let (spent, _) = exhaust(&account, "c", "a").await;
    assert_about(spent, 2_990.0);
}

#[tokio::test]
async fn more_throughput_applies_at_once() {
    let account = enforced().await;
    write_a_hundred(&account).await;
    let before = write(&account, "c", "a", &[]).await.expect(429);
    let mut offer = account.get("/offers", &[]).await.body["Offers"][0].clone();
    offer["content"]["offerThroughput"] = json!(4_000);
    let path = format!("/offers/{}", offer["id"].as_str().unwrap());
    account.put(&path, &[], offer).await.expect(200);
    let after = write(&account, "c", "a", &[]).await.expect(429);
    assert!(wait(&after) * 5 < wait(&before), "the debt is paid ten times as fast");
    account.clock.advance(wait(&after));
    write(&account, "c", "a", &[]).await.expect(200);
    account.advance(1);
    let (spent, _) = exhaust(&account, "c", "a").await;
    assert_about(spent, 4_000.0);
}

#[tokio::test]
async fn low_priority_is_throttled_first() {
    let account = enforced().await;
    let low = [("x-ms-cosmos-priority-level", "Low")];
    let mut spent = 0.0;
    let throttled = loop {
        let response = write(&account, "c", "a", &low).await;
        if response.status == 429 {
            break response;
        }
        spent += charge(&response);
    };
    assert_about(spent, 320.0);
    assert!(throttled.message().contains("low priority"), "{}", throttled.message());
    let high = write(&account, "c", "a", &[("x-ms-cosmos-priority-level", "High")]).await.expect(200);
    account.clock.advance(wait(&throttled) + Duration::from_secs_f64(charge(&high) / 400.0));
    write(&account, "c", "a", &low).await.expect(200);
}

#[tokio::test]
async fn deleting_a_logical_partition_does_not_throttle_other_requests() {
    let account = enforced().await;
    write_a_hundred(&account).await;
    account.advance(1);
    let path = "/dbs/d/colls/c/operations/partitionkeydelete";
    let deleted = account.post(path, &[(KEY, r#"["a"]"#)], json!({})).await.expect(200);
    assert!(charge(&deleted) > 400.0, "{}", charge(&deleted));
    write(&account, "c", "a", &[]).await.expect(201);
}

#[tokio::test]
async fn a_split_divides_the_throughput() {
    let account = enforced().await;
    let first = write(&account, "c", "a", &[]).await.expect(201);
    assert_eq!(first.header("x-ms-documentdb-partitionkeyrangeid"), "0");
    let split = "/databases/d/containers/c/partitions/0/split";
    account.control(http::Method::POST, split, "").await.expect(202);
    let (spent, throttled) = exhaust(&account, "c", "a").await;
    assert_about(spent, 200.0);
    let hot = throttled.header("x-ms-documentdb-partitionkeyrangeid").to_owned();
    assert!(["1", "2"].contains(&hot.as_str()), "{hot}");
    let mut other = 0;
    for n in 0..10 {
        let response = write(&account, "c", &format!("k{n}"), &[]).await;
        assert_eq!(response.status == 429, response.header("x-ms-documentdb-partitionkeyrangeid") == hot);
        other += usize::from(response.status == 201);
    }
    assert!(other > 0);
}

#[tokio::test]
async fn each_region_has_the_full_throughput() {
    let account = LiveAccount::with(|config| {
        config.request_units = RequestUnitMode::Enforce;
        config.regions = vec!["West US".to_owned(), "East US".to_owned()].into();
    })
    .await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    add_container(&account, "c", &[(MANUAL, "400")]).await;
    exhaust(&account, "c", "a").await;
    let item = ("/dbs/d/colls/c/docs/1", [(KEY, r#"["a"]"#)]);
    account.get(item.0, &item.1).await.expect(429);
    account.in_region(1).get(item.0, &item.1).await.expect(200);
}

#[tokio::test]
async fn requests_are_not_throttled_unless_configured() {
    for mode in [RequestUnitMode::Off, RequestUnitMode::Account] {
        let account = account(mode, &[]).await;
        add_container(&account, "c", &[(MANUAL, "400")]).await;
        let large = "x".repeat(1_500 * 1024);
        for n in 0..3 {
            let response = account.create(json!({"id": n.to_string(), "pk": "a", "large": large})).await;
            assert!(charge(&response.expect(201)) > 400.0, "stated all the same");
        }
    }
    assert_eq!(RequestUnitMode::default(), RequestUnitMode::Account);
}

#[tokio::test]
async fn usage_is_reported_by_partition_and_region() {
    let account = account(RequestUnitMode::Enforce, &[]).await;
    add_container(&account, "c", &[(AUTOSCALE, r#"{"maxThroughput":2000}"#)]).await;
    let (spent, _) = exhaust(&account, "c", "a").await;
    account.advance(1);
    let last = charge(&write(&account, "c", "a", &[]).await.expect(200));
    let [container] = account.usage().try_into().expect("one container");
    assert_eq!((container.database.as_str(), container.container.as_str()), ("d", "c"));
    assert_eq!((container.throughput, container.scaled_throughput), (2_000, 2_000));
    let [(0, RegionId(0), usage)] = container.partitions[..] else { panic!("{container:?}") };
    assert!((usage.consumed - spent - last).abs() < 0.5, "{usage:?}");
    assert_eq!((usage.throttled, usage.normalized_utilisation), (1, 1.0));
    assert!((usage.last_second - spent).abs() < 0.5 && usage.peak == usage.last_second, "{usage:?}");
    account.advance(4_000);
    assert_eq!(account.usage()[0].scaled_throughput, 200, "another hour");
}

#[tokio::test]
async fn what_is_off_is_not_counted() {
    for (mode, expected) in [(RequestUnitMode::Off, 0), (RequestUnitMode::Account, 1)] {
        let account = account(mode, &[]).await;
        add_container(&account, "c", &[]).await;
        write(&account, "c", "a", &[]).await.expect(201);
        assert_eq!(account.usage()[0].partitions.len(), expected, "{mode:?}");
    }
}

#[tokio::test]
async fn pages_over_several_partitions_are_charged_to_the_one_they_read() {
    let account = LiveAccount::with(|config| config.partitions = 4.try_into().ok()).await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    add_container(&account, "c", &[]).await;
    for n in 0..40 {
        write(&account, "c", &format!("k{n}"), &[]).await.expect(201);
    }
    let consumed =
        || account.usage()[0].partitions.iter().map(|(_, _, usage)| usage.consumed).collect::<Vec<_>>();
    let cross = ("x-ms-documentdb-query-enablecrosspartition", "true");
    let before = consumed();
    // A page comes from one range, with rows or without.
    let (mut charged, mut token) = (0.0, String::new());
    for number in 1..=4 {
        let mut headers = vec![cross];
        if !token.is_empty() {
            headers.push(("x-ms-continuation", &token));
        }
        let page = account.query("SELECT * FROM c WHERE c.none = 1", &headers).await.expect(200);
        let readers = consumed().iter().zip(&before).filter(|(after, before)| after > before).count();
        assert_eq!((page.documents().len(), readers), (0, number));
        charged += charge(&page);
        token = page.header("x-ms-continuation").to_owned();
        assert_eq!(token.starts_with(r#"{"token":null,"range":{"min":""#), number < 4, "{token}");
    }
    let paid: Vec<f64> = consumed().iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!((paid.iter().sum::<f64>() - charged).abs() < 0.01, "{paid:?}");
    assert!(paid.iter().all(|units| *units > 2.0), "{paid:?}");
    let before = consumed();
    account.query("SELECT * FROM c", &[cross]).await.expect(200);
    let readers = consumed().iter().zip(&before).filter(|(after, before)| after > before).count();
    assert_eq!(readers, 1, "the page was full before the others were asked");
}

#[tokio::test]
async fn strong_reads_are_charged_twice_and_may_be_weakened() {
    for (level, requested, expected) in [
        (ConsistencyLevel::Session, None, "1"),
        (ConsistencyLevel::Strong, None, "2"),
        (ConsistencyLevel::BoundedStaleness, None, "2"),
        (ConsistencyLevel::Strong, Some("Eventual"), "1"),
        (ConsistencyLevel::Strong, Some("BoundedStaleness"), "2"),
    ] {
        let account = LiveAccount::with(|config| config.consistency = level).await;
        account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
        add_container(&account, "c", &[]).await;
        let written = write(&account, "c", "a", &[]).await.expect(201);
        assert_eq!(written.header("x-ms-request-charge"), "4.95", "writes cost the same");
        let mut headers = vec![(KEY, r#"["a"]"#)];
        headers.extend(requested.map(|requested| ("x-ms-consistency-level", requested)));
        for (path, status) in [("/dbs/d/colls/c/docs/1", 200), ("/dbs/d/colls/c/docs/none", 404)] {
            let read = account.get(path, &headers).await.expect(status);
            assert_eq!(read.header("x-ms-request-charge"), expected, "{level:?} {requested:?} {path}");
        }
        let feed = account.get("/dbs/d/colls/c/docs", &headers).await.expect(200);
        assert_eq!(feed.header("x-ms-request-charge"), expected, "{level:?} {requested:?}");
    }
}
