//! Many operations in one request: all or nothing, and in bulk.

use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, KEY};
use super::items::fresh;
use super::{LiveResponse, Probes, ignored, supported};

pub(super) fn probes() -> Probes {
    vec![
        ("batch-operations", supported!(batch_operations)),
        ("batch-rollback", supported!(batch_rollback)),
        ("batch-default-atomic", supported!(batch_default_atomic)),
        ("batch-preconditions", supported!(batch_preconditions)),
        ("batch-limits", supported!(batch_limits)),
        ("batch-other-key", supported!(batch_other_key)),
        ("batch-minimal", supported!(batch_minimal)),
        ("batch-answer-size", supported!(batch_response_size)),
        ("batch-conditional-read", supported!(batch_conditional_read)),
        ("batch-session", supported!(batch_session)),
        ("batch-binary", supported!(batch_binary)),
        ("batch-ordered", ignored!(batch_ordered)),
        ("bulk", supported!(bulk)),
        ("bulk-stop-on-error", supported!(bulk_stop_on_error)),
    ]
}

const BATCH: (&str, &str) = ("x-ms-cosmos-is-batch-request", "True");

async fn batch(
    fixture: &CompatibilityFixture,
    docs: &str,
    headers: &[(&str, &str)],
    operations: Value,
) -> LiveResponse {
    let mut all = vec![BATCH];
    all.extend_from_slice(headers);
    fixture.account.post(docs, &all, operations).await
}

fn codes(response: &LiveResponse) -> Vec<u64> {
    response.body.as_array().unwrap().iter().map(|result| result["statusCode"].as_u64().unwrap()).collect()
}

async fn batch_operations(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let operations = json!([
        {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}},
        {"operationType": "Upsert", "resourceBody": {"id": "3", "pk": "a"}},
        {"operationType": "Upsert", "resourceBody": {"id": "3", "pk": "a", "n": 1}},
        {"operationType": "Replace", "id": "2", "resourceBody": {"id": "2", "pk": "a", "n": 2}},
        {"operationType": "Read", "id": "2"},
        {"operationType": "Patch", "id": "2", "resourceBody": {"operations": [{"op": "incr", "path": "/n", "value": 1}]}},
        {"operationType": "Delete", "id": "3"},
    ]);
    let response =
        batch(fixture, &docs, &[KEY, ("x-ms-cosmos-batch-atomic", "True")], operations).await.expect(200);
    assert_eq!(codes(&response), [201, 201, 200, 200, 200, 200, 204]);
    assert_eq!(
        (&response.body[4]["resourceBody"]["n"], &response.body[5]["resourceBody"]["n"]),
        (&json!(2), &json!(3))
    );
    assert!(response.body[6]["resourceBody"].is_null());
}

async fn batch_rollback(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let operations = json!([
        {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}},
        {"operationType": "Create", "resourceBody": {"id": "1", "pk": "a"}},
        {"operationType": "Delete", "id": "2"},
    ]);
    let response =
        batch(fixture, &docs, &[KEY, ("x-ms-cosmos-batch-atomic", "true")], operations).await.expect(207);
    assert_eq!(codes(&response), [424, 409, 424]);
    fixture.account.get(&format!("{docs}/2"), &[KEY]).await.expect(404);
}

async fn batch_default_atomic(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let operations = json!([
        {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}},
        {"operationType": "Read", "id": "missing"},
    ]);
    assert_eq!(codes(&batch(fixture, &docs, &[KEY], operations).await.expect(207)), [424, 404]);
    fixture.account.get(&format!("{docs}/2"), &[KEY]).await.expect(404);
}

async fn batch_preconditions(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let etag = fixture.account.get(&format!("{docs}/1"), &[KEY]).await.expect(200).header("etag").to_owned();
    let replace = |etag: &str| json!([{"operationType": "Replace", "id": "1", "ifMatch": etag, "resourceBody": {"id": "1", "pk": "a"}}]);
    assert_eq!(codes(&batch(fixture, &docs, &[KEY], replace("\"other\"")).await.expect(207)), [412]);
    assert_eq!(codes(&batch(fixture, &docs, &[KEY], replace(&etag)).await.expect(200)), [200]);
}

async fn batch_limits(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let none = batch(fixture, &docs, &[KEY], json!([])).await.expect(400);
    assert!(none.message().contains("Batch request has no operations."));
    let read = json!({"operationType": "Read", "id": "1"});
    batch(fixture, &docs, &[KEY], json!(vec![read.clone(); 100])).await.expect(200);
    let many = batch(fixture, &docs, &[KEY], json!(vec![read; 101])).await.expect(400);
    assert!(many.message().contains("Batch request has more operations than what is supported."));
    let large: Vec<Value> = (0..3)
        .map(|n| json!({"operationType": "Create", "resourceBody": {"id": format!("l{n}"), "pk": "a", "x": "y".repeat(800_000)}}))
        .collect();
    let rejected = batch(fixture, &docs, &[KEY], json!(large)).await.expect(413);
    assert_eq!(rejected.body["code"], "RequestEntityTooLarge");
}

async fn batch_response_size(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    fixture
        .account
        .post(&docs, &[KEY], json!({"id": "l", "pk": "a", "x": "y".repeat(1_900_000)}))
        .await
        .expect(201);
    let read = json!({"operationType": "Read", "id": "l"});
    let rejected = batch(fixture, &docs, &[KEY], json!(vec![read; 5])).await.expect(413);
    assert_eq!(rejected.sub_status(), "3402");
}

async fn batch_other_key(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let operations = json!([
        {"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}},
        {"operationType": "Create", "resourceBody": {"id": "3", "pk": "b"}},
    ]);
    assert_eq!(codes(&batch(fixture, &docs, &[KEY], operations).await.expect(207)), [424, 400]);
}

async fn batch_minimal(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let operations = json!([{"operationType": "Create", "resourceBody": {"id": "2", "pk": "a"}}, {"operationType": "Read", "id": "1"}]);
    let response = batch(fixture, &docs, &[KEY, ("prefer", "return=minimal")], operations).await.expect(200);
    assert!(response.body[0]["resourceBody"].is_null() && response.body[0]["eTag"].is_string());
    assert!(response.body[1]["resourceBody"].is_object());
}

async fn batch_conditional_read(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let etag = fixture.account.get(&format!("{docs}/1"), &[KEY]).await.expect(200).header("etag").to_owned();
    for condition in ["ifMatch", "ifNoneMatch"] {
        let operations = json!([{"operationType": "Read", "id": "1", condition: etag}]);
        assert_eq!(codes(&batch(fixture, &docs, &[KEY], operations).await.expect(207)), [304]);
    }
}

async fn batch_session(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let read = fixture.account.get(&format!("{docs}/1"), &[KEY]).await.expect(200);
    let token = read.header("x-ms-session-token").rsplit_once('#').unwrap().0.to_owned() + "#900000";
    let operations = json!([{"operationType": "Read", "id": "1"}]);
    let headers = [KEY, ("x-ms-session-token", token.as_str())];
    assert_eq!(batch(fixture, &docs, &headers, operations).await.expect(404).sub_status(), "1002");
}

async fn batch_binary(fixture: &CompatibilityFixture) {
    use protocol::hybrid_row::{Layout, RecordWriter, Row, RowWriter, read_records};
    let docs = fresh(fixture).await;
    let mut operation = RowWriter::new(2_145_473_648, 0);
    operation.fixed(0).fixed(2).variable(None).variable(None).variable(None).variable(None);
    operation.variable(Some(br#"{"id":"2","pk":"a"}"#));
    let mut records = RecordWriter::with_capacity(0);
    records.push(operation.bytes());
    let body = records.finish().into();
    let response = fixture.account.send(http::Method::POST, &docs, &[KEY, BATCH], body).await.expect(200);
    let row = read_records(&response.bytes).next().unwrap().unwrap();
    let result = Row::read(row, Layout { schema: 2_145_473_649, fixed: 2, variable: 2 }).unwrap();
    assert_eq!(result.fixed(0), Some(201));
}

async fn batch_ordered(fixture: &CompatibilityFixture) -> (LiveResponse, LiveResponse) {
    let docs = fresh(fixture).await;
    let operations = json!([{"operationType": "Read", "id": "1"}, {"operationType": "Read", "id": "1"}]);
    let without = batch(fixture, &docs, &[KEY], operations.clone()).await;
    (without, batch(fixture, &docs, &[KEY, ("x-ms-cosmos-batch-ordered", "true")], operations).await)
}

const BULK: [(&str, &str); 2] =
    [("x-ms-cosmos-batch-atomic", "false"), ("x-ms-documentdb-partitionkeyrangeid", "0")];

fn bulk_create(id: &str, key: &str) -> Value {
    json!({"operationType": "Create", "partitionKey": format!("[\"{key}\"]"), "resourceBody": {"id": id, "pk": key}})
}

async fn bulk(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let headers = [BULK[0], BULK[1], ("x-ms-cosmos-batch-continue-on-error", "true")];
    let operations = json!([bulk_create("2", "a"), bulk_create("1", "a"), bulk_create("3", "b")]);
    assert_eq!(codes(&batch(fixture, &docs, &headers, operations).await.expect(207)), [201, 409, 201]);
}

async fn bulk_stop_on_error(fixture: &CompatibilityFixture) {
    let docs = fresh(fixture).await;
    let headers = [BULK[0], BULK[1], ("x-ms-cosmos-batch-continue-on-error", "false")];
    let operations = json!([bulk_create("2", "a"), bulk_create("1", "a"), bulk_create("3", "b")]);
    assert_eq!(codes(&batch(fixture, &docs, &headers, operations).await.expect(207)), [201, 409, 424]);
}
