//! Tests of batches as JSON arrays, and of what both encodings share.

use serde_json::value::RawValue;

use super::*;
use crate::partition::{PartitionKey, PartitionKeyHeader};

#[test]
fn operations_are_read_with_their_bodies_untouched() {
    let body = br#"[{"operationType":"Create","resourceBody":{"z":1, "id":"a"}},
        {"operationType":"Replace","id":"a\u00e9","ifMatch":"\"e\"","resourceBody":{}},
        {"operationType":"Delete","id":"b","resourceBody":null,"partitionKey":"[\"x\"]"},
        {"operationType":"Read","id":"c","partitionKey":["x",{}],"unknown":1},
        {"operationType":"Patch","id":"d","resourceBody":[{"op":"remove","path":"/a"}]},
        {"operationType":"Upsert","ifNoneMatch":"*","resourceBody":{}}]"#;
    let operations = parse_operations(body).expect("a batch");
    assert_eq!(operations.len(), 6);
    assert_eq!(operations[0].resource_body.map(RawValue::get), Some(r#"{"z":1, "id":"a"}"#));
    assert_eq!(operations[1].id.as_deref(), Some("aé"));
    assert_eq!(operations[1].if_match.as_deref(), Some("\"e\""));
    assert!(operations[2].resource_body.is_none(), "null is nothing");
    let key = |operation: &BatchOperation<'_>| operation.partition_key().expect("a key");
    assert_eq!(key(&operations[0]), None);
    assert_eq!(key(&operations[2]), Some(PartitionKeyHeader::Key(PartitionKey::single("x"))));
    assert!(matches!(key(&operations[3]), Some(PartitionKeyHeader::Key(key)) if key.components().len() == 2));
    assert_eq!(operations[4].operation_type, BatchOperationType::Patch);
    assert_eq!(operations[5].if_none_match.as_deref(), Some("*"));
}

#[test]
fn an_invalid_batch_is_rejected_as_a_whole() {
    let read = r#"{"operationType":"Read","id":"1"}"#;
    let many = |count: usize| format!("[{}]", vec![read; count].join(","));
    assert_eq!(parse_operations(many(100).as_bytes()).map(|batch| batch.len()).ok(), Some(100));
    assert_eq!(parse_operations(many(101).as_bytes()).err(), Some(BatchError::TooMany));
    assert_eq!(parse_operations(b"[]").err(), Some(BatchError::Empty));
    let large = vec![b' '; BATCH_BYTES_MAX + 1];
    let error = parse_operations(&large).expect_err("too large");
    assert_eq!((error.status(), BatchError::Empty.status()), (Status(413), Status(400)));
    assert_eq!(BatchError::Empty.to_string(), "Batch request has no operations.");
    assert_eq!(BatchError::TooMany.to_string(), "Batch request has more operations than what is supported.");
    for body in [
        "",
        "{}",
        "null",
        "[1]",
        "[{}]",
        r#"[{"operationType":"Merge"}]"#,
        r#"[{"operationType":"Read","id":1}]"#,
        r#"[{"operationType":"Read","id":"1","ifMatch":5}]"#,
    ] {
        assert!(matches!(parse_operations(body.as_bytes()), Err(BatchError::Malformed(_))), "{body}");
    }
}

#[test]
fn an_operation_states_its_item_and_its_body() {
    for (operation, missing) in [
        ("Create", &["resourceBody"][..]),
        ("upsert", &["resourceBody"]),
        ("Replace", &["id", "resourceBody"]),
        ("PATCH", &["id", "resourceBody"]),
        ("Read", &["id"]),
        ("delete", &["id"]),
    ] {
        for without in ["id", "resourceBody"] {
            let members = [("id", r#""id":"1""#), ("resourceBody", r#""resourceBody":{}"#)];
            let member = members.iter().find(|(name, _)| *name != without).expect("the other one").1;
            let body = format!(r#"[{{"operationType":"{operation}",{member}}}]"#);
            let outcome = parse_operations(body.as_bytes());
            match missing.contains(&without) {
                true => assert!(
                    matches!(outcome, Err(BatchError::MissingMember { member, .. }) if member == without),
                    "{body}"
                ),
                false => assert!(outcome.is_ok(), "{body}"),
            }
        }
    }
    let replace = br#"[{"operationType":"replace","resourceBody":{"id":"1"}}]"#;
    let error = parse_operations(replace).expect_err("no id").to_string();
    assert_eq!(error, "The batch operation Replace needs 'id'.");
}

#[test]
fn what_a_client_builds_is_what_a_server_reads() {
    let body = r#"[{"operationType":"Create","resourceBody":{"id":"a"},"partitionKey":"[\"x\"]"},{"operationType":"Replace","id":"a","resourceBody":{"id":"a"},"ifMatch":"\"e\""}]"#;
    let document: &RawValue = serde_json::from_str(r#"{"id":"a"}"#).expect("json");
    let key: &RawValue = serde_json::from_str(r#""[\"x\"]""#).expect("json");
    let mut create = BatchOperation::new(BatchOperationType::Create).with_partition_key(key);
    create.resource_body = Some(document);
    let mut replace = BatchOperation::new(BatchOperationType::Replace);
    replace.id = Some("a".into());
    replace.resource_body = Some(document);
    replace.if_match = Some("\"e\"".into());
    assert_eq!(serde_json::to_string(&[create, replace]).expect("plain data"), body);
    let read = parse_operations(body.as_bytes()).expect("a batch");
    assert_eq!(read[0].partition_key_text().as_deref(), Some(r#"["x"]"#));
    assert_eq!(serde_json::to_string(&read).expect("plain data"), body);
}

#[test]
fn results_have_the_services_members() {
    let created: BatchResult<&[u8]> = BatchResult {
        etag: Some("\"e\"".into()),
        resource_body: Some(br#"{"id":"a"}"#),
        ..BatchResult::new(Status::CREATED, 6.29)
    };
    let conflict = BatchResult {
        sub_status: SubStatus::UNIQUE_INDEX_VIOLATION,
        message: Some("say \"no\"".into()),
        retry_after_ms: Some(5),
        ..BatchResult::new(Status::CONFLICT, 1.0)
    };
    let results = [created, BatchResult::failed_dependency(), conflict];
    let body = write_results(&results);
    let expected = concat!(
        r#"[{"statusCode":201,"requestCharge":6.29,"eTag":"\"e\"","resourceBody":{"id":"a"}},"#,
        r#"{"statusCode":424,"requestCharge":0},"#,
        r#"{"statusCode":409,"subStatusCode":3301,"requestCharge":1,"retryAfterMilliseconds":5,"message":"say \"no\""}]"#
    );
    assert_eq!(String::from_utf8_lossy(&body), expected);
    assert_eq!(parse_results(&body).expect("what was written"), results);
    assert_eq!(envelope_status(&results), Status::MULTI_STATUS);
    assert_eq!(envelope_status(&results[..1]), Status::OK);
    let unchanged: [BatchResult<&[u8]>; 1] = [BatchResult::new(Status::NOT_MODIFIED, 1.0)];
    assert_eq!(envelope_status(&unchanged), Status::MULTI_STATUS);
}

#[test]
fn a_server_reads_what_both_encodings_can_state() {
    let body = br#"[{"operationType":"Upsert","resourceBody":{},"minimalReturnPreference":true,"indexingDirective":"Exclude","timeToLiveInSeconds":5,"partitionKey":["a"]},{"operationType":"Read","id":"1","minimalReturnPreference":null}]"#;
    let request = BatchRequest::parse(body).expect("a batch");
    assert_eq!(request.encoding, BatchEncoding::Json);
    let [upsert, read] = request.operations.as_slice() else { panic!("two operations") };
    assert_eq!(upsert.resource_body, Some(b"{}".as_slice()));
    assert_eq!(upsert.indexing_directive.as_deref(), Some("Exclude"));
    assert_eq!((upsert.time_to_live_seconds, upsert.minimal_return_preference), (Some(5), true));
    assert_eq!(upsert.partition_key.as_deref(), Some(r#"["a"]"#));
    assert_eq!((read.id.as_deref(), read.minimal_return_preference), (Some("1"), false));
}
