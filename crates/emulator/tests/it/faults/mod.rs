//! Faults as clients meet them: over sockets, in every protocol the port speaks.

mod connections;
mod control;
mod matching;
mod regions;
mod responses;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use perihelion_emulator::clock::{Clock, Ticks};
use perihelion_emulator::faults::Faults;
use perihelion_emulator::{Emulator, EmulatorConfig, RunningEmulator, WELL_KNOWN_KEY};
use protocol::authorization::{AccountKey, sign, signed_targets};
use protocol::resource_path::ResourcePath;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// Nothing in these tests takes this long unless it is broken.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);
/// How long is watched for something that must not happen.
const GLANCE: Duration = Duration::from_millis(50);
/// The start time of the manual clock: 15 November 2026.
const START: Ticks = Ticks(17_947_440_000_000_000);

/// A protocol, plain or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientProtocol {
    Http1,
    Http2,
    Http1OverTls,
    Http2OverTls,
}

impl ClientProtocol {
    const ALL: [ClientProtocol; 4] = [
        ClientProtocol::Http1,
        ClientProtocol::Http2,
        ClientProtocol::Http1OverTls,
        ClientProtocol::Http2OverTls,
    ];

    fn is_http2(self) -> bool {
        matches!(self, ClientProtocol::Http2 | ClientProtocol::Http2OverTls)
    }
}

/// An account in three regions, with `d/c` in it, whose clock stands still until a test moves it.
struct FaultFixture {
    running: RunningEmulator,
    clock: Clock,
}

/// The response to a request over a socket.
#[derive(Debug)]
struct RawResponse {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl RawResponse {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

/// One connection of a client.
struct ClientConnection {
    sender: Sender,
    connection: JoinHandle<hyper::Result<()>>,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl FaultFixture {
    async fn start() -> FaultFixture {
        let clock = Clock::manual(START);
        let mut config = EmulatorConfig::default();
        config.clock = clock.clone();
        config.partitions = 2.try_into().ok();
        config.regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec().into();
        let fixture = FaultFixture { running: Emulator::start(config).await.unwrap(), clock };
        let mut connection = fixture.connect(ClientProtocol::Http1).await;
        let container = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        for (path, body) in [("/dbs", json!({"id": "d"})), ("/dbs/d/colls", container)] {
            assert_eq!(connection.send(fixture.post(path, &body)).await.unwrap().status, 201);
        }
        assert_eq!(connection.send(fixture.create("there")).await.unwrap().status, 201);
        fixture
    }

    fn faults(&self) -> &Faults {
        self.running.faults()
    }

    fn port(&self, region: usize) -> u16 {
        let endpoint = &self.running.regions()[region].endpoint;
        endpoint.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap()
    }

    /// A connection to the first region.
    async fn connect(&self, protocol: ClientProtocol) -> ClientConnection {
        self.connect_to(0, protocol).await
    }

    async fn connect_to(&self, region: usize, protocol: ClientProtocol) -> ClientConnection {
        let port = self.port(region);
        in_time(self.try_connect(port, protocol))
            .await
            .unwrap_or_else(|error| panic!("{protocol:?}: {error}"))
    }

    async fn try_connect(&self, port: u16, protocol: ClientProtocol) -> io::Result<ClientConnection> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        match protocol {
            ClientProtocol::Http1 | ClientProtocol::Http2 => {
                Box::pin(ClientConnection::over(stream, protocol)).await
            }
            ClientProtocol::Http1OverTls | ClientProtocol::Http2OverTls => {
                let alpn: &[u8] = if protocol.is_http2() { b"h2" } else { b"http/1.1" };
                let connector = TlsConnector::from(self.trust(alpn).await);
                let name = ServerName::try_from("localhost").unwrap();
                let stream = Box::pin(connector.connect(name, stream)).await?;
                Box::pin(ClientConnection::over(stream, protocol)).await
            }
        }
    }

    async fn trust(&self, protocol: &[u8]) -> Arc<ClientConfig> {
        let pem = self.running.authority_pem().await.unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config)
    }

    /// A signed request. The path may be the account's, or below it.
    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Request<Full<Bytes>> {
        let date = httpdate::fmt_http_date(self.clock.now().to_system_time());
        let parsed = ResourcePath::parse(path).unwrap();
        let target = signed_targets(&parsed).next().unwrap();
        let key: AccountKey = WELL_KNOWN_KEY.parse().unwrap();
        let signature = sign(&key, method.as_str(), target.resource_type, &target.link, &date);
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://localhost{path}"))
            .header("host", "localhost")
            .header("authorization", signature)
            .header("x-ms-date", date);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap()
    }

    fn post(&self, path: &str, body: &Value) -> Request<Full<Bytes>> {
        self.request(Method::POST, path, &[], &body.to_string())
    }

    fn account(&self) -> Request<Full<Bytes>> {
        self.request(Method::GET, "/", &[], "")
    }

    /// The creation of an item whose partition key is its id.
    fn create(&self, id: &str) -> Request<Full<Bytes>> {
        let key = json!([id]).to_string();
        let body = json!({"id": id, "pk": id}).to_string();
        self.request(Method::POST, "/dbs/d/colls/c/docs", &[("x-ms-documentdb-partitionkey", &key)], &body)
    }

    /// The read of such an item.
    fn read(&self, id: &str) -> Request<Full<Bytes>> {
        let key = json!([id]).to_string();
        let path = format!("/dbs/d/colls/c/docs/{id}");
        self.request(Method::GET, &path, &[("x-ms-documentdb-partitionkey", &key)], "")
    }

    /// Whether an item exists, checked over a new connection.
    async fn has(&self, id: &str) -> bool {
        match self.connect(ClientProtocol::Http1).await.send(self.read(id)).await.unwrap().status {
            200 => true,
            404 => false,
            status => panic!("{status}"),
        }
    }
}

impl ClientConnection {
    async fn over<S>(stream: S, protocol: ClientProtocol) -> io::Result<ClientConnection>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        if protocol.is_http2() {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.map_err(io::Error::other)?;
            return Ok(ClientConnection {
                sender: Sender::Http2(sender),
                connection: tokio::spawn(connection),
            });
        }
        let (sender, connection) = http1::handshake(io).await.map_err(io::Error::other)?;
        Ok(ClientConnection { sender: Sender::Http1(sender), connection: tokio::spawn(connection) })
    }

    /// Sends a request and waits for the head of the response.
    async fn begin(&mut self, mut request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                *request.uri_mut() = request.uri().path().parse().unwrap();
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Http2(sender) => {
                request.headers_mut().remove("host");
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }

    /// Sends a request and waits for the whole response.
    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<RawResponse> {
        in_time(async {
            let (parts, body) = self.begin(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            Ok(RawResponse { status: parts.status.as_u16(), headers: parts.headers, body })
        })
        .await
    }

    /// Waits until the server has closed the connection.
    async fn closed(self) {
        let _ = in_time(self.connection).await;
    }
}

/// Fails instead of hanging.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TEST_TIMEOUT, work).await.expect("nothing happened for too long")
}
