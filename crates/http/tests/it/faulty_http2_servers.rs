//! Servers that violate HTTP/2, frame by frame.

use perihelion_http::ErrorKind::{self, Closed, Malformed, Refused, TimedOut, Unreachable};
use perihelion_http::trace::{Protocol, Reuse, Sent, Step};
use perihelion_http::{Client, ClientBuilder};

use crate::client::{SHORT_TIMEOUT, builder, get_traced};
use crate::server::{Action, CutOff, Script, Server};

/// The length of `PRI * HTTP/2.0…`, which every client sends first.
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

fn response_frames() -> Vec<u8> {
    let mut bytes = frame(Type::Headers, END_HEADERS, FIRST, STATUS_200);
    bytes.extend(frame(Type::Data, END_STREAM, FIRST, b"ok"));
    bytes
}

/// Sends SETTINGS, reads a request, and writes these frames.
fn respond_with(frames: &[Vec<u8>]) -> Vec<Action> {
    vec![
        Action::ReadBytes(PREFACE_LENGTH),
        Action::Write(settings()),
        Action::ReadHeaders,
        Action::Write(frames.concat()),
    ]
}

fn respond_then(frames: &[Vec<u8>], then: Action) -> Vec<Action> {
    let mut script = respond_with(frames);
    script.push(then);
    script
}

fn http2() -> ClientBuilder {
    builder().protocol(Protocol::Http2)
}

fn client() -> Client {
    http2().build().expect("it is valid")
}

/// Runs one request against a faulty connection, which must fail with one of these kinds, and another that must open a
/// new connection.
async fn check(client: &Client, what: &str, script: Vec<Action>, kinds: &[ErrorKind], sent: Option<Sent>) {
    let good = || respond_then(&[response_frames()], Action::Wait);
    let server = Server::plain(move |number| Script::from(if number == 0 { script.clone() } else { good() }));
    let (trace, response) = get_traced(client, &server.url("/")).await;
    let error = response.expect_err(what);
    assert!(kinds.contains(&error.kind()), "{what}: {error:?}, not one of {kinds:?}");
    assert!(sent.is_none_or(|sent| sent == error.sent()), "{what}: {error:?}, not {sent:?}");
    assert_eq!(error.safe_to_repeat(), trace.safe_to_repeat(), "{what}: error and trace agree");
    let (trace, response) = get_traced(client, &server.url("/")).await;
    assert!(response.is_ok(), "{what}: then {response:?}");
    assert_eq!(trace.reuse, Some(Reuse::New), "{what}");
}

#[tokio::test]
async fn the_scripted_server_works_without_a_fault() {
    let server = Server::plain(|_| Script::from(respond_then(&[response_frames()], Action::Wait)));
    let (trace, response) = get_traced(&client(), &server.url("/")).await;
    assert_eq!(response.expect("it is valid").1, b"ok");
    assert_eq!((trace.protocol, trace.sent), (Some(Protocol::Http2), Sent::Sent));
}

#[tokio::test]
async fn invalid_frames_are_an_error_in_time() {
    let client = client();
    let preface = |text: &str| {
        vec![Action::ReadBytes(PREFACE_LENGTH), Action::Write(text.as_bytes().to_vec()), Action::Wait]
    };
    let kinds = &[Malformed, Closed, Unreachable];
    check(&client, "text", preface("hello, this is a server of another kind"), kinds, None).await;
    check(&client, "HTTP/1.1", preface("HTTP/1.1 400 Bad Request\r\n\r\n"), kinds, None).await;
    let cases = [
        ("an invalid HPACK header", frame(Type::Headers, END_HEADERS, FIRST, &[0x80])),
        ("headers without a status", frame(Type::Headers, END_HEADERS, FIRST, &[])),
        ("a body before its headers", frame(Type::Data, END_STREAM, FIRST, b"ok")),
        ("headers on a stream that was not opened", frame(Type::Headers, END_HEADERS, 7, STATUS_200)),
        ("a continuation of nothing", frame(Type::Continuation, END_HEADERS, FIRST, STATUS_200)),
        ("settings of five bytes", frame(Type::Settings, 0, 0, &[0; 5])),
        ("a reset that is too short", frame(Type::RstStream, 0, FIRST, &[0; 3])),
        ("a frame that is too long", frame(Type::Data, 0, FIRST, &vec![0; 100_000])),
    ];
    for (what, frame) in cases {
        check(&client, what, respond_then(&[frame], Action::Wait), &[Malformed], Some(Sent::Sent)).await;
    }
}

#[tokio::test]
async fn a_body_that_differs_from_its_content_length_is_malformed() {
    let headers = || frame(Type::Headers, END_HEADERS, FIRST, STATUS_200_LENGTH_3);
    for (what, body) in [("longer", "okay"), ("shorter", "ok"), ("empty", "")] {
        let frames = [headers(), frame(Type::Data, END_STREAM, FIRST, body.as_bytes())];
        let server = Server::plain(move |_| Script::from(respond_then(&frames, Action::Wait)));
        let (_, response) = get_traced(&client(), &server.url("/")).await;
        let error = response.expect_err(what);
        assert_eq!((error.kind(), error.step()), (Malformed, Step::Body), "{what}: {error:?}");
    }
}

#[tokio::test]
async fn only_a_refused_request_is_safe_to_repeat() {
    let reset = |code: u32| frame(Type::RstStream, 0, FIRST, &code.to_be_bytes());
    let go_away = |last: u32| {
        let mut payload = last.to_be_bytes().to_vec();
        payload.extend(0_u32.to_be_bytes());
        frame(Type::GoAway, 0, 0, &payload)
    };
    let head = || frame(Type::Headers, END_HEADERS, FIRST, STATUS_200);
    let cases = [
        ("refused", reset(7), Refused, true),
        ("above the last stream id of a GOAWAY", go_away(0), Refused, true),
        ("cancelled", reset(8), Closed, false),
        ("an error inside", reset(2), Closed, false),
        ("refused after its response has begun", [head(), reset(7)].concat(), Closed, false),
        ("above the last stream id, but responded to", [head(), go_away(0)].concat(), Closed, false),
    ];
    for (what, frame, kind, safe) in cases {
        let server =
            Server::plain(move |_| Script::from(respond_then(std::slice::from_ref(&frame), Action::Wait)));
        let (_, response) = get_traced(&client(), &server.url("/")).await;
        let error = response.expect_err(what);
        assert_eq!((error.kind(), error.safe_to_repeat()), (kind, safe), "{what}: {error:?}");
    }
    // A GOAWAY with its stream id lets the request complete.
    let frames = [go_away(FIRST), response_frames()];
    let server = Server::plain(move |number| {
        let frames = if number == 0 { frames.to_vec() } else { vec![response_frames()] };
        Script::from(respond_then(&frames, Action::Wait))
    });
    let client = client();
    let (_, response) = get_traced(&client, &server.url("/")).await;
    assert!(response.is_ok(), "{response:?}");
    let (trace, response) = get_traced(&client, &server.url("/")).await;
    assert!(response.is_ok(), "{response:?}");
    assert_eq!(trace.reuse, Some(Reuse::New), "the connection is not reused after a GOAWAY");
}

#[tokio::test]
async fn an_endless_response_is_ended_by_a_limit_or_a_deadline() {
    let client = http2().first_byte_timeout(SHORT_TIMEOUT * 2).build().expect("it is valid");
    let headers = frame(Type::Headers, 0, FIRST, STATUS_200);
    // `x: y` as a literal that is not indexed, many times.
    let more = frame(Type::Continuation, 0, FIRST, &[0, 1, b'x', 1, b'y'].repeat(1_000));
    let cases = [
        ("headers", respond_then(&[headers], Action::Forever(more)), &[Malformed, Closed, TimedOut][..]),
        (
            "pings",
            respond_then(&[], Action::Forever(frame(Type::Ping, 0, 0, &[0; 8]))),
            &[Malformed, Closed, TimedOut],
        ),
        ("settings", respond_then(&[], Action::Forever(settings())), &[Malformed, Closed, TimedOut]),
    ];
    for (what, script, kinds) in cases {
        check(&client, what, script, kinds, Some(Sent::Sent)).await;
    }
}

/// The server sent nothing since the request was sent, so no other request should use the connection.
#[tokio::test]
async fn a_silent_server_times_out_and_its_connection_is_not_reused() {
    let client = http2()
        .first_byte_timeout(SHORT_TIMEOUT)
        .connect_timeout(SHORT_TIMEOUT)
        .build()
        .expect("it is valid");
    check(&client, "nothing at all", vec![Action::Wait], &[TimedOut], None).await;
    check(&client, "only SETTINGS", respond_then(&[], Action::Wait), &[TimedOut], Some(Sent::Sent)).await;
}

#[tokio::test]
async fn a_close_at_any_byte_of_a_response_is_an_error() {
    let client = client();
    let length = settings().len() + response_frames().len();
    for after in 0..length {
        for reset in [false, true] {
            let bad =
                Script { actions: respond_with(&[response_frames()]), cut: Some(CutOff { after, reset }) };
            let good = Script::from(respond_then(&[response_frames()], Action::Wait));
            let server = Server::plain(move |number| if number == 0 { bad.clone() } else { good.clone() });
            let what = format!("after {after}, reset: {reset}");
            let (trace, response) = get_traced(&client, &server.url("/")).await;
            let error = response.expect_err(&what);
            assert!([Closed, Unreachable].contains(&error.kind()), "{what}: {error:?}");
            let read = server.log().requests.iter().any(|(number, _)| *number == 0);
            assert!(!read || trace.sent != Sent::NotSent, "{what}: the server has read it: {error:?}");
            let (trace, response) = get_traced(&client, &server.url("/")).await;
            assert!(response.is_ok(), "{what}: then {response:?}");
            assert_eq!(trace.reuse, Some(Reuse::New), "{what}");
        }
    }
}
