//! What is refused and what is accepted, as the tests of the .NET SDK expect it.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::live::LiveAccount;

const A: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const DOCS: &str = "/dbs/d/colls/c/docs";
const QUERY: [(&str, &str); 2] =
    [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];

#[tokio::test]
async fn control_characters_in_strings_are_accepted() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let body = Bytes::from_static(b"{\"id\":\"1\",\"pk\":\"a\",\"t\":\"line\n\ttab \\\" \x01\"}");
    account.send(Method::POST, DOCS, &[A], body).await.expect(201);
    let read = account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(200);
    assert_eq!(read.body["t"], "line\n\ttab \" \u{1}");
    for broken in [&b"{\"id\":\"2\",\"pk\":\"a\n}"[..], b"{\"id\":\"2\",\x01\"pk\":\"a\"}"] {
        account.send(Method::POST, DOCS, &[A], Bytes::from_static(broken)).await.expect(400);
    }
}

#[tokio::test]
async fn replacing_what_does_not_exist_is_404_before_the_key_is_compared() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let other_key = json!({"id": "1", "pk": "b"});
    account.put("/dbs/d/colls/c/docs/1", &[A], other_key.clone()).await.expect(404);
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let mismatch = account.put("/dbs/d/colls/c/docs/1", &[A], other_key).await.expect(400);
    assert_eq!(mismatch.sub_status(), "1001");
}

#[tokio::test]
async fn headers_with_impossible_values_are_refused() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let limit = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
    for value in ["0", "-1", "x"] {
        account.get(DOCS, &[A, (limit, value)]).await.expect(400);
        account.query("SELECT * FROM c", &[A, (limit, value)]).await.expect(400);
        account.get("/dbs", &[(limit, value)]).await.expect(400);
    }
    account.query("SELECT * FROM c", &[A, (limit, "1")]).await.expect(200);
    for (version, status) in [("2018-12-31", 200), ("2020-11-05", 200), ("2020-07-16", 400), ("new", 400)] {
        for path in ["/", "/dbs/d", "/dbs/d/colls/c"] {
            let response = account.get(path, &[("x-ms-version", version)]).await;
            assert_eq!(response.status, status, "{version} {path}");
        }
    }
    account.get(DOCS, &[A, ("x-ms-enumeration-direction", "Sideways")]).await.expect(400);
}

#[tokio::test]
async fn container_definitions_that_make_no_sense_are_refused() {
    let account = LiveAccount::with(|_| {}).await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    let key = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let lower = "SELECT VALUE LOWER(c.name) FROM c";
    let computed = |name: &str, query: &str| json!({"computedProperties": [{"name": name, "query": query}]});
    for (properties, text) in [
        (json!({"ttlPropertyPath": "/t"}), "ttlPropertyPath"),
        (
            json!({"indexingPolicy": {"spatialIndexes": [{"path": "/a/*"}]}}),
            "The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path",
        ),
        (
            json!({"computedProperties": [{"name": "l", "query": lower}, {"name": "l", "query": lower}]}),
            "Computed property name 'l' cannot be used in multiple definitions.",
        ),
        (computed("", lower), "Computed property 'name' is either empty or unspecified."),
        (computed("l", ""), "Computed property 'query' is either empty or unspecified."),
        (computed("id", lower), "The system property name 'id' cannot be used as a computed property name."),
        (
            computed("l", "SELECT LOWER(c.name) FROM c"),
            "Required VALUE expression missing from computed property query 'SELECT LOWER(c.name) FROM c' at index (0).",
        ),
        (
            computed("l", "SELECT VALUE LOWER(c.name) FROM r"),
            "Computed property at index (0) has a malformed query",
        ),
        (json!({"computedProperties": [{"query": lower}]}), "One of the specified inputs is invalid"),
        (
            json!({
                "computedProperties": [{"name": "l", "query": lower}],
                "indexingPolicy": {"spatialIndexes": [{"path": "/l/*", "types": ["Point"]}]},
            }),
            "Computed property 'l' at index (0) has a spatial index. Remove the spatial index on this path.",
        ),
    ] {
        let mut body = json!({"id": "c", "partitionKey": key});
        body.as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
        let refused = account.post("/dbs/d/colls", &[], body).await.expect(400);
        assert!(refused.message().contains(text), "{} ≠ {text}", refused.message());
    }
    let body = json!({"id": "c", "partitionKey": key, "ttlPropertyPath": "/t", "defaultTtl": 60,
        "conflictResolutionPolicy": {"mode": "Custom"}});
    let created = account.post("/dbs/d/colls", &[], body).await.expect(201);
    assert_eq!(created.body["conflictResolutionPolicy"]["conflictResolutionPath"], "");
    let read = account.get("/dbs/d/colls/c", &[]).await.expect(200);
    assert_eq!(read.body["conflictResolutionPolicy"]["mode"], "Custom");
    assert_eq!(read.body["conflictResolutionPolicy"]["conflictResolutionPath"], "");
}

#[tokio::test]
async fn an_offer_is_replaced_under_its_id_only() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let offers = account.get("/offers", &[]).await.expect(200);
    let mut offer = offers.body["Offers"][0].clone();
    assert_eq!(offer["offerType"], "Invalid");
    let path = format!("/offers/{}", offer["_rid"].as_str().unwrap());
    account.put(&path, &[], offer.clone()).await.expect(200);
    offer.as_object_mut().unwrap().remove("id");
    account.put(&path, &[], offer).await.expect(400);
}

#[tokio::test]
async fn a_feed_is_read_backwards_on_request() {
    let account = LiveAccount::with_container(3, json!({})).await;
    for number in 0..40 {
        account.create(json!({"id": number.to_string(), "pk": format!("k{}", number % 9)})).await.expect(201);
    }
    async fn all(account: &LiveAccount, headers: &[(&str, &str)]) -> Vec<String> {
        let (mut ids, mut continuation) = (Vec::new(), String::new());
        loop {
            let mut all = vec![("x-ms-max-item-count", "3")];
            all.extend_from_slice(headers);
            if !continuation.is_empty() {
                all.push(("x-ms-continuation", &continuation));
            }
            let page = account.get(DOCS, &all).await.expect(200);
            ids.extend(page.documents().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            continuation = page.header("x-ms-continuation").to_owned();
            if continuation.is_empty() {
                return ids;
            }
        }
    }
    let reverse = ("x-ms-enumeration-direction", "Reverse");
    for scope in [
        vec![],
        vec![("x-ms-documentdb-partitionkeyrangeid", "1")],
        vec![("x-ms-documentdb-partitionkey", r#"["k3"]"#)],
    ] {
        let mut forwards = all(&account, &scope).await;
        assert!(!forwards.is_empty());
        let mut headers = scope.clone();
        headers.push(reverse);
        forwards.reverse();
        assert_eq!(all(&account, &headers).await, forwards, "{scope:?}");
    }
}

#[tokio::test]
async fn system_properties_are_left_out_on_request() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let item = json!({"id": "1", "pk": "a", "t": "\"_rid\":\"x"});
    account.create(item.clone()).await.expect(201);
    let without = ("x-ms-exclude-system-properties", "true");
    assert_eq!(account.get("/dbs/d/colls/c/docs/1", &[A, without]).await.expect(200).body, item);
    assert_eq!(account.get(DOCS, &[A, without]).await.expect(200).documents(), std::slice::from_ref(&item));
    assert_eq!(account.query("SELECT * FROM c", &[A, without]).await.expect(200).documents(), [item]);
    let with = account.get("/dbs/d/colls/c/docs/1", &[A, ("x-ms-exclude-system-properties", "false")]).await;
    assert!(with.expect(200).body["_rid"].is_string());
}

#[tokio::test]
async fn a_change_feed_with_a_query_is_filtered() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for number in 0..6 {
        account.create(json!({"id": number.to_string(), "pk": "a", "n": number})).await.expect(201);
    }
    let feed =
        [QUERY[0], QUERY[1], ("a-im", "Incremental Feed"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let query =
        json!({"query": "SELECT * FROM c WHERE c.n % 2 = @r", "parameters": [{"name": "@r", "value": 1}]});
    let page = account.post(DOCS, &feed, query.clone()).await.expect(200);
    let found: Vec<&Value> = page.documents().iter().map(|item| &item["n"]).collect();
    assert_eq!(found, [&json!(1), &json!(3), &json!(5)]);
    let mut next = feed.to_vec();
    let etag = page.header("etag").to_owned();
    next.push(("if-none-match", &etag));
    let end = account.post(DOCS, &next, query).await.expect(304);
    assert_eq!(end.header("x-ms-item-count"), "0");
    let refused = account.post(DOCS, &feed, json!({"query": "SELECT c.n FROM c"})).await.expect(400);
    assert!(refused.message().contains("SELECT * FROM c WHERE"), "{}", refused.message());
}

#[tokio::test]
async fn binary_json_is_sent_to_those_who_read_nothing_else() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a", "n": [1, 2.5]})).await.expect(201);
    let formats = "x-ms-cosmos-supported-serialization-formats";
    for (headers, binary) in [
        (vec![A], false),
        (vec![A, (formats, "JsonText")], false),
        (vec![A, (formats, "JsonText,CosmosBinary")], false),
        (vec![A, (formats, "CosmosBinary")], true),
    ] {
        let read = account.get("/dbs/d/colls/c/docs/1", &headers).await.expect(200);
        let page = account.query("SELECT * FROM c", &headers).await.expect(200);
        for response in [read, page] {
            assert_eq!(protocol::binary_json::is_binary(&response.bytes), binary, "{headers:?}");
            if binary {
                let text = protocol::binary_json::to_text(&response.bytes).unwrap();
                let body: Value = serde_json::from_slice(&text).unwrap();
                let item = body.get("Documents").map_or(&body, |items| &items[0]);
                assert_eq!(item["n"], json!([1, 2.5]));
            }
        }
    }
}

#[tokio::test]
async fn a_container_of_old_needs_no_partition_key() {
    let account = LiveAccount::with(|_| {}).await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    account.post("/dbs/d/colls", &[("x-ms-version", "2018-08-31")], json!({"id": "c"})).await.expect(201);
    account.post(DOCS, &[], json!({"id": "1", "n": 1})).await.expect(201);
    account.put("/dbs/d/colls/c/docs/1", &[], json!({"id": "1", "n": 2})).await.expect(200);
    assert_eq!(account.get("/dbs/d/colls/c/docs/1", &[]).await.expect(200).body["n"], 2);
    let same = account.get("/dbs/d/colls/c/docs/1", &[("x-ms-documentdb-partitionkey", "[]")]).await;
    assert_eq!(same.expect(200).body["n"], 2);
    assert_eq!(account.query("SELECT * FROM c", &[]).await.expect(200).documents().len(), 1);
    account.delete("/dbs/d/colls/c/docs/1", &[]).await.expect(204);
}

#[tokio::test]
async fn patches_are_refused_with_the_texts_of_the_service() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a", "s": "x", "l": [1], "o": {}})).await.expect(201);
    let many: Vec<Value> =
        (0..11).map(|n| json!({"op": "set", "path": format!("/n{n}"), "value": n})).collect();
    for (operations, text) in [
        (
            json!([{"op": "set", "path": "/n", "value": 1}, {"op": "add", "path": "/none/child", "value": 1}]),
            "For Operation(2): Add Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: 'none'.",
        ),
        (
            json!([{"op": "set", "path": "/o/a/b", "value": 1}]),
            "For Operation(1): Given Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: 'o/a'.",
        ),
        (
            json!([{"op": "replace", "path": "/none", "value": 1}]),
            "For Operation(1): Node(/none) to be replaced is absent.",
        ),
        (
            json!([{"op": "remove", "path": "/none"}]),
            "Node(/none) to be removed is absent. Note: it may also have been removed earlier in the transaction.",
        ),
        (json!([{"op": "incr", "path": "/s", "value": 1}]), "For Operation(1): Node(/s) is not a number."),
        (
            json!([{"op": "add", "path": "/l/7", "value": 1}]),
            "Index(7) to operate on is out of array bounds.",
        ),
        (
            json!([{"op": "set", "path": "/_ts", "value": 1}]),
            "Invalid patch request: Cannot patch system property _ts.",
        ),
        (json!(many), "The number of patch operations cannot exceed '10'"),
        (json!({"operations": 1}), "Invalid patch request: check syntax of patch specification"),
    ] {
        let refused = account.patch("/dbs/d/colls/c/docs/1", &[A], operations).await.expect(400);
        assert!(refused.message().contains(text), "{} ≠ {text}", refused.message());
    }
}

#[tokio::test]
async fn a_malformed_session_token_is_refused_before_the_item_is_looked_up() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let malformed = ("x-ms-session-token", "nonsense");
    let item = json!({"id": "1", "pk": "a"});
    for response in [
        account.get("/dbs/d/colls/c/docs/none", &[A, malformed]).await,
        account.post(DOCS, &[A, malformed], item.clone()).await,
        account.put("/dbs/d/colls/c/docs/none", &[A, malformed], item).await,
        account.delete("/dbs/d/colls/c/docs/none", &[A, malformed]).await,
        account
            .patch("/dbs/d/colls/c/docs/none", &[A, malformed], json!([{"op": "remove", "path": "/x"}]))
            .await,
    ] {
        let refused = response.expect(400);
        assert!(refused.message().contains("session token"), "{}", refused.message());
    }
}

#[tokio::test]
async fn all_items_of_a_key_are_deleted_with_200() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account.post("/dbs/d/colls/c/operations/partitionkeydelete", &[A], Value::Null).await.expect(200);
    account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(404);
}
