//! Peers that lie: about lengths, in fields, codes and headers, in what is JSON and what is not, about the time.
//!
//! Whatever they say, the caller hears an error of a kind, within the deadline; and when they tell the truth
//! again, so does the driver, without being made anew.

use std::time::Duration;

use perihelion_driver::ErrorKind;
use perihelion_driver::options::{DriverOptions, OperationOptions, RetryOptions};
use serde_json::{Value, json};

use crate::lab::{WEST, body, run, within};
use crate::liar::{About, Liar, Lie};

/// Long enough for any answer, short enough to wait for.
const PATIENCE: Duration = Duration::from_secs(3);
/// What is allowed beyond it is the machine's, not the driver's.
const SLACK: Duration = Duration::from_secs(3);

/// What becomes of a read while somebody lies.
type Heard = Result<(), ErrorKind>;

const NONSENSE: Heard = Err(ErrorKind::BadResponse);
const LOST: Heard = Err(ErrorKind::Unavailable);

/// Options of a driver that tries again once, so that it is over before the deadline unless that is the point.
fn impatient() -> DriverOptions {
    let retry = RetryOptions::new().with_failover_retries_max(1).with_connection_retries_max(1);
    DriverOptions::new().with_operation(OperationOptions::new().with_retry(retry))
}

/// Lies while a driver that knows nothing reads an item; then tells the truth.
async fn check(about: About, cases: Vec<(&str, Lie, Heard)>) {
    let liar = Liar::start().await;
    run(&liar.lab.driver(), &liar.lab.upsert("a", 7)).await.expect("written");
    for (name, lie, expected) in cases {
        let driver = liar.driver(impatient());
        liar.lie(about, lie);
        #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
        let started = tokio::time::Instant::now();
        let result = driver.execute_operation(&liar.lab.read("a"), &within(PATIENCE)).await;
        assert!(started.elapsed() < PATIENCE + SLACK, "{about:?}, {name}: {:?}", started.elapsed());
        match (&result, expected) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(kind)) => assert_eq!(error.kind(), kind, "{about:?}, {name}: {error}"),
            _ => panic!("{about:?}, {name}: {result:?}"),
        }
        liar.tell_the_truth();
        let read = run(&driver, &liar.lab.read("a")).await;
        let read = read.unwrap_or_else(|error| panic!("{about:?}, {name}: does not recover: {error}"));
        assert_eq!(body(&read)["value"], 7, "{about:?}, {name}");
        assert_eq!((driver.in_flight(), driver.open_hedges()), (0, 0), "{about:?}, {name}");
    }
}

/// Lies that are not about what is said but about how.
fn lies_of_form() -> Vec<(&'static str, Lie, Heard)> {
    let says = |text: &str| Lie::Says(text.as_bytes().to_vec());
    let many: String = (0..5_000).map(|number| format!("x-{number}: y\r\n")).collect();
    vec![
        ("more is promised than comes", says("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"), LOST),
        ("nothing comes", says(""), LOST),
        ("half a head", says("HTTP/1.1 200 OK\r\ncontent-le"), LOST),
        ("not HTTP", says("SSH-2.0-OpenSSH_9.9\r\n\r\n"), NONSENSE),
        ("a length that is no number", says("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n"), NONSENSE),
        (
            "two lengths",
            says("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}"),
            NONSENSE,
        ),
        (
            "pieces of no length",
            says("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n"),
            NONSENSE,
        ),
        ("a header without end", Lie::Rambles(b"HTTP/1.1 200 OK\r\nx-long: ".to_vec(), 8 << 20), NONSENSE),
        ("headers without number", Lie::answer("200 OK", &many, "{}"), NONSENSE),
        (
            "an answer to another question",
            Lie::answer("302 Found", "location: /login\r\n", "<html>"),
            NONSENSE,
        ),
        ("a code of tomorrow", Lie::answer("777 Odd", "", "{}"), NONSENSE),
        ("an error of tomorrow", Lie::answer("599 Later", "", "{}"), LOST),
        ("silence", Lie::FallsSilent(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n".to_vec()), LATE),
    ]
}

const LATE: Heard = Err(ErrorKind::DeadlineExceeded);

/// Lies about what JSON says.
fn lies_of_json() -> Vec<(&'static str, Lie, Heard)> {
    vec![
        ("nothing at all", Lie::body(""), NONSENSE),
        ("half of an object", Lie::body("{\"id\":"), NONSENSE),
        ("a page for people", Lie::body("<html><body>Sign in</body></html>"), NONSENSE),
        ("a list", Lie::body("[]"), NONSENSE),
        ("another object", Lie::body(r#"{"error":"none"}"#), NONSENSE),
        ("types of another kind", Lie::body(r#"{"_self":1,"id":[],"_rid":{},"partitionKey":3}"#), NONSENSE),
        ("very deep", Lie::body("[".repeat(100_000)), NONSENSE),
        ("not text", Lie::body([0xff, 0xfe, 0x00, 0x80]), NONSENSE),
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
async fn an_account_that_lies_is_an_error_in_time_and_is_believed_again_afterwards() {
    let mut cases = lies_of_form();
    cases.extend(lies_of_json());
    cases.extend([
        ("no regions", Lie::twisted_json(|account| account["readableLocations"] = json!([])), NONSENSE),
        (
            "fields of tomorrow",
            Lie::twisted_json(|account| account["surprise"] = json!({"deep": [1, {"er": null}]})),
            Ok(()),
        ),
        (
            "a region without an address",
            Lie::twisted_json(|account| {
                let nowhere = json!({"name": WEST, "databaseAccountEndpoint": "not a url"});
                account["readableLocations"][0] = nowhere;
            }),
            Ok(()),
        ),
        (
            "a region twice",
            Lie::twisted_json(|account| {
                let again = account["readableLocations"][0].clone();
                account["readableLocations"].as_array_mut().expect("a list").push(again);
            }),
            Ok(()),
        ),
    ]);
    check(About::Account, cases).await;
}

#[tokio::test]
async fn a_container_that_lies_is_an_error_in_time_and_is_believed_again_afterwards() {
    let mut cases = lies_of_form();
    cases.extend(lies_of_json());
    cases.extend([
        ("no id", Lie::twisted_json(|container| container["_rid"] = json!("")), NONSENSE),
        (
            "no partition key",
            Lie::twisted_json(|container| container["partitionKey"]["paths"] = json!([])),
            NONSENSE,
        ),
        ("fields of tomorrow", Lie::twisted_json(|container| container["surprise"] = json!([{}])), Ok(())),
    ]);
    check(About::Container, cases).await;
}

#[tokio::test]
async fn ranges_that_lie_are_an_error_in_time_and_are_believed_again_afterwards() {
    let mut cases = lies_of_form();
    cases.extend(lies_of_json());
    fn ranges(body: &mut Value) -> &mut Vec<Value> {
        body["PartitionKeyRanges"].as_array_mut().expect("a list")
    }
    cases.extend([
        (
            "a gap",
            Lie::twisted_json(|all| {
                ranges(all).remove(1);
            }),
            LOST,
        ),
        ("no ranges", Lie::twisted_json(|all| ranges(all).clear()), LOST),
        (
            "an end before its beginning",
            Lie::twisted_json(|all| ranges(all)[0]["maxExclusive"] = json!("")),
            LOST,
        ),
        ("fields of tomorrow", Lie::twisted_json(|all| ranges(all)[0]["surprise"] = json!({"a": 1})), Ok(())),
    ]);
    check(About::Ranges, cases).await;
}

#[tokio::test]
async fn items_that_lie_are_an_error_in_time_and_are_believed_again_afterwards() {
    let mut cases = lies_of_form();
    cases.extend([
        // What an item is made of is its reader's affair.
        ("not JSON", Lie::body("<html>"), Ok(())),
        (
            "a session of nobody",
            Lie::twisted(|head, _| set_header(head, "x-ms-session-token", "banana,7:x#y,99:-1#184467440737")),
            Ok(()),
        ),
        (
            "a session without a token",
            Lie::twisted(|head, _| set_header(head, "x-ms-session-token", "")),
            Ok(()),
        ),
        (
            "a price that is no number",
            Lie::twisted(|head, _| set_header(head, "x-ms-request-charge", "NaN")),
            Ok(()),
        ),
        (
            "a price below zero",
            Lie::twisted(|head, _| set_header(head, "x-ms-request-charge", "-1e300")),
            Ok(()),
        ),
        (
            "a sub-status that is no number",
            Lie::answer("404 Not Found", "x-ms-substatus: what\r\n", ""),
            Err(ErrorKind::NotFound),
        ),
        (
            "a sub-status of tomorrow",
            Lie::answer("400 Bad Request", "x-ms-substatus: 4294967295\r\n", ""),
            Err(ErrorKind::BadRequest),
        ),
        (
            "a wait for ever",
            Lie::answer("429 Too Many Requests", "x-ms-retry-after-ms: 99999999999\r\n", ""),
            Err(ErrorKind::Throttled),
        ),
        (
            "a wait below zero",
            Lie::answer("429 Too Many Requests", "x-ms-retry-after-ms: -5\r\n", ""),
            Err(ErrorKind::Throttled),
        ),
    ]);
    check(About::Items, cases).await;
}

#[tokio::test]
async fn clocks_that_differ_are_named_as_the_reason() {
    let liar = Liar::start().await;
    let refusal =
        r#"{"code":"Forbidden","message":"The authorization token is not valid at the current time."}"#;
    for about in [About::Account, About::Container, About::Ranges, About::Items] {
        let driver = liar.driver(DriverOptions::new());
        for (status, date, message) in [
            ("403 Forbidden", "", refusal),
            ("403 Forbidden", "date: Mon, 01 Jan 2024 00:00:00 GMT\r\n", "{}"),
            ("401 Unauthorized", "date: Fri, 01 Jan 2100 00:00:00 GMT\r\n", "{}"),
        ] {
            liar.lie(about, Lie::answer(status, date, message));
            let error = driver.execute_operation(&liar.lab.read("a"), &within(PATIENCE)).await;
            let error = error.expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{about:?}: {error}");
            assert!(error.to_string().contains("clock"), "{about:?}: {error}");
        }
    }
}
