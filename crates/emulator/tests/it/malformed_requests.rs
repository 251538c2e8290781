//! Bad input over a socket: whatever arrives, the response is a 4xx that parses, and others notice
//! nothing.

mod headers;
mod queries;
mod random;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::live::{LiveAccount, LiveResponse};

const DOCS: &str = "/dbs/d/colls/c/docs";
const ITEM: &str = "/dbs/d/colls/c/docs/1";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "true");
const PLAN: (&str, &str) = ("x-ms-cosmos-is-query-plan-request", "true");
const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "true");

/// An account whose container holds one item, `1` under the key `a`.
async fn account() -> LiveAccount {
    let account = LiveAccount::with_container(2, json!({})).await;
    let numbers: Vec<u32> = (0..1000).collect();
    account
        .create(json!({"id": "1", "pk": "a", "n": 1, "list": numbers, "text": "x".repeat(1 << 16)}))
        .await
        .expect(201);
    account
}

/// Checks an error response that every SDK can parse.
#[track_caller]
fn check_rejected(response: &LiveResponse, about: &str) {
    assert!((400..500).contains(&response.status), "{about}: {} {}", response.status, response.body);
    check_readable(response, about);
}

/// Anything but a failure of the server; errors can be read.
#[track_caller]
fn check_readable(response: &LiveResponse, about: &str) {
    assert!(response.status < 500, "{about}: {} {}", response.status, response.body);
    if response.status >= 400 {
        assert!(
            response.body["code"].is_string() && response.body["message"].is_string(),
            "{about}: {}",
            response.body
        );
    }
}

/// The item is still there, and is still read.
async fn check_alive(account: &LiveAccount) {
    assert_eq!(account.get(ITEM, &[KEY]).await.expect(200).body["n"], 1);
}

#[tokio::test]
async fn bodies_that_are_not_json_are_rejected_everywhere() {
    let account = account().await;
    let deep = "[".repeat(100_000);
    let deep_objects = r#"{"a":"#.repeat(100_000);
    let bodies: Vec<Bytes> = [
        &b""[..],
        b" ",
        b"{",
        b"}",
        b"[",
        b"]",
        b"{]",
        b"nul",
        b"tru",
        b"\"",
        b"\"\\x\"",
        b"'a'",
        b"{'a':1}",
        b"{\"a\"}",
        b"{\"a\":}",
        b"{\"a\":1,}",
        b"[1,]",
        b"{a:1}",
        b"01",
        b"1.",
        b".5",
        b"+1",
        b"1e",
        b"-",
        b"NaN",
        b"Infinity",
        b"{\"id\":\"x\",\"pk\":\"a\"} trailing",
        b"{\"id\":\"x\",\"pk\":\"a\"}{}",
        b"\xff\xfe{}",
        b"{\"id\":\"\xff\"}",
        b"{\"id\":\"\xc3\x28\",\"pk\":\"a\"}",
        b"\0\0\0\0",
        b"{\"id\":\"\\ud800\",\"pk\":\"a\"}",
        b"{\"id\":\"\\u12\"}",
        b"/* c */ {}",
        b"\xef\xbb\xbf{",
    ]
    .into_iter()
    .map(Bytes::from_static)
    .chain([Bytes::from(deep), Bytes::from(deep_objects)])
    .collect();
    for body in &bodies {
        let about = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        for (method, path, headers) in [
            (Method::POST, DOCS, vec![KEY]),
            (Method::POST, DOCS, vec![KEY, ("x-ms-documentdb-is-upsert", "true")]),
            (Method::PUT, ITEM, vec![KEY]),
            (Method::PATCH, ITEM, vec![KEY]),
            (Method::POST, DOCS, vec![KEY, BATCH]),
            (Method::POST, DOCS, vec![KEY, QUERY]),
            (Method::POST, DOCS, vec![PLAN]),
            (Method::POST, "/dbs", vec![]),
            (Method::POST, "/dbs/d/colls", vec![]),
            (Method::PUT, "/dbs/d/colls/c", vec![]),
            (Method::POST, "/dbs/d/users", vec![]),
            (Method::POST, "/offers", vec![QUERY]),
        ] {
            let response = account.send(method, path, &headers, body.clone()).await;
            check_rejected(&response, &format!("{path} {headers:?} {about}"));
        }
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn json_bodies_of_the_wrong_type_are_rejected() {
    let account = account().await;
    let values =
        [json!(null), json!(true), json!(1), json!("text"), json!([]), json!([[]]), json!({}), json!([1])];
    for value in &values {
        check_rejected(&account.post(DOCS, &[KEY], value.clone()).await, &value.to_string());
        check_rejected(&account.put(ITEM, &[KEY], value.clone()).await, &value.to_string());
        check_rejected(&account.patch(ITEM, &[KEY], value.clone()).await, &value.to_string());
        check_rejected(&account.post(DOCS, &[KEY, BATCH], value.clone()).await, &value.to_string());
        check_rejected(&account.post(DOCS, &[KEY, QUERY], value.clone()).await, &value.to_string());
        check_rejected(&account.post("/dbs", &[], value.clone()).await, &value.to_string());
        check_rejected(&account.post("/dbs/d/colls", &[], value.clone()).await, &value.to_string());
        check_rejected(&account.put("/dbs/d/colls/c", &[], value.clone()).await, &value.to_string());
    }
    for member in ["query", "parameters"] {
        for value in
            values.iter().filter(|value| **value != json!([]) && (member == "query" || !value.is_null()))
        {
            let mut body = json!({"query": "SELECT 1", "parameters": []});
            body[member] = value.clone();
            let response = account.post(DOCS, &[KEY, QUERY], body).await;
            // A text is a query, if not a good one; what is no list of parameters has none.
            check_readable(&response, &format!("{member} {value}"));
        }
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_ids_are_rejected_and_unusual_ones_accepted() {
    let account = account().await;
    for id in [
        json!(null),
        json!(1),
        json!(true),
        json!([]),
        json!({}),
        json!(""),
        json!("a\\b"),
        json!("x".repeat(1024)),
        json!("é".repeat(512)),
    ] {
        let response = account.post(DOCS, &[KEY], json!({"id": id, "pk": "a"})).await;
        check_rejected(&response, &id.to_string());
    }
    for id in [
        "\u{0}", "\u{1}", "\n", "..", ".", "?", "#", "a/b", "%", "%2F", "%00", "\u{7f}", "\u{202e}",
        "\u{feff}", " ", "😀",
    ] {
        let created = account.post(DOCS, &[KEY], json!({"id": id, "pk": "a"})).await;
        check_readable(&created, id);
        if created.status == 201 {
            let escaped = percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC);
            let read = account.get(&format!("{DOCS}/{escaped}"), &[KEY]).await;
            assert_eq!(read.expect(200).body["id"], id, "{id:?}");
        }
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_paths_are_rejected() {
    let account = account().await;
    for path in [
        "/dbs/%FF",
        "/dbs/%",
        "/dbs/%2",
        "/dbs/%zz",
        "/dbs/d/colls/%C3%28",
        "/dbs/%00",
        "//",
        "/dbs//colls",
        "/dbs/d/colls/c/docs/%FF%FE",
        "/dbs/d/colls/c/docs/1/2/3/4/5",
        "/dbs/../dbs/d",
        "/%2e%2e/dbs",
        "/dbs?x=1&y=%FF",
        "/dbs/d/colls/c/docs/%2F",
        "/dbs/%5C",
        "*",
    ] {
        check_readable(&account.get(path, &[KEY]).await, path);
        check_readable(&account.delete(path, &[KEY]).await, path);
    }
    let long = format!("/dbs/{}", "x".repeat(30_000));
    check_rejected(&account.get(&long, &[]).await, "a long path");
    check_alive(&account).await;
}

#[tokio::test]
async fn binary_json_that_is_broken_is_rejected() {
    let account = account().await;
    let text = json!({"id": "b", "pk": "a", "n": [1, -1, 0.5, 300, 70_000, 1e100, null, true], "t": "é".repeat(100), "o": {"p": {}}});
    let whole = protocol::binary_json::from_text(text.to_string().as_bytes()).unwrap();
    for length in 1..whole.len() {
        let response =
            account.send(Method::POST, DOCS, &[KEY], Bytes::copy_from_slice(&whole[..length])).await;
        check_rejected(&response, &format!("the first {length} bytes"));
    }
    // Every byte, changed in a few ways: it may still be JSON, but never more than that.
    for at in 1..whole.len() {
        for change in [0x00, 0xFF, whole[at] ^ 0x40, whole[at].wrapping_add(1)] {
            let mut bytes = whole.clone();
            bytes[at] = change;
            let response = account
                .send(Method::POST, DOCS, &[KEY, ("x-ms-documentdb-is-upsert", "true")], bytes.into())
                .await;
            check_readable(&response, &format!("byte {at} is {change}"));
        }
    }
    for bytes in [
        vec![0x80],
        vec![0x80, 0x80],
        vec![0x80, 0xE5, 0xFF, 0xFF],
        vec![0x80, 0xE7, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0x7F],
        vec![0x80, 0xC2, 0xFF, 0xFF, 0xFF, 0xFF],
        vec![0x80, 0xC3, 0x00],
        vec![0x80, 0xC3, 0x01],
        vec![0x80, 0xF3, 0xFF, 0xFF, 0xFF, 0xFF],
        [vec![0x80], vec![0xE1; 100_000]].concat(),
        [vec![0x80], vec![0xE9; 100_000]].concat(),
        [vec![0x80], [0xE2, 0xFF].repeat(1000)].concat(),
    ] {
        check_rejected(&account.send(Method::POST, DOCS, &[KEY], bytes.into()).await, "binary");
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn batches_with_bad_operations_change_nothing() {
    let account = account().await;
    let bodies = [
        json!([{}]),
        json!([null]),
        json!([1]),
        json!(["Create"]),
        json!([[]]),
        json!([{"operationType": 1}]),
        json!([{"operationType": "Fly", "id": "1"}]),
        json!([{"operationType": "Create"}]),
        json!([{"operationType": "Create", "resourceBody": "text"}]),
        json!([{"operationType": "Create", "resourceBody": {"pk": "a"}}]),
        json!([{"operationType": "Read"}]),
        json!([{"operationType": "Read", "id": 5}]),
        json!([{"operationType": "Delete", "id": {}}]),
        json!([{"operationType": "Patch", "id": "1"}]),
        json!([{"operationType": "Patch", "id": "1", "resourceBody": {"operations": "x"}}]),
        json!([{"operationType": "Patch", "id": "1", "resourceBody": {"operations": [{"op": "incr", "path": "no slash", "value": 1}]}}]),
        json!([{"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}, "ifMatch": 5}]),
        json!([{"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}}, {"operationType": "Fly"}]),
    ];
    for body in bodies {
        let response = account.post(DOCS, &[KEY, BATCH], body.clone()).await;
        check_readable(&response, &body.to_string());
        if response.status < 400 {
            assert_eq!(response.status, 207, "{body}");
        }
    }
    let bulk = [BATCH, ("x-ms-cosmos-batch-atomic", "false"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    for key in [json!(null), json!(1), json!("x"), json!("[]"), json!("[1,2,3]"), json!("[[]]"), json!(["a"])]
    {
        let body =
            json!([{"operationType": "Create", "partitionKey": key, "resourceBody": {"id": "3", "pk": "a"}}]);
        check_readable(&account.post(DOCS, &bulk, body).await, &key.to_string());
    }
    let feed = account.get(DOCS, &[KEY]).await.expect(200);
    assert!(feed.documents().iter().all(|item| item["id"] == "1" || item["id"] == "3"));
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_patches_are_rejected() {
    let account = account().await;
    let long = format!("/{}", "a/".repeat(5_000));
    for operation in [
        json!({}),
        json!({"op": 1}),
        json!({"op": "set"}),
        json!({"op": "set", "path": 1, "value": 1}),
        json!({"op": "set", "path": "", "value": 1}),
        json!({"op": "set", "path": "n", "value": 1}),
        json!({"op": "set", "path": "/n"}),
        json!({"op": "incr", "path": "/n", "value": "1"}),
        json!({"op": "incr", "path": "/text", "value": 1}),
        json!({"op": "move", "path": "/x"}),
        json!({"op": "move", "from": "/n", "path": "/n/n"}),
        json!({"op": "add", "path": "/list/99999999999999999999", "value": 1}),
        json!({"op": "add", "path": "/list/-1", "value": 1}),
        json!({"op": "add", "path": "/list/x", "value": 1}),
        json!({"op": "set", "path": long, "value": 1}),
        json!({"op": "remove", "path": "/~2"}),
        json!({"op": "add", "path": "/_ts", "value": 1}),
        json!({"op": "set", "path": "/big", "value": "x".repeat(2_100_000)}),
    ] {
        let about: String = operation.to_string().chars().take(80).collect();
        check_rejected(&account.patch(ITEM, &[KEY], json!([operation])).await, &about);
    }
    for condition in [
        json!(1),
        json!(""),
        json!("from"),
        json!("select * from c"),
        json!("from c where"),
        json!("from c where c.n = @p"),
        json!("(".repeat(10_000)),
    ] {
        let body = json!({"operations": [{"op": "set", "path": "/n", "value": 2}], "condition": condition});
        check_rejected(&account.patch(ITEM, &[KEY], body).await, "a condition");
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn extreme_numbers_are_stored_or_rejected() {
    let account = account().await;
    for number in [
        "1e999",
        "-1e999",
        "1e-999",
        &"9".repeat(400),
        "123456789012345678901234567890",
        "-0",
        "0.1e-400",
        &format!("0.{}", "1".repeat(5_000)),
    ] {
        let body = format!(r#"{{"id":"n","pk":"a","v":{number}}}"#);
        let response = account
            .send(Method::POST, DOCS, &[KEY, ("x-ms-documentdb-is-upsert", "true")], body.into())
            .await;
        check_readable(&response, number);
        let query = format!("SELECT VALUE {number} FROM c WHERE c.n = {number}");
        check_readable(&account.query(&query, &[KEY]).await, number);
    }
    for ttl in ["1e10", "0.5", "-2", "99999999999999999999", "true", "\"1\""] {
        let own = LiveAccount::with_container(1, json!({"defaultTtl": -1})).await;
        let body = format!(r#"{{"id":"n","pk":"a","ttl":{ttl}}}"#);
        check_rejected(&own.send(Method::POST, DOCS, &[KEY], body.into()).await, ttl);
    }
    check_alive(&account).await;
}

#[tokio::test]
async fn invalid_definitions_are_rejected() {
    let account = account().await;
    let many: Vec<Value> =
        (0..21).map(|n| json!({"name": format!("p{n}"), "query": "SELECT VALUE 1 FROM c"})).collect();
    for (member, value) in [
        ("indexingPolicy", json!("x")),
        ("indexingPolicy", json!({"indexingMode": "sometimes"})),
        ("indexingPolicy", json!({"includedPaths": [1]})),
        ("indexingPolicy", json!({"includedPaths": [{"path": "no slash"}]})),
        ("indexingPolicy", json!({"compositeIndexes": [[{"path": 1}]]})),
        ("uniqueKeyPolicy", json!({"uniqueKeys": [{"paths": "x"}]})),
        ("uniqueKeyPolicy", json!([])),
        ("defaultTtl", json!(0)),
        ("defaultTtl", json!("x")),
        ("defaultTtl", json!(1e300)),
        ("computedProperties", json!([{"name": "id", "query": "SELECT VALUE 1 FROM c"}])),
        ("computedProperties", json!(many)),
        ("computedProperties", json!([{"name": "x"}])),
        ("vectorEmbeddingPolicy", json!({"vectorEmbeddings": [{"path": "/v", "dimensions": -1}]})),
        ("partitionKey", json!({"paths": ["/a", "/b"], "kind": "Hash", "version": 99})),
        ("partitionKey", json!(null)),
        ("partitionKey", json!([])),
        ("partitionKey", json!({"paths": ["/".repeat(10_000)]})),
        ("conflictResolutionPolicy", json!({"mode": "Dice"})),
        ("geospatialConfig", json!({"type": "Flat"})),
    ] {
        let mut body = json!({"id": "bad", "partitionKey": {"paths": ["/pk"]}});
        body[member] = value.clone();
        let response = account.post("/dbs/d/colls", &[], body).await;
        check_readable(&response, &format!("{member} {value}"));
        if response.status == 201 {
            account.delete("/dbs/d/colls/bad", &[]).await.expect(204);
        }
    }
    check_alive(&account).await;
}
