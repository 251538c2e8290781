//! Signatures, dates and tokens.

use std::time::Duration;

use http::Method;
use protocol::authorization::{AccountKey, EMULATOR_KEY, sign};
use serde_json::json;

use crate::client::{TestAccount, TestResponse};

const DATE: &str = "Sun, 15 Nov 2026 19:23:36 GMT";

fn key() -> AccountKey {
    AccountKey::from_base64(EMULATOR_KEY).unwrap()
}

async fn get(account: &TestAccount, path: &str, authorization: &str) -> TestResponse {
    let headers = [("authorization", authorization), ("x-ms-date", DATE)];
    account.send_unsigned(Method::GET, path, &headers, "").await
}

#[tokio::test]
async fn a_request_without_a_signature_is_rejected() {
    let account = TestAccount::new();
    for path in ["/", "/dbs"] {
        account.send_unsigned(Method::GET, path, &[], "").await.expect_error(
            401,
            5000,
            "authorization is missing",
        );
    }
}

#[tokio::test]
async fn a_wrong_key_gets_the_payload_that_should_have_been_signed() {
    let account = TestAccount::new();
    let wrong = AccountKey::from_base64("d3Jvbmc=").unwrap();
    let response = get(&account, "/dbs/Db", &sign(&wrong, "GET", "dbs", "dbs/Db", DATE)).await;
    let part = "'get\ndbs\ndbs/Db\nsun, 15 nov 2026 19:23:36 gmt\n\n'";
    response.expect_error(401, 0, part);
}

#[tokio::test]
async fn malformed_tokens_are_rejected() {
    let account = TestAccount::new();
    for token in [
        "x",
        "type=master&ver=1.0",
        "type=other&ver=1.0&sig=x",
        "type=master&ver=1.0&sig=short",
        "type=sas&sig=x",
    ] {
        get(&account, "/dbs", token).await.expect_error(401, 5001, "expected format");
    }
}

/// A signature in the encoding of each SDK.
#[tokio::test]
async fn every_client_s_encoding_of_the_signature_is_accepted() {
    let account = TestAccount::new();
    let encoded = sign(&key(), "GET", "dbs", "", DATE);
    let plain = percent_encoding::percent_decode_str(&encoded).decode_utf8().unwrap().into_owned();
    let lower_case_hex = encoded.replace("%3D", "%3d").replace("%2B", "%2b").replace("%2F", "%2f");
    let only_what_must_be = plain.replace('+', "%2B").replace('=', "%3D");
    for token in [&encoded, &plain, &lower_case_hex, &only_what_must_be] {
        get(&account, "/dbs", token).await.expect(200);
    }
}

#[tokio::test]
async fn names_are_signed_decoded_or_as_sent_and_rids_by_the_last_one() {
    let account = TestAccount::new();
    let rid = account.post("/dbs", r#"{"id":"a b"}"#).await.expect(201).text("_rid");
    for (path, link) in [
        ("/dbs/a%20b", "dbs/a b".to_owned()),
        ("/dbs/a%20b/", "dbs/a%20b".to_owned()),
        (&*format!("/dbs/{rid}/"), format!("dbs/{rid}")),
        (&*format!("/dbs/{rid}"), rid.to_lowercase()),
    ] {
        get(&account, path, &sign(&key(), "GET", "dbs", &link, DATE)).await.expect(200);
    }
}

#[tokio::test]
async fn a_date_in_any_case_is_accepted() {
    let account = TestAccount::new();
    for date in [DATE.to_lowercase(), DATE.to_uppercase(), DATE.to_owned()] {
        let token = sign(&key(), "GET", "dbs", "", &date);
        for name in ["x-ms-date", "date"] {
            let token = if name == "date" { sign_http_date("dbs", &date) } else { token.clone() };
            let headers = [("authorization", &*token), (name, &*date)];
            account.send_unsigned(Method::GET, "/dbs", &headers, "").await.expect(200);
        }
    }
}

/// The signature of a request that has its date in the `date` header.
fn sign_http_date(resource_type: &str, date: &str) -> String {
    use protocol::authorization::{SignaturePayload, SignedTarget};
    let target = SignedTarget { resource_type, link: "".into() };
    let signature = SignaturePayload { verb: "GET", target, x_date: "", date }.sign(&key());
    format!("type=master&ver=1.0&sig={signature}")
}

#[tokio::test]
async fn dates_at_the_ends_of_the_calendar_are_refused_like_others() {
    let account = TestAccount::new();
    for date in [
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Thu, 01 Jan 1970 00:05:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "fri, 31 dec 9999 23:50:00 gmt",
    ] {
        let token = sign(&key(), "GET", "dbs", "", date);
        let headers = [("authorization", &*token), ("x-ms-date", date)];
        let response = account.send_unsigned(Method::GET, "/dbs", &headers, "").await;
        response.expect_error(403, 0, "not valid at the current time");
    }
    let docs = "/dbs/d/colls/c/docs";
    account.post("/dbs", r#"{"id":"d"}"#).await.expect(201);
    account.post("/dbs/d/colls", r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#).await.expect(201);
    for date in
        ["Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "sun, 15 nov 2026 19:23:36 gmt"]
    {
        let headers = [("a-im", "Incremental feed"), ("if-modified-since", date)];
        let response = account.send(Method::GET, docs, &headers, "").await;
        assert!([200, 304].contains(&response.status), "{date}: {}", response.status);
    }
}

#[tokio::test]
async fn a_signature_is_good_for_a_quarter_of_an_hour_around_its_date() {
    let account = TestAccount::new();
    let token = sign(&key(), "GET", "dbs", "", DATE);
    account.clock.advance(Duration::from_secs(15 * 60));
    get(&account, "/dbs", &token).await.expect(200);
    account.clock.advance(Duration::from_secs(1));
    get(&account, "/dbs", &token).await.expect_error(403, 0, "not valid at the current time");
    // From the future, too: the client's clock may be ahead.
    let ahead = "Sun, 15 Nov 2026 19:53:38 GMT";
    let headers = [("authorization", &*sign(&key(), "GET", "dbs", "", ahead)), ("x-ms-date", ahead)];
    account.send_unsigned(Method::GET, "/dbs", &headers, "").await.expect_error(403, 0, "current time");
}

#[tokio::test]
async fn the_date_may_come_in_the_standard_header_but_not_be_missing_or_unreadable() {
    let account = TestAccount::new();
    let string = format!("get\ndbs\n\n\n{}\n", DATE.to_lowercase());
    let signature = key().sign_bytes(string.as_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    let with_date = [("authorization", &*token), ("date", DATE)];
    account.send_unsigned(Method::GET, "/dbs", &with_date, "").await.expect(200);
    account.send_unsigned(Method::GET, "/dbs", &with_date[..1], "").await.expect_error(401, 0, "x-ms-date");
    let odd = "yesterday";
    let headers = [("authorization", &*sign(&key(), "GET", "dbs", "", odd)), ("x-ms-date", odd)];
    account.send_unsigned(Method::GET, "/dbs", &headers, "").await.expect_error(401, 0, "RFC 1123");
}

#[tokio::test]
async fn an_entra_id_token_is_accepted_when_it_is_well_formed() {
    let account = TestAccount::new();
    // {"alg":"none"} . {"sub":"x"} . signature
    let jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln";
    get(&account, "/dbs", &format!("type=aad&ver=1.0&sig={jwt}")).await.expect(200);
    get(&account, "/dbs", &format!("type%3Daad%26ver%3D1.0%26sig%3D{jwt}")).await.expect(200);
    for bad in ["a.b", "a.b.c", "eyJhbGciOiJub25lIn0.bm90IGpzb24.c2ln"] {
        let rejected = get(&account, "/dbs", &format!("type=aad&ver=1.0&sig={bad}")).await;
        rejected.expect_error(401, 5003, "three parts");
    }
}

#[tokio::test]
async fn an_entra_id_token_is_accepted_while_it_is_valid() {
    let account = TestAccount::new();
    let (past, future) = (1_000_000_000, 100_000_000_000_i64);
    for (claims, sub_status) in [
        (json!({"exp": future}), None),
        (json!({"nbf": past, "exp": future}), None),
        (json!({"exp": "soon"}), None),
        (json!({"exp": past}), Some(5006)),
        (json!({"exp": i64::MAX, "nbf": future}), Some(5005)),
    ] {
        let response = get(&account, "/dbs", &format!("type=aad&ver=1.0&sig={}", jwt(&claims))).await;
        match sub_status {
            None => response.expect(200),
            Some(sub_status) => response.expect_error(401, sub_status, "AAD token"),
        };
    }
}

fn jwt(claims: &serde_json::Value) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    format!("eyJhbGciOiJub25lIn0.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}
