//! hyper's connections without anything around them.
//!
//! Every request was made and signed before: what is sent is what the product's driver sends, and sending it
//! is a copy of the headers. One connection per operation in flight over HTTP/1.1; over HTTP/2 one per sixteen,
//! which is how many the driver puts on one (the server takes twenty).

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use perihelion::PartitionKey;
use perihelion_driver::Operation;
use perihelion_driver::operation::ContainerName;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Shape, Wire, recorder};
use crate::item::{self, Items};
use crate::load::{ITEMS, Work};
use crate::peri::{DATABASE, Peri};

/// Requests on one HTTP/2 connection.
const STREAMS: usize = 16;

/// One connection, or a place on a shared one, and what to send.
#[derive(Debug)]
pub struct Bare {
    sender: Sender,
    requests: Arc<Requests>,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// What is sent: one request per item to read, or one per partition key to create in.
#[derive(Debug)]
struct Requests(Vec<Prepared>);

#[derive(Debug)]
struct Prepared {
    uri: Uri,
    headers: HeaderMap,
}

impl Bare {
    /// As many as are to be in flight, connected.
    pub async fn all(shape: Shape, peri: &Peri, container: &str) -> Result<Vec<Bare>, String> {
        let wire = shape.wire;
        let requests = Arc::new(Requests::prepare(shape, peri, container).await?);
        let mut all: Vec<Bare> = Vec::with_capacity(shape.in_flight);
        for index in 0..shape.in_flight {
            let sender = match (wire, all.last()) {
                (Wire::Http2, Some(Bare { sender: Sender::Http2(last), .. }))
                    if !index.is_multiple_of(STREAMS) =>
                {
                    Sender::Http2(last.clone())
                }
                _ => connect(wire, peri).await?,
            };
            all.push(Bare { sender, requests: Arc::clone(&requests) });
        }
        Ok(all)
    }

    /// Reads an item; the length of the answer.
    pub async fn read(&mut self, number: u64) -> Result<usize, String> {
        let request = self.requests.0[number as usize].request(Method::GET, Bytes::new());
        self.send(request, StatusCode::OK).await
    }

    /// Makes an item; the length of the answer.
    pub async fn create(&mut self, number: u64, body: Vec<u8>) -> Result<usize, String> {
        let prepared = &self.requests.0[(number % item::KEYS) as usize];
        self.send(prepared.request(Method::POST, Bytes::from(body)), StatusCode::CREATED).await
    }

    async fn send(&mut self, request: Request<Full<Bytes>>, wanted: StatusCode) -> Result<usize, String> {
        let response: Response<Incoming> = match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await.map_err(|error| error.to_string())?;
                sender.send_request(request).await
            }
            Sender::Http2(sender) => sender.send_request(request).await,
        }
        .map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        if status == wanted { Ok(body.len()) } else { Err(format!("{status}: {}", body.escape_ascii())) }
    }
}

impl Requests {
    async fn prepare(shape: Shape, peri: &Peri, container: &str) -> Result<Requests, String> {
        let name = ContainerName::new(DATABASE, container);
        let key = |number| PartitionKey::single(item::key(number).as_str());
        let recorded = match shape.work {
            Work::Read => {
                let reads =
                    (0..ITEMS).map(|number| Operation::read_item(&name, key(number), &item::id(number)));
                recorder::record(peri, reads).await?
            }
            // An upsert is the same but for the header that says so, and can be recorded more than once.
            Work::Create => {
                let items = Items::new();
                let upserts = (0..item::KEYS)
                    .map(|number| Operation::upsert_item(&name, key(number), items.body(number)));
                let mut all = recorder::record(peri, upserts).await?;
                all.iter_mut().for_each(|one| drop(one.headers.remove("x-ms-documentdb-is-upsert")));
                all
            }
        };
        let prepared = recorded.into_iter().map(|recorded| Prepared::new(shape.wire, peri, recorded));
        prepared.collect::<Result<_, _>>().map(Requests)
    }
}

impl Prepared {
    fn new(wire: Wire, peri: &Peri, recorded: recorder::Recorded) -> Result<Prepared, String> {
        let mut headers = recorded.headers;
        let authority = authority(peri);
        let uri = match wire {
            Wire::Http1 => {
                let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
                headers.insert(header::HOST, host);
                recorded.path
            }
            Wire::Http2 => format!("https://{authority}{}", recorded.path),
        };
        Ok(Prepared { uri: uri.parse().map_err(|_| format!("{uri} is no URI"))?, headers })
    }

    fn request(&self, method: Method, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

fn authority(peri: &Peri) -> &str {
    peri.endpoint.trim_start_matches("https://").trim_end_matches('/')
}

async fn connect(wire: Wire, peri: &Peri) -> Result<Sender, String> {
    let io = TokioIo::new(secure(wire, peri).await?);
    Ok(match wire {
        Wire::Http1 => {
            let (sender, connection) = http1::handshake(io).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            Sender::Http1(sender)
        }
        Wire::Http2 => {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            Sender::Http2(sender)
        }
    })
}

async fn secure(wire: Wire, peri: &Peri) -> Result<TlsStream<TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(peri.certificate.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let protocol: &[u8] = if wire == Wire::Http2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(authority(peri)).await.map_err(|error| error.to_string())?;
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())
}
