//! Throughput, and the ranges it comes to.

use http::Method;
use serde_json::json;

use super::fixture::CompatibilityFixture;
use super::{LiveResponse, Probe, Probes, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("throughput-manual", supported!(throughput_manual)),
        ("throughput-autoscale", supported!(throughput_autoscale)),
        ("throughput-limits", supported!(throughput_limits)),
        ("throughput-default", supported!(throughput_default)),
        ("offers", supported!(offers)),
        ("offer-migration", supported!(offer_migration)),
        ("throughput-raise", supported!(throughput_raise)),
        ("throughput-bucket", Probe::IgnoredHeader("x-ms-cosmos-throughput-bucket", "1")),
        ("partition-ranges", supported!(partition_ranges)),
        ("partition-ranges-feed", supported!(partition_ranges_feed)),
        ("partition-count", supported!(partition_count)),
    ]
}

async fn offer_of(fixture: &CompatibilityFixture, path: &str) -> LiveResponse {
    let rid = fixture.account.get(path, &[]).await.expect(200).body["_rid"].clone();
    let query = json!({"query": "SELECT * FROM c WHERE c.offerResourceId = @rid",
        "parameters": [{"name": "@rid", "value": rid}]});
    fixture.account.post("/offers", &[("x-ms-documentdb-isquery", "true")], query).await.expect(200)
}

async fn container_with(fixture: &CompatibilityFixture, headers: &[(&str, &str)], status: u16) -> String {
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"id": id, "partitionKey": {"paths": ["/pk"]}});
    fixture.account.post("/dbs/d/colls", headers, body).await.expect(status);
    format!("/dbs/d/colls/{id}")
}

const AUTOSCALE: (&str, &str) = ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":5000}"#);

async fn throughput_manual(fixture: &CompatibilityFixture) {
    let path = container_with(fixture, &[("x-ms-offer-throughput", "700")], 201).await;
    let offer = offer_of(fixture, &path).await.body["Offers"][0].clone();
    assert_eq!((&offer["content"]["offerThroughput"], &offer["offerVersion"]), (&json!(700), &json!("V2")));
}

async fn throughput_autoscale(fixture: &CompatibilityFixture) {
    let path = container_with(fixture, &[AUTOSCALE], 201).await;
    let content = offer_of(fixture, &path).await.body["Offers"][0]["content"].clone();
    assert_eq!(content["offerAutopilotSettings"]["maxThroughput"], 5000);
    assert_eq!(content["offerThroughput"], 500);
}

async fn throughput_limits(fixture: &CompatibilityFixture) {
    for headers in [
        vec![("x-ms-offer-throughput", "300")],
        vec![("x-ms-offer-throughput", "450")],
        vec![("x-ms-offer-throughput", "400"), AUTOSCALE],
        vec![("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":1500}"#)],
    ] {
        container_with(fixture, &headers, 400).await;
    }
}

async fn throughput_default(fixture: &CompatibilityFixture) {
    let path = container_with(fixture, &[], 201).await;
    assert_eq!(offer_of(fixture, &path).await.body["Offers"][0]["content"]["offerThroughput"], 400);
    assert_eq!(offer_of(fixture, "/dbs/d").await.body["Offers"], json!([]));
}

async fn offers(fixture: &CompatibilityFixture) {
    let path = container_with(fixture, &[], 201).await;
    let mut offer = offer_of(fixture, &path).await.body["Offers"][0].clone();
    let at = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    assert_eq!(fixture.account.get(&at, &[]).await.expect(200).body, offer);
    assert!(
        fixture.account.get("/offers", &[]).await.expect(200).body["Offers"]
            .as_array()
            .unwrap()
            .contains(&offer)
    );
    offer["content"]["offerThroughput"] = json!(900);
    let replaced = fixture.account.put(&at, &[], offer).await.expect(200).body;
    assert_eq!(replaced["content"]["offerThroughput"], 900);
}

async fn offer_migration(fixture: &CompatibilityFixture) {
    let path = container_with(fixture, &[], 201).await;
    let offer = offer_of(fixture, &path).await.body["Offers"][0].clone();
    let at = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    let header = ("x-ms-cosmos-migrate-offer-to-autopilot", "true");
    let migrated = fixture.account.put(&at, &[header], offer).await.expect(200).body;
    assert!(migrated["content"]["offerAutopilotSettings"]["maxThroughput"].is_u64());
}

async fn throughput_raise(_: &CompatibilityFixture) {
    // An account without a fixed number of partitions.
    let account = crate::live::LiveAccount::with(|_| {}).await;
    account.create_container(json!({})).await;
    let mut offer = account.get("/offers", &[]).await.expect(200).body["Offers"][0].clone();
    offer["content"]["offerThroughput"] = json!(30_000);
    let at = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    let replaced = account.put(&at, &[], offer).await.expect(200);
    assert_eq!(replaced.header("x-ms-offer-replace-pending"), "true");
    assert_eq!(replaced.body["content"]["isOfferReplacePending"], true);
    while account.get(&at, &[]).await.expect(200).header("x-ms-offer-replace-pending") == "true" {}
    assert_eq!(account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body["_count"], 3);
}

async fn partition_ranges(fixture: &CompatibilityFixture) {
    let ranges = fixture.account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
    let range = &ranges["PartitionKeyRanges"][0];
    assert_eq!(
        (&range["id"], &range["minInclusive"], &range["maxExclusive"]),
        (&json!("0"), &json!(""), &json!("FF"))
    );
    assert_eq!((&range["parents"], &range["status"]), (&json!([]), &json!("online")));
}

async fn partition_ranges_feed(fixture: &CompatibilityFixture) {
    let incremental = ("a-im", "Incremental Feed");
    let path = "/dbs/d/colls/c/pkranges";
    let first = fixture.account.get(path, &[incremental, ("x-ms-max-item-count", "-1")]).await.expect(200);
    let etag = first.header("etag").to_owned();
    let nothing = fixture.account.get(path, &[incremental, ("if-none-match", &etag)]).await.expect(304);
    assert_eq!(nothing.header("etag"), etag);
}

async fn partition_count(_: &CompatibilityFixture) {
    let account = crate::client::TestAccount::new();
    account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    account.send(Method::POST, "/dbs/d/colls", &[("x-ms-offer-throughput", "30000")], body).await.expect(201);
    let ranges = account.get("/dbs/d/colls/c/pkranges").await.expect(200).json();
    assert_eq!(ranges["_count"], 5);
    let starts: Vec<&str> = ranges["PartitionKeyRanges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| range["minInclusive"].as_str().unwrap())
        .collect();
    let expected = [
        "",
        "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
        "19999999999999999999999999999998",
        "26666666666666666666666666666664",
        "33333333333333333333333333333330",
    ];
    assert_eq!(starts, expected);
}
