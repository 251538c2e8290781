//! Attempts to reach more with a resource token than its permission covers.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::client::{TestAccount, TestResponse};

const DOCS: &str = "/dbs/d/colls/c/docs";
const PERMISSIONS: &str = "/dbs/d/users/u/permissions";
const KEY: &str = "x-ms-documentdb-partitionkey";
const RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
const QUERY: (&str, &str) = ("x-ms-documentdb-isquery", "true");
const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "true");
const NOT_ATOMIC: (&str, &str) = ("x-ms-cosmos-batch-atomic", "false");
const CHANGES: (&str, &str) = ("a-im", "Incremental Feed");

/// A container in one physical partition, with two items of each of the partition keys `mine` and `theirs`.
struct Attack {
    account: TestAccount,
    token: String,
}

impl Attack {
    /// An attacker with a permission of these terms.
    async fn with(terms: Value) -> Attack {
        let account = TestAccount::with_container().await;
        for key in ["mine", "theirs"] {
            for id in ["1", "2"] {
                let header = format!("[\"{key}\"]");
                let item = json!({ "id": id, "pk": key, "owner": key }).to_string();
                account.send(Method::POST, DOCS, &[(KEY, &header)], &item).await.expect(201);
            }
        }
        account.post("/dbs/d/users", r#"{"id":"u"}"#).await.expect(201);
        let created = account.post(PERMISSIONS, &terms.to_string()).await.expect(201);
        let token = utf8_percent_encode(&created.text("_token"), NON_ALPHANUMERIC).to_string();
        Attack { account, token }
    }

    /// The attacker with a permission of these terms instead.
    async fn with_permission(self, terms: Value) -> Attack {
        let created = self.account.post(PERMISSIONS, &terms.to_string()).await.expect(201);
        let token = utf8_percent_encode(&created.text("_token"), NON_ALPHANUMERIC).to_string();
        Attack { token, ..self }
    }

    /// An attacker with all rights to the partition key `mine`.
    async fn on_one_key() -> Attack {
        Attack::with(json!({
            "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": ["mine"],
        }))
        .await
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> TestResponse {
        let mut all = vec![("authorization", self.token.as_str())];
        all.extend_from_slice(headers);
        self.account.send_unsigned(method, path, &all, body).await
    }

    /// Fails if the items of the other partition key were changed.
    async fn check_other_key_unchanged(&self) {
        let feed = self.account.send(Method::GET, DOCS, &[(KEY, "[\"theirs\"]")], "").await.expect(200);
        let items = feed.json()["Documents"].as_array().unwrap().clone();
        let of = |item: &Value| (item["id"].clone(), item["owner"].clone());
        assert_eq!(
            items.iter().map(of).collect::<Vec<_>>(),
            [(json!("1"), json!("theirs")), (json!("2"), json!("theirs"))]
        );
    }
}

/// Fails unless the response is 403, or has items of the partition key `mine` only.
#[track_caller]
fn check_only_mine(response: &TestResponse, case: &str) {
    if [403, 304].contains(&response.status) {
        return;
    }
    assert_eq!(response.status, 200, "{case}: {}", String::from_utf8_lossy(&response.body));
    let text = String::from_utf8_lossy(&response.body);
    assert!(!text.contains("theirs"), "{case}: {text}");
}

/// Header sets that select more than the partition key `mine`, or seem to.
fn widening(rid: &str) -> Vec<Vec<(&'static str, String)>> {
    let key = || (KEY, "[\"mine\"]".to_owned());
    let range = |id: &str| (RANGE_ID, id.to_owned());
    let epk = |min: &str, max: &str| [("x-ms-start-epk", min.to_owned()), ("x-ms-end-epk", max.to_owned())];
    let mut sets = vec![
        vec![key(), range("0")],
        vec![key(), range(&format!("{rid},0"))],
        vec![range("0")],
        vec![],
        vec![(KEY, "[]".to_owned())],
        vec![(KEY, "[]".to_owned()), range("0")],
        vec![(KEY, "[\"theirs\"]".to_owned())],
        vec![(KEY, "[\"theirs\"]".to_owned()), range("0")],
    ];
    for bounds in [epk("", "FF"), epk("00", "FFFF"), epk("", "3F"), epk("05C1", "FF")] {
        sets.push(bounds.to_vec());
        sets.push([&[key()], &bounds[..]].concat());
        sets.push([&[range("0")], &bounds[..]].concat());
        sets.push([&[key(), range("0")], &bounds[..]].concat());
    }
    sets
}

#[tokio::test]
async fn a_token_for_one_key_reads_no_other_key_of_its_physical_partition() {
    let attack = Attack::on_one_key().await;
    let rid = attack.account.get("/dbs/d/colls/c").await.text("_rid");
    let queries = [
        "SELECT * FROM c",
        "SELECT VALUE c.owner FROM c ORDER BY c.owner DESC",
        "SELECT VALUE c.owner FROM c WHERE c.pk = 'theirs'",
        "SELECT DISTINCT c.owner FROM c",
        "SELECT c.owner, COUNT(1) AS n FROM c GROUP BY c.owner",
        "SELECT TOP 10 c.owner FROM c",
        "SELECT c.owner FROM c OFFSET 0 LIMIT 10",
    ];
    for set in widening(&rid) {
        let case = format!("{set:?}");
        let headers: Vec<(&str, &str)> = set.iter().map(|(name, value)| (*name, value.as_str())).collect();
        check_only_mine(&attack.send(Method::GET, DOCS, &headers, "").await, &case);
        let changes = [&headers[..], &[CHANGES]].concat();
        check_only_mine(&attack.send(Method::GET, DOCS, &changes, "").await, &case);
        for query in queries {
            let enabled = ("x-ms-documentdb-query-enablecrosspartition", "true");
            let headers = [&headers[..], &[QUERY, enabled]].concat();
            let body = json!({ "query": query }).to_string();
            check_only_mine(
                &attack.send(Method::POST, DOCS, &headers, &body).await,
                &format!("{query} {case}"),
            );
        }
    }
    // The same headers still serve the token's own key, with and without the range.
    for headers in [&[(KEY, "[\"mine\"]")][..], &[(KEY, "[\"mine\"]"), (RANGE_ID, "0")][..]] {
        let feed = attack.send(Method::GET, DOCS, headers, "").await.expect(200);
        assert_eq!(feed.json()["_count"], 2, "{headers:?}");
        let changes = attack.send(Method::GET, DOCS, &[headers, &[CHANGES]].concat(), "").await.expect(200);
        assert_eq!(changes.json()["_count"], 2, "{headers:?}");
    }
    let all = attack.send(Method::GET, DOCS, &[(RANGE_ID, "0")], "").await;
    all.expect_error(403, 0, "another partition key");
}

#[tokio::test]
async fn a_continuation_of_another_scope_does_not_widen_a_token() {
    let attack = Attack::on_one_key().await;
    let enabled = ("x-ms-documentdb-query-enablecrosspartition", "true");
    for query in [
        "SELECT * FROM c",
        "SELECT DISTINCT c.owner, c.id FROM c",
        "SELECT c.owner FROM c ORDER BY c.owner",
        "SELECT TOP 9 c.owner FROM c",
        "SELECT c.owner FROM c OFFSET 0 LIMIT 9",
    ] {
        let body = json!({ "query": query }).to_string();
        let owned = [(RANGE_ID, "0"), QUERY, enabled, ("x-ms-max-item-count", "1")];
        let page = attack.account.send(Method::POST, DOCS, &owned, &body).await.expect(200);
        let stolen = page.header("x-ms-continuation").expect("more than one row").to_owned();
        let forged = [stolen.as_str(), "PERI:2#:FF:R0:0", "PERI:2#:FF:S:0", "PERI:2#:3F:S:0#3F:FF:S:0"];
        for continuation in forged {
            for range in [&[][..], &[(RANGE_ID, "0")][..]] {
                let token = ("x-ms-continuation", continuation);
                let headers = [&[(KEY, "[\"mine\"]"), QUERY, token][..], range].concat();
                let response = attack.send(Method::POST, DOCS, &headers, &body).await;
                if response.status != 400 {
                    check_only_mine(&response, &format!("{query} {continuation} {range:?}"));
                }
                let feed = [&[(KEY, "[\"mine\"]"), token][..], range].concat();
                let response = attack.send(Method::GET, DOCS, &feed, "").await;
                if response.status != 400 {
                    check_only_mine(&response, &format!("feed {continuation} {range:?}"));
                }
                // With the account key, too, the partition key of the request bounds what is read.
                let response = attack.account.send(Method::POST, DOCS, &headers, &body).await;
                if response.status != 400 {
                    check_only_mine(&response, &format!("owner: {query} {continuation} {range:?}"));
                }
            }
        }
    }
    for etag in ["\"0\"", "\"1\"", "\"99\""] {
        let headers = [(KEY, "[\"mine\"]"), (RANGE_ID, "0"), CHANGES, ("if-none-match", etag)];
        check_only_mine(&attack.send(Method::GET, DOCS, &headers, "").await, etag);
    }
}

#[tokio::test]
async fn a_token_for_one_key_reads_no_other_key_as_of_a_snapshot_or_an_lsn() {
    let attack = Attack::on_one_key().await;
    attack.account.hosted.account.save_snapshot("all", attack.account.clock.now()).unwrap();
    for as_of in ["lsn=3", "lsn=4", "snapshot=all", "snapshot=none"] {
        for range in [&[][..], &[(RANGE_ID, "0")][..]] {
            let headers = [&[(KEY, "[\"mine\"]"), ("x-perihelion-as-of", as_of)][..], range].concat();
            let response = attack.send(Method::GET, DOCS, &headers, "").await;
            if response.status != 400 {
                check_only_mine(&response, as_of);
            }
            // Nothing is selected by a key and an EPK range that have no item in common.
            let apart = [&headers[..], &[("x-ms-start-epk", "3E"), ("x-ms-end-epk", "3F")]].concat();
            let response = attack.account.send(Method::GET, DOCS, &apart, "").await;
            if response.status != 400 {
                assert_eq!(response.expect(200).json()["_count"], 0, "{as_of}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_for_one_key_writes_no_item_of_another_key() {
    let attack = Attack::on_one_key().await;
    let theirs = r#"{"id":"1","pk":"theirs","owner":"attacker"}"#;
    let patch = r#"{"operations":[{"op":"set","path":"/owner","value":"attacker"}]}"#;
    let item = format!("{DOCS}/1");
    let upsert = ("x-ms-documentdb-is-upsert", "true");
    let deletion = "/dbs/d/colls/c/operations/partitionkeydelete";
    for range in [&[][..], &[(RANGE_ID, "0")][..]] {
        let key = |key| [&[(KEY, key)][..], range].concat();
        for (method, path, body) in [
            (Method::GET, item.as_str(), ""),
            (Method::PUT, &item, theirs),
            (Method::PATCH, &item, patch),
            (Method::DELETE, &item, ""),
            (Method::POST, DOCS, theirs),
            (Method::POST, deletion, ""),
        ] {
            let response = attack.send(method.clone(), path, &key("[\"theirs\"]"), body).await;
            assert_eq!(response.status, 403, "{method} {path}: {}", String::from_utf8_lossy(&response.body));
        }
        // The partition key of the body is not the one in the header.
        let headers = [&key("[\"mine\"]")[..], &[upsert]].concat();
        attack.send(Method::POST, DOCS, &headers, theirs).await.expect(400);
        attack.send(Method::PUT, &item, &key("[\"mine\"]"), theirs).await.expect(400);
        attack
            .send(Method::POST, DOCS, &[&key("[\"theirs\"]")[..], &[upsert]].concat(), theirs)
            .await
            .expect(403);
    }
    attack.check_other_key_unchanged().await;
    attack.send(Method::POST, deletion, &[(KEY, "[\"mine\"]")], "").await.expect(200);
    attack.check_other_key_unchanged().await;
}

#[tokio::test]
async fn each_operation_of_a_bulk_request_is_authorized_by_its_own_key() {
    let attack = Attack::on_one_key().await;
    let theirs = json!({ "id": "1", "pk": "theirs", "owner": "attacker" });
    let rows = json!([
        { "operationType": "Read", "id": "1", "partitionKey": "[\"theirs\"]" },
        { "operationType": "Upsert", "partitionKey": "[\"theirs\"]", "resourceBody": theirs },
        { "operationType": "Upsert", "resourceBody": theirs },
        { "operationType": "Replace", "id": "1", "partitionKey": "[\"theirs\"]", "resourceBody": theirs },
        { "operationType": "Delete", "id": "2", "partitionKey": "[\"theirs\"]" },
        { "operationType": "Patch", "id": "1", "partitionKey": "[\"theirs\"]", "resourceBody":
          { "operations": [{ "op": "set", "path": "/owner", "value": "attacker" }] } },
        { "operationType": "Read", "id": "1", "partitionKey": "[\"mine\"]" },
    ]);
    let go_on = ("x-ms-cosmos-batch-continue-on-error", "True");
    for selected in [
        &[(KEY, "[\"mine\"]"), (RANGE_ID, "0")][..],
        &[(RANGE_ID, "0")][..],
        &[(KEY, "[\"mine\"]")][..],
        &[][..],
    ] {
        let headers = [selected, &[BATCH, NOT_ATOMIC, go_on]].concat();
        let response =
            attack.send(Method::POST, DOCS, &headers, &rows.to_string()).await.expect_status(&[200, 207]);
        let results = response.json();
        let codes: Vec<_> =
            results.as_array().unwrap().iter().map(|row| row["statusCode"].as_u64()).collect();
        let expected = [403, 403, 403, 403, 403, 403, 200].map(Some);
        assert_eq!(codes, expected, "{selected:?}");
        assert!(!String::from_utf8_lossy(&response.body).contains("theirs"), "{selected:?}");
        attack.check_other_key_unchanged().await;
    }
    // A transaction belongs to the key of its header.
    let atomic = [BATCH, ("x-ms-cosmos-batch-atomic", "true")];
    let headers = [&[(KEY, "[\"theirs\"]")][..], &atomic].concat();
    attack.send(Method::POST, DOCS, &headers, &rows.to_string()).await.expect(403);
    let headers = [&[(KEY, "[\"mine\"]")][..], &atomic].concat();
    let response = attack.send(Method::POST, DOCS, &headers, &rows.to_string()).await;
    assert!(!String::from_utf8_lossy(&response.body).contains("theirs"));
    attack.check_other_key_unchanged().await;
}

#[tokio::test]
async fn a_token_for_a_prefix_covers_the_keys_below_it_and_no_others() {
    let account = TestAccount::new();
    let definition = r#"{"id":"c","partitionKey":{"paths":["/t","/u"],"kind":"MultiHash","version":2}}"#;
    account.create_container("d", definition).await;
    for (tenant, user) in [("a", "1"), ("a", "2"), ("b", "1")] {
        let key = format!("[\"{tenant}\",\"{user}\"]");
        let item = json!({ "id": "i", "t": tenant, "u": user }).to_string();
        account.send(Method::POST, DOCS, &[(KEY, &key)], &item).await.expect(201);
    }
    account.post("/dbs/d/users", r#"{"id":"u"}"#).await.expect(201);
    let terms = json!({
        "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": ["a"],
    });
    let created = account.post(PERMISSIONS, &terms.to_string()).await.expect(201);
    let attack =
        Attack { token: utf8_percent_encode(&created.text("_token"), NON_ALPHANUMERIC).to_string(), account };
    for (key, count) in [("[\"a\"]", Some(2)), ("[\"a\",\"2\"]", Some(1)), ("[\"b\"]", None), ("[]", None)] {
        for range in [&[][..], &[(RANGE_ID, "0")][..]] {
            let response = attack.send(Method::GET, DOCS, &[&[(KEY, key)][..], range].concat(), "").await;
            match count {
                Some(count) => assert_eq!(response.expect(200).json()["_count"], count, "{key} {range:?}"),
                None => assert_eq!(response.status, 403, "{key} {range:?}"),
            }
        }
    }
    let item = format!("{DOCS}/i");
    attack.send(Method::GET, &item, &[(KEY, "[\"a\",\"1\"]")], "").await.expect(200);
    attack.send(Method::GET, &item, &[(KEY, "[\"b\",\"1\"]")], "").await.expect(403);
}

#[tokio::test]
async fn a_token_for_one_item_does_not_rename_it_or_write_another() {
    let attack = Attack::with(json!({
        "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c/docs/1", "resourcePartitionKey": ["mine"],
    }))
    .await;
    let key = (KEY, "[\"mine\"]");
    let (own, other) = (format!("{DOCS}/1"), format!("{DOCS}/2"));
    let renamed = r#"{"id":"3","pk":"mine"}"#;
    attack.send(Method::PUT, &own, &[key], renamed).await.expect_error(403, 0, "rename");
    attack.send(Method::PUT, &own, &[key, (RANGE_ID, "0")], renamed).await.expect_error(403, 0, "rename");
    attack.send(Method::GET, &own, &[key], "").await.expect(200);
    let patch = r#"{"operations":[{"op":"set","path":"/id","value":"3"}]}"#;
    attack.send(Method::PATCH, &own, &[key], patch).await.expect(400);
    let body = r#"{"id":"2","pk":"mine","owner":"attacker"}"#;
    for headers in [&[key][..], &[key, ("x-ms-documentdb-is-upsert", "true")], &[key, QUERY], &[key, BATCH]] {
        let response = attack.send(Method::POST, DOCS, headers, body).await;
        assert_eq!(response.status, 403, "{headers:?}");
    }
    for method in [Method::GET, Method::PUT, Method::PATCH, Method::DELETE] {
        let response = attack.send(method.clone(), &other, &[key], body).await;
        assert_eq!(response.status, 403, "{method}");
    }
    attack.send(Method::GET, &own, &[(KEY, "[\"theirs\"]")], "").await.expect(403);
    attack.send(Method::PUT, &own, &[key], r#"{"id":"1","pk":"mine","n":1}"#).await.expect(200);
    attack.check_other_key_unchanged().await;
}

#[tokio::test]
async fn a_token_by_rid_is_for_the_item_that_has_it() {
    let probe = Attack::on_one_key().await;
    let item = probe.account.send(Method::GET, &format!("{DOCS}/1"), &[(KEY, "[\"mine\"]")], "").await;
    let link = item.expect(200).json()["_self"].as_str().unwrap().to_owned();
    let permission = json!({"id": "by-rid", "permissionMode": "All", "resource": link});
    let attack = probe.with_permission(permission).await;
    let own = format!("{DOCS}/1");
    attack.send(Method::GET, &own, &[(KEY, "[\"mine\"]")], "").await.expect(200);
    attack
        .send(Method::GET, &format!("/{}", link.trim_end_matches('/')), &[(KEY, "[\"mine\"]")], "")
        .await
        .expect(200);
    // Neither another id, nor the same id of another key.
    attack.send(Method::GET, &format!("{DOCS}/2"), &[(KEY, "[\"mine\"]")], "").await.expect(403);
    attack.send(Method::GET, &own, &[(KEY, "[\"theirs\"]")], "").await.expect(403);
    attack.send(Method::DELETE, &own, &[(KEY, "[\"theirs\"]")], "").await.expect(403);
    attack.send(Method::GET, DOCS, &[(KEY, "[\"mine\"]")], "").await.expect(403);
    attack.send(Method::DELETE, &own, &[(KEY, "[\"mine\"]")], "").await.expect(204);
    // The right ends with the item, also if another takes its id.
    let again = r#"{"id":"1","pk":"mine"}"#;
    attack.account.send(Method::POST, DOCS, &[(KEY, "[\"mine\"]")], again).await.expect(201);
    attack.send(Method::GET, &own, &[(KEY, "[\"mine\"]")], "").await.expect(403);
    attack.check_other_key_unchanged().await;
}

#[tokio::test]
async fn conflicts_and_offers_are_closed_to_tokens_and_query_plans_are_open() {
    let attack = Attack::on_one_key().await;
    for path in ["/dbs/d/colls/c/conflicts", "/offers", "/dbs/d/users", "/dbs/d/colls"] {
        let response = attack.send(Method::GET, path, &[(KEY, "[\"mine\"]"), (RANGE_ID, "0")], "").await;
        assert_eq!(response.status, 403, "{path}");
    }
    let plan = [("x-ms-cosmos-is-query-plan-request", "True"), QUERY];
    attack.send(Method::POST, DOCS, &plan, r#"{"query":"SELECT * FROM c"}"#).await.expect(200);
}
