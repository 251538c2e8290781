//! Batches as HybridRow records.

use bytes::Bytes;
use http::Method;
use protocol::hybrid_row::{Layout, RecordWriter, Row, RowWriter, SparseValue, read_records};
use serde_json::{Value, json};

use crate::live::{LiveAccount, LiveResponse};

const A: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const ATOMIC: (&str, &str) = ("x-ms-cosmos-batch-atomic", "True");
const BULK: [(&str, &str); 3] = [
    ("x-ms-cosmos-batch-atomic", "False"),
    ("x-ms-cosmos-batch-continue-on-error", "True"),
    ("x-ms-documentdb-partitionkeyrangeid", "0"),
];
const OPERATION_SCHEMA: i32 = 2_145_473_648;
const RESULT: Layout = Layout { schema: 2_145_473_649, fixed: 2, variable: 2 };

/// The numbers of operation types.
const CREATE: i32 = 0;
const PATCH: i32 = 1;
const READ: i32 = 2;
const DELETE: i32 = 4;
const REPLACE: i32 = 5;
const UPSERT: i32 = 20;

/// An operation under construction: type, key, id and body.
fn operation(kind: i32, key: Option<&str>, id: Option<&str>, body: Option<Value>) -> RowWriter {
    let mut row = RowWriter::new(OPERATION_SCHEMA, 0);
    let body = body.map(|body| body.to_string());
    row.fixed(kind).fixed(2);
    row.variable(key.map(str::as_bytes)).variable(None);
    row.variable(id.map(str::as_bytes)).variable(None);
    row.variable(body.as_deref().map(str::as_bytes));
    row
}

fn create(id: &str) -> RowWriter {
    operation(CREATE, None, None, Some(json!({"id": id, "pk": "a"})))
}

fn read(id: &str) -> RowWriter {
    operation(READ, None, Some(id), None)
}

fn records(operations: &[RowWriter]) -> Vec<u8> {
    let mut body = RecordWriter::with_capacity(0);
    operations.iter().for_each(|operation| body.push(operation.bytes()));
    body.finish()
}

async fn send(account: &LiveAccount, headers: &[(&str, &str)], body: Vec<u8>) -> LiveResponse {
    let mut all = vec![("x-ms-cosmos-is-batch-request", "True")];
    all.extend_from_slice(headers);
    account.send(Method::POST, "/dbs/d/colls/c/docs", &all, Bytes::from(body)).await
}

/// One result of a batch: status, sub-status, etag, body, retry time and charge.
#[derive(Debug)]
struct BatchOutcome {
    status: i32,
    sub_status: i32,
    etag: Option<String>,
    body: Option<String>,
    retry_after: Option<u32>,
    charge: f64,
}

fn outcomes(response: &LiveResponse) -> Vec<BatchOutcome> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rows = read_records(&response.bytes).map(|row| {
        let row = Row::read(row.unwrap(), RESULT).unwrap();
        BatchOutcome {
            status: row.fixed(0).unwrap(),
            sub_status: row.fixed(1).unwrap(),
            etag: row.variable(0).map(text),
            body: row.variable(1).map(text),
            retry_after: match row.sparse(5) {
                Some(SparseValue::UInt32(wait)) => Some(wait),
                other => other.map(|_| panic!("a retry time is an unsigned integer")),
            },
            charge: match row.sparse(6) {
                Some(SparseValue::Float64(charge)) => charge,
                other => panic!("each result has a charge: {other:?}"),
            },
        }
    });
    rows.collect()
}

fn statuses(response: &LiveResponse) -> Vec<i32> {
    outcomes(response).iter().map(|outcome| outcome.status).collect()
}

#[tokio::test]
async fn every_operation_of_a_binary_batch_is_carried_out() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let patch = json!({"condition": "FROM c WHERE c.n = 1", "operations": [{"op": "incr", "path": "/n", "value": 4}]});
    let operations = [
        create("1"),
        operation(UPSERT, None, None, Some(json!({"id": "2", "pk": "a"}))),
        operation(REPLACE, None, Some("1"), Some(json!({"id": "1", "pk": "a", "n": 1}))),
        operation(PATCH, None, Some("1"), Some(patch)),
        read("1"),
        operation(DELETE, None, Some("2"), None),
    ];
    let response = send(&account, &[A, ATOMIC], records(&operations)).await.expect(200);
    assert_eq!(response.bytes[0], 0x81, "the response is written as the request was");
    let outcomes = outcomes(&response);
    let codes: Vec<i32> = outcomes.iter().map(|outcome| outcome.status).collect();
    assert_eq!(codes, [201, 201, 200, 200, 200, 204]);
    let item: Value = serde_json::from_str(outcomes[4].body.as_deref().unwrap()).unwrap();
    assert_eq!((&item["n"], item["_etag"].as_str()), (&json!(5), outcomes[4].etag.as_deref()));
    assert!(outcomes[5].body.is_none() && outcomes.iter().all(|outcome| outcome.charge > 0.0));
    let total: f64 = outcomes.iter().map(|outcome| outcome.charge).sum();
    assert_eq!(response.header("x-ms-request-charge"), format!("{total:.2}").trim_end_matches('0'));
    assert!(!response.header("x-ms-session-token").is_empty());
    let left = account.query("SELECT VALUE c.n FROM c", &[A]).await.expect(200);
    assert_eq!(left.documents(), [json!(5)]);
}

#[tokio::test]
async fn a_failed_operation_undoes_a_binary_batch_and_has_its_message_as_body() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let response = send(&account, &[A, ATOMIC], records(&[create("1"), create("1"), create("2")])).await;
    let outcomes = outcomes(&response.expect(207));
    let codes: Vec<i32> = outcomes.iter().map(|outcome| outcome.status).collect();
    assert_eq!(codes, [424, 409, 424]);
    assert!(outcomes[1].body.as_deref().is_some_and(|text| text.contains("already exists")), "{outcomes:?}");
    assert!(outcomes[0].body.is_none() && outcomes[0].charge == 0.0);
    account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(404);
}

#[tokio::test]
async fn a_bulk_request_has_a_result_for_every_operation() {
    let account = LiveAccount::with_container(2, json!({})).await;
    let keys: Vec<String> = (0..40).map(|number| format!("k{number}")).collect();
    let operations: Vec<RowWriter> = keys
        .iter()
        .map(|key| {
            let body = json!({"id": "1", "pk": key});
            operation(UPSERT, Some(&json!([key]).to_string()), None, Some(body))
        })
        .collect();
    let outcomes = outcomes(&send(&account, &BULK, records(&operations)).await.expect(207));
    assert_eq!(outcomes.len(), 40);
    let moved = outcomes.iter().filter(|outcome| (outcome.status, outcome.sub_status) == (410, 1002)).count();
    let created = outcomes.iter().filter(|outcome| outcome.status == 201).count();
    assert!(
        moved > 0 && created > 0 && moved + created == 40,
        "keys of the other range are gone from this one"
    );
    let mut gone = BULK;
    gone[2].1 = "7";
    let whole = send(&account, &gone, records(&operations)).await.expect(410);
    assert_eq!((whole.sub_status(), whole.body["code"].as_str()), ("1002", Some("Gone")));
}

#[tokio::test]
async fn a_throttled_operation_says_when_to_try_again() {
    let account = LiveAccount::with(|config| {
        config.request_units = perihelion_emulator::RequestUnitMode::Enforce;
    })
    .await;
    account.create_container(json!({})).await;
    let key = json!(["a"]).to_string();
    let operations: Vec<RowWriter> = (0..100)
        .map(|number| {
            let body = json!({"id": number.to_string(), "pk": "a", "x": "y".repeat(9_000)});
            operation(CREATE, Some(&key), None, Some(body))
        })
        .collect();
    let outcomes = outcomes(&send(&account, &BULK, records(&operations)).await.expect(207));
    let throttled =
        outcomes.iter().find(|outcome| outcome.status == 429).expect("more than a second's budget");
    assert!(
        throttled.sub_status == 3200 && throttled.retry_after.is_some_and(|wait| wait > 0),
        "{throttled:?}"
    );
}

#[tokio::test]
async fn a_binary_batch_that_cannot_be_read_is_an_ordinary_error() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let whole = records(&[create("1")]);
    let mut checksum = whole.clone();
    let last = checksum.len() - 1;
    checksum[last] ^= 1;
    for body in [checksum, whole[..last].to_vec(), whole[..5].to_vec(), vec![0x81], records(&[])] {
        let rejected = send(&account, &[A, ATOMIC], body).await.expect(400);
        assert_eq!(rejected.body["code"], "BadRequest");
    }
    for (option, value, message) in [
        (8, SparseValue::Text("Sometimes"), "indexing directive 'Sometimes'"),
        (11, SparseValue::Int32(5), "timeToLiveInSeconds"),
    ] {
        let mut row = create("1");
        row.sparse(option, value);
        let outcomes = outcomes(&send(&account, &[A, ATOMIC], records(&[row])).await.expect(207));
        assert_eq!(outcomes[0].status, 400);
        assert!(outcomes[0].body.as_deref().unwrap().contains(message), "{outcomes:?}");
    }
    account.get("/dbs/d/colls/c/docs/1", &[A]).await.expect(404);
}

#[tokio::test]
async fn a_minimal_result_has_no_body_whatever_the_operation() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let minimal = |mut row: RowWriter| {
        row.sparse(12, SparseValue::Bool(true));
        row
    };
    let operations = [minimal(create("1")), create("2"), minimal(read("1")), read("2")];
    let outcomes = outcomes(&send(&account, &[A, ATOMIC], records(&operations)).await.expect(200));
    let has_body: Vec<bool> = outcomes.iter().map(|outcome| outcome.body.is_some()).collect();
    assert_eq!(has_body, [false, true, false, true]);
    assert!(outcomes.iter().all(|outcome| outcome.etag.is_some()));
    let operations = json!([
        {"operationType": "Upsert", "resourceBody": {"id": "1", "pk": "a"}, "minimalReturnPreference": true},
        {"operationType": "Upsert", "resourceBody": {"id": "2", "pk": "a"}, "minimalReturnPreference": false},
    ]);
    let response = send(&account, &[A], operations.to_string().into()).await.expect(200);
    assert!(response.body[0]["resourceBody"].is_null() && response.body[1]["resourceBody"].is_object());
}

#[tokio::test]
async fn a_read_of_the_version_that_is_known_is_304_and_the_batch_207() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let etag = account.create(json!({"id": "1", "pk": "a"})).await.expect(201).header("etag").to_owned();
    for (field, tag, expected) in [
        (9, etag.as_str(), 304),
        (10, etag.as_str(), 304),
        (10, "*", 304),
        (9, "\"other\"", 200),
        (10, "\"other\"", 200),
    ] {
        let mut conditional = read("1");
        conditional.sparse(field, SparseValue::Text(tag));
        let upsert = operation(UPSERT, None, None, Some(json!({"id": "2", "pk": "a"})));
        let response = send(&account, &[A, ATOMIC], records(&[upsert, conditional])).await;
        let response = response.expect(if expected == 304 { 207 } else { 200 });
        assert_eq!(statuses(&response)[1], expected, "{field} {tag}");
    }
    account.get("/dbs/d/colls/c/docs/2", &[A]).await.expect(200);
}

#[tokio::test]
async fn a_batch_with_a_read_waits_for_its_session() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let token = account.create(json!({"id": "1", "pk": "a"})).await.header("x-ms-session-token").to_owned();
    let (start, _) = token.rsplit_once('#').unwrap();
    let ahead = format!("{start}#9000");
    let session = ("x-ms-session-token", ahead.as_str());
    let refused = send(&account, &[A, ATOMIC, session], records(&[create("2"), read("1")])).await.expect(404);
    assert_eq!((refused.sub_status(), refused.body["code"].as_str()), ("1002", Some("NotFound")));
    account.get("/dbs/d/colls/c/docs/2", &[A]).await.expect(404);
    let writes = send(&account, &[A, ATOMIC, session], records(&[create("2")])).await.expect(200);
    assert_eq!(statuses(&writes), [201], "writes do not wait");
    let mut bulk = BULK.to_vec();
    bulk.push(session);
    let row = operation(READ, Some(r#"["a"]"#), Some("1"), None);
    send(&account, &bulk, records(&[row])).await.expect(404);
}

#[tokio::test]
async fn a_response_beyond_4_mb_is_413_with_a_result_for_every_operation() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "large", "pk": "a", "x": "y".repeat(1_000_000)})).await.expect(201);
    let mut operations = vec![create("new")];
    operations.extend((0..9).map(|_| read("large")));
    let response = send(&account, &[A, ATOMIC], records(&operations)).await.expect(413);
    assert_eq!(response.sub_status(), "3402");
    assert_eq!(statuses(&response), [424, 424, 424, 424, 424, 413, 413, 413, 413, 413]);
    account.get("/dbs/d/colls/c/docs/new", &[A]).await.expect(404);
}

#[tokio::test]
async fn the_largest_body_of_a_batch_has_2202010_bytes() {
    let account = LiveAccount::with_container(1, json!({})).await;
    let row = |id: &str, length: usize| {
        operation(UPSERT, None, None, Some(json!({"id": id, "pk": "a", "x": "y".repeat(length)})))
    };
    let body = |length: usize| records(&[row("1", 1_100_000), row("2", length)]);
    let missing = 2_202_010 - body(1_000_000).len();
    let full = body(1_000_000 + missing);
    assert_eq!(full.len(), 2_202_010);
    assert_eq!(statuses(&send(&account, &[A, ATOMIC], full).await.expect(200)), [201, 201]);
    let rejected = send(&account, &[A, ATOMIC], body(1_000_001 + missing)).await.expect(413);
    assert_eq!(rejected.body["code"], "RequestEntityTooLarge");
}
