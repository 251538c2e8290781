//! Moving the account's time, as a test suite would.

use std::time::Duration;

use http::Method;
use perihelion_emulator::WELL_KNOWN_KEY;
use protocol::authorization::{AccountKey, sign};
use serde_json::json;

use super::account;
use crate::live::LiveAccount;

const PARTITION_KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["p"]"#);

#[tokio::test]
async fn items_expire_when_the_clock_is_advanced() {
    let account = account().await;
    account.create_container(json!({ "defaultTtl": 3600 })).await;
    account.create(json!({ "id": "1", "pk": "p" })).await.expect(201);
    let read = || account.get("/dbs/d/colls/c/docs/1", &[PARTITION_KEY]);
    account.control_post("/clock/advance", json!({ "by": "50m" })).await.expect(200);
    read().await.expect(200);
    account.control_post("/clock/advance", json!({ "by": "11m" })).await.expect(200);
    read().await.expect(404);
}

#[tokio::test]
async fn a_frozen_clock_stamps_every_write_alike_until_it_runs_again() {
    let account = account().await;
    account.create_container(json!({})).await;
    account.control_post("/clock/freeze", json!({})).await.expect(200);
    let visible =
        account.control_post("/clock/set", json!({ "to": "2030-01-31T08:00:00Z" })).await.expect(200).body;
    assert_eq!(visible["now"], "2030-01-31T08:00:00Z");
    assert_eq!((&visible["timestamp"], &visible["frozen"]), (&json!(1_896_076_800), &json!(true)));
    for id in ["1", "2"] {
        let item = account.create(json!({ "id": id, "pk": "p" })).await.expect(201);
        assert_eq!(item.body["_ts"], 1_896_076_800);
    }
    account.control_post("/clock/advance", json!({ "by": "1m" })).await.expect(200);
    assert_eq!(account.create(json!({ "id": "3", "pk": "p" })).await.body["_ts"], 1_896_076_860);
    let resumed = account.control_post("/clock/resume", json!({})).await.expect(200).body;
    assert_eq!(resumed["frozen"], false);
    assert!(resumed["timestamp"].as_i64().unwrap() >= 1_896_076_860, "it runs on from there: {resumed}");
    let later = account.create(json!({ "id": "4", "pk": "p" })).await.body["_ts"].as_i64().unwrap();
    assert!((1_896_076_860..1_896_080_000).contains(&later), "{later}");
}

#[tokio::test]
async fn a_change_feed_can_start_at_an_account_time_ahead_of_the_wall_clock() {
    let account = account().await;
    account.create_container(json!({})).await;
    account.create(json!({ "id": "before", "pk": "p" })).await.expect(201);
    account.control_post("/clock/set", json!({ "to": "2040-01-01" })).await.expect(200);
    account.control_post("/clock/advance", json!({ "by": "1h" })).await.expect(200);
    account.create(json!({ "id": "after", "pk": "p" })).await.expect(201);
    let since = ("if-modified-since", "Sun, 01 Jan 2040 00:30:00 GMT");
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    let feed = account.get("/dbs/d/colls/c/docs", &[("a-im", "Incremental Feed"), range, since]).await;
    let ids: Vec<_> = feed.documents().iter().map(|document| document["id"].clone()).collect();
    assert_eq!(ids, ["after"]);
}

#[tokio::test]
async fn resource_tokens_end_by_the_account_s_time() {
    let account = account().await;
    account.create_container(json!({})).await;
    account.create(json!({ "id": "1", "pk": "p" })).await.expect(201);
    account.post("/dbs/d/users", &[], json!({ "id": "u" })).await.expect(201);
    let permission = json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" });
    let expiry = ("x-ms-documentdb-expiry-seconds", "3600");
    let granted = account.post("/dbs/d/users/u/permissions", &[expiry], permission).await.expect(201);
    let token = percent_encoding::utf8_percent_encode(
        granted.body["_token"].as_str().unwrap(),
        percent_encoding::NON_ALPHANUMERIC,
    )
    .to_string();
    let headers = [("authorization", token.as_str()), ("x-ms-date", "unused"), PARTITION_KEY];
    let read = || account.send_unsigned(Method::GET, "/dbs/d/colls/c/docs/1", &headers, bytes::Bytes::new());
    read().await.expect(200);
    account.control_post("/clock/advance", json!({ "by": "61m" })).await.expect(200);
    let error = read().await.expect(403);
    assert!(error.message().contains("not valid at the current time"), "{}", error.message());
}

#[tokio::test]
async fn time_ends_with_the_year_9999() {
    let account = account().await;
    account.control_post("/clock/freeze", json!({})).await.expect(200);
    account.control_post("/clock/set", json!({ "to": "9999-12-31" })).await.expect(200);
    account.control_post("/clock/advance", json!({ "by": "1d" })).await.expect(400);
    let visible = account.control_post("/clock/advance", json!({ "by": "23h59m59s" })).await.expect(200).body;
    assert_eq!(visible["now"], "9999-12-31T23:59:59Z");
}

/// Clients sign with the machine's time, whatever the account thinks it is.
#[tokio::test]
async fn signatures_are_checked_against_the_wall_clock() {
    for moves in [
        vec![("/clock/advance", json!({ "by": "400d" }))],
        vec![("/clock/freeze", json!({})), ("/clock/advance", json!({ "by": "1h" }))],
        vec![("/clock/set", json!({ "to": "2001-01-01" }))],
    ] {
        let account = account().await;
        for (path, body) in &moves {
            account.control_post(path, body.clone()).await.expect(200);
        }
        account.get("/dbs", &[]).await.expect(200);
        let error = signed_at(&account, account.clock.now().to_system_time()).await;
        assert_eq!(error, 403, "signed with the account's time after {moves:?}");
        let machine = account.clock.wall_clock().to_system_time();
        assert_eq!(signed_at(&account, machine - Duration::from_secs(1_000)).await, 403, "too old");
        assert_eq!(signed_at(&account, machine + Duration::from_secs(1_000)).await, 403, "too new");
        assert_eq!(signed_at(&account, machine - Duration::from_secs(800)).await, 200, "within 15 minutes");
    }
}

async fn signed_at(account: &LiveAccount, moment: std::time::SystemTime) -> u16 {
    let date = httpdate::fmt_http_date(moment);
    let key = AccountKey::from_base64(WELL_KNOWN_KEY).unwrap();
    let authorization = sign(&key, "GET", "dbs", "", &date);
    let headers = [("x-ms-date", date.as_str()), ("authorization", authorization.as_str())];
    account.send_unsigned(Method::GET, "/dbs", &headers, bytes::Bytes::new()).await.status
}

#[tokio::test]
async fn a_reset_clock_runs_with_the_machine_s_time_again() {
    let account = account().await;
    account.control_post("/clock/set", json!({ "to": "2030-01-31T08:00:00Z" })).await.expect(200);
    account.control_post("/clock/freeze", json!({})).await.expect(200);
    let reset = account.control_post("/clock/reset", json!({})).await.expect(200).body;
    assert_eq!(reset["frozen"], false);
    assert!(reset["aheadSeconds"].as_f64().unwrap().abs() < 1.0, "{reset}");
}
