//! Databases and containers.

use serde_json::{Value, json};

use super::lab::{DOCS, KEY, Lab};
use super::{Answer, Probes, ignored, refused, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("databases", supported!(databases)),
        ("database-replace", refused!(database_replace, "not supported")),
        ("containers", supported!(containers)),
        ("container-immutable", supported!(container_immutable)),
        ("container-recreation", supported!(container_recreation)),
        ("rid-addressing", supported!(rid_addressing)),
        ("trailing-slash", supported!(trailing_slash)),
        ("metadata-preconditions", supported!(metadata_preconditions)),
        ("feed-paging", supported!(feed_paging)),
        ("system-properties", supported!(system_properties)),
        ("key-hash-v1", supported!(key_hash_v1)),
        ("key-hash-v2", supported!(key_hash_v2)),
        ("key-multi-hash", supported!(key_multi_hash)),
        ("key-range-kind", ignored!(key_range_kind)),
        ("key-paths", supported!(key_paths)),
        ("key-definition-errors", supported!(key_definition_errors)),
        ("indexing-policy", supported!(indexing_policy)),
        ("indexing-none", supported!(indexing_none)),
        ("composite-indexes", supported!(composite_indexes)),
        ("spatial-indexes", ignored!(spatial_indexes)),
        ("vector-policy", supported!(vector_policy)),
        ("full-text-policy", supported!(full_text_policy)),
        ("geospatial-config", supported!(geospatial_config)),
        ("conflict-policy", supported!(conflict_policy)),
        ("client-encryption-policy", ignored!(client_encryption_policy)),
        ("analytical-ttl", ignored!(analytical_ttl)),
        ("change-feed-policy", ignored!(change_feed_policy)),
        ("materialized-views", ignored!(materialized_views)),
        ("quota-info", supported!(quota_info)),
        ("partition-statistics", supported!(partition_statistics)),
    ]
}

async fn databases(lab: &Lab) {
    let account = &lab.account;
    let created = account.post("/dbs", &[], json!({"id": "other"})).await.expect(201);
    account.post("/dbs", &[], json!({"id": "other"})).await.expect(409);
    let read = account.get("/dbs/other", &[]).await.expect(200);
    assert_eq!(read.body, created.body);
    let listed = account.get("/dbs", &[]).await.expect(200).body;
    assert!(listed["Databases"].as_array().unwrap().contains(&created.body));
    let query = json!({"query": "SELECT * FROM r WHERE r.id = @id", "parameters": [{"name": "@id", "value": "other"}]});
    let found = account.post("/dbs", &[("x-ms-documentdb-isquery", "true")], query).await.expect(200);
    assert_eq!(found.body["Databases"][0], created.body);
    let long = account.post("/dbs", &[], json!({"id": "x".repeat(256)})).await.expect(400);
    assert!(long.message().contains("less than '255' characters"));
    account.delete("/dbs/other", &[]).await.expect(204);
    account.get("/dbs/other", &[]).await.expect(404);
}

async fn database_replace(lab: &Lab) -> Answer {
    lab.account.put("/dbs/d", &[], json!({"id": "d"})).await
}

async fn containers(lab: &Lab) {
    let account = &lab.account;
    let path = lab.container(json!({"defaultTtl": 60})).await;
    let mut read = account.get(&path, &[]).await.expect(200).body;
    assert_eq!(read["defaultTtl"], 60);
    read["defaultTtl"] = json!(90);
    assert_eq!(account.put(&path, &[], read.clone()).await.expect(200).body["defaultTtl"], 90);
    let query = json!({"query": "SELECT VALUE r.defaultTtl FROM r WHERE r.id = @id",
        "parameters": [{"name": "@id", "value": read["id"]}]});
    let found = account.post("/dbs/d/colls", &[("x-ms-documentdb-isquery", "true")], query).await.expect(200);
    assert_eq!(found.body["DocumentCollections"], json!([90]));
    account.delete(&path, &[]).await.expect(204);
    account.get(&path, &[]).await.expect(404);
    let ownerless = account.post(&format!("{path}/docs"), &[KEY], json!({"id": "1", "pk": "a"})).await;
    assert_eq!(ownerless.expect(404).sub_status(), "1003");
}

async fn container_immutable(lab: &Lab) {
    let path = lab.container(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    let read = lab.account.get(&path, &[]).await.expect(200).body;
    for (member, other) in [
        ("id", json!("renamed")),
        ("partitionKey", json!({"paths": ["/other"], "kind": "Hash", "version": 2})),
        ("uniqueKeyPolicy", json!({"uniqueKeys": [{"paths": ["/v"]}]})),
    ] {
        let mut changed = read.clone();
        changed[member] = other;
        lab.account.put(&path, &[], changed).await.expect(400);
    }
}

async fn container_recreation(lab: &Lab) {
    let path = lab.container(json!({})).await;
    let old = lab.account.get(&path, &[]).await.expect(200).body;
    lab.account.delete(&path, &[]).await.expect(204);
    let again = json!({"id": old["id"], "partitionKey": old["partitionKey"]});
    let new = lab.account.post("/dbs/d/colls", &[], again).await.expect(201).body;
    assert_ne!(old["_rid"], new["_rid"]);
    for (rid, status, sub_status) in [(&old["_rid"], 400, "1024"), (&new["_rid"], 200, "")] {
        let intended = ("x-ms-cosmos-intended-collection-rid", rid.as_str().unwrap());
        let answer = lab.account.get(&format!("{path}/pkranges"), &[intended]).await.expect(status);
        assert_eq!(answer.sub_status(), sub_status);
    }
}

async fn rid_addressing(lab: &Lab) {
    let database = lab.account.get("/dbs/d", &[]).await.expect(200).body;
    let container = lab.account.get("/dbs/d/colls/c", &[]).await.expect(200).body;
    let item = lab.account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200).body;
    let (database, container, item) = (
        database["_rid"].as_str().unwrap(),
        container["_rid"].as_str().unwrap(),
        item["_rid"].as_str().unwrap(),
    );
    let read = lab.account.get(&format!("/dbs/{database}/colls/{container}/docs/{item}"), &[KEY]).await;
    assert_eq!(read.expect(200).body["id"], "1");
    lab.account.post("/dbs", &[], json!({"id": "elsewhere"})).await.expect(201);
    lab.account.get(&format!("/dbs/elsewhere/colls/{container}"), &[]).await.expect(404);
}

async fn trailing_slash(lab: &Lab) {
    for path in ["/dbs/", "/dbs/d/", "/dbs/d/colls/", "/dbs/d/colls/c/", "/dbs/d/colls/c/pkranges/"] {
        lab.account.get(path, &[]).await.expect(200);
    }
}

async fn metadata_preconditions(lab: &Lab) {
    let path = lab.container(json!({})).await;
    let read = lab.account.get(&path, &[]).await.expect(200);
    let etag = read.header("etag").to_owned();
    lab.account.get(&path, &[("if-none-match", &etag)]).await.expect(304);
    lab.account.put(&path, &[("if-match", "\"old\"")], read.body.clone()).await.expect(412);
    lab.account.put(&path, &[("if-match", &etag)], read.body).await.expect(200);
}

async fn feed_paging(lab: &Lab) {
    for _ in 0..3 {
        lab.container(json!({})).await;
    }
    let first = lab.account.get("/dbs/d/colls", &[("x-ms-max-item-count", "2")]).await.expect(200);
    assert_eq!(first.header("x-ms-item-count"), "2");
    let next = ("x-ms-continuation", first.header("x-ms-continuation"));
    let second = lab.account.get("/dbs/d/colls", &[("x-ms-max-item-count", "2"), next]).await.expect(200);
    assert_ne!(first.body, second.body);
}

async fn system_properties(lab: &Lab) {
    let item = lab.account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    let body = &item.body;
    assert_eq!(body["_attachments"], "attachments/");
    assert_eq!(body["_etag"], item.header("etag"));
    assert!(body["_etag"].as_str().unwrap().starts_with('"'));
    assert!(body["_ts"].is_u64() && body["_self"].as_str().unwrap().ends_with('/') && body["_lsn"].is_null());
}

/// The one range that holds a key of a container with two, by what the range answers.
async fn round_trip(lab: &Lab, definition: Value, item: Value, key: &str) -> Value {
    let path = lab.container(json!({"partitionKey": definition})).await;
    let header = ("x-ms-documentdb-partitionkey", key);
    lab.account.post(&format!("{path}/docs"), &[header], item).await.expect(201);
    lab.account.get(&format!("{path}/docs/1"), &[header]).await.expect(200);
    lab.account.get(&path, &[]).await.expect(200).body["partitionKey"].clone()
}

async fn key_hash_v1(lab: &Lab) {
    let stored = round_trip(lab, json!({"paths": ["/pk"]}), json!({"id": "1", "pk": 5}), "[5]").await;
    assert_eq!((&stored["kind"], stored["version"].as_u64().unwrap_or(1)), (&json!("Hash"), 1));
}

async fn key_hash_v2(lab: &Lab) {
    let definition = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let stored = round_trip(lab, definition, json!({"id": "1", "pk": true}), "[true]").await;
    assert_eq!(stored["version"], 2);
}

async fn key_multi_hash(lab: &Lab) {
    let definition = json!({"paths": ["/a", "/b", "/c"], "kind": "MultiHash", "version": 2});
    let item = json!({"id": "1", "a": "x", "b": 1, "c": null});
    round_trip(lab, definition, item, r#"["x",1,null]"#).await;
    let four = json!({"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash", "version": 2});
    let refused = lab.try_container(json!({"partitionKey": four})).await.expect(400);
    assert!(refused.message().contains("Too many partition key paths"));
}

async fn key_range_kind(lab: &Lab) -> (Answer, Answer) {
    with_and_without(lab, "partitionKey", json!({"paths": ["/pk"], "kind": "Range"})).await
}

async fn key_paths(lab: &Lab) {
    let nested = json!({"paths": ["/a/b"], "kind": "Hash", "version": 2});
    round_trip(lab, nested, json!({"id": "1", "a": {"b": "x"}}), r#"["x"]"#).await;
    let quoted = json!({"paths": ["/\"a b\"/c"], "kind": "Hash", "version": 2});
    round_trip(lab, quoted, json!({"id": "1", "a b": {"c": "x"}}), r#"["x"]"#).await;
}

async fn key_definition_errors(lab: &Lab) {
    for definition in
        [json!({"paths": "/pk"}), json!({"paths": ["pk"]}), json!({"paths": ["/a/*"]}), json!({"paths": []})]
    {
        lab.try_container(json!({"partitionKey": definition})).await.expect(400);
    }
}

async fn indexing_policy(lab: &Lab) {
    let path = lab.container(json!({"indexingPolicy": {"excludedPaths": [{"path": "/x/*"}]}})).await;
    let policy = lab.account.get(&path, &[]).await.expect(200).body["indexingPolicy"].clone();
    assert_eq!((&policy["indexingMode"], &policy["automatic"]), (&json!("consistent"), &json!(true)));
    assert_eq!(policy["includedPaths"], json!([{"path": "/*"}]));
    assert_eq!(policy["excludedPaths"], json!([{"path": "/x/*"}, {"path": "/\"_etag\"/?"}]));
}

async fn indexing_none(lab: &Lab) {
    let none = json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}});
    let path = lab.container(none).await;
    let policy = lab.account.get(&path, &[]).await.expect(200).body["indexingPolicy"].clone();
    assert_eq!((&policy["includedPaths"], &policy["excludedPaths"]), (&json!([]), &json!([])));
}

async fn composite_indexes(lab: &Lab) {
    let rows = lab.rows("SELECT VALUE c.n FROM c ORDER BY c.even ASC, c.n DESC").await;
    assert_eq!(rows, json!([3, 1, 2]));
}

/// Containers that differ by one member, compared by a query over the same items.
async fn with_and_without(lab: &Lab, member: &str, value: Value) -> (Answer, Answer) {
    let mut answers = Vec::new();
    for properties in [json!({}), json!({ member: value.clone() })] {
        let path = lab.container(properties.clone()).await;
        if !properties[member].is_null() {
            assert!(
                !lab.account.get(&path, &[]).await.expect(200).body[member].is_null(),
                "{member} is kept"
            );
        }
        let item = json!({"id": "1", "pk": "a", "at": {"type": "Point", "coordinates": [1, 2]}});
        lab.account.post(&format!("{path}/docs"), &[KEY], item).await.expect(201);
        let query = json!({"query": "SELECT c.id, ST_DISTANCE(c.at, c.at) AS far FROM c"});
        let headers = [KEY, ("x-ms-documentdb-isquery", "true")];
        let mut answer = lab.account.post(&format!("{path}/docs"), &headers, query).await.expect(200);
        answer.body.as_object_mut().unwrap().remove("_rid");
        answers.push(answer);
    }
    let with = answers.pop().unwrap();
    (answers.pop().unwrap(), with)
}

async fn spatial_indexes(lab: &Lab) -> (Answer, Answer) {
    let policy = json!({"spatialIndexes": [{"path": "/at/*", "types": ["Point"]}]});
    with_and_without(lab, "indexingPolicy", policy).await
}

async fn client_encryption_policy(lab: &Lab) -> (Answer, Answer) {
    let policy = json!({"includedPaths": [], "policyFormatVersion": 1});
    with_and_without(lab, "clientEncryptionPolicy", policy).await
}

async fn analytical_ttl(lab: &Lab) -> (Answer, Answer) {
    with_and_without(lab, "analyticalStorageTtl", json!(-1)).await
}

async fn change_feed_policy(lab: &Lab) -> (Answer, Answer) {
    with_and_without(lab, "changeFeedPolicy", json!({"retentionDuration": 5})).await
}

async fn materialized_views(lab: &Lab) -> (Answer, Answer) {
    let view = json!({"sourceCollectionId": "c", "definition": "SELECT c.id FROM c"});
    with_and_without(lab, "materializedViewDefinition", view).await
}

async fn vector_policy(lab: &Lab) {
    let read = lab.account.get("/dbs/d/colls/c", &[]).await.expect(200).body;
    assert_eq!(read["vectorEmbeddingPolicy"]["vectorEmbeddings"][0]["dimensions"], 3);
    let bad = json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/v", "dataType": "float99", "dimensions": 3, "distanceFunction": "cosine"}]}});
    let refused = lab.try_container(bad).await.expect(400);
    assert!(refused.message().contains("Vector Embedding Policy has an invalid DataType"));
}

async fn full_text_policy(lab: &Lab) {
    let read = lab.account.get("/dbs/d/colls/c", &[]).await.expect(200).body;
    assert_eq!(read["fullTextPolicy"]["defaultLanguage"], "en-US");
    let bad = json!({"fullTextPolicy": {"defaultLanguage": "xx-XX", "fullTextPaths": []}});
    lab.try_container(bad).await.expect(400);
}

async fn geospatial_config(lab: &Lab) {
    let path = lab.container(json!({"geospatialConfig": {"type": "Geometry"}})).await;
    let query = json!({"query": "SELECT VALUE ST_DISTANCE({'type':'Point','coordinates':[0,0]}, {'type':'Point','coordinates':[3,4]})"});
    let headers = [KEY, ("x-ms-documentdb-isquery", "true")];
    let answer = lab.account.post(&format!("{path}/docs"), &headers, query).await.expect(200);
    assert_eq!(answer.documents(), [json!(5)]);
}

async fn conflict_policy(lab: &Lab) {
    let policy = json!({"mode": "LastWriterWins", "conflictResolutionPath": "/n"});
    let path = lab.container(json!({"conflictResolutionPolicy": policy})).await;
    let read = lab.account.get(&path, &[]).await.expect(200).body;
    assert_eq!(read["conflictResolutionPolicy"]["conflictResolutionPath"], "/n");
}

async fn quota_info(lab: &Lab) {
    let read =
        lab.account.get("/dbs/d/colls/c", &[("x-ms-documentdb-populatequotainfo", "true")]).await.expect(200);
    assert_eq!(read.header("x-ms-documentdb-collection-index-transformation-progress"), "100");
    assert!(read.header("x-ms-resource-quota").contains("collectionSize=10485760;"));
    assert!(!read.header("x-ms-resource-usage").is_empty());
}

async fn partition_statistics(lab: &Lab) {
    let path = lab.container(json!({})).await;
    for n in 0..5 {
        let item = json!({"id": n.to_string(), "pk": "a", "x": "y".repeat(1000)});
        lab.account.post(&format!("{path}/docs"), &[KEY], item).await.expect(201);
    }
    let ask = ("x-ms-documentdb-populatepartitionstatistics", "True");
    let statistics = lab.account.get(&path, &[ask]).await.expect(200).body["statistics"].clone();
    assert_eq!((statistics.as_array().unwrap().len(), &statistics[0]["documentCount"]), (1, &json!(5)));
    assert_eq!((&statistics[0]["id"], &statistics[0]["partitionKeys"]), (&json!("0"), &json!([])));
    assert!(statistics[0]["sizeInKB"].as_u64().unwrap() >= 5);
    assert!(lab.account.get(&path, &[]).await.expect(200).body.get("statistics").is_none());
}
