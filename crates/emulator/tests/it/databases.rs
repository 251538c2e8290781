//! Tests of databases, `/dbs`.

use http::Method;
use serde_json::json;

use crate::client::{NOW_SECONDS, TestAccount};

#[tokio::test]
async fn a_database_is_created_read_and_deleted() {
    let account = TestAccount::new();
    let created = account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    let body = created.json();
    let rid = created.text("_rid");
    assert_eq!(body["id"], "d");
    assert_eq!(body["_self"], format!("dbs/{rid}/"));
    assert_eq!((&body["_colls"], &body["_users"]), (&json!("colls/"), &json!("users/")));
    assert_eq!(body["_ts"], NOW_SECONDS);
    assert_eq!(created.header("etag"), body["_etag"].as_str());

    let read = account.get("/dbs/d/").await.expect(200);
    assert_eq!(read.body, created.body);
    let by_rid = account.get(&format!("/dbs/{rid}")).await.expect(200);
    assert_eq!(by_rid.body, created.body);

    let deleted = account.delete("/dbs/d").await.expect(204);
    assert!(deleted.body.is_empty());
    account.get("/dbs/d").await.expect_error(404, 0, "Resource Not Found");
    account.delete("/dbs/d").await.expect_error(404, 0, "Resource Not Found");
}

#[tokio::test]
async fn an_existing_id_is_a_conflict_and_a_recreated_database_is_another_one() {
    let account = TestAccount::new();
    let first = account.post("/dbs", r#"{"id":"d"}"#).await.expect(201).text("_rid");
    account.post("/dbs", r#"{"id":"d"}"#).await.expect_error(409, 0, "already exists");
    account.delete("/dbs/d").await.expect(204);
    let second = account.post("/dbs", r#"{"id":"d"}"#).await.expect(201).text("_rid");
    assert_ne!(first, second);
    account.get(&format!("/dbs/{first}")).await.expect(404);
}

#[tokio::test]
async fn deleting_a_database_deletes_what_is_in_it() {
    let account = TestAccount::with_container().await;
    account.delete("/dbs/d").await.expect(204);
    account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    account.get("/dbs/d/colls/c").await.expect(404);
    assert_eq!(account.get("/offers").await.json()["_count"], 0);
}

#[tokio::test]
async fn bad_bodies_and_names_are_rejected() {
    let account = TestAccount::new();
    for (body, part) in [
        ("", "One of the specified inputs is invalid"),
        ("{", "One of the specified inputs is invalid"),
        ("{}", "non-empty string"),
        (r#"{"id":7}"#, "One of the specified inputs is invalid"),
        (r#"{"id":""}"#, "less than '255' characters."),
        (r#"{"id":"a/b"}"#, "'/'"),
    ] {
        account.post("/dbs", body).await.expect_error(400, 0, part);
    }
    let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(256));
    let part = "Ensure to provide a unique non-empty string less than '255' characters.";
    account.post("/dbs", &long).await.expect_error(400, 0, part);
}

#[tokio::test]
async fn databases_are_listed_page_by_page_whatever_happens_in_between() {
    let account = TestAccount::new();
    for index in 0..5 {
        account.post("/dbs", &format!(r#"{{"id":"d{index}"}}"#)).await.expect(201);
    }
    let all = account.get("/dbs").await.expect(200);
    assert_eq!(all.json()["_count"], 5);
    assert_eq!(all.json()["_rid"], "");
    assert_eq!((all.header("x-ms-item-count"), all.header("x-ms-continuation")), (Some("5"), None));

    let mut seen = Vec::new();
    let mut token: Option<String> = None;
    loop {
        let mut headers = vec![("x-ms-max-item-count", "2")];
        headers.extend(token.as_deref().map(|token| ("x-ms-continuation", token)));
        let page = account.send(Method::GET, "/dbs", &headers, "").await.expect(200);
        let body = page.json();
        let names = body["Databases"].as_array().unwrap();
        assert!(names.len() <= 2);
        seen.extend(names.iter().map(|database| database["id"].as_str().unwrap().to_owned()));
        // A database that was listed goes away: the next page must not skip one.
        account.delete(&format!("/dbs/{}", seen.last().unwrap())).await.expect(204);
        match page.header("x-ms-continuation") {
            Some(next) => token = Some(next.to_owned()),
            None => break,
        }
    }
    assert_eq!(seen, ["d0", "d1", "d2", "d3", "d4"]);
}

#[tokio::test]
async fn page_sizes_and_continuations_are_checked() {
    let account = TestAccount::new();
    for (header, value, part) in [
        ("x-ms-max-item-count", "0", "x-ms-max-item-count"),
        ("x-ms-max-item-count", "-2", "x-ms-max-item-count"),
        ("x-ms-max-item-count", "many", "x-ms-max-item-count"),
        ("x-ms-continuation", "nonsense", "Invalid Continuation Token"),
        ("x-ms-continuation", "+RID:~!#RT:1", "Invalid Continuation Token"),
    ] {
        account.send(Method::GET, "/dbs", &[(header, value)], "").await.expect_error(400, 0, part);
    }
    account.send(Method::GET, "/dbs", &[("x-ms-max-item-count", "-1")], "").await.expect(200);
}

#[tokio::test]
async fn preconditions_apply_to_databases() {
    let account = TestAccount::new();
    let etag = account.post("/dbs", r#"{"id":"d"}"#).await.expect(201).text("_etag");
    let unchanged = account.send(Method::GET, "/dbs/d", &[("if-none-match", &etag)], "").await.expect(304);
    assert!(unchanged.body.is_empty());
    assert_eq!(unchanged.header("etag"), Some(etag.as_str()));
    let stale = [("if-match", "\"stale\"")];
    account.send(Method::DELETE, "/dbs/d", &stale, "").await.expect_error(412, 0, "pre-condition");
    account.send(Method::DELETE, "/dbs/d", &[("if-match", &etag)], "").await.expect(204);
}

#[tokio::test]
async fn a_database_cannot_be_replaced() {
    let account = TestAccount::with_container().await;
    account.put("/dbs/d", r#"{"id":"d"}"#).await.expect_error(405, 0, "not supported");
}

#[tokio::test]
async fn databases_are_queried_page_by_page() {
    let account = TestAccount::new();
    for index in 0..5 {
        account.post("/dbs", &format!(r#"{{"id":"d{index}"}}"#)).await.expect(201);
    }
    let body = r#"{"query":"SELECT VALUE r.id FROM root r WHERE r.id != 'd2' ORDER BY r.id DESC"}"#;
    let first = [("x-ms-documentdb-isquery", "True"), ("x-ms-max-item-count", "3")];
    let page = account.send(Method::POST, "/dbs", &first, body).await.expect(200);
    assert_eq!(page.json()["Databases"], json!(["d4", "d3", "d1"]));
    let token = page.header("x-ms-continuation").unwrap().to_owned();
    let second = [("content-type", "application/query+json"), ("x-ms-continuation", token.as_str())];
    let page = account.send(Method::POST, "/dbs", &second, body).await.expect(200);
    assert_eq!(page.json()["Databases"], json!(["d0"]));
    assert_eq!(page.header("x-ms-continuation"), None);
}

#[tokio::test]
async fn invalid_queries_are_rejected() {
    let account = TestAccount::new();
    for (text, part) in [
        ("SELECT * frm c", "SC1001"),
        ("SELECT * FROM c WHERE c.id = @missing", "@missing"),
        ("SELECT NOSUCH(1) FROM c", "SC2005"),
    ] {
        account.query("/dbs", text, json!([])).await.expect_error(400, 0, part);
    }
    let is_query = [("x-ms-documentdb-isquery", "true")];
    for body in ["", "[]", r#"{"query":7}"#] {
        account.send(Method::POST, "/dbs", &is_query, body).await.expect_error(400, 0, "query");
    }
    let bad = [is_query[0], ("x-ms-continuation", "x")];
    let body = r#"{"query":"SELECT * FROM c"}"#;
    account.send(Method::POST, "/dbs", &bad, body).await.expect_error(400, 0, "Invalid Continuation Token");
}
