//! Users, permissions, and what their tokens open.

use std::time::Duration;

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::client::{TestAccount, TestResponse};

const USERS: &str = "/dbs/d/users";
const PERMISSIONS: &str = "/dbs/d/users/u/permissions";

async fn with_user() -> TestAccount {
    let account = TestAccount::with_container().await;
    account.post(USERS, r#"{"id":"u"}"#).await.expect(201);
    account
}

/// The token of a new permission with these terms, as a client sends it.
async fn token(account: &TestAccount, terms: Value) -> String {
    let created = account.post(PERMISSIONS, &terms.to_string()).await.expect(201);
    utf8_percent_encode(&created.text("_token"), NON_ALPHANUMERIC).to_string()
}

async fn with_token(account: &TestAccount, token: &str, method: Method, path: &str) -> TestResponse {
    with_token_and(account, token, method, path, &[]).await
}

async fn with_token_and(
    account: &TestAccount,
    token: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> TestResponse {
    let mut all = vec![("authorization", token)];
    all.extend_from_slice(headers);
    account.send_unsigned(method, path, &all, "{}").await
}

/// Whether the gateway let a request through to the item handlers.
fn let_in(response: &TestResponse) -> bool {
    response.status != 401 && response.status != 403
}

#[tokio::test]
async fn users_come_and_go() {
    let account = TestAccount::with_container().await;
    let created = account.post(USERS, r#"{"id":"u"}"#).await.expect(201);
    assert_eq!(created.json()["_permissions"], "permissions/");
    assert!(created.text("_self").ends_with(&format!("users/{}/", created.text("_rid"))));
    account.post(USERS, r#"{"id":"u"}"#).await.expect_error(409, 0, "already exists");
    assert_eq!(account.get("/dbs/d/users/u").await.expect(200).body, created.body);
    assert_eq!(
        account.get(&format!("{USERS}/{}", created.text("_rid"))).await.expect(200).body,
        created.body
    );

    let renamed = account.put("/dbs/d/users/u", r#"{"id":"v"}"#).await.expect(200);
    assert_eq!(renamed.json()["_rid"], created.json()["_rid"]);
    account.get("/dbs/d/users/u").await.expect(404);
    let upsert = [("x-ms-documentdb-is-upsert", "true")];
    account.send(Method::POST, USERS, &upsert, r#"{"id":"v"}"#).await.expect(200);
    account.send(Method::POST, USERS, &upsert, r#"{"id":"w"}"#).await.expect(201);
    let listed = account.get(USERS).await.expect(200).json();
    assert_eq!((&listed["_count"], &listed["Users"][1]["id"]), (&json!(2), &json!("w")));
    account.put("/dbs/d/users/v", r#"{"id":"w"}"#).await.expect(409);
    account.delete("/dbs/d/users/v").await.expect(204);
    account.delete("/dbs/d/users/v").await.expect(404);
    account.post("/dbs/none/users", r#"{"id":"u"}"#).await.expect_error(404, 1003, "Owner");
}

#[tokio::test]
async fn permissions_come_and_go() {
    let account = with_user().await;
    let terms = json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" });
    let created = account.post(PERMISSIONS, &terms.to_string()).await.expect(201);
    assert!(created.text("_token").starts_with("type=resource&ver=1"));
    assert_eq!(created.json()["permissionMode"], "Read");
    account.post(PERMISSIONS, &terms.to_string()).await.expect_error(409, 0, "already exists");
    let same_resource = json!({ "id": "q", "permissionMode": "All", "resource": "dbs/d/colls/c/" });
    account.post(PERMISSIONS, &same_resource.to_string()).await.expect_error(409, 0, "already exists");
    // Links to nothing are accepted; they open nothing.
    let nowhere = json!({ "id": "q", "permissionMode": "Read", "resource": "dbs/AQAAAJ0fgTc=" });
    account.post(PERMISSIONS, &nowhere.to_string()).await.expect(201);

    let path = format!("{PERMISSIONS}/p");
    let read = account.get(&path).await.expect(200);
    assert_eq!(read.json()["_etag"], created.json()["_etag"]);
    let all = json!({ "id": "p", "permissionMode": "all", "resource": "dbs/d/colls/c" });
    let replaced = account.put(&path, &all.to_string()).await.expect(200);
    assert_eq!(replaced.json()["permissionMode"], "all", "given back as it was sent");
    assert_ne!(replaced.header("etag"), created.header("etag"));
    let upsert = [("x-ms-documentdb-is-upsert", "true")];
    account.send(Method::POST, PERMISSIONS, &upsert, &terms.to_string()).await.expect(200);
    assert_eq!(account.get(PERMISSIONS).await.expect(200).json()["_count"], 2);
    account.delete(&path).await.expect(204);
    account.get(&path).await.expect(404);

    for bad in [
        json!({ "id": "x", "permissionMode": "Write", "resource": "dbs/d/colls/c" }),
        json!({ "id": "x", "permissionMode": "Read" }),
        json!({ "id": "x", "permissionMode": "Read", "resource": "" }),
        json!({ "id": "x", "permissionMode": "Read", "resource": "r", "resourcePartitionKey": [["nested"]] }),
        json!({ "permissionMode": "Read", "resource": "dbs/d/colls/c" }),
    ] {
        account.post(PERMISSIONS, &bad.to_string()).await.expect(400);
    }
    account.get("/dbs/d/users/none/permissions").await.expect_error(404, 1003, "Owner");
}

#[tokio::test]
async fn a_read_token_reads_its_container_and_nothing_else() {
    let account = with_user().await;
    account.post("/dbs/d/colls", r#"{"id":"other","partitionKey":{"paths":["/pk"]}}"#).await.expect(201);
    let token =
        token(&account, json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" })).await;
    for path in ["/", "/dbs/d/colls/c", "/dbs/d/colls/c/pkranges"] {
        with_token(&account, &token, Method::GET, path).await.expect(200);
    }
    assert!(let_in(&with_token(&account, &token, Method::GET, "/dbs/d/colls/c/docs/i").await));
    let query = [("x-ms-documentdb-isquery", "true")];
    assert!(let_in(&with_token_and(&account, &token, Method::POST, "/dbs/d/colls/c/docs", &query).await));
    for (method, path) in [
        (Method::POST, "/dbs/d/colls/c/docs"),
        (Method::DELETE, "/dbs/d/colls/c/docs/i"),
        (Method::PUT, "/dbs/d/colls/c"),
        (Method::DELETE, "/dbs/d/colls/c"),
        (Method::GET, "/dbs/d/colls/other"),
        (Method::GET, "/dbs/d/colls/other/docs/i"),
        (Method::GET, "/dbs/d/colls"),
        (Method::GET, "/dbs"),
        (Method::GET, "/offers"),
        (Method::GET, PERMISSIONS),
    ] {
        let response = with_token(&account, &token, method.clone(), path).await;
        assert_eq!(response.status, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn a_token_for_everything_writes_items_too() {
    let account = with_user().await;
    let link = account.get("/dbs/d/colls/c").await.text("_self");
    let token = token(&account, json!({ "id": "p", "permissionMode": "All", "resource": link })).await;
    assert!(let_in(&with_token(&account, &token, Method::POST, "/dbs/d/colls/c/docs").await));
    assert!(let_in(&with_token(&account, &token, Method::DELETE, "/dbs/d/colls/c/docs/i").await));
    with_token(&account, &token, Method::DELETE, "/dbs/d/colls/c").await.expect(403);
}

#[tokio::test]
async fn a_token_may_be_for_one_item_or_one_partition_key() {
    let account = with_user().await;
    let one_item = json!({ "id": "i", "permissionMode": "All", "resource": "dbs/d/colls/c/docs/mine" });
    let one_item = token(&account, one_item).await;
    assert!(let_in(&with_token(&account, &one_item, Method::GET, "/dbs/d/colls/c/docs/mine").await));
    with_token(&account, &one_item, Method::GET, "/dbs/d/colls/c/docs/yours").await.expect(403);
    with_token(&account, &one_item, Method::GET, "/dbs/d/colls/c/docs").await.expect(403);

    let one_key = json!({ "id": "k", "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": [1] });
    let one_key = token(&account, one_key).await;
    for (key, expected) in [(Some("[1]"), true), (Some("[1.0]"), true), (Some("[2]"), false), (None, false)] {
        let headers: Vec<_> = key.map(|key| ("x-ms-documentdb-partitionkey", key)).into_iter().collect();
        let response =
            with_token_and(&account, &one_key, Method::GET, "/dbs/d/colls/c/docs/i", &headers).await;
        assert_eq!(let_in(&response), expected, "{key:?}");
    }
    with_token(&account, &one_key, Method::GET, "/dbs/d/colls/c/pkranges").await.expect(200);
}

#[tokio::test]
async fn resource_tokens_expire_after_their_lifetime() {
    let account = with_user().await;
    let terms = json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" });
    let lifetime = [("x-ms-documentdb-expiry-seconds", "60")];
    let created = account.send(Method::POST, PERMISSIONS, &lifetime, &terms.to_string()).await.expect(201);
    let token = created.text("_token");
    account.clock.advance(Duration::from_secs(59));
    with_token(&account, &token, Method::GET, "/dbs/d/colls/c").await.expect(200);
    account.clock.advance(Duration::from_secs(1));
    let late = with_token(&account, &token, Method::GET, "/dbs/d/colls/c").await;
    late.expect_error(403, 0, "not valid at the current time");
    for bad in ["9", "86401", "soon"] {
        let headers = [("x-ms-documentdb-expiry-seconds", bad)];
        account.send(Method::GET, PERMISSIONS, &headers, "").await.expect(400);
    }
}

#[tokio::test]
async fn a_forged_token_or_one_for_a_deleted_container_allows_nothing() {
    let account = with_user().await;
    let token =
        token(&account, json!({ "id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c" })).await;
    let forged = token.replace("%3B", "A%3B");
    assert_ne!(forged, token);
    with_token(&account, &forged, Method::GET, "/dbs/d/colls/c").await.expect(401);
    account.delete("/dbs/d/colls/c").await.expect(204);
    account.post("/dbs/d/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await.expect(201);
    with_token(&account, &token, Method::GET, "/dbs/d/colls/c").await.expect(403);
}
