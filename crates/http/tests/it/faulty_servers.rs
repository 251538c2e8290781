//! Servers that violate HTTP/1.1 or TLS: the client returns a typed error in time, and never reuses the connection.

use perihelion_http::ErrorKind::{self, Closed, Malformed, TimedOut, Unreachable, Untrusted};
use perihelion_http::trace::{Reuse, Sent, Step};
use perihelion_http::{Client, Error};

use crate::certificates::CertificateAuthority;
use crate::client::{SHORT_TIMEOUT, builder, client, get_traced, host_metrics, totals};
use crate::server::{Action, CutOff, Script, Server, respond, write};

/// The error that a call to a faulty server must end with.
#[derive(Debug)]
struct Expected {
    kinds: &'static [ErrorKind],
    step: Option<Step>,
    sent: Option<Sent>,
}

/// The request was sent completely, and its response fails in this step.
fn fails(kind: &'static [ErrorKind], step: Step) -> Expected {
    Expected { kinds: kind, step: Some(step), sent: Some(Sent::Sent) }
}

#[track_caller]
fn assert_expected(what: &str, error: &Error, expected: &Expected) {
    let Expected { kinds, step, sent } = expected;
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}, not one of {kinds:?}");
    assert!(step.is_none_or(|step| step == error.step()), "{what}: {error:?}, not {step:?}");
    assert!(sent.is_none_or(|sent| sent == error.sent()), "{what}: {error:?}, not {sent:?}");
}

/// Checks that no connection is in use or idle, and that the next request opens a new one.
async fn assert_not_reused(what: &str, client: &Client, url: &str) {
    let metrics = host_metrics(client, url);
    assert_eq!((metrics.active, metrics.idle), (0, 0), "{what}");
    let (trace, response) = get_traced(client, url).await;
    assert!(response.is_ok(), "{what}: then {response:?}");
    assert_eq!(trace.reuse, Some(Reuse::New), "{what}");
}

/// Runs one request against a faulty connection, and another against a correct one.
async fn check(client: &Client, what: &str, script: Vec<Action>, expected: Expected) {
    let server =
        Server::plain(move |number| Script::from(if number == 0 { script.clone() } else { respond(1) }));
    let (trace, response) = get_traced(client, &server.url("/")).await;
    match response {
        Ok(response) => panic!("{what}: {response:?}"),
        Err(error) => {
            assert_expected(what, &error, &expected);
            // The limit of the reader is not reported to the scope, because the request itself did not fail.
            let agree = error.trace().failed_step == trace.failed_step || trace.failed_step.is_none();
            assert!(agree, "{what}: {:?} but {:?}", error.trace().failed_step, trace.failed_step);
        }
    }
    assert_not_reused(what, client, &server.url("/")).await;
}

fn reads_and_writes(text: &str) -> Vec<Action> {
    vec![Action::Read, write(text)]
}

fn reads_and_writes_then(text: &str, then: Action) -> Vec<Action> {
    vec![Action::Read, write(text), then]
}

#[tokio::test]
async fn an_invalid_head_is_malformed() {
    let client = client();
    let cases = [
        ("not HTTP", "hello\r\n\r\n"),
        ("TLS on a plain connection", "\u{16}\u{3}\u{1}\u{2}\u{0}\r\n\r\n"),
        ("another version", "HTTP/3.0 200 OK\r\n\r\n"),
        ("a status that is no number", "HTTP/1.1 abc OK\r\n\r\n"),
        ("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
        ("a header without a colon", "HTTP/1.1 200 OK\r\nheader\r\n\r\n"),
        ("a header with a null", "HTTP/1.1 200 OK\r\na: \0\r\n\r\n"),
        ("a length that is no number", "HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok"),
        ("a length below zero", "HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok"),
        ("a length that overflows", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nok"),
        ("two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"),
    ];
    for (what, text) in cases {
        check(&client, what, reads_and_writes_then(text, Action::Wait), fails(&[Malformed], Step::FirstByte))
            .await;
    }
}

#[tokio::test]
async fn half_a_response_is_closed_or_times_out() {
    let patient = client();
    let hasty =
        builder().first_byte_timeout(SHORT_TIMEOUT).read_timeout(SHORT_TIMEOUT).build().expect("it is valid");
    let cases = [
        ("nothing", "", Step::FirstByte),
        ("half a status line", "HTTP/1.1 2", Step::FirstByte),
        ("half the headers", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", Step::FirstByte),
        ("no body", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", Step::Body),
        ("half the body", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no", Step::Body),
        ("half a chunk's size", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1", Step::Body),
        ("half a chunk", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nok", Step::Body),
        (
            "chunks without an end",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
            Step::Body,
        ),
        ("half the end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", Step::Body),
    ];
    for (what, text, step) in cases {
        check(&patient, what, reads_and_writes(text), fails(&[Closed], step)).await;
        check(&patient, what, reads_and_writes_then(text, Action::Reset), fails(&[Closed], step)).await;
        check(&hasty, what, reads_and_writes_then(text, Action::Wait), fails(&[TimedOut], step)).await;
    }
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// A response that starts with `start`, and then repeats `text` without an end.
fn endless(start: &str, text: &str) -> Vec<Action> {
    vec![Action::Read, write(start), Action::Forever(text.as_bytes().to_vec())]
}

#[tokio::test]
async fn an_endless_response_is_ended_by_a_limit() {
    let (client, many) = (client(), |text: &str| text.repeat(100));
    let cases = [
        ("headers", endless("HTTP/1.1 200 OK\r\n", &many("name: value\r\n")), Step::FirstByte),
        ("one header", endless("HTTP/1.1 200 OK\r\nname: ", &many("value")), Step::FirstByte),
        ("a status line", endless("HTTP/1.1 200 ", &many("OK")), Step::FirstByte),
        ("bytes", endless("", &many("\u{1}")), Step::FirstByte),
        ("a chunk's size", endless(CHUNKED, &many("1")), Step::Body),
        ("a chunk's extension", endless(&format!("{CHUNKED}1;"), &many("x")), Step::Body),
        ("trailers", endless(&format!("{CHUNKED}0\r\n"), &many("a: b\r\n")), Step::Body),
    ];
    for (what, script, step) in cases {
        check(&client, what, script, fails(&[Malformed], step)).await;
    }
}

/// There is always something to read, so a timer that depends on the cooperative budget would never fire.
#[tokio::test]
async fn an_endless_response_without_a_limit_is_ended_by_a_deadline() {
    let client = builder().first_byte_timeout(SHORT_TIMEOUT).build().expect("it is valid");
    let cases = [
        ("line ends", endless("", "\r\n")),
        ("interim responses", endless("", "HTTP/1.1 100 Continue\r\n\r\n")),
    ];
    for (what, script) in cases {
        check(&client, what, script, fails(&[Malformed, TimedOut], Step::FirstByte)).await;
    }
}

#[tokio::test]
async fn an_endless_body_is_ended_by_the_limit_of_the_reader_or_the_call_timeout() {
    let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = || vec![Action::Read, write(chunk), Action::Forever(b"2\r\nok\r\n".repeat(500))];
    // `get` allows a mebibyte.
    check(&client(), "too long", endless(), fails(&[Malformed], Step::Body)).await;
    let slow = || vec![Action::Read, write(chunk), write("2\r\nok\r\n"), Action::Wait];
    let client = builder().call_timeout(Some(SHORT_TIMEOUT * 2)).build().expect("it is valid");
    check(&client, "too slow", slow(), fails(&[TimedOut], Step::Body)).await;
}

#[tokio::test]
async fn a_broken_chunk_is_malformed() {
    let client = client();
    for (what, chunk) in
        [("a size that is none", "xyz\r\n"), ("no end of line after a chunk", "2\r\nokok\r\n")]
    {
        let text = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}");
        let expected = Expected { kinds: &[Malformed], step: Some(Step::Body), sent: Some(Sent::Sent) };
        check(&client, what, reads_and_writes_then(&text, Action::Wait), expected).await;
    }
}

/// The caller gets as much as the content length says. The rest would be taken for the next response, so the
/// connection is closed.
#[tokio::test]
async fn a_body_longer_than_its_content_length_closes_its_connection() {
    let cases = [
        ("longer", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokay"),
        ("another response", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n"),
        ("a body where there is none", "HTTP/1.1 204 No Content\r\n\r\nok"),
        (
            "more than the last chunk",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nmore",
        ),
    ];
    for (what, text) in cases {
        let script = reads_and_writes_then(text, Action::Wait);
        let server =
            Server::plain(move |number| Script::from(if number == 0 { script.clone() } else { respond(1) }));
        let client = client();
        let (_, response) = get_traced(&client, &server.url("/")).await;
        let (status, body) = response.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert!(status.is_success() && (body == b"ok" || body.is_empty()), "{what}: {body:?}");
        let (trace, response) = get_traced(&client, &server.url("/")).await;
        assert!(response.is_ok(), "{what}: then {response:?}");
        assert_eq!(trace.reuse, Some(Reuse::New), "{what}");
        assert_eq!(server.log().accepted, 2, "{what}");
    }
}

#[tokio::test]
async fn a_silent_server_times_out_in_the_step_that_was_reached() {
    let client = builder()
        .first_byte_timeout(SHORT_TIMEOUT)
        .connect_timeout(SHORT_TIMEOUT)
        .build()
        .expect("it is valid");
    check(&client, "no response", vec![Action::Wait], fails(&[TimedOut], Step::FirstByte)).await;
    // With TLS, the handshake is the step that times out.
    let server = Server::plain(|_| Script::from(vec![Action::Wait]));
    let (_, response) = get_traced(&client, &server.url("/").replace("http:", "https:")).await;
    let error = response.expect_err("there is no handshake");
    let expected = Expected { kinds: &[TimedOut], step: Some(Step::Tls), sent: Some(Sent::NotSent) };
    assert_expected("no handshake", &error, &expected);
    server.until("the connection is closed", |log| log.ended == log.accepted).await;
}

#[tokio::test]
async fn a_refused_connection_is_unreachable_and_nothing_was_sent() {
    let address = Server::plain(|_| Script::default()).address();
    let (trace, response) = get_traced(&client(), &format!("http://{address}/")).await;
    let expected = Expected { kinds: &[Unreachable], step: Some(Step::Connect), sent: Some(Sent::NotSent) };
    assert_expected("refused", &response.expect_err("there is no listener"), &expected);
    assert_eq!(trace.sent, Sent::NotSent);
}

/// The server closes the connection after each possible number of bytes.
#[tokio::test]
async fn a_close_at_any_byte_of_a_response_is_an_error() {
    let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let client = client();
    for after in 0..text.len() {
        for reset in [false, true] {
            let script =
                Script { actions: vec![Action::Read, write(text)], cut: Some(CutOff { after, reset }) };
            let server =
                Server::plain(move |number| if number == 0 { script.clone() } else { respond(1).into() });
            let what = format!("after {after}, reset: {reset}");
            let (_, response) = get_traced(&client, &server.url("/")).await;
            let error = response.expect_err(&what);
            assert_expected(
                &what,
                &error,
                &Expected { kinds: &[Closed], step: None, sent: Some(Sent::Sent) },
            );
            assert_not_reused(&what, &client, &server.url("/")).await;
        }
    }
}

/// The server closes the connection before, in the middle of, and after the request.
#[tokio::test]
async fn a_close_at_any_byte_of_a_request_is_never_reported_as_not_sent() {
    let client = client();
    let ends = |read: usize, reset: bool| {
        let mut actions = if read == 0 { Vec::new() } else { vec![Action::ReadBytes(read)] };
        actions.extend(reset.then_some(Action::Reset));
        actions
    };
    for read in 0..40 {
        for reset in [false, true] {
            let server = Server::plain(move |number| {
                Script::from(if number == 0 { ends(read, reset) } else { respond(1) })
            });
            let what = format!("after {read} bytes were read, reset: {reset}");
            let (_, response) = get_traced(&client, &server.url("/")).await;
            let error = response.expect_err(&what);
            assert_expected(
                &what,
                &error,
                &Expected { kinds: &[Closed, Unreachable], step: None, sent: None },
            );
            assert!(read == 0 || error.sent() != Sent::NotSent, "{what}: the server has read it: {error:?}");
            assert_not_reused(&what, &client, &server.url("/")).await;
        }
    }
}

#[tokio::test]
async fn a_close_at_any_byte_of_a_tls_connection_is_an_error() {
    let ca = CertificateAuthority::new();
    let acceptor = ca.server("127.0.0.1", &["http/1.1"]);
    let client = builder().trust_only([ca.root()]).build().expect("it is valid");
    let mut errors = 0;
    for after in (0..).step_by(61) {
        let script = Script { actions: vec![Action::Read, write(crate::server::OK)], cut: None };
        let script = move |number: usize| match number {
            0 => Script { cut: Some(CutOff { after, reset: after % 2 == 0 }), ..script.clone() },
            _ => respond(1).into(),
        };
        let server = Server::tls(acceptor.clone(), script);
        let what = format!("after {after}");
        let (trace, response) = get_traced(&client, &server.url("/")).await;
        let Err(error) = response else { break };
        errors += 1;
        let expected = Expected { kinds: &[Closed, Unreachable], step: None, sent: None };
        assert_expected(&what, &error, &expected);
        let left = server.log().requests.iter().any(|(number, _)| *number == 0);
        assert!(!left || trace.sent != Sent::NotSent, "{what}: the server has read it: {error:?}");
        assert!(
            trace.tls.is_some() || trace.sent == Sent::NotSent,
            "{what}: nothing is sent before the handshake"
        );
        assert_not_reused(&what, &client, &server.url("/")).await;
    }
    assert!(errors > 5, "only {errors} closes were tested");
}

#[tokio::test]
async fn a_server_with_an_invalid_certificate_gets_no_request() {
    let ca = CertificateAuthority::new();
    let client = builder().trust_only([ca.root()]).build().expect("it is valid");
    let cases = [
        ("another name", ca.server("other.example", &[])),
        ("another address", ca.server("127.0.0.2", &[])),
        ("an unknown authority", CertificateAuthority::new().server("127.0.0.1", &[])),
        ("expired", ca.expired_server("127.0.0.1")),
    ];
    for (what, acceptor) in cases {
        let server = Server::tls(acceptor, |_| Script::from(respond(1)));
        let (trace, response) = get_traced(&client, &server.url("/")).await;
        let expected = Expected { kinds: &[Untrusted], step: Some(Step::Tls), sent: Some(Sent::NotSent) };
        assert_expected(what, &response.expect_err(what), &expected);
        assert_eq!(trace.sent, Sent::NotSent, "{what}");
        let log = server.until(what, |log| log.accepted == 1 && log.ended == 1).await;
        assert!(log.requests.is_empty(), "{what}");
        assert_eq!(totals(&client).idle, 0, "{what}");
    }
}

#[tokio::test]
async fn a_server_without_tls_fails_the_handshake() {
    let client = client();
    for text in ["HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n\r\n", "hello"] {
        let server =
            Server::plain(move |_| Script::from(vec![Action::ReadBytes(1), write(text), Action::Wait]));
        let (_, response) = get_traced(&client, &server.url("/").replace("http:", "https:")).await;
        let expected =
            Expected { kinds: &[Malformed, Unreachable], step: Some(Step::Tls), sent: Some(Sent::NotSent) };
        assert_expected(text, &response.expect_err(text), &expected);
    }
}

/// Anyone between the two ends can cut off a connection. Only the `close_notify` of TLS proves that a body without a
/// content length is complete.
#[tokio::test]
async fn a_body_without_a_length_that_ends_without_close_notify_is_an_error() {
    let ca = CertificateAuthority::new();
    let client = builder().trust_only([ca.root()]).build().expect("it is valid");
    let acceptor = ca.server("127.0.0.1", &[]);
    // The end of the script drops the stream: the socket is closed without `close_notify`.
    let server = Server::tls(acceptor, |_| Script::from(reads_and_writes("HTTP/1.1 200 OK\r\n\r\nhalf")));
    let (_, response) = get_traced(&client, &server.url("/")).await;
    let expected = fails(&[Closed], Step::Body);
    assert_expected("cut off", &response.expect_err("it is not complete"), &expected);
}
