//! Compatibility probes of databases and containers.

use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, Probes, ignored, refused, supported};

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
        ("client-encryption-policy", supported!(client_encryption_policy)),
        ("analytical-ttl", ignored!(analytical_ttl)),
        ("change-feed-policy", ignored!(change_feed_policy)),
        ("materialized-views", ignored!(materialized_views)),
        ("quota-info", supported!(quota_info)),
        ("partition-statistics", supported!(partition_statistics)),
    ]
}

async fn databases(fixture: &CompatibilityFixture) {
    let account = &fixture.account;
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

async fn database_replace(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.put("/dbs/d", &[], json!({"id": "d"})).await
}

async fn containers(fixture: &CompatibilityFixture) {
    let account = &fixture.account;
    let path = fixture.container(json!({"defaultTtl": 60})).await;
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

async fn container_immutable(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    let read = fixture.account.get(&path, &[]).await.expect(200).body;
    for (member, other, status) in [
        ("id", json!("renamed"), 400),
        ("partitionKey", json!({"paths": ["/other"], "kind": "Hash", "version": 2}), 400),
        ("uniqueKeyPolicy", json!({"uniqueKeys": [{"paths": ["/v"]}]}), 403),
        ("uniqueKeyPolicy", json!(null), 403),
    ] {
        let mut changed = read.clone();
        changed[member] = other;
        fixture.account.put(&path, &[], changed).await.expect(status);
    }
}

async fn container_recreation(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({})).await;
    let old = fixture.account.get(&path, &[]).await.expect(200).body;
    fixture.account.delete(&path, &[]).await.expect(204);
    let again = json!({"id": old["id"], "partitionKey": old["partitionKey"]});
    let new = fixture.account.post("/dbs/d/colls", &[], again).await.expect(201).body;
    assert_ne!(old["_rid"], new["_rid"]);
    for (rid, status, sub_status) in [(&old["_rid"], 400, "1024"), (&new["_rid"], 200, "")] {
        let intended = ("x-ms-cosmos-intended-collection-rid", rid.as_str().unwrap());
        let response = fixture.account.get(&format!("{path}/pkranges"), &[intended]).await.expect(status);
        assert_eq!(response.sub_status(), sub_status);
    }
}

async fn rid_addressing(fixture: &CompatibilityFixture) {
    let database = fixture.account.get("/dbs/d", &[]).await.expect(200).body;
    let container = fixture.account.get("/dbs/d/colls/c", &[]).await.expect(200).body;
    let item = fixture.account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200).body;
    let (database, container, item) = (
        database["_rid"].as_str().unwrap(),
        container["_rid"].as_str().unwrap(),
        item["_rid"].as_str().unwrap(),
    );
    let read = fixture.account.get(&format!("/dbs/{database}/colls/{container}/docs/{item}"), &[KEY]).await;
    assert_eq!(read.expect(200).body["id"], "1");
    fixture.account.post("/dbs", &[], json!({"id": "elsewhere"})).await.expect(201);
    fixture.account.get(&format!("/dbs/elsewhere/colls/{container}"), &[]).await.expect(404);
}

async fn trailing_slash(fixture: &CompatibilityFixture) {
    for path in ["/dbs/", "/dbs/d/", "/dbs/d/colls/", "/dbs/d/colls/c/", "/dbs/d/colls/c/pkranges/"] {
        fixture.account.get(path, &[]).await.expect(200);
    }
}

async fn metadata_preconditions(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({})).await;
    let read = fixture.account.get(&path, &[]).await.expect(200);
    let etag = read.header("etag").to_owned();
    fixture.account.get(&path, &[("if-none-match", &etag)]).await.expect(304);
    fixture.account.put(&path, &[("if-match", "\"old\"")], read.body.clone()).await.expect(412);
    fixture.account.put(&path, &[("if-match", &etag)], read.body).await.expect(200);
}

async fn feed_paging(fixture: &CompatibilityFixture) {
    for _ in 0..3 {
        fixture.container(json!({})).await;
    }
    let first = fixture.account.get("/dbs/d/colls", &[("x-ms-max-item-count", "2")]).await.expect(200);
    assert_eq!(first.header("x-ms-item-count"), "2");
    let next = ("x-ms-continuation", first.header("x-ms-continuation"));
    let second = fixture.account.get("/dbs/d/colls", &[("x-ms-max-item-count", "2"), next]).await.expect(200);
    assert_ne!(first.body, second.body);
}

async fn system_properties(fixture: &CompatibilityFixture) {
    let item = fixture.account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    let body = &item.body;
    assert_eq!(body["_attachments"], "attachments/");
    assert_eq!(body["_etag"], item.header("etag"));
    assert!(body["_etag"].as_str().unwrap().starts_with('"'));
    assert!(body["_ts"].is_u64() && body["_self"].as_str().unwrap().ends_with('/') && body["_lsn"].is_null());
}

/// Which of a container's two ranges contains a key, by querying them.
async fn round_trip(fixture: &CompatibilityFixture, definition: Value, item: Value, key: &str) -> Value {
    let path = fixture.container(json!({"partitionKey": definition})).await;
    let header = ("x-ms-documentdb-partitionkey", key);
    fixture.account.post(&format!("{path}/docs"), &[header], item).await.expect(201);
    fixture.account.get(&format!("{path}/docs/1"), &[header]).await.expect(200);
    fixture.account.get(&path, &[]).await.expect(200).body["partitionKey"].clone()
}

async fn key_hash_v1(fixture: &CompatibilityFixture) {
    let stored = round_trip(fixture, json!({"paths": ["/pk"]}), json!({"id": "1", "pk": 5}), "[5]").await;
    assert_eq!((&stored["kind"], stored["version"].as_u64().unwrap_or(1)), (&json!("Hash"), 1));
}

async fn key_hash_v2(fixture: &CompatibilityFixture) {
    let definition = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let stored = round_trip(fixture, definition, json!({"id": "1", "pk": true}), "[true]").await;
    assert_eq!(stored["version"], 2);
}

async fn key_multi_hash(fixture: &CompatibilityFixture) {
    let definition = json!({"paths": ["/a", "/b", "/c"], "kind": "MultiHash", "version": 2});
    let item = json!({"id": "1", "a": "x", "b": 1, "c": null});
    round_trip(fixture, definition, item, r#"["x",1,null]"#).await;
    let four = json!({"paths": ["/a", "/b", "/c", "/d"], "kind": "MultiHash", "version": 2});
    let rejected = fixture.try_container(json!({"partitionKey": four})).await.expect(400);
    assert!(rejected.message().contains("Too many partition key paths"));
}

async fn key_range_kind(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    with_and_without(fixture, "partitionKey", json!({"paths": ["/pk"], "kind": "Range"})).await
}

async fn key_paths(fixture: &CompatibilityFixture) {
    let nested = json!({"paths": ["/a/b"], "kind": "Hash", "version": 2});
    round_trip(fixture, nested, json!({"id": "1", "a": {"b": "x"}}), r#"["x"]"#).await;
    let quoted = json!({"paths": ["/\"a b\"/c"], "kind": "Hash", "version": 2});
    round_trip(fixture, quoted, json!({"id": "1", "a b": {"c": "x"}}), r#"["x"]"#).await;
}

async fn key_definition_errors(fixture: &CompatibilityFixture) {
    for definition in
        [json!({"paths": "/pk"}), json!({"paths": ["pk"]}), json!({"paths": ["/a/*"]}), json!({"paths": []})]
    {
        fixture.try_container(json!({"partitionKey": definition})).await.expect(400);
    }
}

async fn indexing_policy(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({"indexingPolicy": {"excludedPaths": [{"path": "/x/*"}]}})).await;
    let policy = fixture.account.get(&path, &[]).await.expect(200).body["indexingPolicy"].clone();
    assert_eq!((&policy["indexingMode"], &policy["automatic"]), (&json!("consistent"), &json!(true)));
    assert_eq!(policy["includedPaths"], json!([{"path": "/*"}]));
    assert_eq!(policy["excludedPaths"], json!([{"path": "/x/*"}, {"path": "/\"_etag\"/?"}]));
}

async fn indexing_none(fixture: &CompatibilityFixture) {
    let none = json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}});
    let path = fixture.container(none).await;
    let policy = fixture.account.get(&path, &[]).await.expect(200).body["indexingPolicy"].clone();
    assert_eq!((&policy["includedPaths"], &policy["excludedPaths"]), (&json!([]), &json!([])));
}

async fn composite_indexes(fixture: &CompatibilityFixture) {
    let rows = fixture.rows("SELECT VALUE c.n FROM c ORDER BY c.even ASC, c.n DESC").await;
    assert_eq!(rows, json!([3, 1, 2]));
    fixture.account.query("SELECT * FROM c ORDER BY c.even, c.n", &[KEY]).await.expect(400);
}

/// Containers that differ by one member, compared by a query over the same items.
async fn with_and_without(
    fixture: &CompatibilityFixture,
    member: &str,
    value: Value,
) -> (LiveResponse, LiveResponse) {
    let mut responses = Vec::new();
    for properties in [json!({}), json!({ member: value.clone() })] {
        let path = fixture.container(properties.clone()).await;
        if !properties[member].is_null() {
            assert!(
                !fixture.account.get(&path, &[]).await.expect(200).body[member].is_null(),
                "{member} is kept"
            );
        }
        let item = json!({"id": "1", "pk": "a", "at": {"type": "Point", "coordinates": [1, 2]}});
        fixture.account.post(&format!("{path}/docs"), &[KEY], item).await.expect(201);
        let query = json!({"query": "SELECT c.id, ST_DISTANCE(c.at, c.at) AS far FROM c"});
        let headers = [KEY, ("x-ms-documentdb-isquery", "true")];
        let mut response = fixture.account.post(&format!("{path}/docs"), &headers, query).await.expect(200);
        response.body.as_object_mut().unwrap().remove("_rid");
        responses.push(response);
    }
    let with = responses.pop().unwrap();
    (responses.pop().unwrap(), with)
}

async fn spatial_indexes(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let policy = json!({"spatialIndexes": [{"path": "/at/*", "types": ["Point"]}]});
    with_and_without(fixture, "indexingPolicy", policy).await
}

async fn client_encryption_policy(fixture: &CompatibilityFixture) {
    let algorithm = "AEAD_AES_256_CBC_HMAC_SHA256";
    let key = json!({
        "id": "policy",
        "encryptionAlgorithm": algorithm,
        "wrappedDataEncryptionKey": "AQID",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    });
    fixture.account.post("/dbs/d/clientencryptionkeys", &[], key).await.expect(201);
    let path = |path: &str, key: &str| {
        let included = json!({"path": path, "clientEncryptionKeyId": key, "encryptionType": "Deterministic", "encryptionAlgorithm": algorithm});
        json!({"id": "encrypted", "partitionKey": {"paths": ["/pk"]}, "clientEncryptionPolicy": {"includedPaths": [included], "policyFormatVersion": 1}})
    };
    fixture.account.post("/dbs/d/colls", &[], path("/a", "none")).await.expect(400);
    fixture.account.post("/dbs/d/colls", &[], path("/pk", "policy")).await.expect(400);
    let mut created = fixture.account.post("/dbs/d/colls", &[], path("/a", "policy")).await.expect(201).body;
    let plain = json!({"id": "1", "pk": "a"});
    fixture.account.post("/dbs/d/colls/encrypted/docs", &[], plain).await.expect(400);
    created.as_object_mut().unwrap().remove("clientEncryptionPolicy");
    fixture.account.put("/dbs/d/colls/encrypted", &[], created).await.expect(400);
    fixture.account.delete("/dbs/d/colls/encrypted", &[]).await.expect(204);
}

async fn analytical_ttl(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    with_and_without(fixture, "analyticalStorageTtl", json!(-1)).await
}

async fn change_feed_policy(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    with_and_without(fixture, "changeFeedPolicy", json!({"retentionDuration": 5})).await
}

async fn materialized_views(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let view = json!({"sourceCollectionId": "c", "definition": "SELECT c.id FROM c"});
    with_and_without(fixture, "materializedViewDefinition", view).await
}

async fn vector_policy(fixture: &CompatibilityFixture) {
    let read = fixture.account.get("/dbs/d/colls/c", &[]).await.expect(200).body;
    assert_eq!(read["vectorEmbeddingPolicy"]["vectorEmbeddings"][0]["dimensions"], 3);
    let bad = json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [
        {"path": "/v", "dataType": "float99", "dimensions": 3, "distanceFunction": "cosine"}]}});
    let rejected = fixture.try_container(bad).await.expect(400);
    assert!(rejected.message().contains("Vector Embedding Policy has an invalid DataType"));
}

async fn full_text_policy(fixture: &CompatibilityFixture) {
    let read = fixture.account.get("/dbs/d/colls/c", &[]).await.expect(200).body;
    assert_eq!(read["fullTextPolicy"]["defaultLanguage"], "en-US");
    let bad = json!({"fullTextPolicy": {"defaultLanguage": "xx-XX", "fullTextPaths": []}});
    fixture.try_container(bad).await.expect(400);
    // Languages may be locale identifiers, and each path has its own.
    let paths = json!([{"path": "/german", "language": 1031}, {"path": "/text", "language": "1036"}]);
    let policy = json!({"defaultLanguage": 1033, "fullTextPaths": paths});
    let path = fixture.container(json!({"fullTextPolicy": policy})).await;
    assert_eq!(fixture.account.get(&path, &[]).await.expect(200).body["fullTextPolicy"], policy);
    let item =
        json!({"id": "1", "pk": "a", "german": "Die Häuser", "text": "on the roof", "other": "on the roof"});
    fixture.account.post(&format!("{path}/docs"), &[KEY], item).await.expect(201);
    let query = json!({"query": "SELECT VALUE [FullTextContains(c.german, 'haus'), FullTextContains(c.text, 'the'), FullTextContains(c.other, 'the')] FROM c"});
    let headers = [KEY, ("x-ms-documentdb-isquery", "true")];
    let response = fixture.account.post(&format!("{path}/docs"), &headers, query).await.expect(200);
    assert_eq!(response.documents(), [json!([true, true, false])]);
    let unknown = json!({"fullTextPolicy": {"defaultLanguage": 9999, "fullTextPaths": []}});
    let rejected = fixture.try_container(unknown).await.expect(400);
    assert!(rejected.message().contains("unsupported language 9999"), "{}", rejected.message());
}

async fn geospatial_config(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({"geospatialConfig": {"type": "Geometry"}})).await;
    let query = json!({"query": "SELECT VALUE ST_DISTANCE({'type':'Point','coordinates':[0,0]}, {'type':'Point','coordinates':[3,4]})"});
    let headers = [KEY, ("x-ms-documentdb-isquery", "true")];
    let response = fixture.account.post(&format!("{path}/docs"), &headers, query).await.expect(200);
    assert_eq!(response.documents(), [json!(5)]);
}

async fn conflict_policy(fixture: &CompatibilityFixture) {
    let policy = json!({"mode": "LastWriterWins", "conflictResolutionPath": "/n"});
    let path = fixture.container(json!({"conflictResolutionPolicy": policy})).await;
    let read = fixture.account.get(&path, &[]).await.expect(200).body;
    assert_eq!(read["conflictResolutionPolicy"]["conflictResolutionPath"], "/n");
}

async fn quota_info(fixture: &CompatibilityFixture) {
    let read = fixture
        .account
        .get("/dbs/d/colls/c", &[("x-ms-documentdb-populatequotainfo", "true")])
        .await
        .expect(200);
    assert_eq!(read.header("x-ms-documentdb-collection-index-transformation-progress"), "100");
    assert!(read.header("x-ms-resource-quota").contains("collectionSize=10485760;"));
    assert!(!read.header("x-ms-resource-usage").is_empty());
}

async fn partition_statistics(fixture: &CompatibilityFixture) {
    let path = fixture.container(json!({})).await;
    for n in 0..5 {
        let item = json!({"id": n.to_string(), "pk": "a", "x": "y".repeat(1000)});
        fixture.account.post(&format!("{path}/docs"), &[KEY], item).await.expect(201);
    }
    let ask = ("x-ms-documentdb-populatepartitionstatistics", "True");
    let statistics = fixture.account.get(&path, &[ask]).await.expect(200).body["statistics"].clone();
    assert_eq!((statistics.as_array().unwrap().len(), &statistics[0]["documentCount"]), (1, &json!(5)));
    assert_eq!((&statistics[0]["id"], &statistics[0]["partitionKeys"]), (&json!("0"), &json!([])));
    assert!(statistics[0]["sizeInKB"].as_u64().unwrap() >= 5);
    assert!(fixture.account.get(&path, &[]).await.expect(200).body.get("statistics").is_none());
}
