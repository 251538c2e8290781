//! Items, one by one: written and read, under conditions and under every key, as text and as binary JSON.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{LiveResponse, Probes, ignored, refused, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("item-create", supported!(item_create)),
        ("item-read", supported!(item_read)),
        ("item-upsert", supported!(item_upsert)),
        ("item-replace", supported!(item_replace)),
        ("item-rename", supported!(item_rename)),
        ("item-delete", supported!(item_delete)),
        ("item-feed", supported!(item_feed)),
        ("item-feed-reverse", supported!(item_feed_reverse)),
        ("item-user-properties", supported!(item_user_properties)),
        ("item-ids", supported!(item_ids)),
        ("item-size", supported!(item_size)),
        ("item-nesting", supported!(item_nesting)),
        ("item-numbers", supported!(item_numbers)),
        ("if-match", supported!(if_match)),
        ("if-none-match", supported!(if_none_match)),
        ("if-none-match-any", supported!(if_none_match_any)),
        ("minimal-responses", supported!(minimal_responses)),
        ("content-response-header", supported!(content_response_header)),
        ("indexing-directive", supported!(indexing_directive)),
        ("logical-partition-quota", ignored!(logical_partition_quota)),
        ("unique-keys", supported!(unique_keys)),
        ("time-to-live", supported!(time_to_live)),
        ("key-header-types", supported!(key_header_types)),
        ("key-header-undefined", supported!(key_header_undefined)),
        ("key-header-empty", supported!(key_header_empty)),
        ("key-header-prefix", supported!(key_header_prefix)),
        ("key-header-mismatch", supported!(key_header_mismatch)),
        ("key-header-unicode", supported!(key_header_unicode)),
        ("key-missing", refused!(key_missing, "x-ms-documentdb-partitionkey")),
        ("binary-bodies", supported!(binary_bodies)),
        ("binary-answers", supported!(binary_responses)),
        ("read-many", supported!(read_many)),
    ]
}

const UPSERT: (&str, &str) = ("x-ms-documentdb-is-upsert", "True");

/// A container with one item, `1`, under the key `a`, and the path of its items.
pub(super) async fn fresh(fixture: &CompatibilityFixture) -> String {
    let docs = fixture.container(json!({})).await + "/docs";
    let item = json!({"id": "1", "pk": "a", "n": 1, "tags": ["x"], "o": {"a": 1}});
    fixture.account.post(&docs, &[KEY], item).await.expect(201);
    docs
}

async fn item_create(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let created = fixture.account.post(&docs, &[KEY], json!({"id": "2", "pk": "a"})).await.expect(201);
    assert_eq!(created.header("etag"), created.body["_etag"]);
    fixture.account.post(&docs, &[KEY], json!({"id": "2", "pk": "a"})).await.expect(409);
    let other = ("x-ms-documentdb-partitionkey", r#"["b"]"#);
    fixture.account.post(&docs, &[other], json!({"id": "2", "pk": "b"})).await.expect(201);
}

async fn item_read(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    assert_eq!(fixture.account.get(&format!("{docs}/1"), &[KEY]).await.expect(200).body["n"], 1);
    let missing = fixture.account.get(&format!("{docs}/2"), &[KEY]).await.expect(404);
    for header in ["x-ms-session-token", "lsn", "x-ms-documentdb-partitionkeyrangeid"] {
        assert!(!missing.header(header).is_empty(), "{header} on 404");
    }
}

async fn item_upsert(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let first = fixture.account.post(&docs, &[KEY, UPSERT], json!({"id": "2", "pk": "a"})).await.expect(201);
    let second =
        fixture.account.post(&docs, &[KEY, UPSERT], json!({"id": "2", "pk": "a", "n": 2})).await.expect(200);
    assert_eq!(first.body["_rid"], second.body["_rid"]);
    assert_ne!(first.body["_etag"], second.body["_etag"]);
}

async fn item_replace(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let replaced = fixture
        .account
        .put(&format!("{docs}/1"), &[KEY], json!({"id": "1", "pk": "a", "m": 1}))
        .await
        .expect(200);
    assert_eq!((&replaced.body["m"], &replaced.body["n"]), (&json!(1), &Value::Null));
    fixture.account.put(&format!("{docs}/2"), &[KEY], json!({"id": "2", "pk": "a"})).await.expect(404);
}

async fn item_rename(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    fixture.account.put(&format!("{docs}/1"), &[KEY], json!({"id": "9", "pk": "a"})).await.expect(200);
    fixture.account.get(&format!("{docs}/1"), &[KEY]).await.expect(404);
    fixture.account.get(&format!("{docs}/9"), &[KEY]).await.expect(200);
}

async fn item_delete(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    assert_eq!(fixture.account.delete(&format!("{docs}/1"), &[KEY]).await.expect(204).body, Value::Null);
    fixture.account.delete(&format!("{docs}/1"), &[KEY]).await.expect(404);
}

async fn item_feed(fixture: &CompatibilityFixture) {
    let feed = fixture.account.get(&fresh(fixture).await, &[]).await.expect(200);
    assert_eq!((feed.documents().len(), &feed.body["_count"]), (1, &json!(1)));
}

async fn item_feed_reverse(fixture: &CompatibilityFixture) {
    let forwards = fixture.account.get(DOCS, &[KEY]).await.expect(200);
    let mut expected = forwards.documents().to_vec();
    expected.reverse();
    let backwards =
        fixture.account.get(DOCS, &[KEY, ("x-ms-enumeration-direction", "Reverse")]).await.expect(200);
    assert_eq!(backwards.documents(), expected);
}

async fn item_user_properties(fixture: &CompatibilityFixture) {
    let headers = [KEY, ("x-ms-exclude-system-properties", "true")];
    let item = fixture.account.get(&format!("{DOCS}/1"), &headers).await.expect(200).body;
    assert!(item["id"].is_string() && !item.to_string().contains("\"_"), "{item}");
}

async fn binary_responses(fixture: &CompatibilityFixture) {
    for (formats, binary) in [("CosmosBinary", true), ("JsonText,CosmosBinary", false)] {
        let headers = [KEY, ("x-ms-cosmos-supported-serialization-formats", formats)];
        let read = fixture.account.get(&format!("{DOCS}/1"), &headers).await.expect(200);
        assert_eq!(protocol::binary_json::is_binary(&read.bytes), binary, "{formats}");
    }
}

async fn item_ids(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    for id in
        ["a b", "é😀", "50%", "a,b=c.d:e~f+g-h@i(j)^$k", "{x}[y]!_", "a/b", "a?b", "a#b", "/", "a?b=c/d#e"]
    {
        fixture.account.post(&docs, &[KEY], json!({"id": id, "pk": "a"})).await.expect(201);
        let escaped = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
        assert_eq!(
            fixture.account.get(&format!("{docs}/{escaped}"), &[KEY]).await.expect(200).body["id"],
            id
        );
    }
    for id in [json!(""), json!("a\\b"), json!(1), json!("x".repeat(1024))] {
        fixture.account.post(&docs, &[KEY], json!({"id": id, "pk": "a"})).await.expect(400);
    }
    fixture.account.post(&docs, &[KEY], json!({"pk": "a"})).await.expect(400);
}

async fn item_size(fixture: &CompatibilityFixture) {
    let large = json!({"id": "large", "pk": "a", "x": "y".repeat(2 * 1024 * 1024)});
    let rejected = fixture.account.post(DOCS, &[KEY], large).await.expect(413);
    assert_eq!(rejected.body["code"], "RequestEntityTooLarge");
}

async fn item_nesting(fixture: &CompatibilityFixture) {
    // The item itself is the first level.
    for (depth, status) in [(127, 201), (128, 400)] {
        let deep = format!(r#"{{"id":"deep","pk":"deep","x":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let key = ("x-ms-documentdb-partitionkey", r#"["deep"]"#);
        fixture.account.send(Method::POST, DOCS, &[key], deep.into()).await.expect(status);
        let path = format!("{DOCS}/deep");
        let binary = ("x-ms-cosmos-supported-serialization-formats", "CosmosBinary");
        fixture.account.send(Method::GET, &path, &[key, binary], Bytes::new()).await.expect(200);
        fixture.account.send(Method::GET, DOCS, &[key, binary], Bytes::new()).await.expect(200);
    }
}

async fn item_numbers(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let numbers = json!({"id": "n", "pk": "a", "big": 9_007_199_254_740_993_i64, "max": i64::MAX, "half": 0.5, "whole": 1.0});
    let stored = fixture.account.post(&docs, &[KEY], numbers).await.expect(201).body;
    assert_eq!((&stored["big"], &stored["max"]), (&json!(9_007_199_254_740_993_i64), &json!(i64::MAX)));
    assert_eq!((&stored["half"], &stored["whole"]), (&json!(0.5), &json!(1)));
}

async fn if_match(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let path = format!("{docs}/1");
    let etag = fixture.account.get(&path, &[KEY]).await.expect(200).header("etag").to_owned();
    let item = json!({"id": "1", "pk": "a", "n": 2});
    fixture.account.put(&path, &[KEY, ("if-match", "\"other\"")], item.clone()).await.expect(412);
    fixture.account.post(&docs, &[KEY, UPSERT, ("if-match", "\"other\"")], item.clone()).await.expect(412);
    fixture.account.delete(&path, &[KEY, ("if-match", "\"other\"")]).await.expect(412);
    fixture.account.put(&path, &[KEY, ("if-match", &etag)], item.clone()).await.expect(200);
    fixture.account.put(&path, &[KEY, ("if-match", "")], item).await.expect(200);
    fixture.account.delete(&path, &[KEY, ("if-match", "*")]).await.expect(204);
}

async fn if_none_match(fixture: &CompatibilityFixture) {
    let path = format!("{DOCS}/1");
    let etag = fixture.account.get(&path, &[KEY]).await.expect(200).header("etag").to_owned();
    let unchanged = fixture.account.get(&path, &[KEY, ("if-none-match", &etag)]).await.expect(304);
    assert_eq!((unchanged.header("etag"), &unchanged.body), (&*etag, &Value::Null));
}

async fn if_none_match_any(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let any = ("if-none-match", "*");
    fixture.account.post(&docs, &[KEY, any], json!({"id": "1", "pk": "a"})).await.expect(409);
    fixture.account.post(&docs, &[KEY, UPSERT, any], json!({"id": "1", "pk": "a"})).await.expect(412);
    fixture.account.post(&docs, &[KEY, any], json!({"id": "2", "pk": "a"})).await.expect(201);
}

async fn minimal_responses(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let created = fixture
        .account
        .post(&docs, &[KEY, ("prefer", "return=minimal")], json!({"id": "2", "pk": "a"}))
        .await
        .expect(201);
    assert!(created.body.is_null() && !created.header("etag").is_empty());
}

async fn content_response_header(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    for (value, empty) in [("false", true), ("true", false)] {
        let header = ("x-ms-cosmos-populate-content-response-on-write", value);
        let written = fixture
            .account
            .post(&docs, &[KEY, UPSERT, header], json!({"id": "1", "pk": "a"}))
            .await
            .expect(200);
        assert_eq!(written.body.is_null(), empty);
    }
}

async fn logical_partition_quota(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    // 20 GB do not fit a test. Nothing else has this limit, so nothing may know its response either.
    let sources = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"));
    let mut folders = vec![sources.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let text = std::fs::read_to_string(&entry).unwrap();
                assert!(!text.contains("PARTITION_KEY_QUOTA_EXCEEDED"), "{} knows a quota", entry.display());
            }
        }
    }
    let docs = fresh(fixture).await;
    let first = fixture.account.post(&docs, &[KEY, UPSERT], json!({"id": "1", "pk": "a"})).await;
    for n in 0..8 {
        let item = json!({"id": format!("q{n}"), "pk": "a", "x": "y".repeat(1_900_000)});
        fixture.account.post(&docs, &[KEY], item).await.expect(201);
    }
    (first, fixture.account.post(&docs, &[KEY, UPSERT], json!({"id": "1", "pk": "a"})).await)
}

async fn unique_keys(fixture: &CompatibilityFixture) {
    let policy = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}});
    let docs = fixture.container(policy).await + "/docs";
    fixture.account.post(&docs, &[KEY], json!({"id": "1", "pk": "a", "u": 1})).await.expect(201);
    let taken =
        fixture.account.post(&docs, &[KEY], json!({"id": "2", "pk": "a", "u": 1.0})).await.expect(409);
    assert!(["", "3301"].contains(&taken.sub_status()));
    let other = ("x-ms-documentdb-partitionkey", r#"["b"]"#);
    fixture.account.post(&docs, &[other], json!({"id": "2", "pk": "b", "u": 1})).await.expect(201);
    fixture.account.post(&docs, &[KEY], json!({"id": "3", "pk": "a"})).await.expect(201);
    fixture.account.post(&docs, &[KEY], json!({"id": "4", "pk": "a"})).await.expect(409);
}

async fn time_to_live(fixture: &CompatibilityFixture) {
    for ttl in [json!(0), json!(-10), json!(null)] {
        fixture.try_container(json!({"defaultTtl": ttl})).await.expect(400);
    }
    let docs = fixture.container(json!({"defaultTtl": -1})).await + "/docs";
    for ttl in [json!(-10), json!(0), json!("x"), json!(null)] {
        fixture.account.post(&docs, &[KEY], json!({"id": "bad", "pk": "a", "ttl": ttl})).await.expect(400);
    }
    let own = crate::live::LiveAccount::with_container(1, json!({"defaultTtl": -1})).await;
    own.create(json!({"id": "1", "pk": "a", "ttl": 10})).await.expect(201);
    own.create(json!({"id": "2", "pk": "a"})).await.expect(201);
    own.advance(11);
    own.get(&format!("{DOCS}/1"), &[KEY]).await.expect(404);
    own.get(&format!("{DOCS}/2"), &[KEY]).await.expect(200);
}

async fn stored_under(fixture: &CompatibilityFixture, item: Value, key: &str, status: u16) -> LiveResponse {
    let docs = fixture.container(json!({})).await + "/docs";
    let header = ("x-ms-documentdb-partitionkey", key);
    let created = fixture.account.post(&docs, &[header], item).await.expect(status);
    if status == 201 {
        fixture.account.get(&format!("{docs}/1"), &[header]).await.expect(200);
    }
    created
}

async fn key_header_types(fixture: &CompatibilityFixture) {
    for (value, key) in [
        (json!("abc"), r#"["abc"]"#),
        (json!(5), "[5]"),
        (json!(5), "[5.0]"),
        (json!(1.5), "[1.5]"),
        (json!(true), "[true]"),
        (json!(null), "[null]"),
    ] {
        stored_under(fixture, json!({"id": "1", "pk": value}), key, 201).await;
    }
}

async fn key_header_undefined(fixture: &CompatibilityFixture) {
    stored_under(fixture, json!({"id": "1"}), "[{}]", 201).await;
}

async fn key_header_empty(fixture: &CompatibilityFixture) {
    stored_under(fixture, json!({"id": "1"}), "[]", 400).await;
    let docs = fixture.container(json!({"partitionKey": {"paths": ["/_partitionKey"], "kind": "Hash", "version": 2, "systemKey": true}})).await + "/docs";
    let empty = ("x-ms-documentdb-partitionkey", "[]");
    fixture.account.post(&docs, &[empty], json!({"id": "1"})).await.expect(201);
    fixture.account.get(&format!("{docs}/1"), &[empty]).await.expect(200);
}

async fn key_header_prefix(fixture: &CompatibilityFixture) {
    let definition = json!({"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2});
    let docs = fixture.container(json!({"partitionKey": definition})).await + "/docs";
    for (id, b) in [("1", "x"), ("2", "y")] {
        let key = ("x-ms-documentdb-partitionkey", &*format!(r#"["t","{b}"]"#));
        fixture.account.post(&docs, &[key], json!({"id": id, "a": "t", "b": b})).await.expect(201);
    }
    let prefix = ("x-ms-documentdb-partitionkey", r#"["t"]"#);
    assert_eq!(fixture.account.get(&docs, &[prefix]).await.expect(200).documents().len(), 2);
    let query = [prefix, ("x-ms-documentdb-isquery", "true")];
    let found = fixture.account.post(&docs, &query, json!({"query": "SELECT * FROM c"})).await.expect(200);
    assert_eq!(found.documents().len(), 2);
    assert_eq!(fixture.account.get(&format!("{docs}/1"), &[prefix]).await.expect(400).sub_status(), "1001");
    let long = ("x-ms-documentdb-partitionkey", r#"["t","x","z"]"#);
    fixture.account.get(&format!("{docs}/1"), &[long]).await.expect(400);
}

async fn key_header_mismatch(fixture: &CompatibilityFixture) {
    let rejected = stored_under(fixture, json!({"id": "1", "pk": "a"}), r#"["b"]"#, 400).await;
    assert_eq!(rejected.sub_status(), "1001");
    assert!(rejected.message().contains("doesn't match partition key field values"));
}

async fn key_header_unicode(fixture: &CompatibilityFixture) {
    stored_under(fixture, json!({"id": "1", "pk": "é😀"}), r#"["\u00e9\ud83d\ude00"]"#, 201).await;
    stored_under(fixture, json!({"id": "1", "pk": "é😀"}), r#"["é😀"]"#, 201).await;
}

async fn key_missing(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.post(DOCS, &[], json!({"id": "1", "pk": "a"})).await
}

async fn binary_bodies(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let text = json!({"id": "binary", "pk": "a", "n": [1, -5, 0.5, null, true, "é"]});
    let binary = protocol::binary_json::from_text(text.to_string().as_bytes()).unwrap();
    assert_eq!(binary[0], 0x80);
    let created = fixture.account.send(Method::POST, &docs, &[KEY], Bytes::from(binary)).await.expect(201);
    assert_eq!(created.body["n"], text["n"]);
}

async fn indexing_directive(fixture: &CompatibilityFixture) {
    let path = format!("{}/docs", fixture.container(json!({})).await);
    let headers = [KEY, ("x-ms-indexing-directive", "Exclude")];
    fixture.account.post(&path, &headers, json!({"id": "1", "pk": "a", "n": 1})).await.expect(201);
    fixture.account.get(&format!("{path}/1"), &[KEY]).await.expect(200);
    let query = json!({"query": "SELECT * FROM c WHERE c.n = 1"});
    let found = fixture.account.post(&path, &[KEY, ("x-ms-documentdb-isquery", "true")], query).await;
    assert!(found.expect(200).documents().is_empty());
}

async fn read_many(fixture: &CompatibilityFixture) {
    let rows = fixture.rows("SELECT VALUE c.id FROM c WHERE c.pk = 'a' AND c.id IN ('1', '3', '9')").await;
    assert_eq!(rows, json!(["1", "3"]));
}
