//! `GET /`.

use crate::client::{TestAccount, topology};
use http::Method;
use serde_json::json;

#[tokio::test]
async fn the_account_says_where_its_regions_are_by_the_way_the_client_came() {
    let account = TestAccount::new();
    let answer = account.get("/").await.expect(200);
    let body = answer.json();
    let here = json!([{ "name": "West US", "databaseAccountEndpoint": "http://localhost:8081/" }]);
    assert_eq!(body["writableLocations"], here);
    assert_eq!(body["readableLocations"], here);
    assert_eq!(body["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    for member in ["_self", "id", "_rid", "queryEngineConfiguration"] {
        assert!(body[member].is_string(), "{member} is text");
    }
    assert_ne!(body["id"], "localhost", "one SDK ignores the regions of that account");
    assert_eq!(answer.header("etag"), None);
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn several_regions_differ_by_port_and_the_first_one_writes() {
    let account = TestAccount::with(|settings| {
        settings.topology = topology(&[("West US", 8081), ("East US", 8082)]);
    });
    let body = account.get("/").await.expect(200).json();
    assert_eq!(
        body["readableLocations"],
        json!([
            { "name": "West US", "databaseAccountEndpoint": "http://localhost:8081/" },
            { "name": "East US", "databaseAccountEndpoint": "http://localhost:8082/" },
        ])
    );
    assert_eq!(body["writableLocations"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn every_answer_carries_the_headers_every_client_reads() {
    let account = TestAccount::new();
    let activity = "7b1b7b0e-6c3d-4c2b-8d0a-000000000001";
    let echoed = account.send(Method::GET, "/", &[("x-ms-activity-id", activity)], "").await;
    assert_eq!(echoed.header("x-ms-activity-id"), Some(activity));
    for answer in [account.get("/").await, account.get("/dbs/none").await] {
        assert_eq!(answer.header("x-ms-activity-id").map(str::len), Some(36));
        assert_eq!(answer.header("x-ms-request-charge"), Some("1"));
        assert_eq!(answer.header("x-ms-gatewayversion"), Some("version=2.14.0"));
        assert_eq!(answer.header("x-ms-serviceversion"), Some("version=2.14.0.0"));
        assert_eq!(answer.header("x-ms-schemaversion"), Some("1.16"));
        assert_eq!(answer.header("x-ms-last-state-change-utc"), Some("Sun, 15 Nov 2026 19:23:36 GMT"));
        let took: f64 = answer.header("x-ms-request-duration-ms").unwrap().parse().unwrap();
        assert!(took >= 0.0);
    }
}

#[tokio::test]
async fn nothing_else_can_be_done_to_the_account() {
    let account = TestAccount::new();
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        account.send(method, "/", &[], "").await.expect_refusal(405, 0, "not supported");
    }
}
