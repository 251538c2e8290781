//! Tests of the server crate with a simple handler, byte by byte.

mod bodies;
mod flood;
mod foreign_pages;
mod http1;
mod http2;
mod slow_clients;
mod stopping;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use perihelion_emulator::server::{Encrypted, Handler, HandlerResponse, Limits, Listeners, Server, Tls};
use perihelion_emulator::{Bind, Emulator, EmulatorConfig};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream,
};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Nothing in these tests takes this long unless it is broken.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A handler that responds by path: `/echo`, `/length`, `/scheme`, `/big/<bytes>`, `/wait`, `/panic`,
/// `/panic-later`.
pub(crate) struct Probe {
    /// Each permit lets one `/wait` request finish.
    gate: Semaphore,
    waiting: tokio::sync::watch::Sender<usize>,
    handled: AtomicUsize,
}

impl Handler for Probe {
    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> HandlerResponse {
        self.handled.fetch_add(1, Ordering::SeqCst);
        let path = request.uri().path();
        let body = match path {
            "/echo" => request.into_body(),
            "/length" => Bytes::from(request.body().len().to_string()),
            "/scheme" if request.extensions().get::<Encrypted>().is_some() => Bytes::from_static(b"https"),
            "/scheme" => Bytes::from_static(b"http"),
            "/wait" => {
                let probe = Arc::clone(self);
                return HandlerResponse::Pending(Box::pin(async move { probe.wait().await }));
            }
            "/panic" => panic!("as the test asked"),
            "/panic-later" => {
                return HandlerResponse::Pending(Box::pin(async {
                    tokio::task::yield_now().await;
                    panic!("as the test asked, later")
                }));
            }
            _ => match path.strip_prefix("/big/").and_then(|bytes| bytes.parse().ok()) {
                Some(bytes) => {
                    Bytes::from(b"perihelion ".iter().copied().cycle().take(bytes).collect::<Vec<u8>>())
                }
                None => Bytes::from_static(b"ok"),
            },
        };
        HandlerResponse::Ready(Response::new(body))
    }
}

impl Probe {
    async fn wait(&self) -> Response<Bytes> {
        self.waiting.send_modify(|waiting| *waiting += 1);
        self.gate.acquire().await.expect("never closed").forget();
        self.waiting.send_modify(|waiting| *waiting -= 1);
        Response::new(Bytes::from_static(b"waited"))
    }

    /// Waits until exactly this many requests wait at the gate.
    async fn until_waiting(&self, expected: usize) {
        let mut waiting = self.waiting.subscribe();
        in_time(waiting.wait_for(|waiting| *waiting == expected)).await.expect("the probe lives");
    }

    fn handled(&self) -> usize {
        self.handled.load(Ordering::SeqCst)
    }
}

/// A server with its probe.
struct Fixture {
    server: Server,
    probe: Arc<Probe>,
}

fn start(limits: Limits) -> Fixture {
    start_with(limits, None)
}

fn start_with(limits: Limits, tls: Option<Tls>) -> Fixture {
    let probe = Arc::new(Probe {
        gate: Semaphore::new(0),
        waiting: tokio::sync::watch::Sender::new(0),
        handled: AtomicUsize::new(0),
    });
    let listeners = Listeners::open(Bind::Loopback, 0).expect("a free port");
    Fixture { server: Server::start(listeners, Arc::clone(&probe), tls, limits), probe }
}

impl Fixture {
    async fn connect(&self) -> Client<TcpStream> {
        Client::new(in_time(TcpStream::connect(("127.0.0.1", self.server.port()))).await.expect("connects"))
    }
}

/// Fails instead of hanging.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, work).await.expect("nothing happened for too long")
}

/// One connection, as bytes.
struct Client<S>(BufStream<S>);

/// A response over HTTP/1.1.
#[derive(Debug)]
struct RawResponse {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl RawResponse {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    fn new(stream: S) -> Client<S> {
        Client(BufStream::new(stream))
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("the server takes the bytes");
    }

    async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        in_time(self.0.write_all(bytes.as_ref())).await?;
        in_time(self.0.flush()).await
    }

    async fn get(&mut self, path: &str) -> RawResponse {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        self.read_response().await
    }

    async fn post(&mut self, path: &str, body: &[u8]) -> RawResponse {
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        self.send([head.as_bytes(), body].concat()).await;
        self.read_response().await
    }

    async fn read_response(&mut self) -> RawResponse {
        let mut response = self.head().await;
        let length = response.header("content-length").map_or(0, |value| value.parse().expect("a number"));
        response.body = vec![0; length];
        in_time(self.0.read_exact(&mut response.body)).await.expect("the whole body");
        response
    }

    /// Reads a response's head only.
    async fn head(&mut self) -> RawResponse {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            in_time(self.0.read_line(&mut line)).await.expect("a line of the head");
            assert!(!line.is_empty(), "the connection closed instead of answering; so far {lines:?}");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).expect("a status").parse().expect("a number");
        let header = |line: &String| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        RawResponse { status, headers: lines[1..].iter().map(header).collect(), body: Vec::new() }
    }

    /// Everything until the server closes. A reset counts as closing.
    async fn until_closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = in_time(self.0.read_to_end(&mut rest)).await;
        rest
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_is_a_500_and_affects_no_other_request() {
    let fixture = start(Limits::default());
    let mut client = fixture.connect().await;
    for path in ["/panic", "/panic-later"] {
        let response = client.get(path).await;
        assert_eq!(response.status, StatusCode::INTERNAL_SERVER_ERROR.as_u16(), "{path}");
        let body: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(body["code"], "InternalServerError");
        assert_eq!(client.get("/echo").await.status, 200, "the same connection goes on after {path}");
    }
    assert_eq!(fixture.connect().await.get("/").await.status, 200);
}

#[tokio::test]
async fn both_addresses_of_localhost_respond() {
    let fixture = start(Limits::default());
    for host in ["127.0.0.1", "::1"] {
        match TcpStream::connect((host, fixture.server.port())).await {
            Ok(stream) => assert_eq!(Client::new(stream).get("/").await.status, 200, "{host}"),
            // A machine without IPv6 is served without it.
            Err(error) => assert!(host == "::1" && !ipv6_exists(), "{host}: {error}"),
        }
    }
}

fn ipv6_exists() -> bool {
    std::net::TcpListener::bind("[::1]:0").is_ok()
}

#[tokio::test]
async fn a_port_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = Listeners::open(Bind::Loopback, port).unwrap_err();
    assert!(error.is_port_in_use(), "{error}");
    let mut config = EmulatorConfig::default();
    config.port = port;
    let error = Emulator::start(config).await.unwrap_err();
    assert!(error.to_string().contains(&format!("port {port} is already in use")), "{error}");
}
