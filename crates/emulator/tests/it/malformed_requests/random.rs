//! Random requests to the gateway itself: never a failure of the server, always a response that
//! clients can read.

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use proptest::prelude::*;
use protocol::headers as name;
use serde_json::Value;

use crate::client::TestAccount;

const HEADERS: &[&str] = &[
    name::PARTITION_KEY,
    name::PARTITION_KEY_RANGE_ID,
    name::START_EPK,
    name::END_EPK,
    name::READ_KEY_TYPE,
    name::IS_QUERY,
    name::IS_QUERY_PLAN_REQUEST,
    name::IS_BATCH_REQUEST,
    name::BATCH_ATOMIC,
    name::BATCH_CONTINUE_ON_ERROR,
    name::IS_UPSERT,
    name::ENABLE_CROSS_PARTITION,
    name::MAX_ITEM_COUNT,
    name::CONTINUATION,
    name::SESSION_TOKEN,
    name::A_IM,
    name::IF_MATCH,
    name::IF_NONE_MATCH,
    name::IF_MODIFIED_SINCE,
    name::PREFER,
    name::CONSISTENCY_LEVEL,
    name::CONTENT_TYPE,
    name::INTENDED_COLLECTION_RID,
    name::OFFER_THROUGHPUT,
    name::OFFER_AUTOPILOT_SETTINGS,
    name::POPULATE_QUERY_METRICS,
    name::POPULATE_INDEX_METRICS,
    name::SUPPORTED_QUERY_FEATURES,
    name::ACTIVITY_ID,
    name::EXPIRY_SECONDS,
    name::PRE_TRIGGER_INCLUDE,
];

const VALUES: &[&str] = &[
    "true",
    "True",
    "false",
    "1",
    "0",
    "-1",
    "2",
    "",
    "*",
    "\"x\"",
    "[\"a\"]",
    "[1]",
    "[{}]",
    "[]",
    "[null]",
    "[\"a\",\"b\"]",
    "{}",
    "00",
    "FF",
    "3A5381E1114EB8D3FCC90795045B49B7",
    "EffectivePartitionKeyRange",
    "Incremental Feed",
    "Full-Fidelity Feed",
    "application/query+json",
    "return=minimal",
    "Session",
    "Strong",
    "0:-1#1",
    "0:5",
    "9:9#9#9=9",
    "400",
    "30000",
    "Sun, 15 Nov 2026 19:23:36 GMT",
    "OrderBy,Top,Aggregate,GroupBy,Distinct,HybridSearch",
    "{\"maxThroughput\":1000}",
];

const SEGMENTS: &[&str] = &[
    "dbs",
    "d",
    "colls",
    "c",
    "docs",
    "1",
    "pkranges",
    "offers",
    "users",
    "permissions",
    "sprocs",
    "triggers",
    "udfs",
    "conflicts",
    "operations",
    "partitionkeydelete",
    "clientencryptionkeys",
    "addresses",
    "media",
    "%00",
    "%FF",
    "a%20b",
    "AAAAAQ==",
    "..",
];

const PATHS: &[&str] = &[
    "/",
    "/dbs",
    "/dbs/d",
    "/dbs/d/colls",
    "/dbs/d/colls/c",
    "/dbs/d/colls/c/docs",
    "/dbs/d/colls/c/docs/1",
    "/dbs/d/colls/c/pkranges",
    "/offers",
    "/dbs/d/users",
    "/dbs/d/colls/c/operations/partitionkeydelete",
    "/dbs/d/colls/c/conflicts",
];

const WORDS: &[&str] = &[
    "SELECT",
    "*",
    "VALUE",
    "FROM",
    "c",
    "WHERE",
    "c.n",
    "=",
    "1",
    "'a'",
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    ",",
    "ORDER BY",
    "GROUP BY",
    "JOIN",
    "IN",
    "x",
    "c.list",
    "TOP",
    "DISTINCT",
    "OFFSET",
    "LIMIT",
    "COUNT(1)",
    "EXISTS",
    "ARRAY",
    "[",
    "]",
    "{",
    "}",
    ":",
    "??",
    "?",
    "||",
    "LIKE",
    "BETWEEN",
    "@p",
    "undefined",
    "RANK",
    "FULLTEXTSCORE(c.t, 'a')",
    "VECTORDISTANCE(c.v, [1])",
    "UPPER(c.t)",
    "<",
    "-",
    "/",
    "0x",
    "\"",
];

const BODIES: &[&str] = &[
    "",
    "{}",
    "[]",
    "null",
    r#"{"id":"2","pk":"a"}"#,
    r#"{"id":"1","pk":"a","ttl":5}"#,
    r#"{"id":"x","partitionKey":{"paths":["/pk"]}}"#,
    r#"[{"op":"incr","path":"/n","value":1}]"#,
    r#"[{"operationType":"Upsert","resourceBody":{"id":"3","pk":"a"}},{"operationType":"Read","id":"1"}]"#,
    r#"[{"operationType":"Delete","id":"3","partitionKey":"[\"a\"]"}]"#,
    r#"{"operations":[{"op":"set","path":"/n","value":1}],"condition":"from c where c.n > 0"}"#,
];

fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(PATHS).prop_map(str::to_owned),
        1 => prop::collection::vec(prop::sample::select(SEGMENTS), 0..8).prop_map(|segments| format!("/{}", segments.join("/"))),
    ]
}

fn header() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let value = prop_oneof![
        6 => prop::sample::select(VALUES).prop_map(|value| value.as_bytes().to_vec()),
        1 => "[ -~]{0,40}".prop_map(String::into_bytes),
        1 => prop::collection::vec(0x80u8..=0xFF, 0..12),
    ];
    (prop::sample::select(HEADERS), value)
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::sample::select(BODIES).prop_map(|body| body.as_bytes().to_vec()),
        4 => prop::collection::vec(prop::sample::select(WORDS), 0..14)
            .prop_map(|words| serde_json::json!({"query": words.join(" "), "parameters": [{"name": "@p", "value": 1}]}).to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(|mut bytes| { bytes.insert(0, 0x80); bytes }),
        1 => (prop::sample::select(BODIES), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(body, at, byte)| {
            let mut bytes = body.as_bytes().to_vec();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        }),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        4 => Just(Method::POST),
        3 => Just(Method::GET),
        1 => Just(Method::PUT),
        1 => Just(Method::PATCH),
        1 => Just(Method::DELETE),
        1 => prop::sample::select(vec![Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT]),
    ]
}

#[test]
fn every_random_request_gets_a_valid_response() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() };
    let account = runtime.block_on(async {
        let account = TestAccount::with_container().await;
        let key = [("x-ms-documentdb-partitionkey", r#"["a"]"#)];
        account
            .send(Method::POST, "/dbs/d/colls/c/docs", &key, r#"{"id":"1","pk":"a","n":1,"list":[1,2]}"#)
            .await
            .expect(201);
        account
    });
    let requests = (method(), path(), prop::collection::vec(header(), 0..6), body());
    proptest!(config, |((method, path, headers, body) in requests)| {
        let mut request = Request::builder().method(method.clone()).uri(&path);
        for (name, value) in &headers {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                request = request.header(*name, value);
            }
        }
        let Ok(request) = request.body(Bytes::from(body.clone())) else { return Ok(()) };
        let response = runtime.block_on(account.send_signed(request));
        prop_assert!(response.status < 500, "{} {}", response.status, String::from_utf8_lossy(&response.body));
        if response.status >= 400 && method != Method::HEAD {
            let body: Value = serde_json::from_slice(&response.body).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
        }
    });
}
