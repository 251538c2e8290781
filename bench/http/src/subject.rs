//! Each client behind one function: a GET whose body is read to its end.

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

/// More than are ever in flight: nobody closes a connection that it could use again.
const IDLE_MAX: usize = 512;
/// More than the body of the answer.
const BODY_MAX: usize = 64 * 1024;
const IDLE_TIME: Duration = Duration::from_secs(90);

/// How the clients talk to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// HTTP/1.1 over TLS.
    Http1,
    /// HTTP/2 over TLS.
    Http2,
    /// HTTP/1.1 without TLS.
    Plain,
}

impl Wire {
    /// All of them.
    pub const ALL: [Wire; 3] = [Wire::Http1, Wire::Http2, Wire::Plain];

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Wire::Http1 => "HTTP/1.1, TLS",
            Wire::Http2 => "HTTP/2, TLS",
            Wire::Plain => "HTTP/1.1, plain",
        }
    }

    fn url(self, ports: Ports) -> String {
        match self {
            Wire::Http1 | Wire::Http2 => format!("https://localhost:{}/dbs/db/colls/c/docs/1", ports.tls),
            Wire::Plain => format!("http://localhost:{}/dbs/db/colls/c/docs/1", ports.plain),
        }
    }
}

/// One of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The product's own.
    Perihelion,
    /// reqwest.
    Reqwest,
    /// hyper-util's pooled client, with hyper-rustls below.
    HyperUtil,
}

impl Kind {
    /// All of them; the first is compared with the better of the others.
    pub const ALL: [Kind; 3] = [Kind::Perihelion, Kind::Reqwest, Kind::HyperUtil];

    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Perihelion => "perihelion-http",
            Kind::Reqwest => "reqwest",
            Kind::HyperUtil => "hyper-util",
        }
    }
}

type Legacy = hyper_util::client::legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// A client, and where it sends its requests.
#[derive(Clone, Debug)]
pub enum Subject {
    /// See [`Kind::Perihelion`].
    Perihelion(perihelion_http::Client, Uri),
    /// See [`Kind::Reqwest`].
    Reqwest(reqwest::Client, reqwest::Url),
    /// See [`Kind::HyperUtil`].
    HyperUtil(Legacy, Uri),
}

impl Subject {
    /// A client without connections.
    pub fn new(kind: Kind, wire: Wire, server: &Server) -> Result<Subject, String> {
        let url = wire.url(server.ports);
        let uri = || url.parse::<Uri>().map_err(|error| error.to_string());
        Ok(match kind {
            Kind::Perihelion => Subject::Perihelion(perihelion(wire, &server.root)?, uri()?),
            Kind::Reqwest => {
                let url = url.parse().map_err(|_| format!("{url} is not a URL"))?;
                Subject::Reqwest(reqwest(wire, &server.root)?, url)
            }
            Kind::HyperUtil => Subject::HyperUtil(hyper_util(wire, &server.root)?, uri()?),
        })
    }

    /// One GET; the length of the body.
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

fn perihelion(wire: Wire, root: &CertificateDer<'static>) -> Result<perihelion_http::Client, String> {
    let pool = PoolConfig::builder().max_per_host(IDLE_MAX).max_idle_time(IDLE_TIME).build();
    let builder = perihelion_http::Client::builder()
        .no_proxy()
        .trust_only([root.clone()])
        .pool(pool.map_err(|error| error.to_string())?);
    let protocol = match wire {
        Wire::Http1 | Wire::Plain => perihelion_http::trace::Protocol::Http1,
        Wire::Http2 => perihelion_http::trace::Protocol::Http2,
    };
    builder.protocol(protocol).build().map_err(|error| error.to_string())
}

fn reqwest(wire: Wire, root: &CertificateDer<'static>) -> Result<reqwest::Client, String> {
    let builder = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(IDLE_MAX)
        .pool_idle_timeout(IDLE_TIME)
        .tls_backend_preconfigured(rustls_config(wire, root, true)?);
    let builder = match wire {
        Wire::Http1 | Wire::Plain => builder.http1_only(),
        Wire::Http2 => builder,
    };
    builder.build().map_err(|error| format!("{error:?}"))
}

fn hyper_util(wire: Wire, root: &CertificateDer<'static>) -> Result<Legacy, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let builder = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(rustls_config(wire, root, false)?)
        .https_or_http();
    let connector = match wire {
        Wire::Http1 | Wire::Plain => builder.enable_http1().wrap_connector(tcp),
        Wire::Http2 => builder.enable_http2().wrap_connector(tcp),
    };
    let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    builder.pool_max_idle_per_host(IDLE_MAX).pool_idle_timeout(IDLE_TIME);
    Ok(builder.http2_only(wire == Wire::Http2).build(connector))
}

/// hyper-rustls offers protocols itself; reqwest wants them offered.
fn rustls_config(
    wire: Wire,
    root: &CertificateDer<'static>,
    offered: bool,
) -> Result<rustls::ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add(root.clone()).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if offered {
        let protocol: &[u8] = if wire == Wire::Http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![protocol.to_vec()];
    }
    Ok(config)
}
