//! Tests of the account resource, `GET /`.

use crate::client::{TestAccount, topology};
use http::Method;
use serde_json::json;

#[tokio::test]
async fn the_account_lists_region_endpoints_with_the_client_s_own_host() {
    let account = TestAccount::new();
    let response = account.get("/").await.expect(200);
    let body = response.json();
    let here = json!([{ "name": "West US", "databaseAccountEndpoint": "http://localhost:8081/" }]);
    assert_eq!(body["writableLocations"], here);
    assert_eq!(body["readableLocations"], here);
    assert_eq!(body["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
    for member in ["_self", "id", "_rid", "queryEngineConfiguration"] {
        assert!(body[member].is_string(), "{member} is text");
    }
    assert_ne!(body["id"], "localhost", "one SDK ignores the regions of that account");
    assert_eq!(response.header("etag"), None);
    assert_eq!(response.header("content-type"), Some("application/json"));
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
async fn every_response_has_the_headers_that_clients_read() {
    let account = TestAccount::new();
    let activity = "7b1b7b0e-6c3d-4c2b-8d0a-000000000001";
    let echoed = account.send(Method::GET, "/", &[("x-ms-activity-id", activity)], "").await;
    assert_eq!(echoed.header("x-ms-activity-id"), Some(activity));
    for response in [account.get("/").await, account.get("/dbs/none").await] {
        assert_eq!(response.header("x-ms-activity-id").map(str::len), Some(36));
        assert_eq!(response.header("x-ms-request-charge"), Some("1"));
        assert_eq!(response.header("x-ms-gatewayversion"), Some("version=2.14.0"));
        assert_eq!(response.header("x-ms-serviceversion"), Some("version=2.14.0.0"));
        assert_eq!(response.header("x-ms-schemaversion"), Some("1.16"));
        assert_eq!(response.header("x-ms-last-state-change-utc"), Some("Sun, 15 Nov 2026 19:23:36 GMT"));
        let took: f64 = response.header("x-ms-request-duration-ms").unwrap().parse().unwrap();
        assert!(took >= 0.0);
    }
}

#[tokio::test]
async fn other_methods_on_the_account_get_405() {
    let account = TestAccount::new();
    for method in [Method::POST, Method::PUT, Method::DELETE] {
        account.send(method, "/", &[], "").await.expect_error(405, 0, "not supported");
    }
}
