//! The in-memory emulator of the crate `azure_data_cosmos_driver`, behind a socket.
//!
//! That emulator is a function from a request to a response; this program gives it a port. In: HTTP/1.1
//! on a loopback address, `--port N` (0 means any). Out: one line on stdout once it listens. Each request
//! is turned into the emulator's own request type, with every header, and each answer back, and nothing
//! else happens here: no logging, no checks, no copies beyond what the two types ask for.

use std::convert::Infallible;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use azure_core::http::headers::{HeaderName, HeaderValue};
use azure_core::http::{Method, Request as EmulatorRequest, Url};
use azure_data_cosmos_driver::in_memory_emulator::{
    InMemoryEmulatorHttpClient, VirtualAccountConfig, VirtualRegion,
};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let port = port_argument(std::env::args())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let endpoint = format!("http://127.0.0.1:{}", listener.local_addr()?.port());

    let region = VirtualRegion::new("East US", Url::parse(&endpoint)?);
    let account = VirtualAccountConfig::new(vec![region])?;
    let emulator = Arc::new(InMemoryEmulatorHttpClient::try_new(account)?);
    println!("listening on {endpoint}");

    let endpoint: Arc<str> = endpoint.into();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (emulator, endpoint) = (Arc::clone(&emulator), Arc::clone(&endpoint));
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&emulator, &endpoint, request));
            // A client that goes away ends its own connection and nothing else.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// `--port N`, or any free port.
fn port_argument(mut arguments: impl Iterator<Item = String>) -> Result<u16, AnyError> {
    match arguments.find(|argument| argument == "--port") {
        Some(_) => Ok(arguments.next().ok_or("--port needs a number")?.parse()?),
        None => Ok(0),
    }
}

/// What the emulator cannot express as a response becomes a 500, so that it is counted as an error.
async fn answer(
    emulator: &InMemoryEmulatorHttpClient,
    endpoint: &str,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(serve(emulator, endpoint, request).await.unwrap_or_else(|error| {
        let mut failed = Response::new(Full::from(error.to_string()));
        *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        failed
    }))
}

async fn serve(
    emulator: &InMemoryEmulatorHttpClient,
    endpoint: &str,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, AnyError> {
    let (head, body) = request.into_parts();
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let url = Url::parse(&[endpoint, target].concat())?;
    let mut asked = EmulatorRequest::new(url, head.method.as_str().parse::<Method>()?);
    for (name, value) in &head.headers {
        let name = HeaderName::from(name.as_str().to_owned());
        asked.headers_mut().insert(name, HeaderValue::from(value.to_str()?.to_owned()));
    }
    asked.set_body(body.collect().await?.to_bytes());

    let (status, headers, body) = emulator.execute_request(&asked).await?.deconstruct();
    let mut answered = Response::builder().status(u16::from(status));
    for (name, value) in headers.iter() {
        answered = answered.header(name.as_str(), value.as_str());
    }
    Ok(answered.body(Full::new(body.collect().await?))?)
}
