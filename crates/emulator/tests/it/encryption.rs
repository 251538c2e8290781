//! Client encryption keys and the encryption policy of containers.

use http::Method;
use perihelion_emulator::{DataDir, EmulatorConfig};
use serde_json::{Value, json};

use crate::live::LiveAccount;

const FEED: &str = "/dbs/d/clientencryptionkeys";
const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";
const ENCRYPTED: (&str, &str) = ("x-ms-cosmos-is-client-encrypted", "True");
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

fn key(id: &str, wrapped: &str) -> Value {
    json!({
        "id": id,
        "encryptionAlgorithm": ALGORITHM,
        "wrappedDataEncryptionKey": wrapped,
        "keyWrapMetadata": {"type": "akvso", "name": "master", "value": "tempmetadata1", "algorithm": "RSA-OAEP"},
    })
}

fn container(id: &str, version: u32, paths: &[(&str, &str)]) -> Value {
    let included = paths.iter().map(|(path, kind)| {
        json!({"path": path, "clientEncryptionKeyId": "k1", "encryptionType": kind, "encryptionAlgorithm": ALGORITHM})
    });
    let included: Vec<Value> = included.collect();
    json!({
        "id": id,
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "clientEncryptionPolicy": {"includedPaths": included, "policyFormatVersion": version},
    })
}

#[tokio::test]
async fn keys_are_created_read_listed_queried_replaced_and_deleted() {
    let account = LiveAccount::with_container(1, json!({})).await;
    assert_eq!(account.get(FEED, &[]).await.expect(200).body["ClientEncryptionKeys"], json!([]));
    let created = account.post(FEED, &[], key("k 1", "AQID")).await.expect(201);
    let body = created.body.clone();
    assert_eq!(created.header("etag"), body["_etag"].as_str().unwrap());
    assert_eq!(created.header("x-ms-alt-content-path"), "dbs/d");
    assert!(created.header("x-ms-request-charge").parse::<f64>().unwrap() > 1.0);
    for (name, value) in key("k 1", "AQID").as_object().unwrap() {
        assert_eq!(&body[name], value, "{name}");
    }
    let rid = body["_rid"].as_str().unwrap().to_owned();
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(rid.replace('-', "/")).unwrap();
    assert_eq!((bytes.len(), &bytes[4..8], &bytes[12..]), (16, &[0; 4][..], &[2, 0, 0, 0][..]), "{rid}");
    assert!(body["_self"].as_str().unwrap().ends_with(&format!("/clientencryptionkeys/{rid}/")), "{body}");
    account.post(FEED, &[], key("k 1", "AQID")).await.expect(409);
    account.post(FEED, &[], key("second", "BAUG")).await.expect(201);
    let one = format!("{FEED}/k%201");
    let read = account.get(&one, &[]).await.expect(200);
    assert_eq!(read.body, body);
    account.get(&one, &[("if-none-match", read.header("etag"))]).await.expect(304);
    let by_rid = format!("{}/{}", FEED, rid.replace('=', "%3D"));
    assert_eq!(account.get(&by_rid, &[]).await.expect(200).body, body);
    let first = account.get(FEED, &[("x-ms-max-item-count", "1")]).await.expect(200);
    assert_eq!(first.body["ClientEncryptionKeys"][0]["id"], "k 1");
    let next = [("x-ms-max-item-count", "1"), ("x-ms-continuation", first.header("x-ms-continuation"))];
    assert_eq!(account.get(FEED, &next).await.expect(200).body["ClientEncryptionKeys"][0]["id"], "second");
    let query = json!({"query": "SELECT * FROM c WHERE c.id = @id", "parameters": [{"name": "@id", "value": "second"}]});
    let is_query = [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let found = account.post(FEED, &is_query, query).await.expect(200).body;
    assert_eq!((&found["_count"], &found["ClientEncryptionKeys"][0]["id"]), (&json!(1), &json!("second")));
    account.put(&one, &[("if-match", "\"other\"")], key("k 1", "BwgJ")).await.expect(412);
    let matching = [("if-match", read.header("etag"))];
    let replaced = account.put(&one, &matching, key("k 1", "BwgJ")).await.expect(200).body;
    assert_eq!((&replaced["wrappedDataEncryptionKey"], &replaced["_rid"]), (&json!("BwgJ"), &json!(rid)));
    account.put(&one, &matching, key("k 1", "AQID")).await.expect(412);
    let renamed = account.put(&one, &[], key("other", "AQID")).await.expect(400);
    assert!(renamed.message().contains("id of a client encryption key"), "{}", renamed.body);
    account.post(FEED, &[("x-ms-documentdb-is-upsert", "true")], key("k 1", "AQID")).await.expect(400);
    account.delete(&one, &[("if-match", "\"other\"")]).await.expect(412);
    account.delete(&one, &[]).await.expect(204);
    account.get(&one, &[]).await.expect(404);
    account.put(&one, &[], key("k 1", "AQID")).await.expect(404);
    account.post("/dbs/none/clientencryptionkeys", &[], key("k", "AQID")).await.expect(404);
    let mut bare = key("k", "AQID");
    bare.as_object_mut().unwrap().remove("keyWrapMetadata");
    let refused = account.post(FEED, &[], bare).await.expect(400);
    assert!(refused.message().contains("'keyWrapMetadata; ' - are missing"), "{}", refused.body);
}

#[tokio::test]
async fn a_policy_is_validated_stored_and_immutable() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let unknown = account.post("/dbs/d/colls", &[], container("e", 1, &[("/a", "Randomized")])).await;
    let unknown = unknown.expect(400);
    assert!(
        unknown.message().contains("ClientEncryptionKey with id '[k1]' does not exist."),
        "{}",
        unknown.body
    );
    account.post(FEED, &[], key("k1", "AQID")).await.expect(201);
    for (version, path, kind, part) in [
        (
            1,
            "/pk",
            "Deterministic",
            "part of the partition key cannot be encrypted with PolicyFormatVersion: 1",
        ),
        (2, "/pk", "Randomized", "has to be encrypted with Deterministic"),
        (1, "/id", "Deterministic", "Path: /id cannot be encrypted with PolicyFormatVersion: 1"),
        (2, "/id", "Randomized", "Only Deterministic encryption type"),
        (3, "/a", "Randomized", "1 and 2"),
        (1, "/a/b", "Randomized", "Invalid path"),
        (1, "/a", "Sometimes", "'Deterministic' or 'Randomized'"),
    ] {
        let refused =
            account.post("/dbs/d/colls", &[], container("e", version, &[(path, kind)])).await.expect(400);
        assert!(refused.message().contains(part), "{path}: {}", refused.body);
    }
    let sent = container("e", 2, &[("/id", "Deterministic"), ("/pk", "Deterministic"), ("/a", "Randomized")]);
    let created = account.post("/dbs/d/colls", &[], sent.clone()).await.expect(201).body;
    assert_eq!(created["clientEncryptionPolicy"], sent["clientEncryptionPolicy"]);
    let mut same = created.clone();
    same["defaultTtl"] = json!(60);
    let replaced = account.put("/dbs/d/colls/e", &[], same.clone()).await.expect(200).body;
    assert_eq!(replaced["clientEncryptionPolicy"], sent["clientEncryptionPolicy"]);
    for changed in [Value::Null, json!({"includedPaths": [], "policyFormatVersion": 2})] {
        same["clientEncryptionPolicy"] = changed;
        let refused = account.put("/dbs/d/colls/e", &[], same.clone()).await.expect(400);
        let text = "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.";
        assert!(refused.message().contains(text), "{}", refused.body);
    }
}

#[tokio::test]
async fn items_that_were_not_encrypted_are_refused_where_a_policy_demands_it() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.post(FEED, &[], key("k1", "AQID")).await.expect(201);
    account.post("/dbs/d/colls", &[], container("e", 1, &[("/a", "Randomized")])).await.expect(201);
    let docs = "/dbs/d/colls/e/docs";
    let item = json!({"id": "1", "pk": "a", "a": "AgF="});
    let text = "Collection has ClientEncryptionPolicy set, but the document to be written isn't encrypted.";
    let plain = account.post(docs, &[KEY], item.clone()).await.expect(400);
    assert!(plain.message().contains(text), "{}", plain.body);
    account.post(docs, &[KEY, ENCRYPTED], item.clone()).await.expect(201);
    let one = format!("{docs}/1");
    account.put(&one, &[KEY], item.clone()).await.expect(400);
    account.put(&one, &[KEY, ENCRYPTED], item.clone()).await.expect(200);
    let batch = [KEY, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let upsert = json!([{"operationType": "Upsert", "resourceBody": item}]);
    let plain = account.post(docs, &batch, upsert.clone()).await.expect(400);
    assert!(plain.message().contains(text), "{}", plain.body);
    account.post(docs, &[batch[0], batch[1], batch[2], ENCRYPTED], upsert).await.expect(200);
    account.post(docs, &batch, json!([{"operationType": "Read", "id": "1"}])).await.expect(200);
    // Whoever has no keys may still read and delete.
    account.get(&one, &[KEY]).await.expect(200);
    account.delete(&one, &[KEY]).await.expect(204);
}

#[tokio::test]
async fn keys_survive_restarts_and_snapshots_and_go_with_their_database() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = EmulatorConfig::default();
    config.data = Some(DataDir::new(folder.path()));
    let account = LiveAccount::start(config.clone()).await;
    account.create_container(json!({})).await;
    account.post(FEED, &[], key("gone", "AQID")).await.expect(201);
    account.post(FEED, &[], key("k1", "AQID")).await.expect(201);
    account.delete(&format!("{FEED}/gone"), &[]).await.expect(204);
    account.put(&format!("{FEED}/k1"), &[], key("k1", "BAUG")).await.expect(200);
    account.post("/dbs/d/colls", &[], container("e", 1, &[("/a", "Randomized")])).await.expect(201);
    let kept = account.get(FEED, &[]).await.expect(200).body;
    let policy = account.get("/dbs/d/colls/e", &[]).await.expect(200).body;
    account.control(Method::POST, "/snapshots/before", "").await.expect(200);
    account.post(FEED, &[], key("late", "AQID")).await.expect(201);
    account.stop().await;
    let account = LiveAccount::start(config.clone()).await;
    assert_eq!(account.get(FEED, &[]).await.expect(200).body["_count"], 2);
    assert_eq!(account.get("/dbs/d/colls/e", &[]).await.expect(200).body, policy);
    let created = account.post(FEED, &[], key("new", "AQID")).await.expect(201).body;
    assert!(!kept.to_string().contains(created["_rid"].as_str().unwrap()), "no id comes twice");
    account.delete("/dbs/d", &[]).await.expect(204);
    account.create_container(json!({})).await;
    assert_eq!(account.get(FEED, &[]).await.expect(200).body["_count"], 0);
    account.stop().await;
    let account = LiveAccount::start(config).await;
    assert_eq!(account.get(FEED, &[]).await.expect(200).body["_count"], 0);
}

#[tokio::test]
async fn a_restored_snapshot_has_the_keys_it_was_saved_with() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.post(FEED, &[], key("k1", "AQID")).await.expect(201);
    let before = account.get(FEED, &[]).await.expect(200).body;
    account.control(Method::POST, "/snapshots/before", "").await.expect(200);
    account.put(&format!("{FEED}/k1"), &[], key("k1", "BAUG")).await.expect(200);
    account.post(FEED, &[], key("late", "AQID")).await.expect(201);
    account.control(Method::POST, "/snapshots/before/restore", "").await.expect(200);
    assert_eq!(account.get(FEED, &[]).await.expect(200).body, before);
}
