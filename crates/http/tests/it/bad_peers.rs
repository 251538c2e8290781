//! Peers that do not behave: a typed error in time, and never the same connection again.

use perihelion_http::ErrorKind::{self, Closed, Malformed, TimedOut, Unreachable, Untrusted};
use perihelion_http::exchange::{Reuse, Sent, Step};
use perihelion_http::{Client, Error};

use crate::certificates::Authority;
use crate::client::{SOON, builder, client, observed, of_host, totals};
use crate::server::{Act, Cut, Script, Server, well, write};

/// What a call to a bad peer must end with.
#[derive(Debug)]
struct Expected {
    kinds: &'static [ErrorKind],
    step: Option<Step>,
    sent: Option<Sent>,
}

/// The request has left in full, and its answer fails in this step.
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

/// Nothing is in use, nothing waits, and the next request gets a connection of its own.
async fn assert_not_reused(what: &str, client: &Client, url: &str) {
    let metrics = of_host(client, url);
    assert_eq!((metrics.active, metrics.idle), (0, 0), "{what}");
    let (record, answer) = observed(client, url).await;
    assert!(answer.is_ok(), "{what}: then {answer:?}");
    assert_eq!(record.reuse, Some(Reuse::New), "{what}");
}

/// One bad connection, then good ones.
async fn check(client: &Client, what: &str, script: Vec<Act>, expected: Expected) {
    let server =
        Server::plain(move |number| Script::from(if number == 0 { script.clone() } else { well(1) }));
    let (record, answer) = observed(client, &server.url("/")).await;
    match answer {
        Ok(answer) => panic!("{what}: {answer:?}"),
        Err(error) => {
            assert_expected(what, &error, &expected);
            // The reader's own limit is no failure of the exchange.
            let agree = error.exchange().failed == record.failed || record.failed.is_none();
            assert!(agree, "{what}: {:?} but {:?}", error.exchange().failed, record.failed);
        }
    }
    assert_not_reused(what, client, &server.url("/")).await;
}

fn reads_and_writes(text: &str) -> Vec<Act> {
    vec![Act::Read, write(text)]
}

fn reads_and_writes_then(text: &str, then: Act) -> Vec<Act> {
    vec![Act::Read, write(text), then]
}

#[tokio::test]
async fn garbage_is_malformed() {
    let client = client();
    let cases = [
        ("not HTTP", "hello\r\n\r\n"),
        ("TLS where none was asked for", "\u{16}\u{3}\u{1}\u{2}\u{0}\r\n\r\n"),
        ("another version", "HTTP/3.0 200 OK\r\n\r\n"),
        ("a status that is no number", "HTTP/1.1 abc OK\r\n\r\n"),
        ("a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n"),
        ("a header without a colon", "HTTP/1.1 200 OK\r\nheader\r\n\r\n"),
        ("a header with a null", "HTTP/1.1 200 OK\r\na: \0\r\n\r\n"),
        ("a length that is no number", "HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok"),
        ("a length below zero", "HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok"),
        ("a length beyond all numbers", "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\nok"),
        ("two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok"),
    ];
    for (what, text) in cases {
        check(&client, what, reads_and_writes_then(text, Act::Wait), fails(&[Malformed], Step::FirstByte))
            .await;
    }
}

#[tokio::test]
async fn half_a_response_is_closed_or_times_out() {
    let patient = client();
    let hasty = builder().first_byte_timeout(SOON).silence_timeout(SOON).build().expect("it is right");
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
        check(&patient, what, reads_and_writes_then(text, Act::Reset), fails(&[Closed], step)).await;
        check(&hasty, what, reads_and_writes_then(text, Act::Wait), fails(&[TimedOut], step)).await;
    }
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// Starts an answer, and never comes to its end.
fn endless(start: &str, text: &str) -> Vec<Act> {
    vec![Act::Read, write(start), Act::Forever(text.as_bytes().to_vec())]
}

#[tokio::test]
async fn what_never_ends_is_ended_by_a_limit() {
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

/// There is always something to read, so that a timer which waits for its turn would never ring.
#[tokio::test]
async fn what_has_no_limit_is_ended_by_a_deadline() {
    let client = builder().first_byte_timeout(SOON).build().expect("it is right");
    let cases = [
        ("line ends", endless("", "\r\n")),
        ("interim responses", endless("", "HTTP/1.1 100 Continue\r\n\r\n")),
    ];
    for (what, script) in cases {
        check(&client, what, script, fails(&[Malformed, TimedOut], Step::FirstByte)).await;
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_ended_by_the_reader_or_the_call_s_deadline() {
    let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let endless = || vec![Act::Read, write(chunk), Act::Forever(b"2\r\nok\r\n".repeat(500))];
    // `get` allows a mebibyte.
    check(&client(), "too long", endless(), fails(&[Malformed], Step::Body)).await;
    let slow = || vec![Act::Read, write(chunk), write("2\r\nok\r\n"), Act::Wait];
    let client = builder().call_timeout(Some(SOON * 2)).build().expect("it is right");
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
        check(&client, what, reads_and_writes_then(&text, Act::Wait), expected).await;
    }
}

/// What was announced is what the caller gets. Where the rest begins nobody can tell, so the connection ends.
#[tokio::test]
async fn a_body_longer_than_announced_ends_its_connection() {
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
        let script = reads_and_writes_then(text, Act::Wait);
        let server =
            Server::plain(move |number| Script::from(if number == 0 { script.clone() } else { well(1) }));
        let client = client();
        let (_, answer) = observed(&client, &server.url("/")).await;
        let (status, body) = answer.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        assert!(status.is_success() && (body == b"ok" || body.is_empty()), "{what}: {body:?}");
        let (record, answer) = observed(&client, &server.url("/")).await;
        assert!(answer.is_ok(), "{what}: then {answer:?}");
        assert_eq!(record.reuse, Some(Reuse::New), "{what}");
        assert_eq!(server.seen().accepted, 2, "{what}");
    }
}

#[tokio::test]
async fn a_peer_that_says_nothing_at_all_times_out_in_the_step_it_reached() {
    let client = builder().first_byte_timeout(SOON).connect_timeout(SOON).build().expect("it is right");
    check(&client, "no answer", vec![Act::Wait], fails(&[TimedOut], Step::FirstByte)).await;
    // The same peer, spoken to by TLS: the silence is in the handshake.
    let server = Server::plain(|_| Script::from(vec![Act::Wait]));
    let (_, answer) = observed(&client, &server.url("/").replace("http:", "https:")).await;
    let error = answer.expect_err("there is no handshake");
    let expected = Expected { kinds: &[TimedOut], step: Some(Step::Tls), sent: Some(Sent::NotSent) };
    assert_expected("no handshake", &error, &expected);
    server.until("the connection is closed", |seen| seen.ended == seen.accepted).await;
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_nothing_was_sent() {
    let address = Server::plain(|_| Script::default()).address();
    let (record, answer) = observed(&client(), &format!("http://{address}/")).await;
    let expected = Expected { kinds: &[Unreachable], step: Some(Step::Connect), sent: Some(Sent::NotSent) };
    assert_expected("nobody", &answer.expect_err("nobody listens"), &expected);
    assert_eq!(record.sent, Sent::NotSent);
}

/// Whatever the server manages to send before it ends the connection.
#[tokio::test]
async fn an_end_at_every_byte_of_a_response_is_an_error_that_says_so() {
    let text = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let client = client();
    for after in 0..text.len() {
        for reset in [false, true] {
            let script = Script { acts: vec![Act::Read, write(text)], cut: Some(Cut { after, reset }) };
            let server =
                Server::plain(move |number| if number == 0 { script.clone() } else { well(1).into() });
            let what = format!("after {after}, reset: {reset}");
            let (_, answer) = observed(&client, &server.url("/")).await;
            let error = answer.expect_err(&what);
            assert_expected(
                &what,
                &error,
                &Expected { kinds: &[Closed], step: None, sent: Some(Sent::Sent) },
            );
            assert_not_reused(&what, &client, &server.url("/")).await;
        }
    }
}

/// Before, in the middle of, and after the request.
#[tokio::test]
async fn an_end_at_every_byte_of_a_request_is_an_error_and_never_a_false_not_sent() {
    let client = client();
    let ends = |read: usize, reset: bool| {
        let mut acts = if read == 0 { Vec::new() } else { vec![Act::ReadBytes(read)] };
        acts.extend(reset.then_some(Act::Reset));
        acts
    };
    for read in 0..40 {
        for reset in [false, true] {
            let server = Server::plain(move |number| {
                Script::from(if number == 0 { ends(read, reset) } else { well(1) })
            });
            let what = format!("after {read} bytes were read, reset: {reset}");
            let (_, answer) = observed(&client, &server.url("/")).await;
            let error = answer.expect_err(&what);
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
async fn an_end_anywhere_in_a_tls_connection_is_an_error_that_says_so() {
    let authority = Authority::new();
    let acceptor = authority.server("127.0.0.1", &["http/1.1"]);
    let client = builder().trust_only([authority.root()]).build().expect("it is right");
    let mut errors = 0;
    for after in (0..).step_by(61) {
        let script = Script { acts: vec![Act::Read, write(crate::server::OK)], cut: None };
        let script = move |number: usize| match number {
            0 => Script { cut: Some(Cut { after, reset: after % 2 == 0 }), ..script.clone() },
            _ => well(1).into(),
        };
        let server = Server::tls(acceptor.clone(), script);
        let what = format!("after {after}");
        let (record, answer) = observed(&client, &server.url("/")).await;
        let Err(error) = answer else { break };
        errors += 1;
        let expected = Expected { kinds: &[Closed, Unreachable], step: None, sent: None };
        assert_expected(&what, &error, &expected);
        let left = server.seen().requests.iter().any(|(number, _)| *number == 0);
        assert!(!left || record.sent != Sent::NotSent, "{what}: the server has read it: {error:?}");
        assert!(record.tls.is_some() || record.sent == Sent::NotSent, "{what}: nothing leaves before TLS");
        assert_not_reused(&what, &client, &server.url("/")).await;
    }
    assert!(errors > 5, "there are more than {errors} places to end it");
}

#[tokio::test]
async fn a_peer_that_cannot_prove_who_it_is_gets_no_request() {
    let authority = Authority::new();
    let client = builder().trust_only([authority.root()]).build().expect("it is right");
    let cases = [
        ("another name", authority.server("other.example", &[])),
        ("another address", authority.server("127.0.0.2", &[])),
        ("nobody's signature", Authority::new().server("127.0.0.1", &[])),
        ("expired", authority.expired_server("127.0.0.1")),
    ];
    for (what, acceptor) in cases {
        let server = Server::tls(acceptor, |_| Script::from(well(1)));
        let (record, answer) = observed(&client, &server.url("/")).await;
        let expected = Expected { kinds: &[Untrusted], step: Some(Step::Tls), sent: Some(Sent::NotSent) };
        assert_expected(what, &answer.expect_err(what), &expected);
        assert_eq!(record.sent, Sent::NotSent, "{what}");
        let seen = server.until(what, |seen| seen.accepted == 1 && seen.ended == 1).await;
        assert!(seen.requests.is_empty(), "{what}");
        assert_eq!(totals(&client).idle, 0, "{what}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_no_answer_to_a_handshake() {
    let client = client();
    for text in ["HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n\r\n", "hello"] {
        let server = Server::plain(move |_| Script::from(vec![Act::ReadBytes(1), write(text), Act::Wait]));
        let (_, answer) = observed(&client, &server.url("/").replace("http:", "https:")).await;
        let expected =
            Expected { kinds: &[Malformed, Unreachable], step: Some(Step::Tls), sent: Some(Sent::NotSent) };
        assert_expected(text, &answer.expect_err(text), &expected);
    }
}

/// Whoever is on the way can cut a connection. Only TLS's own goodbye proves that a body without an announced
/// length is complete.
#[tokio::test]
async fn a_body_without_a_length_that_is_cut_off_is_not_complete() {
    let authority = Authority::new();
    let client = builder().trust_only([authority.root()]).build().expect("it is right");
    let acceptor = authority.server("127.0.0.1", &[]);
    // The script's end drops the stream: the socket is closed, and TLS says nothing.
    let server = Server::tls(acceptor, |_| Script::from(reads_and_writes("HTTP/1.1 200 OK\r\n\r\nhalf")));
    let (_, answer) = observed(&client, &server.url("/")).await;
    let expected = fails(&[Closed], Step::Body);
    assert_expected("cut off", &answer.expect_err("it is not complete"), &expected);
}
