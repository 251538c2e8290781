//! Response headers that the tests of the .NET SDK look at.

use base64::Engine;
use serde_json::{Value, json};

use crate::live::LiveAccount;

const A: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const DOCS: &str = "/dbs/d/colls/c/docs";

#[tokio::test]
async fn containers_of_a_shared_database_say_that_they_share_its_throughput() {
    let account = LiveAccount::with(|_| {}).await;
    account.post("/dbs", &[("x-ms-offer-throughput", "400")], json!({"id": "d"})).await.expect(201);
    let body = |id: &str| json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let shared = account.post("/dbs/d/colls", &[], body("c")).await.expect(201);
    assert_eq!(shared.header("x-ms-share-throughput"), "true");
    let read = account.get("/dbs/d/colls/c", &[]).await.expect(200);
    assert_eq!(read.header("x-ms-share-throughput"), "true");
    let own =
        account.post("/dbs/d/colls", &[("x-ms-offer-throughput", "400")], body("own")).await.expect(201);
    assert_eq!(own.header("x-ms-share-throughput"), "");
}

#[tokio::test]
async fn item_responses_have_quota_usage_and_replicas() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let created = account.create(json!({"id": "1", "pk": "a", "x": "y".repeat(3000)})).await.expect(201);
    for (header, value) in [("x-ms-current-write-quorum", "3"), ("x-ms-current-replica-set-size", "4")] {
        assert_eq!(created.header(header), value);
    }
    let read = account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(200);
    for response in [&created, &read] {
        assert!(
            response.header("x-ms-resource-quota").starts_with("documentSize=10240;documentsSize=10485760;")
        );
        let usage = response.header("x-ms-resource-usage");
        assert!(usage.contains(";documentsCount=1;") && !usage.contains("documentsSize=0;"), "{usage}");
    }
    assert_eq!(read.header("x-ms-current-write-quorum"), "", "a read writes nothing");
    let batch = [A, ("x-ms-cosmos-is-batch-request", "true")];
    let operations = json!([{"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}}]);
    assert_eq!(
        account.post(DOCS, &batch, operations).await.expect(200).header("x-ms-current-write-quorum"),
        "3"
    );
    account.delete("/dbs/d/colls/c/docs/1", &[A]).await.expect(204);
    let read = account.get("/dbs/d/colls/c/docs/2", &[A]).await.expect(200);
    assert!(read.header("x-ms-resource-usage").contains(";documentsCount=1;"));
}

#[tokio::test]
async fn containers_users_and_permissions_name_their_parent_and_what_is_missing_none() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let database = account.get("/dbs/d", &[]).await.expect(200).body["_rid"].as_str().unwrap().to_owned();
    let user = account.post("/dbs/d/users", &[], json!({"id": "ü", "_rid": null})).await.expect(201);
    let user_rid = user.body["_rid"].as_str().unwrap().to_owned();
    let permission = json!({"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"});
    account.post("/dbs/d/users", &[], json!({"id": "u"})).await.expect(201);
    let second = account.get("/dbs/d/users/u", &[]).await.expect(200);
    let second_rid = second.body["_rid"].as_str().unwrap().to_owned();
    let permission = account.post("/dbs/d/users/u/permissions", &[], permission).await.expect(201);
    let container = account.get("/dbs/d/colls/c", &[]).await.expect(200);
    for (response, path, rid) in [
        (&container, "dbs/d", &database),
        (&user, "dbs/d", &database),
        (&second, "dbs/d", &database),
        (&permission, "dbs/d/users/u", &second_rid),
    ] {
        assert_eq!(response.header("x-ms-alt-content-path"), path);
        assert_eq!(response.header("x-ms-content-path"), rid);
    }
    assert_ne!(user_rid, second_rid);
    for path in [
        "/dbs/d/colls/none",
        "/dbs/d/users/none",
        "/dbs/d/users/u/permissions/none",
        "/dbs/d/colls/c/docs/none",
    ] {
        let missing = account.get(path, &[A]).await.expect(404);
        assert_eq!(
            (missing.header("x-ms-alt-content-path"), missing.header("x-ms-content-path")),
            ("", ""),
            "{path}"
        );
    }
}

#[tokio::test]
async fn an_optimistic_page_needs_no_distribution_and_a_plan_costs_nothing() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let text = "SELECT VALUE COUNT(1) FROM c";
    let range = ("x-ms-documentdb-partitionkeyrangeid", "0");
    let optimistic = ("x-ms-cosmos-query-optimisticdirectexecute", "true");
    let page = account.query(text, &[range, optimistic]).await.expect(200);
    assert_eq!(page.header("x-ms-cosmos-query-requiresdistribution"), "False");
    let page = account.query(text, &[range]).await.expect(200);
    assert_eq!(page.header("x-ms-cosmos-query-requiresdistribution"), "");
    let plan = [
        ("x-ms-cosmos-is-query-plan-request", "True"),
        ("x-ms-cosmos-supported-query-features", "Aggregate,NonValueAggregate,GroupBy,MultipleAggregates"),
    ];
    let plan =
        account.query("SELECT AVG(c.a) AS a, COUNT(1) AS n FROM c GROUP BY c.pk", &plan).await.expect(200);
    assert_eq!(plan.header("x-ms-request-charge"), "0");
}

#[tokio::test]
async fn query_metrics_show_the_time_of_reading() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let time = |header: &str, name: &str| -> f64 {
        let part = header.split(';').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        part.unwrap().parse().unwrap()
    };
    let metrics = ("x-ms-documentdb-populatequerymetrics", "true");
    let read = account.query("SELECT * FROM c", &[A, metrics]).await.expect(200);
    let header = read.header("x-ms-documentdb-query-metrics");
    assert!(
        time(header, "documentLoadTimeInMs") >= 0.01 && time(header, "VMExecutionTimeInMs") >= 0.01,
        "{header}"
    );
    let nothing = account.query("SELECT * FROM c WHERE c.none = 1", &[A, metrics]).await.expect(200);
    assert_eq!(time(nothing.header("x-ms-documentdb-query-metrics"), "documentLoadTimeInMs"), 0.0);
}

#[tokio::test]
async fn index_metrics_are_in_the_order_of_the_service() {
    let policy =
        json!({"indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/x/?"}]}});
    let account = LiveAccount::with_container(1, policy).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    let text = r#"SELECT STARTSWITH(c.name, "n") AS s FROM c WHERE c["odd step"] = 1 AND c.x = 2"#;
    let v1 = account.query(text, &[A, ("x-ms-cosmos-populateindexmetrics", "true")]).await.expect(200);
    let v1 =
        base64::engine::general_purpose::STANDARD.decode(v1.header("x-ms-cosmos-index-utilization")).unwrap();
    let v1 = String::from_utf8(v1).unwrap();
    let order = [
        "UtilizedSingleIndexes",
        "PotentialSingleIndexes",
        "UtilizedCompositeIndexes",
        "PotentialCompositeIndexes",
    ];
    let positions: Vec<_> = order.iter().map(|name| v1.find(name).unwrap()).collect();
    assert!(positions.is_sorted(), "{v1}");
    let v1: Value = serde_json::from_str(&v1).unwrap();
    let specs = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|entry| entry["IndexSpec"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(specs(&v1["UtilizedSingleIndexes"]), [r#"/"odd step"/?"#, "/name/?"]);
    assert_eq!(specs(&v1["PotentialSingleIndexes"]), ["/x/?"]);
    let v2 = account.query(text, &[A, ("x-ms-cosmos-populateindexmetrics-v2", "true")]).await.expect(200);
    let v2 = percent_encoding::percent_decode_str(v2.header("x-ms-cosmos-index-utilization"));
    let v2 = v2.decode_utf8().unwrap().into_owned();
    assert!(v2.find("UtilizedIndexes") < v2.find("PotentialIndexes"), "{v2}");
    assert!(v2.find("SingleIndexes") < v2.find("CompositeIndexes"), "{v2}");
}

#[tokio::test]
async fn responses_with_a_body_say_what_they_are_the_content_of() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let created = account.create(json!({"id": "a b", "pk": "a"})).await.expect(201);
    let base = created.header("content-location").strip_suffix(DOCS).expect("the feed").to_owned();
    assert!(base.starts_with("http://") && base.contains(':'), "{base}");
    for (path, status) in [
        ("/", 200),
        ("/dbs", 200),
        ("/dbs/d/colls/c", 200),
        ("/dbs/d/colls/c/docs/a%20b", 200),
        ("/dbs/none", 404),
    ] {
        let response = account.get(path, &[A]).await.expect(status);
        assert_eq!(response.header("content-location"), format!("{base}{path}"));
    }
    let deleted = account.delete("/dbs/d/colls/c/docs/a%20b", &[A]).await.expect(204);
    assert_eq!(deleted.header("content-location"), "", "there is no content");
}

#[tokio::test]
async fn a_request_that_is_too_large_and_an_unknown_offer_get_the_texts_of_the_service() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let large = json!({"id": "1", "pk": "a", "x": "y".repeat(2 * 1024 * 1024)});
    let message = r#"Message: {"Errors":["Request size is too large"]}"#;
    let refused = account.create(large.clone()).await.expect(413);
    assert!(refused.message().starts_with(message), "{}", refused.message());
    let batch = [A, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let twice = json!([{"operationType": "Create", "resourceBody": large}, {"operationType": "Create", "resourceBody": large}]);
    let refused = account.post(DOCS, &batch, twice).await.expect(413);
    assert!(refused.message().starts_with(message), "{}", refused.message());
    for offer in ["/offers/none", "/offers/abcd"] {
        let missing = account.get(offer, &[]).await.expect(404);
        let text = "Entity with the specified id does not exist in the system.";
        assert!(missing.message().starts_with(text), "{}", missing.message());
    }
}

#[tokio::test]
async fn binary_requests_and_requested_consistency_levels_are_counted() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let counts = async || {
        let ready = account.control(http::Method::GET, "/health/ready", "").await.expect(200).body;
        ready["requests"].clone()
    };
    assert_eq!(counts().await["binary"], json!({"binaryJson": 0, "hybridRow": 0, "binaryResponses": 0}));
    let item = protocol::binary_json::from_text(br#"{"id":"1","pk":"a"}"#).unwrap();
    account.send(http::Method::POST, DOCS, &[A], item.into()).await.expect(201);
    let one = format!("{DOCS}/1");
    account
        .get(&one, &[A, ("x-ms-cosmos-supported-serialization-formats", "CosmosBinary")])
        .await
        .expect(200);
    account.get(&one, &[A, ("x-ms-consistency-level", "Eventual")]).await.expect(200);
    account.get(&one, &[A, ("x-ms-consistency-level", "Session")]).await.expect(200);
    account.get(&one, &[A, ("x-ms-cosmos-read-consistency-strategy", "Eventual")]).await.expect(200);
    account.get(&one, &[A]).await.expect(200);
    let counted = counts().await;
    assert_eq!(counted["binary"], json!({"binaryJson": 1, "hybridRow": 0, "binaryResponses": 1}));
    let levels =
        json!({"Eventual": 2, "ConsistentPrefix": 0, "Session": 1, "BoundedStaleness": 0, "Strong": 0});
    assert_eq!(counted["consistency"], levels);
}
