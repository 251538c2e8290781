//! HTTP/2 peers that do not behave, frame by frame.

use perihelion_http::ErrorKind::{self, Closed, Malformed, Refused, TimedOut, Unreachable};
use perihelion_http::exchange::{Protocol, Reuse, Sent, Step};
use perihelion_http::{Client, ClientBuilder};

use crate::client::{SOON, builder, observed};
use crate::server::{Act, Cut, Script, Server};

/// `PRI * HTTP/2.0…`, with which every client begins.
const PREFACE_LENGTH: usize = 24;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The first stream a client opens.
const FIRST: u32 = 1;

#[derive(Clone, Copy)]
enum Type {
    Data = 0,
    Headers = 1,
    RstStream = 3,
    Settings = 4,
    Ping = 6,
    GoAway = 7,
    Continuation = 9,
}

fn frame(kind: Type, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames here are short");
    let mut bytes = length.to_be_bytes()[1..].to_vec();
    bytes.extend([kind as u8, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn settings() -> Vec<u8> {
    frame(Type::Settings, 0, 0, &[])
}

/// `:status: 200`, from HPACK's table.
const STATUS_200: &[u8] = &[0x88];
/// `:status: 200` and `content-length: 3`.
const STATUS_200_LENGTH_3: &[u8] = &[0x88, 0x0f, 0x0d, 0x01, b'3'];

fn answer() -> Vec<u8> {
    let mut bytes = frame(Type::Headers, END_HEADERS, FIRST, STATUS_200);
    bytes.extend(frame(Type::Data, END_STREAM, FIRST, b"ok"));
    bytes
}

/// Greets, reads a request, and writes these frames.
fn answers(frames: &[Vec<u8>]) -> Vec<Act> {
    vec![
        Act::ReadBytes(PREFACE_LENGTH),
        Act::Write(settings()),
        Act::ReadHeaders,
        Act::Write(frames.concat()),
    ]
}

fn answers_then(frames: &[Vec<u8>], then: Act) -> Vec<Act> {
    let mut script = answers(frames);
    script.push(then);
    script
}

fn http2() -> ClientBuilder {
    builder().protocol(Protocol::Http2)
}

fn client() -> Client {
    http2().build().expect("it is right")
}

/// One bad connection, then good ones: an error of these kinds, and then a connection of its own.
async fn check(client: &Client, what: &str, script: Vec<Act>, kinds: &[ErrorKind], sent: Option<Sent>) {
    let good = || answers_then(&[answer()], Act::Wait);
    let server = Server::plain(move |number| Script::from(if number == 0 { script.clone() } else { good() }));
    let (record, answer) = observed(client, &server.url("/")).await;
    let error = answer.expect_err(what);
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}, not one of {kinds:?}");
    assert!(sent.is_none_or(|sent| sent == error.sent()), "{what}: {error:?}, not {sent:?}");
    assert_eq!(error.safe_to_repeat(), record.safe_to_repeat(), "{what}: error and record agree");
    let (record, answer) = observed(client, &server.url("/")).await;
    assert!(answer.is_ok(), "{what}: then {answer:?}");
    assert_eq!(record.reuse, Some(Reuse::New), "{what}");
}

#[tokio::test]
async fn a_good_peer_is_answered_so_that_the_bad_ones_mean_something() {
    let server = Server::plain(|_| Script::from(answers_then(&[answer()], Act::Wait)));
    let (record, answer) = observed(&client(), &server.url("/")).await;
    assert_eq!(answer.expect("it is right").1, b"ok");
    assert_eq!((record.protocol, record.sent), (Some(Protocol::Http2), Sent::Sent));
}

#[tokio::test]
async fn garbage_is_an_error_in_time() {
    let client = client();
    let preface =
        |text: &str| vec![Act::ReadBytes(PREFACE_LENGTH), Act::Write(text.as_bytes().to_vec()), Act::Wait];
    let kinds = &[Malformed, Closed, Unreachable];
    check(&client, "text", preface("hello, this is a server of another kind"), kinds, None).await;
    check(&client, "HTTP/1.1", preface("HTTP/1.1 400 Bad Request\r\n\r\n"), kinds, None).await;
    let cases = [
        ("a compressed header that is none", frame(Type::Headers, END_HEADERS, FIRST, &[0x80])),
        ("headers without a status", frame(Type::Headers, END_HEADERS, FIRST, &[])),
        ("a body before its headers", frame(Type::Data, END_STREAM, FIRST, b"ok")),
        ("headers on a stream nobody opened", frame(Type::Headers, END_HEADERS, 7, STATUS_200)),
        ("a continuation of nothing", frame(Type::Continuation, END_HEADERS, FIRST, STATUS_200)),
        ("settings of five bytes", frame(Type::Settings, 0, 0, &[0; 5])),
        ("a reset that is too short", frame(Type::RstStream, 0, FIRST, &[0; 3])),
        ("a frame that is too long", frame(Type::Data, 0, FIRST, &vec![0; 100_000])),
    ];
    for (what, frame) in cases {
        check(&client, what, answers_then(&[frame], Act::Wait), &[Malformed], Some(Sent::Sent)).await;
    }
}

#[tokio::test]
async fn a_body_longer_or_shorter_than_announced_is_malformed() {
    let headers = || frame(Type::Headers, END_HEADERS, FIRST, STATUS_200_LENGTH_3);
    for (what, body) in [("longer", "okay"), ("shorter", "ok"), ("empty", "")] {
        let frames = [headers(), frame(Type::Data, END_STREAM, FIRST, body.as_bytes())];
        let server = Server::plain(move |_| Script::from(answers_then(&frames, Act::Wait)));
        let (_, answer) = observed(&client(), &server.url("/")).await;
        let error = answer.expect_err(what);
        assert_eq!((error.kind(), error.step()), (Malformed, Step::Body), "{what}: {error:?}");
    }
}

#[tokio::test]
async fn a_request_the_peer_did_not_look_at_is_safe_to_repeat_and_others_are_not() {
    let reset = |code: u32| frame(Type::RstStream, 0, FIRST, &code.to_be_bytes());
    let go_away = |last: u32| {
        let mut payload = last.to_be_bytes().to_vec();
        payload.extend(0_u32.to_be_bytes());
        frame(Type::GoAway, 0, 0, &payload)
    };
    let cases = [
        ("refused", reset(7), Refused, true),
        ("left out of a goodbye", go_away(0), Refused, true),
        ("cancelled", reset(8), Closed, false),
        ("an error inside", reset(2), Closed, false),
    ];
    for (what, frame, kind, safe) in cases {
        let server =
            Server::plain(move |_| Script::from(answers_then(std::slice::from_ref(&frame), Act::Wait)));
        let (_, answer) = observed(&client(), &server.url("/")).await;
        let error = answer.expect_err(what);
        assert_eq!((error.kind(), error.safe_to_repeat()), (kind, safe), "{what}: {error:?}");
    }
    // A goodbye that counts it in lets it end.
    let frames = [go_away(FIRST), answer()];
    let server = Server::plain(move |number| {
        let frames = if number == 0 { frames.to_vec() } else { vec![answer()] };
        Script::from(answers_then(&frames, Act::Wait))
    });
    let client = client();
    let (_, answer) = observed(&client, &server.url("/")).await;
    assert!(answer.is_ok(), "{answer:?}");
    let (record, answer) = observed(&client, &server.url("/")).await;
    assert!(answer.is_ok(), "{answer:?}");
    assert_eq!(record.reuse, Some(Reuse::New), "a goodbye is a goodbye");
}

#[tokio::test]
async fn what_never_ends_is_ended_by_a_limit_or_a_deadline() {
    let client = http2().first_byte_timeout(SOON * 2).build().expect("it is right");
    let headers = frame(Type::Headers, 0, FIRST, STATUS_200);
    // `x: y`, without a place in the table, many times.
    let more = frame(Type::Continuation, 0, FIRST, &[0, 1, b'x', 1, b'y'].repeat(1_000));
    let cases = [
        ("headers", answers_then(&[headers], Act::Forever(more)), &[Malformed, Closed, TimedOut][..]),
        (
            "pings",
            answers_then(&[], Act::Forever(frame(Type::Ping, 0, 0, &[0; 8]))),
            &[Malformed, Closed, TimedOut],
        ),
        ("settings", answers_then(&[], Act::Forever(settings())), &[Malformed, Closed, TimedOut]),
    ];
    for (what, script, kinds) in cases {
        check(&client, what, script, kinds, Some(Sent::Sent)).await;
    }
}

/// Nothing came since the request left: whoever is there, nobody should wait for it again.
#[tokio::test]
async fn a_peer_that_says_nothing_times_out_and_is_left() {
    let client = http2().first_byte_timeout(SOON).connect_timeout(SOON).build().expect("it is right");
    check(&client, "nothing at all", vec![Act::Wait], &[TimedOut], None).await;
    check(&client, "a greeting alone", answers_then(&[], Act::Wait), &[TimedOut], Some(Sent::Sent)).await;
}

#[tokio::test]
async fn an_end_at_every_byte_of_an_answer_is_an_error_that_says_so() {
    let client = client();
    let length = settings().len() + answer().len();
    for after in 0..length {
        for reset in [false, true] {
            let bad = Script { acts: answers(&[answer()]), cut: Some(Cut { after, reset }) };
            let good = Script::from(answers_then(&[answer()], Act::Wait));
            let server = Server::plain(move |number| if number == 0 { bad.clone() } else { good.clone() });
            let what = format!("after {after}, reset: {reset}");
            let (record, answer) = observed(&client, &server.url("/")).await;
            let error = answer.expect_err(&what);
            assert!([Closed, Unreachable].contains(&error.kind()), "{what}: {error:?}");
            let read = server.seen().requests.iter().any(|(number, _)| *number == 0);
            assert!(!read || record.sent != Sent::NotSent, "{what}: the server has read it: {error:?}");
            let (record, answer) = observed(&client, &server.url("/")).await;
            assert!(answer.is_ok(), "{what}: then {answer:?}");
            assert_eq!(record.reuse, Some(Reuse::New), "{what}");
        }
    }
}
