//! Transactional batches and bulk requests on the wire.

use serde_json::{Value, json};

use crate::live::{LiveAccount, LiveResponse};

const A: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "True");

async fn batch(account: &LiveAccount, headers: &[(&str, &str)], operations: Value) -> LiveResponse {
    let mut all = vec![BATCH];
    all.extend_from_slice(headers);
    account.post("/dbs/d/colls/c/docs", &all, operations).await
}

fn statuses(response: &LiveResponse) -> Vec<i64> {
    response.body.as_array().unwrap().iter().map(|result| result["statusCode"].as_i64().unwrap()).collect()
}

fn create(id: &str, pk: &str) -> Value {
    json!({"operationType": "Create", "resourceBody": {"id": id, "pk": pk}})
}

#[tokio::test]
async fn a_batch_whose_response_would_be_too_large_changes_nothing() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "large", "pk": "a", "x": "y".repeat(1_900_000)})).await.expect(201);
    let mut operations = vec![json!({"operationType": "Create", "resourceBody": {"id": "new", "pk": "a"}})];
    operations.extend(vec![json!({"operationType": "Read", "id": "large", "partitionKey": "[\"a\"]"}); 5]);
    let rejected = batch(&account, &[A], json!(operations)).await.expect(413);
    assert_eq!(rejected.sub_status(), "3402");
    assert_eq!(statuses(&rejected), [424, 424, 424, 413, 413, 413]);
    account.get("/dbs/d/colls/c/docs/new", &[A]).await.expect(404);
    let bulk = [("x-ms-cosmos-batch-atomic", "false"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let response = batch(
        &account,
        &[bulk[0], bulk[1], ("x-ms-cosmos-batch-continue-on-error", "true")],
        json!(operations),
    )
    .await;
    assert_eq!(statuses(&response.expect(207)), [201, 200, 200, 200, 413, 413]);
}

#[tokio::test]
async fn a_batch_does_all_or_nothing() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let atomic = ("x-ms-cosmos-batch-atomic", "True");
    let done = batch(
        &account,
        &[A, atomic],
        json!([create("1", "a"), create("2", "a"), {"operationType": "Read", "id": "1"}]),
    )
    .await
    .expect(200);
    assert_eq!(statuses(&done), [201, 201, 200]);
    assert_eq!(done.body[0]["eTag"], done.body[0]["resourceBody"]["_etag"]);
    for (operations, expected) in [
        (json!([create("3", "a"), create("3", "a")]), vec![424, 409]),
        (json!([create("4", "a"), create("5", "b")]), vec![424, 400]),
        (json!([{"operationType": "Read", "id": "x"}, create("6", "a")]), vec![404, 424]),
        (
            json!([create("7", "a"), {"operationType": "Replace", "id": "1", "ifMatch": "\"old\"", "resourceBody": {"id": "1", "pk": "a"}}]),
            vec![424, 412],
        ),
    ] {
        // One SDK never sends the header for atomic batches.
        for headers in [vec![A, atomic], vec![A]] {
            let failed = batch(&account, &headers, operations.clone()).await.expect(207);
            assert_eq!(statuses(&failed), expected);
        }
    }
    let left = account.query("SELECT VALUE COUNT(1) FROM c", &[A]).await.expect(200);
    assert_eq!(left.documents(), [json!(2)]);
}

#[tokio::test]
async fn a_batch_moves_the_lsn_once() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let before: u64 = account.create(json!({"id": "0", "pk": "a"})).await.header("lsn").parse().unwrap();
    let done = batch(&account, &[A], json!([create("1", "a"), create("2", "a")])).await.expect(200);
    assert_eq!(done.header("lsn").parse::<u64>().unwrap(), before + 1);
}

#[tokio::test]
async fn every_kind_of_operation_works_in_a_batch() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let operations = json!([
        create("1", "a"),
        {"operationType": "Upsert", "resourceBody": {"id": "1", "pk": "a", "n": 1}},
        {"operationType": "Upsert", "resourceBody": {"id": "2", "pk": "a"}},
        {"operationType": "Replace", "id": "1", "resourceBody": {"id": "1", "pk": "a", "n": 2}},
        {"operationType": "Patch", "id": "1", "resourceBody": {"operations": [{"op": "incr", "path": "/n", "value": 5}]}},
        {"operationType": "Read", "id": "1"},
        {"operationType": "Delete", "id": "2"},
    ]);
    let done = batch(&account, &[A], operations).await.expect(200);
    assert_eq!(statuses(&done), [201, 200, 201, 200, 200, 200, 204]);
    assert_eq!(done.body[5]["resourceBody"]["n"], 7);
    assert!(done.body[6].get("resourceBody").is_none());
}

#[tokio::test]
async fn invalid_batches_are_rejected_as_a_whole() {
    let account = LiveAccount::with_container(1, json!({})).await;
    for (operations, fragment) in [
        (json!([]), "Batch request has no operations."),
        (json!(vec![create("1", "a"); 101]), "Batch request has more operations than what is supported."),
        (json!([{"operationType": "Fly"}]), "'Fly' is not a batch operation"),
        (json!({}), "list"),
    ] {
        let rejected = batch(&account, &[A], operations).await.expect(400);
        assert!(rejected.message().contains(fragment), "{}", rejected.message());
    }
    let large = json!([{"operationType": "Create", "resourceBody": {"id": "1", "pk": "a", "x": "y".repeat(2_202_010)}}]);
    let rejected = batch(&account, &[A], large).await.expect(413);
    assert_eq!(rejected.body["code"], "RequestEntityTooLarge");
}

#[tokio::test]
async fn an_atomic_batch_stays_within_its_logical_partition() {
    let account = LiveAccount::with_container(2, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    for key in [json!("[\"b\"]"), json!("nonsense"), json!(["b"]), json!("[]")] {
        let read = json!({"operationType": "Read", "id": "1", "partitionKey": key});
        let rejected = batch(&account, &[A], json!([create("2", "a"), read])).await.expect(207);
        assert_eq!(statuses(&rejected), [424, 400], "{key}");
    }
    for key in [json!("[\"a\"]"), json!(["a"]), json!(null)] {
        let read = json!({"operationType": "Read", "id": "1", "partitionKey": key});
        batch(&account, &[A], json!([read])).await.expect(200);
    }
}

#[tokio::test]
async fn an_operation_on_an_item_names_it() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    for operation in [
        json!({"operationType": "Replace", "resourceBody": {"id": "1", "pk": "a"}}),
        json!({"operationType": "Patch", "resourceBody": {"operations": [{"op": "set", "path": "/n", "value": 1}]}}),
        json!({"operationType": "Read"}),
        json!({"operationType": "Delete"}),
    ] {
        let rejected = batch(&account, &[A], json!([operation])).await.expect(400);
        assert!(rejected.message().contains("needs 'id'"), "{}", rejected.message());
    }
}

#[tokio::test]
async fn bulk_operations_of_another_range_get_410() {
    let account = LiveAccount::with_container(4, json!({})).await;
    let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let operations: Vec<Value> = keys
        .iter()
        .map(|key| json!({"operationType": "Upsert", "partitionKey": format!("[\"{key}\"]"), "resourceBody": {"id": "1", "pk": key}}))
        .collect();
    let mut homes = vec![Vec::new(); keys.len()];
    // Whether or not the first failure ends the request: these are not failures, but addressed wrongly.
    for go_on in ["true", "false"] {
        for range in ["0", "1", "2", "3"] {
            let headers = [
                ("x-ms-cosmos-batch-atomic", "false"),
                ("x-ms-documentdb-partitionkeyrangeid", range),
                ("x-ms-cosmos-batch-continue-on-error", go_on),
            ];
            let response = batch(&account, &headers, json!(operations)).await.expect(207);
            for (home, result) in homes.iter_mut().zip(response.body.as_array().unwrap()) {
                match result["statusCode"].as_u64() {
                    Some(200 | 201) => home.push(range),
                    _ => assert_eq!(
                        (&result["statusCode"], &result["subStatusCode"]),
                        (&json!(410), &json!(1002))
                    ),
                }
            }
        }
    }
    assert!(homes.iter().all(|home| home.len() == 2 && home[0] == home[1]), "{homes:?}");
}

#[tokio::test]
async fn bulk_operations_are_independent() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let bulk = [("x-ms-cosmos-batch-atomic", "false"), ("x-ms-documentdb-partitionkeyrangeid", "0")];
    let operation = |id: &str, pk: &str| json!({"operationType": "Create", "partitionKey": format!("[\"{pk}\"]"), "resourceBody": {"id": id, "pk": pk}});
    let operations = json!([operation("1", "a"), operation("1", "a"), operation("1", "b")]);
    let mut go_on = bulk.to_vec();
    go_on.push(("x-ms-cosmos-batch-continue-on-error", "true"));
    let done = batch(&account, &go_on, operations.clone()).await.expect(207);
    assert_eq!(statuses(&done), [201, 409, 201]);
    let stopped = batch(&account, &bulk, operations).await.expect(207);
    assert_eq!(statuses(&stopped), [409, 424, 424]);
}
