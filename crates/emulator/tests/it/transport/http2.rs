//! Tests of HTTP/2 with prior knowledge, frame by frame.

use super::*;

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

pub(super) const END_STREAM: u8 = 1;
const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

const REFUSED_STREAM: u32 = 7;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload").to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// `GET path` of localhost.
pub(super) fn get(stream: u32, path: &str) -> Vec<u8> {
    get_from(stream, "localhost", path)
}

/// `GET path` of a host, with every header as a plain literal or from the static table.
pub(super) fn get_from(stream: u32, authority: &str, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).expect("a short path")];
    block.extend(path.as_bytes());
    block.extend([0x01, u8::try_from(authority.len()).expect("a short name")]);
    block.extend(authority.as_bytes());
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block)
}

/// How a connection ended, or that it did not.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Closed,
    Open,
}

impl Client<TcpStream> {
    /// Reads until the server closes the connection, or says nothing for a while.
    async fn until_closed_or_quiet(&mut self) -> Ending {
        let mut rest = Vec::new();
        match tokio::time::timeout(Duration::from_secs(5), self.0.read_to_end(&mut rest)).await {
            Ok(_) => Ending::Closed,
            Err(_) => Ending::Open,
        }
    }

    pub(super) async fn frame(&mut self) -> Frame {
        let mut head = [0; 9];
        in_time(self.0.read_exact(&mut head)).await.expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        in_time(self.0.read_exact(&mut payload)).await.expect("a whole frame");
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Frame { kind: head[3], flags: head[4], stream, payload }
    }

    pub(super) async fn frame_of(&mut self, kind: u8, flags: u8) -> Frame {
        loop {
            let frame = self.frame().await;
            if frame.kind == kind && frame.flags & flags == flags {
                return frame;
            }
        }
    }
}

async fn connect(fixture: &Fixture) -> Client<TcpStream> {
    let mut client = fixture.connect().await;
    client.send([PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await;
    client
}

#[tokio::test]
async fn the_http2_settings_limit_streams_to_20() {
    let fixture = start(Limits::default());
    let mut client = connect(&fixture).await;
    let settings = client.frame_of(SETTINGS, 0).await;
    let streams = settings.payload.chunks(6).find(|entry| entry[..2] == MAX_CONCURRENT_STREAMS.to_be_bytes());
    assert_eq!(streams.expect("the limit is announced")[2..], 20_u32.to_be_bytes());

    client.send(get(1, "/scheme")).await;
    let data = client.frame_of(DATA, END_STREAM).await;
    assert_eq!((data.stream, &data.payload[..]), (1, &b"http"[..]));
}

#[tokio::test]
async fn the_http2_preface_may_arrive_in_pieces() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    let bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[]), &get(1, "/")].concat();
    for byte in bytes {
        client.send([byte]).await;
    }
    assert_eq!(client.frame_of(DATA, END_STREAM).await.payload, b"ok");
}

#[tokio::test]
async fn the_21st_stream_is_rejected_and_the_first_20_get_responses() {
    let fixture = start(Limits::default());
    let mut client = connect(&fixture).await;
    let streams = (0..21).map(|n| 2 * n + 1);
    client.send(streams.flat_map(|stream| get(stream, "/wait")).collect::<Vec<u8>>()).await;
    let rejected = client.frame_of(RST_STREAM, 0).await;
    assert_eq!((rejected.stream, rejected.payload), (41, REFUSED_STREAM.to_be_bytes().to_vec()));
    fixture.probe.until_waiting(20).await;

    // Pings are acknowledged while every stream is busy.
    client.send(frame(PING, 0, 0, b"12345678")).await;
    assert_eq!(client.frame_of(PING, ACK).await.payload, b"12345678");

    fixture.probe.gate.add_permits(20);
    for _ in 0..20 {
        assert_eq!(client.frame_of(DATA, END_STREAM).await.payload, b"waited");
    }
    assert_eq!(fixture.probe.handled(), 20);
}

#[tokio::test]
async fn a_panic_fails_one_stream_with_500_and_no_other() {
    let fixture = start(Limits::default());
    let mut client = connect(&fixture).await;
    client.send([get(1, "/wait"), get(3, "/panic")].concat()).await;
    let failed = client.frame_of(DATA, END_STREAM).await;
    assert_eq!(failed.stream, 3);
    assert!(String::from_utf8_lossy(&failed.payload).contains("InternalServerError"));
    fixture.probe.gate.add_permits(1);
    assert_eq!(client.frame_of(DATA, END_STREAM).await.stream, 1);
}

#[tokio::test]
async fn http2_pings_do_not_count_as_an_incomplete_request() {
    let mut limits = Limits::default();
    limits.head_timeout = Duration::from_millis(50);
    let fixture = start(limits);
    let mut client = connect(&fixture).await;
    client.send(frame(PING, 0, 0, b"12345678")).await;
    client.frame_of(PING, ACK).await;
    // A silent HTTP/1.1 connection of the same age is closed in the meantime.
    fixture.connect().await.until_closed().await;
    client.send(get(1, "/")).await;
    assert_eq!(client.frame_of(DATA, END_STREAM).await.payload, b"ok");
}

#[tokio::test]
async fn a_client_that_grants_no_http2_window_is_disconnected() {
    let mut limits = Limits::default();
    limits.idle_timeout = Duration::from_millis(50);
    limits.write_timeout = Duration::from_millis(50);
    let fixture = start(limits);
    let mut client = fixture.connect().await;
    let no_window = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &0_u32.to_be_bytes()].concat();
    client.send([PREFACE, &frame(SETTINGS, 0, 0, &no_window), &get(1, "/big/100000")].concat()).await;
    client.frame_of(HEADERS, END_HEADERS).await;
    client.until_closed().await;
}

/// Connects with a window of this many bytes for each stream.
async fn connect_with_window(fixture: &Fixture, window: u32) -> Client<TcpStream> {
    let mut client = fixture.connect().await;
    let settings = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
    client.send([PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat()).await;
    client
}

#[tokio::test]
async fn a_response_that_is_left_unread_ends_its_connection_though_others_are_read() {
    let mut limits = Limits::default();
    limits.write_timeout = Duration::from_millis(100);
    let fixture = start(limits);
    for window in [0, 1, 1000] {
        let mut client = connect_with_window(&fixture, window).await;
        client.send(get(1, "/big/100000")).await;
        client.frame_of(HEADERS, END_HEADERS).await;
        // Requests go on, and so does the connection, until the first response is too old.
        let mut stream = 3;
        while client.try_send(get(stream, "/big/0")).await.is_ok() {
            stream += 2;
            assert!(stream < 20_000, "the connection stayed open");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    assert_eq!(fixture.connect().await.get("/").await.status, 200);
}

#[tokio::test]
async fn unread_responses_of_many_streams_have_one_bound() {
    let mut limits = Limits::default();
    limits.unread_bytes_max = 2_000_000;
    let fixture = start(limits);
    let mut attackers = Vec::new();
    // 12 connections with 20 streams of 100,000 bytes: 24 MB, without a window or with a small one.
    for n in 0..12 {
        let mut client = connect_with_window(&fixture, [0, 1, 5000][n % 3]).await;
        let streams = (0..20).map(|n| 2 * n + 1);
        // The server may close the connection meanwhile.
        let _ =
            client.try_send(streams.flat_map(|stream| get(stream, "/big/100000")).collect::<Vec<u8>>()).await;
        attackers.push(client);
    }
    // A client that reads gets its responses, of any size, on a connection that stays open.
    let mut client = connect_with_window(&fixture, 1_000_000).await;
    for n in 0..30 {
        let window = 500_000_u32.to_be_bytes();
        client.send([get(2 * n + 1, "/big/50000"), frame(WINDOW_UPDATE, 0, 0, &window)].concat()).await;
        assert_eq!(client.frame_of(DATA, END_STREAM).await.stream, 2 * n + 1);
    }
    assert_eq!(attackers[0].until_closed_or_quiet().await, Ending::Closed, "the oldest one is closed");
}

#[tokio::test]
async fn broken_frames_close_the_connection_and_no_other() {
    let fixture = start(Limits::default());
    let mut bystander = connect(&fixture).await;
    let broken = [
        frame(HEADERS, END_HEADERS | END_STREAM, 0, &[0x82]), // a request on the connection itself
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 64]), // no such entry in the header table
        frame(DATA, 0, 7, b"data for nobody"),
        vec![0xff; 64],
    ];
    for (n, bytes) in broken.into_iter().enumerate() {
        let mut client = connect(&fixture).await;
        client.send(bytes).await;
        client.until_closed().await;
        let stream = u32::try_from(2 * n + 1).unwrap();
        bystander.send(get(stream, "/")).await;
        assert_eq!(bystander.frame_of(DATA, END_STREAM).await.stream, stream);
    }
}
