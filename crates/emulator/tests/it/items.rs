//! Item operations on the wire: statuses, sub-statuses, headers.

use serde_json::json;

use crate::live::LiveAccount;

const A: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

/// The headers of a read are copied from an earlier one where they can be.
#[tokio::test]
async fn every_read_states_the_lsn_of_its_partition() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let other = json!({"id": "other", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    account.post("/dbs/d/colls", &[], other).await.expect(201);
    account.post("/dbs/d/colls/other/docs", &[A], json!({"id": "1", "pk": "a"})).await.expect(201);
    let first = account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    for n in 2..5 {
        let written = account.create(json!({"id": n.to_string(), "pk": "a"})).await.expect(201);
        for _ in 0..2 {
            let read = account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(200);
            for name in ["lsn", "x-ms-session-token", "x-ms-content-path", "x-ms-alt-content-path"] {
                assert_eq!(read.header(name), written.header(name), "{name}");
            }
            assert_eq!(read.header("x-ms-item-lsn"), first.header("lsn"));
            assert_eq!(read.header("etag"), first.header("etag"));
            for stamped in ["x-ms-activity-id", "x-ms-request-charge", "x-ms-last-state-change-utc"] {
                assert_ne!(read.header(stamped), "", "{stamped}");
            }
            let elsewhere = account.get("/dbs/d/colls/other/docs/1", &[A]).await.expect(200);
            assert_eq!(elsewhere.header("x-ms-alt-content-path"), "dbs/d/colls/other");
            assert_eq!(elsewhere.header("x-ms-session-token"), "0:-1#2");
        }
    }
}

#[tokio::test]
async fn an_item_lives_from_create_to_delete() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let created = account.create(json!({"id": "1", "pk": "a", "n": 1})).await.expect(201);
    assert_eq!(created.body["n"], 1);
    assert!(created.body["_rid"].is_string() && created.body.get("_lsn").is_none());
    assert_eq!(created.header("etag"), created.body["_etag"]);
    account.create(json!({"id": "1", "pk": "a"})).await.expect(409);
    let read = account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(200);
    assert_eq!(read.body, created.body);
    assert_eq!(read.header("x-ms-item-lsn"), created.header("lsn"));
    assert_eq!(read.header("x-ms-session-token"), created.header("x-ms-session-token"));
    account.get("/dbs/d/colls/c/docs/1", &[A, ("if-none-match", read.header("etag"))]).await.expect(304);
    let replaced =
        account.put("/dbs/d/colls/c/docs/1", &[A], json!({"id": "1", "pk": "a", "n": 2})).await.expect(200);
    assert_eq!(replaced.body["_rid"], created.body["_rid"]);
    assert_ne!(replaced.body["_etag"], created.body["_etag"]);
    account.delete("/dbs/d/colls/c/docs/1", &[A, ("if-match", created.header("etag"))]).await.expect(412);
    account.delete("/dbs/d/colls/c/docs/1", &[A, ("if-match", "")]).await.expect(204);
    account.delete("/dbs/d/colls/c/docs/1", &[A]).await.expect(404);
    let missing = account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(404);
    for header in ["x-ms-session-token", "lsn", "x-ms-documentdb-partitionkeyrangeid", "x-ms-activity-id"] {
        assert!(!missing.header(header).is_empty(), "{header}");
    }
}

#[tokio::test]
async fn every_write_moves_the_lsn_by_one_and_reads_do_not() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let lsn = |response: &crate::live::LiveResponse| response.header("lsn").parse::<u64>().unwrap();
    let first = account.create(json!({"id": "1", "pk": "a"})).await;
    let second = account.create(json!({"id": "2", "pk": "a"})).await;
    assert_eq!(lsn(&second), lsn(&first) + 1);
    let read = account.get("/dbs/d/colls/c/docs/1", &[A]).await;
    assert_eq!(lsn(&read), lsn(&second));
}

#[tokio::test]
async fn a_session_token_from_the_future_is_not_available() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let ahead =
        account.get("/dbs/d/colls/c/docs/1", &[A, ("x-ms-session-token", "0:-1#99999")]).await.expect(404);
    assert_eq!(ahead.sub_status(), "1002");
    account.get("/dbs/d/colls/c/docs/1", &[A, ("x-ms-session-token", "0:-1#1,7:-1#99")]).await.expect(200);
}

#[tokio::test]
async fn upsert_creates_or_replaces_and_checks_its_preconditions() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let upsert = ("x-ms-documentdb-is-upsert", "True");
    let path = "/dbs/d/colls/c/docs";
    let item = json!({"id": "1", "pk": "a"});
    account.post(path, &[A, upsert, ("if-match", "\"none\"")], item.clone()).await.expect(201);
    account.post(path, &[A, upsert], item.clone()).await.expect(200);
    account.post(path, &[A, upsert, ("if-match", "\"none\"")], item.clone()).await.expect(412);
    account.post(path, &[A, upsert, ("if-match", "*")], item.clone()).await.expect(200);
    account.post(path, &[A, upsert, ("if-none-match", "*")], item).await.expect(412);
}

#[tokio::test]
async fn minimal_responses_have_headers_and_no_body() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for minimal in [("prefer", "return=minimal"), ("x-ms-cosmos-populate-content-response-on-write", "false")]
    {
        let created = account
            .post("/dbs/d/colls/c/docs", &[A, minimal], json!({"id": minimal.0, "pk": "a"}))
            .await
            .expect(201);
        assert!(created.body.is_null() && !created.header("etag").is_empty());
    }
}

#[tokio::test]
async fn keys_that_do_not_fit_are_rejected() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let path = "/dbs/d/colls/c/docs";
    let wrong = account.post(path, &[A], json!({"id": "1", "pk": "b"})).await.expect(400);
    assert_eq!(wrong.sub_status(), "1001");
    account.post(path, &[], json!({"id": "1", "pk": "b"})).await.expect(400);
    let key = |value| ("x-ms-documentdb-partitionkey", value);
    for bad in ["[", "a", "[\"a\",\"b\"]", "{}", "[]"] {
        account.post(path, &[key(bad)], json!({"id": "1", "pk": "a"})).await.expect(400);
    }
    for (good, value) in
        [("[null]", json!(null)), ("[true]", json!(true)), ("[1.0]", json!(1)), ("[\"\\u00e9\"]", json!("é"))]
    {
        account.post(path, &[key(good)], json!({"id": "1", "pk": value})).await.expect(201);
        account.get("/dbs/d/colls/c/docs/1", &[key(good)]).await.expect(200);
    }
    account.post(path, &[key("[{}]")], json!({"id": "1"})).await.expect(201);
    account.get("/dbs/d/colls/c/docs/1", &[key("[{}]")]).await.expect(200);
}

#[tokio::test]
async fn bad_documents_say_what_is_wrong() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.post("/dbs/d/colls/c/docs", &[A], json!({"pk": "a"})).await.expect(400);
    let long = account
        .post("/dbs/d/colls/c/docs", &[A], json!({"id": "x".repeat(1024), "pk": "a"}))
        .await
        .expect(400);
    assert!(long.message().contains("less than '1024' characters"));
    let large = json!({"id": "1", "pk": "a", "x": "y".repeat(2 * 1024 * 1024)});
    let rejected = account.post("/dbs/d/colls/c/docs", &[A], large).await.expect(413);
    assert_eq!(rejected.body["code"], "RequestEntityTooLarge");
    let broken =
        account.send(http::Method::POST, "/dbs/d/colls/c/docs", &[A], "{\"id\":".into()).await.expect(400);
    assert_eq!(broken.body["code"], "BadRequest");
    account.post("/dbs/d/colls/missing/docs", &[A], json!({"id": "1", "pk": "a"})).await.expect(404);
}

#[tokio::test]
async fn patches_change_all_or_nothing() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a", "n": 1, "tags": ["x"]})).await.expect(201);
    let path = "/dbs/d/colls/c/docs/1";
    let operations =
        json!([{"op": "incr", "path": "/n", "value": 2}, {"op": "add", "path": "/tags/-", "value": "y"}]);
    let patched = account.patch(path, &[A], json!({"operations": operations})).await.expect(200);
    assert_eq!((&patched.body["n"], &patched.body["tags"]), (&json!(3), &json!(["x", "y"])));
    account.patch(path, &[A], operations).await.expect(200);
    let half = json!([{"op": "set", "path": "/n", "value": 0}, {"op": "remove", "path": "/missing"}]);
    account.patch(path, &[A], half).await.expect(400);
    let read = account.get(path, &[A]).await.expect(200);
    assert_eq!(read.body["n"], 5);
    let condition =
        |text: &str| json!({"operations": [{"op": "set", "path": "/n", "value": 9}], "condition": text});
    let unmet = account.patch(path, &[A], condition("from c where c.n = 1")).await.expect(412);
    assert_eq!(unmet.sub_status(), "1110");
    account.patch(path, &[A], condition("from c where c.n = 5")).await.expect(200);
    account.patch(path, &[A], condition("nonsense")).await.expect(400);
    for bad in
        [json!([]), json!([{"op": "set", "path": "/pk", "value": 1}]), json!([{"op": "fly", "path": "/n"}])]
    {
        account.patch(path, &[A], bad).await.expect(400);
    }
    account
        .patch("/dbs/d/colls/c/docs/2", &[A], json!([{"op": "set", "path": "/n", "value": 1}]))
        .await
        .expect(404);
}

#[tokio::test]
async fn items_expire_after_their_ttl() {
    let account = LiveAccount::with_container(1, json!({"defaultTtl": 100})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account.create(json!({"id": "2", "pk": "a", "ttl": -1})).await.expect(201);
    account.create(json!({"id": "3", "pk": "a", "ttl": -10})).await.expect(400);
    account.advance(99);
    account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(200);
    account.advance(1);
    account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(404);
    let rows = account.query("SELECT VALUE c.id FROM c", &[A]).await.expect(200);
    assert_eq!(rows.documents(), [json!("2")]);
    let count = account.query("SELECT VALUE COUNT(1) FROM c", &[A]).await.expect(200);
    assert_eq!(count.documents(), [json!(1)]);
}

#[tokio::test]
async fn an_invalid_ttl_is_refused_whether_or_not_the_container_has_a_default() {
    for container in [json!({}), json!({"defaultTtl": -1})] {
        let account = LiveAccount::with_container(1, container).await;
        for ttl in [json!(0), json!(-2), json!(1.5), json!("10"), json!(2_147_483_648_u64)] {
            let refused = account.create(json!({"id": "1", "pk": "a", "ttl": ttl})).await.expect(400);
            assert!(refused.message().contains("ttl"), "{}", refused.message());
        }
        account.create(json!({"id": "1", "pk": "a", "ttl": 10})).await.expect(201);
        let patch = json!([{"op": "set", "path": "/ttl", "value": 0}]);
        account.patch("/dbs/d/colls/c/docs/1", &[A], patch).await.expect(400);
    }
}

#[tokio::test]
async fn a_whole_logical_partition_can_be_deleted() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for id in 0..600 {
        account
            .create(json!({"id": id.to_string(), "pk": if id % 2 == 0 { "a" } else { "b" }}))
            .await
            .expect(201);
    }
    account.post("/dbs/d/colls/c/operations/partitionkeydelete", &[A], json!(null)).await;
    let left = account
        .query("SELECT VALUE COUNT(1) FROM c", &[("x-ms-documentdb-partitionkeyrangeid", "0")])
        .await
        .expect(200);
    assert_eq!(left.documents(), [json!(300)]);
}

#[tokio::test]
async fn triggers_are_rejected_by_name() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let rejected = account
        .post(
            "/dbs/d/colls/c/docs",
            &[A, ("x-ms-documentdb-pre-trigger-include", "t")],
            json!({"id": "1", "pk": "a"}),
        )
        .await
        .expect(400);
    assert!(rejected.message().contains("Running triggers is not supported"));
}

#[tokio::test]
async fn an_item_is_found_by_its_rid_as_well() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let created = account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let path = format!("/dbs/d/colls/c/docs/{}", created.body["_rid"].as_str().unwrap());
    // Right after a write there is no published snapshot yet; each of these has to make its own.
    account.put(&path, &[A], json!({"id": "1", "pk": "a", "n": 1})).await.expect(200);
    account.get(&path, &[A]).await.expect(200);
    account.get(&path, &[("x-ms-documentdb-partitionkey", r#"["b"]"#)]).await.expect(404);
    account.patch(&path, &[A], json!([{"op": "incr", "path": "/n", "value": 1}])).await.expect(200);
    account.delete(&path, &[A]).await.expect(204);
}
