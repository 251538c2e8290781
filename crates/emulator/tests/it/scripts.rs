//! Stored procedures, triggers and user-defined functions, as resources.

use http::Method;
use perihelion_emulator::{DataDir, EmulatorConfig};
use serde_json::{Value, json};

use crate::live::LiveAccount;

const KINDS: [(&str, &str, u8); 3] =
    [("sprocs", "StoredProcedures", 8), ("triggers", "Triggers", 7), ("udfs", "UserDefinedFunctions", 6)];

/// A script that is valid as every kind. Other kinds than triggers drop what they do not have.
fn script(id: &str, body: &str) -> Value {
    json!({"id": id, "body": body, "triggerType": "pre", "triggerOperation": "All"})
}

#[tokio::test]
async fn scripts_are_created_read_listed_queried_replaced_and_deleted() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for (segment, plural, nibble) in KINDS {
        let feed = format!("/dbs/d/colls/c/{segment}");
        assert_eq!(account.get(&feed, &[]).await.expect(200).body[plural], json!([]));
        let created = account.post(&feed, &[], script("a b", "function () { return 1; }")).await.expect(201);
        let body = created.body.clone();
        assert_eq!(created.header("etag"), body["_etag"].as_str().unwrap());
        assert_eq!(body["body"], "function () { return 1; }");
        assert_eq!(body["triggerType"] == json!("pre"), segment == "triggers", "{body}");
        let rid = body["_rid"].as_str().unwrap().to_owned();
        assert!(body["_self"].as_str().unwrap().ends_with(&format!("/{segment}/{rid}/")), "{body}");
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(rid.replace('-', "/")).unwrap();
        assert_eq!((bytes.len(), bytes[15] >> 4), (16, nibble), "{rid}");
        account.post(&feed, &[], script("a b", "x")).await.expect(409);
        // The syntax of the source text is not checked.
        account.post(&feed, &[], script("second", "serverScript() { var x = 10; }")).await.expect(201);
        let one = format!("{feed}/a%20b");
        assert_eq!(account.get(&one, &[]).await.expect(200).body, body);
        let listed = account.get(&feed, &[]).await.expect(200).body;
        assert_eq!((&listed["_count"], listed[plural][0]["id"].clone()), (&json!(2), json!("a b")));
        let first = account.get(&feed, &[("x-ms-max-item-count", "1")]).await.expect(200);
        assert_eq!(first.body[plural].as_array().unwrap().len(), 1);
        let next = [("x-ms-max-item-count", "1"), ("x-ms-continuation", first.header("x-ms-continuation"))];
        assert_eq!(account.get(&feed, &next).await.expect(200).body[plural][0]["id"], "second");
        let query = json!({"query": "SELECT * FROM root r WHERE r.id=@id", "parameters": [{"name": "@id", "value": "second"}]});
        let is_query = [("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
        let found = account.post(&feed, &is_query, query).await.expect(200).body;
        assert_eq!((found[plural].as_array().unwrap().len(), &found[plural][0]["id"]), (1, &json!("second")));
        let wrong = [("if-match", "\"other\"")];
        account.put(&one, &wrong, script("a b", "function () { return 2; }")).await.expect(412);
        let replaced =
            account.put(&one, &[], script("a b", "function () { return 2; }")).await.expect(200).body;
        assert_eq!(
            (&replaced["body"], &replaced["_rid"]),
            (&json!("function () { return 2; }"), &json!(rid))
        );
        assert_ne!(replaced["_etag"], body["_etag"]);
        let upsert = [("x-ms-documentdb-is-upsert", "true")];
        account.post(&feed, &upsert, script("a b", "function () { return 3; }")).await.expect(200);
        account.delete(&one, &[]).await.expect(204);
        account.get(&one, &[]).await.expect(404);
        account.delete(&one, &[]).await.expect(404);
        account.put(&one, &[], script("a b", "x")).await.expect(404);
    }
}

#[tokio::test]
async fn what_a_script_lacks_is_named() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let whole = script("s", "x");
    for (segment, member) in
        [("sprocs", "body"), ("udfs", "id"), ("triggers", "triggerType"), ("triggers", "triggerOperation")]
    {
        let mut body = whole.clone();
        body.as_object_mut().unwrap().remove(member);
        let refused = account.post(&format!("/dbs/d/colls/c/{segment}"), &[], body).await.expect(400);
        let text = format!("required properties - '{member}; ' - are missing");
        assert!(refused.message().contains(&text), "{}", refused.body);
    }
    let mut odd = whole.clone();
    odd["triggerOperation"] = json!("Sometimes");
    account.post("/dbs/d/colls/c/triggers", &[], odd).await.expect(400);
    account.post("/dbs/d/colls/none/sprocs", &[], whole).await.expect(404);
}

#[tokio::test]
async fn running_a_script_is_refused_by_name_and_a_query_with_a_function_is_planned() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let key = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
    account.post("/dbs/d/colls/c/sprocs/s", &[key], json!([])).await.expect(404);
    account.post("/dbs/d/colls/c/sprocs", &[], script("s", "function () {}")).await.expect(201);
    let refused = account.post("/dbs/d/colls/c/sprocs/s", &[key], json!([])).await.expect(400);
    assert!(refused.message().contains("Running stored procedures"), "{}", refused.body);
    let query = "SELECT udf.tax(c.n) AS t FROM c WHERE udf.f(c.x) > 1 ORDER BY c.n";
    let refused = account.query(query, &[key]).await.expect(400);
    assert!(refused.message().contains("udf.tax") || refused.message().contains("udf.f"), "{}", refused.body);
    let plan = [
        ("x-ms-cosmos-is-query-plan-request", "True"),
        ("x-ms-cosmos-supported-query-features", "OrderBy, MultipleOrderBy, Aggregate"),
        ("content-type", "application/query+json"),
    ];
    let planned = account.post("/dbs/d/colls/c/docs", &plan, json!({"query": query})).await.expect(200).body;
    assert_eq!(planned["queryInfo"]["orderBy"], json!(["Ascending"]), "{planned}");
    assert_eq!(planned["queryRanges"].as_array().unwrap().len(), 1, "{planned}");
    let plain = json!({"query": "SELECT VALUE udf.f(c.x) FROM c"});
    let planned = account.post("/dbs/d/colls/c/docs", &plan, plain).await.expect(200).body;
    assert_eq!(planned["queryInfo"]["rewrittenQuery"], "", "{planned}");
}

#[tokio::test]
async fn scripts_survive_a_restart_and_are_restored_with_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut config = EmulatorConfig::default();
        config.data = Some(DataDir::new(folder.path()));
        LiveAccount::start(config)
    };
    let account = start().await;
    account.create_container(json!({})).await;
    for (segment, _, _) in KINDS {
        account.post(&format!("/dbs/d/colls/c/{segment}"), &[], script("kept", "1")).await.expect(201);
    }
    account.delete("/dbs/d/colls/c/sprocs/kept", &[]).await.expect(204);
    account.put("/dbs/d/colls/c/udfs/kept", &[], script("kept", "2")).await.expect(200);
    account.post("/dbs/d/colls/c/triggers", &[], script("late", "1")).await.expect(201);
    let after: Vec<Value> = all(&account).await;
    account.stop().await;
    let account = start().await;
    assert_eq!(all(&account).await, after, "with their _rid and _etag");
    let created = account.post("/dbs/d/colls/c/sprocs", &[], script("new", "1")).await.expect(201).body;
    assert!(after.iter().all(|feed| !feed.to_string().contains(created["_rid"].as_str().unwrap())));
    // A deleted container takes its scripts with it.
    account.delete("/dbs/d/colls/c", &[]).await.expect(204);
    account
        .post("/dbs/d/colls", &[], json!({"id": "c", "partitionKey": {"paths": ["/pk"]}}))
        .await
        .expect(201);
    account.stop().await;
    let account = start().await;
    assert_eq!(account.get("/dbs/d/colls/c/udfs", &[]).await.expect(200).body["_count"], 0);
}

/// The feeds of all kinds of scripts.
async fn all(account: &LiveAccount) -> Vec<Value> {
    let mut feeds = Vec::new();
    for (segment, _, _) in KINDS {
        feeds.push(account.get(&format!("/dbs/d/colls/c/{segment}"), &[]).await.expect(200).body);
    }
    feeds
}

#[tokio::test]
async fn a_restored_snapshot_has_the_scripts_it_was_saved_with() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = EmulatorConfig::default();
    config.data = Some(DataDir::new(folder.path()));
    let account = LiveAccount::start(config.clone()).await;
    account.create_container(json!({})).await;
    account.post("/dbs/d/colls/c/sprocs", &[], script("kept", "1")).await.expect(201);
    let before = all(&account).await;
    account.control(Method::POST, "/snapshots/before", "").await.expect(200);
    account.put("/dbs/d/colls/c/sprocs/kept", &[], script("kept", "2")).await.expect(200);
    account.post("/dbs/d/colls/c/udfs", &[], script("late", "1")).await.expect(201);
    account.control(Method::POST, "/snapshots/before/restore", "").await.expect(200);
    assert_eq!(all(&account).await, before);
    account.stop().await;
    let account = LiveAccount::start(config).await;
    assert_eq!(all(&account).await, before, "after a restart as well");
}
