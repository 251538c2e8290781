//! Servers with invalid responses: wrong lengths, fields, codes and headers, invalid JSON, and responses that stall.
//!
//! The caller gets an error of the right kind within the deadline; once the responses are valid again, the same
//! driver works again.

use std::time::Duration;

use perihelion_driver::ErrorKind;
use perihelion_driver::options::{DriverOptions, OperationOptions, RetryOptions};
use serde_json::{Value, json};

use crate::faulty_server::{FaultyResponse, FaultyServer, RequestTarget};
use crate::test_account::{WEST, body, run, within};

/// Long enough for any response, short enough to wait for.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Time beyond the timeout that a busy machine may need.
const SLACK: Duration = Duration::from_secs(3);

/// The result of a read while the fault is injected.
type Expected = Result<(), ErrorKind>;

const BAD_RESPONSE: Expected = Err(ErrorKind::BadResponse);
const LOST: Expected = Err(ErrorKind::Unavailable);

/// Options of a driver that tries again once, so that it is over before the deadline unless that is the point.
fn short_timeouts() -> DriverOptions {
    let retry = RetryOptions::new().with_failover_retries_max(1).with_connection_retries_max(1);
    DriverOptions::new().with_operation(OperationOptions::new().with_retry(retry))
}

/// Lies while a driver that knows nothing reads an item; then tells the truth.
async fn check(about: RequestTarget, cases: Vec<(&str, FaultyResponse, Expected)>) {
    let server = FaultyServer::start().await;
    run(&server.test_account.driver(), &server.test_account.upsert("a", 7)).await.expect("written");
    for (name, fault, expected) in cases {
        let driver = server.driver(short_timeouts());
        server.inject(about, fault);
        #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
        let started = tokio::time::Instant::now();
        let result = driver.execute_operation(&server.test_account.read("a"), &within(TIMEOUT)).await;
        assert!(started.elapsed() < TIMEOUT + SLACK, "{about:?}, {name}: {:?}", started.elapsed());
        match (&result, expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(kind)) => assert_eq!(error.kind(), kind, "{about:?}, {name}: {error}"),
            _ => panic!("{about:?}, {name}: {result:?}"),
        }
        server.clear_fault();
        let read = run(&driver, &server.test_account.read("a")).await;
        let read = read.unwrap_or_else(|error| panic!("{about:?}, {name}: does not recover: {error}"));
        assert_eq!(body(&read)["value"], 7, "{about:?}, {name}");
        assert_eq!((driver.in_flight(), driver.open_hedges()), (0, 0), "{about:?}, {name}");
    }
}

/// Lies that are not about what is said but about how.
fn malformed_responses() -> Vec<(&'static str, FaultyResponse, Expected)> {
    let says = |text: &str| FaultyResponse::Bytes(text.as_bytes().to_vec());
    let many: String = (0..5_000).map(|number| format!("x-{number}: y\r\n")).collect();
    vec![
        ("more is promised than comes", says("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"), LOST),
        ("nothing comes", says(""), LOST),
        ("half a head", says("HTTP/1.1 200 OK\r\ncontent-le"), LOST),
        ("not HTTP", says("SSH-2.0-OpenSSH_9.9\r\n\r\n"), BAD_RESPONSE),
        ("a length that is no number", says("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"), BAD_RESPONSE),
        (
            "two lengths",
            says("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}"),
            BAD_RESPONSE,
        ),
        (
            "pieces of no length",
            says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n"),
            BAD_RESPONSE,
        ),
        (
            "a header without end",
            FaultyResponse::TooLong(b"HTTP/1.1 200 OK\r\nx-long: ".to_vec(), 8 << 20),
            BAD_RESPONSE,
        ),
        ("headers without number", FaultyResponse::response("200 OK", &many, "{}"), BAD_RESPONSE),
        (
            "a response to another request",
            FaultyResponse::response("302 Found", "location: /login\r\n", "<html>"),
            BAD_RESPONSE,
        ),
        ("a code of tomorrow", FaultyResponse::response("777 Odd", "", "{}"), BAD_RESPONSE),
        ("an error of tomorrow", FaultyResponse::response("599 Later", "", "{}"), LOST),
        ("silence", FaultyResponse::Stalls(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_vec()), LATE),
    ]
}

const LATE: Expected = Err(ErrorKind::DeadlineExceeded);

/// Lies about what JSON says.
fn malformed_json() -> Vec<(&'static str, FaultyResponse, Expected)> {
    vec![
        ("nothing at all", FaultyResponse::body(""), BAD_RESPONSE),
        ("half of an object", FaultyResponse::body("{\"id\":"), BAD_RESPONSE),
        ("a page for people", FaultyResponse::body("<html><body>Sign in</body></html>"), BAD_RESPONSE),
        ("a list", FaultyResponse::body("[]"), BAD_RESPONSE),
        ("another object", FaultyResponse::body(r#"{"error":"none"}"#), BAD_RESPONSE),
        (
            "types of another kind",
            FaultyResponse::body(r#"{"_self":1,"id":[],"_rid":{},"partitionKey":3}"#),
            BAD_RESPONSE,
        ),
        ("very deep", FaultyResponse::body("[".repeat(100_000)), BAD_RESPONSE),
        ("not text", FaultyResponse::body([0xff, 0xfe, 0x00, 0x80]), BAD_RESPONSE),
    ]
}

/// Puts a header in, or in the place of another.
fn set_header(head: &mut String, name: &str, value: &str) {
    let others = head.lines().filter(|line| !line.to_lowercase().starts_with(&format!("{name}:")));
    let mut lines: Vec<&str> = others.collect();
    let own = format!("{name}: {value}");
    lines.insert(1, &own);
    lines.retain(|line| !line.is_empty());
    *head = lines.join("\r\n") + "\r\n\r\n";
}

#[tokio::test]
async fn an_invalid_account_response_is_an_error_until_it_is_valid_again() {
    let mut cases = malformed_responses();
    cases.extend(malformed_json());
    cases.extend([
        (
            "no regions",
            FaultyResponse::modified_json(|account| account["readableLocations"] = json!([])),
            BAD_RESPONSE,
        ),
        (
            "fields of tomorrow",
            FaultyResponse::modified_json(|account| account["surprise"] = json!({"deep": [1, {"er": null}]})),
            Ok(()),
        ),
        (
            "a region without an address",
            FaultyResponse::modified_json(|account| {
                let nowhere = json!({"name": WEST, "databaseAccountEndpoint": "not a url"});
                account["readableLocations"][0] = nowhere;
            }),
            Ok(()),
        ),
        (
            "a region twice",
            FaultyResponse::modified_json(|account| {
                let again = account["readableLocations"][0].clone();
                account["readableLocations"].as_array_mut().expect("a list").push(again);
            }),
            Ok(()),
        ),
    ]);
    check(RequestTarget::Account, cases).await;
}

#[tokio::test]
async fn an_invalid_container_response_is_an_error_until_it_is_valid_again() {
    let mut cases = malformed_responses();
    cases.extend(malformed_json());
    cases.extend([
        ("no id", FaultyResponse::modified_json(|container| container["_rid"] = json!("")), BAD_RESPONSE),
        (
            "no partition key",
            FaultyResponse::modified_json(|container| container["partitionKey"]["paths"] = json!([])),
            BAD_RESPONSE,
        ),
        (
            "fields of tomorrow",
            FaultyResponse::modified_json(|container| container["surprise"] = json!([{}])),
            Ok(()),
        ),
    ]);
    check(RequestTarget::Container, cases).await;
}

#[tokio::test]
async fn invalid_partition_ranges_are_an_error_until_they_are_valid_again() {
    let mut cases = malformed_responses();
    cases.extend(malformed_json());
    fn ranges(body: &mut Value) -> &mut Vec<Value> {
        body["PartitionKeyRanges"].as_array_mut().expect("a list")
    }
    cases.extend([
        (
            "a gap",
            FaultyResponse::modified_json(|all| {
                ranges(all).remove(1);
            }),
            LOST,
        ),
        ("no ranges", FaultyResponse::modified_json(|all| ranges(all).clear()), LOST),
        (
            "an end before its beginning",
            FaultyResponse::modified_json(|all| ranges(all)[0]["maxExclusive"] = json!("")),
            LOST,
        ),
        (
            "fields of tomorrow",
            FaultyResponse::modified_json(|all| ranges(all)[0]["surprise"] = json!({"a": 1})),
            Ok(()),
        ),
    ]);
    check(RequestTarget::Ranges, cases).await;
}

#[tokio::test]
async fn an_invalid_item_response_is_an_error_until_it_is_valid_again() {
    let mut cases = malformed_responses();
    cases.extend([
        // What an item is made of is its reader's affair.
        ("not JSON", FaultyResponse::body("<html>"), Ok(())),
        (
            "an invalid session token",
            FaultyResponse::modified(|head, _| {
                set_header(head, "x-ms-session-token", "banana,7:x#y,99:-1#184467440737")
            }),
            Ok(()),
        ),
        (
            "a session without a token",
            FaultyResponse::modified(|head, _| set_header(head, "x-ms-session-token", "")),
            Ok(()),
        ),
        (
            "a price that is no number",
            FaultyResponse::modified(|head, _| set_header(head, "x-ms-request-charge", "NaN")),
            Ok(()),
        ),
        (
            "a price below zero",
            FaultyResponse::modified(|head, _| set_header(head, "x-ms-request-charge", "-1e300")),
            Ok(()),
        ),
        (
            "a sub-status that is no number",
            FaultyResponse::response("404 Not Found", "x-ms-substatus: what\r\n", ""),
            Err(ErrorKind::NotFound),
        ),
        (
            "a sub-status of tomorrow",
            FaultyResponse::response("400 Bad Request", "x-ms-substatus: 4294967295\r\n", ""),
            Err(ErrorKind::BadRequest),
        ),
        (
            "a wait for ever",
            FaultyResponse::response("429 Too Many Requests", "x-ms-retry-after-ms: 99999999999\r\n", ""),
            Err(ErrorKind::Throttled),
        ),
        (
            "a wait below zero",
            FaultyResponse::response("429 Too Many Requests", "x-ms-retry-after-ms: -5\r\n", ""),
            Err(ErrorKind::Throttled),
        ),
    ]);
    check(RequestTarget::Items, cases).await;
}

#[tokio::test]
async fn clocks_that_differ_are_named_as_the_reason() {
    let server = FaultyServer::start().await;
    let error_body =
        r#"{"code":"Forbidden","message":"The authorization token is not valid at the current time."}"#;
    for about in
        [RequestTarget::Account, RequestTarget::Container, RequestTarget::Ranges, RequestTarget::Items]
    {
        let driver = server.driver(DriverOptions::new());
        for (status, date, message) in [
            ("403 Forbidden", "", error_body),
            ("403 Forbidden", "date: Mon, 01 Jan 2024 00:00:00 GMT\r\n", "{}"),
            ("401 Unauthorized", "date: Fri, 01 Jan 2100 00:00:00 GMT\r\n", "{}"),
        ] {
            server.inject(about, FaultyResponse::response(status, date, message));
            let error = driver.execute_operation(&server.test_account.read("a"), &within(TIMEOUT)).await;
            let error = error.expect_err("rejected");
            assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{about:?}: {error}");
            assert!(error.to_string().contains("clock"), "{about:?}: {error}");
        }
    }
}
