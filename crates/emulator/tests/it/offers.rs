//! Tests of throughput and `/offers`.

use http::Method;
use serde_json::{Value, json};

use crate::client::TestAccount;

const BODY: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;

async fn with_throughput(header: (&str, &str)) -> TestAccount {
    let account = TestAccount::new();
    account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    account.send(Method::POST, "/dbs/d/colls", &[header], BODY).await.expect(201);
    account
}

async fn only_offer(account: &TestAccount) -> Value {
    let body = account.get("/offers").await.expect(200).json();
    assert_eq!(body["_count"], 1, "{body}");
    assert_eq!(body["_rid"], "");
    body["Offers"][0].clone()
}

#[tokio::test]
async fn a_container_without_throughput_gets_the_minimum() {
    let account = TestAccount::with_container().await;
    let container = account.get("/dbs/d/colls/c").await.json();
    let offer = only_offer(&account).await;
    assert_eq!(offer["resource"], container["_self"]);
    assert_eq!(offer["offerResourceId"], container["_rid"]);
    assert_eq!((&offer["offerVersion"], &offer["offerType"]), (&json!("V2"), &json!("Invalid")));
    assert_eq!(offer["content"]["offerThroughput"], 400);
    assert_eq!(offer["id"], offer["_rid"]);
    assert_eq!(offer["_self"], format!("offers/{}/", offer["id"].as_str().unwrap()));
}

#[tokio::test]
async fn a_database_has_an_offer_only_when_throughput_was_requested() {
    let account = TestAccount::new();
    account.post("/dbs", r#"{"id":"plain"}"#).await.expect(201);
    assert_eq!(account.get("/offers").await.json()["_count"], 0);
    let header = [("x-ms-offer-throughput", "1000")];
    let database = account.send(Method::POST, "/dbs", &header, r#"{"id":"d"}"#).await.expect(201);
    // Its containers share it unless they have throughput of their own.
    account.post("/dbs/d/colls", BODY).await.expect(201);
    assert_eq!(only_offer(&account).await["resource"], database.json()["_self"]);
    let own = r#"{"id":"own","partitionKey":{"paths":["/pk"]}}"#;
    account.send(Method::POST, "/dbs/d/colls", &[("x-ms-offer-throughput", "500")], own).await.expect(201);
    assert_eq!(account.get("/offers").await.json()["_count"], 2);
    account.delete("/dbs/d/colls/own").await.expect(204);
    assert_eq!(account.get("/offers").await.json()["_count"], 1);
    account.delete("/dbs/d").await.expect(204);
    assert_eq!(account.get("/offers").await.json()["_count"], 0);
}

#[tokio::test]
async fn an_autoscale_offer_reports_a_tenth_of_its_maximum() {
    let settings =
        r#"{"maxThroughput":5000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":42}}}"#;
    let account = with_throughput(("x-ms-cosmos-offer-autopilot-settings", settings)).await;
    let content = only_offer(&account).await["content"].clone();
    assert_eq!(content["offerThroughput"], 500);
    assert_eq!(
        content["offerAutopilotSettings"],
        json!({
            "tier": 0, "maximumTierThroughput": 0, "autoUpgrade": false, "maxThroughput": 5000,
            "autoUpgradePolicy": { "throughputPolicy": { "incrementPercent": 42 } },
        })
    );
}

#[tokio::test]
async fn throughput_outside_the_limits_is_rejected() {
    let account = TestAccount::new();
    account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    let autopilot = "x-ms-cosmos-offer-autopilot-settings";
    for headers in [
        vec![("x-ms-offer-throughput", "300")],
        vec![("x-ms-offer-throughput", "450")],
        vec![("x-ms-offer-throughput", "lots")],
        vec![(autopilot, r#"{"maxThroughput":500}"#)],
        vec![(autopilot, r#"{"maxThroughput":1500}"#)],
        vec![("x-ms-offer-throughput", "400"), (autopilot, r#"{"maxThroughput":1000}"#)],
    ] {
        account.send(Method::POST, "/dbs/d/colls", &headers, BODY).await.expect(400);
        account.send(Method::POST, "/dbs", &headers, r#"{"id":"x"}"#).await.expect(400);
    }
    account.get("/dbs/d/colls/c").await.expect(404);
}

#[tokio::test]
async fn an_offer_is_read_and_replaced() {
    let account = with_throughput(("x-ms-offer-throughput", "400")).await;
    let mut offer = only_offer(&account).await;
    let path = format!("/offers/{}", offer["id"].as_str().unwrap());
    let read = account.get(&path).await.expect(200);
    assert_eq!(read.json(), offer);
    assert_eq!(read.header("x-ms-offer-replace-pending"), Some("false"));
    assert_eq!(read.header("x-ms-cosmos-min-throughput"), Some("400"));

    offer["content"]["offerThroughput"] = json!(1_100);
    let replaced = account.put(&path, &offer.to_string()).await.expect(200);
    assert_eq!(replaced.json()["content"]["offerThroughput"], 1_100);
    assert_eq!(replaced.header("x-ms-offer-replace-pending"), Some("false"));
    offer["content"]["offerThroughput"] = json!(500);
    let lowered = account.put(&path, &offer.to_string()).await.expect(200).json();
    let parameters = &lowered["content"]["offerMinimumThroughputParameters"];
    assert_eq!(parameters["maxThroughputEverProvisioned"], 1_100);
    assert_eq!(account.get(&path).await.json(), lowered);

    for (content, part) in
        [(json!({ "offerThroughput": 450 }), "increments of 100"), (json!({}), "throughput")]
    {
        offer["content"] = content;
        account.put(&path, &offer.to_string()).await.expect_error(400, 0, part);
    }
    offer["_rid"] = json!("zzzz");
    account.put(&path, &offer.to_string()).await.expect_error(400, 0, "zzzz");
    for missing in ["/offers/zzzz", "/offers/not-an-offer"] {
        account.get(missing).await.expect(404);
        account.put(missing, r#"{"content":{"offerThroughput":500}}"#).await.expect(404);
    }
    account.delete(&path).await.expect(405);
    account.post("/offers", "{}").await.expect(405);
}

#[tokio::test]
async fn a_header_migrates_an_offer_to_autoscale_and_back() {
    let account = with_throughput(("x-ms-offer-throughput", "400")).await;
    let offer = only_offer(&account).await;
    let path = format!("/offers/{}", offer["id"].as_str().unwrap());
    let to_autoscale = [("x-ms-cosmos-migrate-offer-to-autopilot", "true")];
    let migrated = account.send(Method::PUT, &path, &to_autoscale, &offer.to_string()).await.expect(200);
    assert_eq!(migrated.json()["content"]["offerAutopilotSettings"]["maxThroughput"], 1_000);
    let to_manual = [("x-ms-cosmos-migrate-offer-to-manual-throughput", "true")];
    let back = account.send(Method::PUT, &path, &to_manual, &offer.to_string()).await.expect(200);
    assert_eq!(back.json()["content"]["offerThroughput"], 1_000);
    assert_eq!(back.json()["content"].get("offerAutopilotSettings"), None);
}

/// The three ways in which SDKs look for the offer of a container.
#[tokio::test]
async fn offers_are_found_by_query() {
    let account = TestAccount::with_container().await;
    account.post("/dbs/d/colls", r#"{"id":"other","partitionKey":{"paths":["/pk"]}}"#).await.expect(201);
    let container = account.get("/dbs/d/colls/c").await;
    let (rid, link) = (container.text("_rid"), container.text("_self"));
    let by_literal = format!("SELECT * from root where root.resource = \"{link}\"");
    for (text, parameters) in [
        ("SELECT * FROM root r WHERE r.resource=@link", json!([{ "name": "@link", "value": link }])),
        (&*by_literal, json!([])),
        ("SELECT * FROM c WHERE c.offerResourceId = @rid", json!([{ "name": "@rid", "value": rid }])),
    ] {
        let body = account.query("/offers", text, parameters).await.expect(200).json();
        assert_eq!(body["_count"], 1, "{text}");
        assert_eq!(body["Offers"][0]["offerResourceId"], rid.as_str(), "{text}");
    }
    let none = json!([{ "name": "@rid", "value": "none" }]);
    let body =
        account.query("/offers", "SELECT * FROM c WHERE c.offerResourceId = @rid", none).await.expect(200);
    assert_eq!(body.json()["_count"], 0);
}
