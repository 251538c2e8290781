//! Throughput as a limit.

use std::time::Duration;

use perihelion_emulator::{ConsistencyLevel, RequestUnitMode};
use serde_json::json;

use super::fixture::{CompatibilityFixture, KEY};
use super::{Probes, supported};
use crate::live::LiveAccount;
use crate::throttling::{AUTOSCALE, MANUAL, account, add_container, charge, enforced, exhaust, wait, write};

pub(super) fn probes() -> Probes {
    vec![
        ("request-unit-modes", supported!(modes)),
        ("throttling", supported!(throttling)),
        ("throttling-partitions", supported!(partitions)),
        ("throttling-regions", supported!(regions)),
        ("throttling-shared", supported!(shared)),
        ("throttling-autoscale", supported!(autoscale)),
        ("throttling-bulk", supported!(bulk)),
        ("burst-capacity", supported!(burst)),
        ("priority-level", supported!(priority)),
        ("charge-consistency", supported!(consistency)),
        ("charge-feed", supported!(feed)),
    ]
}

async fn modes(fixture: &CompatibilityFixture) {
    // The fixture's account counts request units and does not throttle, which is the default.
    for _ in 0..50 {
        let read = fixture.account.get("/dbs/d/colls/c/docs/1", &[KEY]).await.expect(200);
        assert_eq!(read.header("x-ms-request-charge"), "1");
    }
    let usage = fixture.account.usage();
    let container = usage.iter().find(|usage| usage.container == "c").expect("the lab's container");
    assert!(container.partitions[0].2.consumed >= 50.0);
}

async fn throttling(_: &CompatibilityFixture) {
    let account = enforced().await;
    let (spent, throttled) = exhaust(&account, "c", "a").await;
    assert!((400.0..415.0).contains(&spent), "{spent}");
    assert_eq!((throttled.status, throttled.sub_status()), (429, "3200"));
    account.clock.advance(wait(&throttled));
    write(&account, "c", "a", &[]).await.expect(200);
}

async fn partitions(_: &CompatibilityFixture) {
    let account = LiveAccount::with(|config| {
        config.request_units = RequestUnitMode::Enforce;
        config.partitions = 2.try_into().ok();
    })
    .await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    add_container(&account, "c", &[(MANUAL, "800")]).await;
    let (spent, hot) = exhaust(&account, "c", "a").await;
    assert!((400.0..415.0).contains(&spent), "half of it: {spent}");
    let hot = hot.header("x-ms-documentdb-partitionkeyrangeid");
    for key in ["b", "c", "d", "e", "f", "g"] {
        let response = write(&account, "c", key, &[]).await;
        assert_eq!(
            response.status == 429,
            response.header("x-ms-documentdb-partitionkeyrangeid") == hot,
            "{key}"
        );
    }
}

async fn regions(_: &CompatibilityFixture) {
    let account = LiveAccount::with(|config| {
        config.request_units = RequestUnitMode::Enforce;
        config.regions = vec!["West US".to_owned(), "East US".to_owned()].into();
    })
    .await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    add_container(&account, "c", &[(MANUAL, "400")]).await;
    exhaust(&account, "c", "a").await;
    let item = "/dbs/d/colls/c/docs/1";
    account.get(item, &[KEY]).await.expect(429);
    account.in_region(1).get(item, &[KEY]).await.expect(200);
}

async fn shared(_: &CompatibilityFixture) {
    let account = account(RequestUnitMode::Enforce, &[(MANUAL, "400")]).await;
    add_container(&account, "c", &[]).await;
    add_container(&account, "other", &[]).await;
    exhaust(&account, "c", "a").await;
    write(&account, "other", "b", &[]).await.expect(429);
}

async fn autoscale(_: &CompatibilityFixture) {
    let account = account(RequestUnitMode::Enforce, &[]).await;
    add_container(&account, "c", &[(AUTOSCALE, r#"{"maxThroughput":1000}"#)]).await;
    let (spent, _) = exhaust(&account, "c", "a").await;
    assert!((1_000.0..1_015.0).contains(&spent), "{spent}");
    account.advance(1);
    assert_eq!(account.usage()[0].scaled_throughput, 1_000);
}

async fn bulk(_: &CompatibilityFixture) {
    let account = enforced().await;
    let create = |n: usize| {
        json!({"operationType": "Create", "partitionKey": "[\"a\"]",
            "resourceBody": {"id": n.to_string(), "pk": "a"}})
    };
    let headers = [
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-cosmos-is-batch-request", "True"),
        ("x-ms-cosmos-batch-continue-on-error", "True"),
    ];
    let list = json!((0..100).map(create).collect::<Vec<_>>());
    let results = account.post("/dbs/d/colls/c/docs", &headers, list).await.expect(207).body;
    assert_eq!(results[0]["statusCode"], 201);
    assert_eq!((&results[99]["statusCode"], &results[99]["subStatusCode"]), (&json!(429), &json!(3200)));
    assert!(results[99]["retryAfterMilliseconds"].as_u64() > Some(0));
}

async fn burst(_: &CompatibilityFixture) {
    let account = enforced().await;
    write(&account, "c", "a", &[]).await.expect(201);
    account.advance(300);
    let (spent, throttled) = exhaust(&account, "c", "a").await;
    assert!((3_000.0..3_015.0).contains(&spent), "{spent}");
    assert!(wait(&throttled) < Duration::from_millis(10), "3,000 RU/s go on");
}

async fn priority(_: &CompatibilityFixture) {
    let account = enforced().await;
    let (low, high) = ([("x-ms-cosmos-priority-level", "Low")], [("x-ms-cosmos-priority-level", "High")]);
    let mut spent = 0.0;
    loop {
        let response = write(&account, "c", "a", &low).await;
        if response.status == 429 {
            break;
        }
        spent += charge(&response);
    }
    assert!((320.0..335.0).contains(&spent), "{spent}");
    write(&account, "c", "a", &high).await.expect(200);
    write(&account, "c", "a", &[("x-ms-cosmos-priority-level", "Medium")]).await.expect(400);
}

async fn consistency(_: &CompatibilityFixture) {
    let account = LiveAccount::with(|config| config.consistency = ConsistencyLevel::BoundedStaleness).await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    add_container(&account, "c", &[]).await;
    write(&account, "c", "a", &[]).await.expect(201);
    let item = "/dbs/d/colls/c/docs/1";
    assert_eq!(charge(&account.get(item, &[KEY]).await.expect(200)), 2.0);
    let weaker = [KEY, ("x-ms-consistency-level", "Session")];
    assert_eq!(charge(&account.get(item, &weaker).await.expect(200)), 1.0);
}

async fn feed(fixture: &CompatibilityFixture) {
    let page = fixture.account.get(super::fixture::DOCS, &[KEY]).await.expect(200);
    assert!((charge(&page) - page.documents().len() as f64).abs() < 0.1, "each of them is small");
    let changes =
        fixture.account.get(super::fixture::DOCS, &[KEY, ("a-im", "Incremental Feed")]).await.expect(200);
    assert!((charge(&changes) - changes.documents().len() as f64).abs() < 0.1);
}
