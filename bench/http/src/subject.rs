//! The clients under comparison, behind one function: a GET whose body is read.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use perihelion_http::pool::PoolConfig;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::server::{Ports, Server};

/// More than are ever in flight, so that no client closes a connection that it could reuse.
const IDLE_MAX: usize = 512;
/// More than the body of the response.
const BODY_MAX: usize = 64 * 1024;
const IDLE_TIME: Duration = Duration::from_secs(90);

/// The protocol between the clients and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 over a TLS connection.
    Http1,
    /// HTTP/2 over a TLS connection.
    Http2,
    /// HTTP/1.1 over plain TCP.
    Plain,
}

impl Protocol {
    /// All protocols, in the order of the tables.
    pub const ALL: [Protocol; 3] = [Protocol::Http1, Protocol::Http2, Protocol::Plain];

    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http1 => "HTTP/1.1, TLS",
            Protocol::Http2 => "HTTP/2, TLS",
            Protocol::Plain => "HTTP/1.1, plain",
        }
    }

    fn url(self, ports: Ports) -> String {
        match self {
            Protocol::Http1 | Protocol::Http2 => {
                format!("https://localhost:{}/dbs/db/colls/c/docs/1", ports.tls)
            }
            Protocol::Plain => format!("http://localhost:{}/dbs/db/colls/c/docs/1", ports.plain),
        }
    }
}

/// The kinds of clients under comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The client of this project.
    Perihelion,
    /// The client of the crate reqwest.
    Reqwest,
    /// hyper-util's pooled client, with hyper-rustls below.
    HyperUtil,
}

impl Kind {
    /// All clients; the first is compared with the better of the others.
    pub const ALL: [Kind; 3] = [Kind::Perihelion, Kind::Reqwest, Kind::HyperUtil];

    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Perihelion => "perihelion-http",
            Kind::Reqwest => "reqwest",
            Kind::HyperUtil => "hyper-util",
        }
    }
}

type Legacy = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// A client, with the URL of its requests.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A client of [`Kind::Perihelion`], with its URL.
    Perihelion(perihelion_http::Client, Uri),
    /// A client of [`Kind::Reqwest`], with its URL.
    Reqwest(reqwest::Client, reqwest::Url),
    /// A client of [`Kind::HyperUtil`], with its URL.
    HyperUtil(Legacy, Uri),
}

impl Subject {
    /// Creates a client, without connections.
    pub fn new(kind: Kind, protocol: Protocol, server: &Server) -> Result<Subject, String> {
        let url = protocol.url(server.ports);
        let uri = || url.parse::<Uri>().map_err(|error| error.to_string());
        Ok(match kind {
            Kind::Perihelion => Subject::Perihelion(perihelion(protocol, &server.root)?, uri()?),
            Kind::Reqwest => {
                let url = url.parse().map_err(|_| format!("{url} is not a URL"))?;
                Subject::Reqwest(reqwest(protocol, &server.root)?, url)
            }
            Kind::HyperUtil => Subject::HyperUtil(hyper_util(protocol, &server.root)?, uri()?),
        })
    }

    /// Sends one GET, and returns the length of the body.
    pub async fn get(&self) -> Result<usize, String> {
        match self {
            Subject::Perihelion(client, uri) => {
                let request = Request::get(uri.clone()).body(()).map_err(|error| error.to_string())?;
                let response = client.send(request).await.map_err(|error| error.to_string())?;
                let body = response.into_body().bytes(BODY_MAX).await.map_err(|error| error.to_string())?;
                Ok(body.len())
            }
            Subject::Reqwest(client, url) => {
                let response = client.get(url.clone()).send().await.map_err(|error| format!("{error:?}"))?;
                Ok(response.bytes().await.map_err(|error| format!("{error:?}"))?.len())
            }
            Subject::HyperUtil(client, uri) => {
                let request =
                    Request::get(uri.clone()).body(Empty::new()).map_err(|error| error.to_string())?;
                let response = client.request(request).await.map_err(|error| format!("{error:?}"))?;
                let body = response.into_body().collect().await.map_err(|error| format!("{error:?}"))?;
                Ok(body.to_bytes().len())
            }
        }
    }
}

fn perihelion(protocol: Protocol, root: &CertificateDer<'static>) -> Result<perihelion_http::Client, String> {
    let pool = PoolConfig::builder().max_per_host(IDLE_MAX).max_idle_time(IDLE_TIME).build();
    let builder = perihelion_http::Client::builder()
        .no_proxy()
        .trust_only([root.clone()])
        .pool(pool.map_err(|error| error.to_string())?);
    let protocol = match protocol {
        Protocol::Http1 | Protocol::Plain => perihelion_http::trace::Protocol::Http1,
        Protocol::Http2 => perihelion_http::trace::Protocol::Http2,
    };
    builder.protocol(protocol).build().map_err(|error| error.to_string())
}

fn reqwest(protocol: Protocol, root: &CertificateDer<'static>) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(IDLE_MAX)
        .pool_idle_timeout(IDLE_TIME)
        .tls_backend_preconfigured(rustls_config(protocol, root, true)?);
    let builder = match protocol {
        Protocol::Http1 | Protocol::Plain => builder.http1_only(),
        Protocol::Http2 => builder,
    };
    builder.build().map_err(|error| format!("{error:?}"))
}

fn hyper_util(protocol: Protocol, root: &CertificateDer<'static>) -> Result<Legacy, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let builder = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(rustls_config(protocol, root, false)?)
        .https_or_http();
    let connector = match protocol {
        Protocol::Http1 | Protocol::Plain => builder.enable_http1().wrap_connector(tcp),
        Protocol::Http2 => builder.enable_http2().wrap_connector(tcp),
    };
    let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(IDLE_MAX).pool_idle_timeout(IDLE_TIME);
    Ok(builder.http2_only(protocol == Protocol::Http2).build(connector))
}

/// The TLS configuration. hyper-rustls sets the ALPN protocols itself; for reqwest `set_alpn` sets them here.
fn rustls_config(
    protocol: Protocol,
    root: &CertificateDer<'static>,
    set_alpn: bool,
) -> Result<rustls::ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if set_alpn {
        let protocol: &[u8] = if protocol == Protocol::Http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![protocol.to_vec()];
    }
    Ok(config)
}
