//! Tests of containers, `/dbs/{database}/colls`.

use http::Method;
use serde_json::{Value, json};

use crate::client::TestAccount;

const PLAIN: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;

#[tokio::test]
async fn the_version_of_a_partition_key_may_be_the_name_that_java_sends() {
    let account = TestAccount::new();
    let created = account
        .create_container("d", r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":"V2"}}"#)
        .await;
    assert_eq!(created.json()["partitionKey"], json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 }));
}

#[tokio::test]
async fn a_container_is_completed_with_defaults_and_read_back() {
    let account = TestAccount::new();
    let created = account.create_container("d", PLAIN).await;
    let body = created.json();
    assert_eq!(
        body["indexingPolicy"],
        json!({
            "indexingMode": "consistent", "automatic": true,
            "includedPaths": [{ "path": "/*" }], "excludedPaths": [{ "path": "/\"_etag\"/?" }],
        })
    );
    assert_eq!(body["partitionKey"], json!({ "paths": ["/pk"], "kind": "Hash", "version": 2 }));
    assert_eq!(body["uniqueKeyPolicy"], json!({ "uniqueKeys": [] }));
    assert_eq!(body["conflictResolutionPolicy"]["mode"], "LastWriterWins");
    assert_eq!(body["geospatialConfig"], json!({ "type": "Geography" }));
    // From which Java's SDK makes the container's link.
    assert_eq!(created.header("x-ms-alt-content-path"), Some("dbs/d"));
    assert_eq!(account.get("/dbs/d/colls/c").await.header("x-ms-alt-content-path"), Some("dbs/d"));
    let (rid, link) = (created.text("_rid"), created.text("_self"));
    assert_eq!(rid.len(), 12, "eight bytes, as one SDK insists");
    assert!(link.starts_with("dbs/") && link.ends_with(&format!("/colls/{rid}/")));
    for (member, value) in [
        ("_docs", "docs/"),
        ("_sprocs", "sprocs/"),
        ("_triggers", "triggers/"),
        ("_udfs", "udfs/"),
        ("_conflicts", "conflicts/"),
    ] {
        assert_eq!(body[member], value);
    }
    assert_eq!(account.get("/dbs/d/colls/c/").await.expect(200).body, created.body);
    assert_eq!(account.get(&format!("/{}", link.trim_end_matches('/'))).await.expect(200).body, created.body);
}

#[tokio::test]
async fn every_container_has_quota_headers_and_progress_on_request() {
    let account = TestAccount::with_container().await;
    let plain = account.get("/dbs/d/colls/c").await.expect(200);
    assert!(plain.header("x-ms-resource-quota").unwrap().contains("collectionSize=10485760;"));
    assert!(plain.header("x-ms-resource-usage").unwrap().contains("documentsCount=0;"));
    let progress = "x-ms-documentdb-collection-index-transformation-progress";
    assert_eq!(plain.header(progress), None);
    let requested = [("x-ms-documentdb-populatequotainfo", "True")];
    let response = account.send(Method::GET, "/dbs/d/colls/c", &requested, "").await.expect(200);
    assert_eq!(response.header(progress), Some("100"));
    assert_eq!(response.header("x-ms-documentdb-collection-lazy-indexing-progress"), None);
}

#[tokio::test]
async fn a_missing_resource_and_a_missing_parent_have_different_sub_statuses() {
    let account = TestAccount::with_container().await;
    account.get("/dbs/d/colls/none").await.expect_error(404, 0, "Resource Not Found");
    account.get("/dbs/none/colls/c").await.expect_error(404, 1003, "Owner");
    account.get("/dbs/none/colls").await.expect_error(404, 1003, "Owner");
    account.post("/dbs/none/colls", PLAIN).await.expect_error(404, 1003, "Owner");
    account.delete("/dbs/d/colls/none").await.expect_error(404, 0, "Resource Not Found");
    account.post("/dbs/d/colls/none/docs", "{}").await.expect_error(404, 1003, "Owner");
}

#[tokio::test]
async fn a_container_id_in_another_database_is_not_found() {
    let account = TestAccount::with_container().await;
    let rid = account.get("/dbs/d/colls/c").await.text("_rid");
    let other = account.post("/dbs", r#"{"id":"other"}"#).await.expect(201).text("_rid");
    account.get(&format!("/dbs/d/colls/{rid}")).await.expect(200);
    account.get(&format!("/dbs/{other}/colls/{rid}")).await.expect(404);
}

#[tokio::test]
async fn a_request_for_the_earlier_incarnation_of_a_container_is_rejected() {
    let account = TestAccount::with_container().await;
    let old = account.get("/dbs/d/colls/c").await.text("_rid");
    account.post("/dbs/d/colls", PLAIN).await.expect_error(409, 0, "already exists");
    account.delete("/dbs/d/colls/c").await.expect(204);
    account.get("/dbs/d/colls/c").await.expect(404);
    let new = account.post("/dbs/d/colls", PLAIN).await.expect(201).text("_rid");
    assert_ne!(old, new);
    let stale = [("x-ms-cosmos-intended-collection-rid", old.as_str())];
    for path in ["/dbs/d/colls/c", "/dbs/d/colls/c/docs", "/dbs/d/colls/c/pkranges"] {
        account.send(Method::GET, path, &stale, "").await.expect_error(400, 1024, "recreated");
    }
    let fresh = [("x-ms-cosmos-intended-collection-rid", new.as_str())];
    account.send(Method::GET, "/dbs/d/colls/c/pkranges", &fresh, "").await.expect(200);
}

#[tokio::test]
async fn a_replace_changes_policies_and_neither_name_nor_key() {
    let account = TestAccount::with_container().await;
    let before = account.get("/dbs/d/colls/c").await;
    let mut wanted = before.json();
    wanted["defaultTtl"] = json!(60);
    wanted["indexingPolicy"]["excludedPaths"] = json!([{ "path": "/big/*" }]);
    let after = account.put("/dbs/d/colls/c", &wanted.to_string()).await.expect(200);
    let body = after.json();
    assert_eq!(body["defaultTtl"], 60);
    assert_eq!(
        body["indexingPolicy"]["excludedPaths"],
        json!([{ "path": "/big/*" }, { "path": "/\"_etag\"/?" }])
    );
    assert_eq!(body["_rid"], before.json()["_rid"]);
    assert_ne!(after.header("etag"), before.header("etag"));
    assert_eq!(account.get("/dbs/d/colls/c").await.body, after.body);

    let with = |member: &str, value: Value| {
        let mut changed = wanted.clone();
        changed[member] = value;
        changed.to_string()
    };
    let other_key = with("partitionKey", json!({ "paths": ["/other"], "kind": "Hash", "version": 2 }));
    account.put("/dbs/d/colls/c", &other_key).await.expect_error(400, 0, "partition key");
    account.put("/dbs/d/colls/c", &with("id", json!("other"))).await.expect_error(400, 0, "id");
    account.put("/dbs/d/colls/none", &with("id", json!("none"))).await.expect(404);
    let stale = [("if-match", before.header("etag").unwrap())];
    account.send(Method::PUT, "/dbs/d/colls/c", &stale, &wanted.to_string()).await.expect(412);
}

#[tokio::test]
async fn definitions_that_the_service_rejects_get_its_messages() {
    let account = TestAccount::with_container().await;
    for (body, part) in [
        ("{", "One of the specified inputs is invalid"),
        (r#"{"id":"x","partitionKey":{"paths":"/pk"}}"#, "One of the specified inputs is invalid"),
        (
            r#"{"id":"x","partitionKey":{"paths":["/a/"]}}"#,
            "Partition key paths must contain only valid characters",
        ),
        (
            r#"{"id":"x","partitionKey":{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}}"#,
            "Too many partition key paths",
        ),
        (r#"{"id":"x","partitionKey":{"paths":["/pk"]},"defaultTtl":0}"#, "time to live"),
        (
            r#"{"id":"x","partitionKey":{"paths":["/pk"]},"computedProperties":[{"name":"n","query":"SELECT c.a FROM c WHERE true"}]}"#,
            "Required VALUE expression missing from computed property query",
        ),
        (
            r#"{"id":"x","partitionKey":{"paths":["/pk"]},"computedProperties":[{"name":"n","query":"gibberish"}]}"#,
            "One of the specified inputs is invalid",
        ),
    ] {
        account.post("/dbs/d/colls", body).await.expect_error(400, 0, part);
    }
}

#[tokio::test]
async fn containers_are_listed_page_by_page() {
    let account = TestAccount::new();
    for index in 0..3 {
        let body = format!(r#"{{"id":"c{index}","partitionKey":{{"paths":["/pk"]}}}}"#);
        account.create_container("d", &body).await;
    }
    let page =
        account.send(Method::GET, "/dbs/d/colls/", &[("x-ms-max-item-count", "2")], "").await.expect(200);
    let body = page.json();
    assert_eq!(body["_rid"], account.get("/dbs/d").await.json()["_rid"]);
    assert_eq!(body["DocumentCollections"][1]["id"], "c1");
    let token = page.header("x-ms-continuation").unwrap().to_owned();
    let rest =
        account.send(Method::GET, "/dbs/d/colls", &[("x-ms-continuation", &token)], "").await.expect(200);
    assert_eq!(rest.json()["DocumentCollections"][0]["id"], "c2");
    assert_eq!(rest.header("x-ms-continuation"), None);
}

#[tokio::test]
async fn names_with_spaces_and_non_ascii_letters_work() {
    let account = TestAccount::new();
    account.create_container("d", r#"{"id":"Validate 中文 Query","partitionKey":{"paths":["/pk"]}}"#).await;
    let response = account.get("/dbs/d/colls/Validate%20%E4%B8%AD%E6%96%87%20Query").await.expect(200);
    assert_eq!(response.json()["id"], "Validate 中文 Query");
}

#[tokio::test]
async fn the_number_of_partitions_follows_from_the_throughput() {
    let account = TestAccount::new();
    account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    for (header, value, ranges) in [
        ("x-ms-offer-throughput", "400", 1),
        ("x-ms-offer-throughput", "6100", 2),
        ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":25000}"#, 3),
        ("x-ms-offer-throughput", "30000", 5),
    ] {
        let body = format!(r#"{{"id":"r{ranges}","partitionKey":{{"paths":["/pk"],"version":2}}}}"#);
        account.send(Method::POST, "/dbs/d/colls", &[(header, value)], &body).await.expect(201);
        let path = format!("/dbs/d/colls/r{ranges}/pkranges");
        assert_eq!(account.get(&path).await.json()["_count"], ranges);
    }
    let shared = [("x-ms-offer-throughput", "10000")];
    account.send(Method::POST, "/dbs", &shared, r#"{"id":"shared"}"#).await.expect(201);
    account.post("/dbs/shared/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await.expect(201);
    assert_eq!(account.get("/dbs/shared/colls/c/pkranges").await.json()["_count"], 1);
}

#[tokio::test]
async fn a_thousand_containers_can_be_created_and_listed() {
    let account = TestAccount::new();
    for index in 0..1_000 {
        let body = format!(r#"{{"id":"c{index}","partitionKey":{{"paths":["/pk"]}}}}"#);
        if index == 0 {
            account.create_container("d", &body).await;
        } else {
            account.post("/dbs/d/colls", &body).await.expect(201);
        }
    }
    assert_eq!(account.get("/dbs/d/colls/c999").await.expect(200).json()["id"], "c999");
    let page = account.send(Method::GET, "/dbs/d/colls", &[("x-ms-max-item-count", "2000")], "").await;
    assert_eq!(page.json()["_count"], 1_000);
}

#[tokio::test]
async fn computed_properties_are_stored() {
    let account = TestAccount::new();
    let computed = json!([{ "name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c" }]);
    let body = json!({ "id": "c", "partitionKey": { "paths": ["/pk"] }, "computedProperties": computed });
    let created = account.create_container("d", &body.to_string()).await;
    assert_eq!(created.json()["computedProperties"], computed);
}

#[tokio::test]
async fn containers_are_queried() {
    let account = TestAccount::with_container().await;
    let text = "SELECT * FROM root r WHERE r.id = @id";
    let found =
        account.query("/dbs/d/colls", text, json!([{ "name": "@id", "value": "c" }])).await.expect(200);
    let body = found.json();
    assert_eq!((&body["_count"], &body["DocumentCollections"][0]["id"]), (&json!(1), &json!("c")));
}
