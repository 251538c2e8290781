//! A bare hyper server in a process of its own, with TLS and without, with HTTP/1.1 and HTTP/2, and one small response.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The argument that makes the program run as the server.
pub const SERVE: &str = "--serve";

/// The body of every response: about as long as a small item.
const BODY: &[u8] = &[b'x'; 256];

/// The stream limit of an HTTP/2 connection: more than are ever in flight.
const STREAMS_MAX: u32 = 1_000;

/// The server process, which ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// The ports that the server listens on.
    pub ports: Ports,
    /// The root certificate to trust.
    pub root: CertificateDer<'static>,
}

/// The ports that the server listens on.
#[derive(Clone, Copy, Debug)]
pub struct Ports {
    /// The port with TLS.
    pub tls: u16,
    /// The port without TLS.
    pub plain: u16,
}

impl Server {
    /// Starts this program again, as the server.
    pub fn start() -> Result<Server, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("the path of this program is unknown: {error}"))?;
        // The server exits when its standard input is closed, which happens however this program ends.
        let mut child = Command::new(program)
            .arg(SERVE)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the server does not start: {error}"))?;
        let stdout = child.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|error| format!("the server did not print its ports: {error}"))?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [tls, plain, root] = words[..] else { return Err(format!("the server printed {line:?}")) };
        let port = |word: &str| word.parse().map_err(|_| format!("{word:?} is not a port"));
        let ports = Ports { tls: port(tls)?, plain: port(plain)? };
        // Hexadecimal by hand: four lines here and one in `serve` are not worth a dependency of a benchmark.
        let root: Option<Vec<u8>> = (0..root.len())
            .step_by(2)
            .map(|at| root.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
            .collect();
        let root = CertificateDer::from(root.ok_or("the certificate is not in hexadecimal")?);
        Ok(Server { child, ports, root })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if the server has exited already, which is the goal.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the server until standard input is closed.
pub fn serve() -> Result<(), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let (acceptor, root) = tls()?;
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let secured = bind().await.map_err(|error| error.to_string())?;
        let plain = bind().await.map_err(|error| error.to_string())?;
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
        let ports = (port(&secured).map_err(|error| error.to_string())?, port(&plain).unwrap_or_default());
        let root: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{} {} {root}", ports.0, ports.1);
        std::io::stdout().flush().map_err(|error| error.to_string())?;
        tokio::spawn(accept(secured, Some(acceptor)));
        tokio::spawn(accept(plain, None));
        // Ends when the parent process closes the pipe.
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await;
        ended.map(drop).map_err(|error| error.to_string())
    })
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>) {
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        tokio::spawn(async move {
            // The clients report errors of their connections; the server needs none of them.
            let _ = stream.set_nodelay(true);
            let _ = connection(stream, tls).await;
        });
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let service = service_fn(|_| async {
        let mut response = Response::new(Full::new(Bytes::from_static(BODY)));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        Ok::<_, Infallible>(response)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http2().max_concurrent_streams(STREAMS_MAX);
    match tls {
        Some(tls) => builder.serve_connection(TokioIo::new(tls.accept(stream).await?), service).await,
        None => builder.serve_connection(TokioIo::new(stream), service).await,
    }
}

fn tls() -> Result<(TlsAcceptor, CertificateDer<'static>), String> {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(|error| error.to_string())?;
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(str::to_owned)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate.clone()], key))
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), certificate))
}
