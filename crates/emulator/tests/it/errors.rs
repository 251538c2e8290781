//! What the account does not have, and paths that lead nowhere.

use http::Method;

use crate::client::TestAccount;

#[tokio::test]
async fn schemas_and_attachments_are_rejected_by_name() {
    let account = TestAccount::with_container().await;
    let (feed, feature) = ("/dbs/d/colls/c/schemas", "Schemas");
    let body = r#"{"id":"x"}"#;
    account.post(feed, body).await.expect_error(400, 0, feature);
    account.put(&format!("{feed}/x"), body).await.expect_error(400, 0, feature);
    account.get(&format!("{feed}/x")).await.expect_error(404, 0, "Not Found");
    account.delete(&format!("{feed}/x")).await.expect_error(404, 0, "Not Found");
    assert_eq!(account.get(feed).await.expect(200).json()["Schemas"], serde_json::json!([]));
    account.get("/dbs/d/colls/none/sprocs").await.expect_error(404, 1003, "Owner");
    account.get("/addresses").await.expect_error(400, 0, "direct mode");
    account.post("/dbs/d/colls/c/docs/i/attachments", "{}").await.expect_error(400, 0, "Attachments");
}

#[tokio::test]
async fn the_conflicts_feed_is_empty() {
    let account = TestAccount::with_container().await;
    let body = account.get("/dbs/d/colls/c/conflicts").await.expect(200).json();
    assert_eq!(
        (body["Conflicts"].as_array().map(Vec::len), &body["_count"]),
        (Some(0), &serde_json::json!(0))
    );
    let query = r#"{"query":"SELECT * FROM root r WHERE r.resourceType = 'document'"}"#;
    let is_query = ("x-ms-documentdb-isquery", "true");
    for (header, value) in [
        ("x-ms-documentdb-partitionkey", "[\"a\"]"),
        ("x-ms-documentdb-partitionkeyrangeid", "0"),
        ("x-ms-documentdb-query-enablecrosspartition", "true"),
    ] {
        let headers = [is_query, (header, value)];
        let found = account.send(Method::POST, "/dbs/d/colls/c/conflicts", &headers, query).await.expect(200);
        assert_eq!(found.json()["Conflicts"], serde_json::json!([]), "{header}");
    }
    let rejected = account.send(Method::POST, "/dbs/d/colls/c/conflicts", &[is_query], query).await;
    rejected.expect_error(400, 0, "Cross partition query is required but disabled");
    account.get("/dbs/d/colls/c/conflicts/x").await.expect(404);
    account.delete("/dbs/d/colls/c/conflicts/x").await.expect(404);
}

#[tokio::test]
async fn unknown_paths_are_404_with_a_body_that_parses() {
    let account = TestAccount::new();
    for path in ["/nothing", "/dbs/d/nothing", "/dbs//colls", "/dbs/d/colls/c/docs/i/x/y/z"] {
        account.send_unsigned(Method::GET, path, &[], "").await.expect_error(404, 0, "Not Found");
    }
}

#[tokio::test]
async fn unknown_header_values_are_rejected() {
    let account = TestAccount::new();
    for (header, value, part) in [
        ("x-ms-consistency-level", "Strong", "stronger"),
        ("x-ms-consistency-level", "Sometimes", "x-ms-consistency-level"),
        ("x-ms-cosmos-priority-level", "Urgent", "x-ms-cosmos-priority-level"),
    ] {
        account.send(Method::GET, "/dbs", &[(header, value)], "").await.expect_error(400, 0, part);
    }
    let bad = [("x-ms-documentdb-isquery", "maybe")];
    account.send(Method::POST, "/dbs", &bad, "{}").await.expect_error(400, 0, "x-ms-documentdb-isquery");
    for (header, value) in [("x-ms-consistency-level", "Eventual"), ("x-ms-cosmos-priority-level", "Low")] {
        account.send(Method::GET, "/dbs", &[(header, value)], "").await.expect(200);
    }
}
