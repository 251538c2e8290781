//! The client against a well-behaved server. Those that behave badly are in `tests/it`.

use std::convert::Infallible;
use std::net::SocketAddr;

use azure_core::http::{HttpClient, Method, Request as AzureRequest, Url};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::Client;
use crate::exchange::{Protocol, Reuse, Sent, observe};
use crate::request::RequestBody;

/// Answers with method, path, the header `x-ask` and the body it was asked with. Ends with its guard.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let serve = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = serve.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
            });
        }
    });
    (address, tasks)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let asked = parts.headers.get("x-ask").and_then(|value| value.to_str().ok()).unwrap_or("-");
    let head = format!("{} {} {asked} ", parts.method, parts.uri.path());
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut response = Response::new(Full::from([head.as_bytes(), &body].concat()));
    response.headers_mut().insert("x-answer", "yes".parse().expect("it is valid"));
    Ok(response)
}

fn get(address: SocketAddr) -> Request<()> {
    Request::get(format!("http://{address}/a")).body(()).expect("it is valid")
}

#[tokio::test]
async fn the_second_request_takes_the_first_ones_connection() {
    let (address, _server) = echo().await;
    let client = Client::builder().build().expect("defaults are valid");
    let first = client.send(get(address)).await.expect("it is answered");
    let first = *first.body().exchange();
    let second = client.send(get(address)).await.expect("it is answered");
    let second = *second.body().exchange();
    assert_eq!((first.reuse, second.reuse), (Some(Reuse::New), Some(Reuse::Reused)));
    assert_eq!(first.connection, second.connection);
    assert_eq!(first.local, second.local);
    assert_eq!(second.remote, Some(address));
    assert_eq!((second.protocol, second.sent), (Some(Protocol::Http1), Sent::Sent));
    assert!(first.connect.is_some() && second.connect.is_none());
    assert!(second.request_sent <= second.first_byte && second.first_byte <= second.complete);
    let metrics = client.pool_metrics().total;
    assert_eq!((metrics.hits, metrics.misses, metrics.idle, metrics.active), (1, 1, 1, 0));
}

#[tokio::test]
async fn bodies_go_both_ways_in_one_piece_or_many() {
    let (address, _server) = echo().await;
    let client = Client::new();
    let long = "x".repeat(300_000);
    let pieces = |text: &str| {
        let pieces: Vec<Result<Bytes, Infallible>> =
            text.as_bytes().chunks(7_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        futures::stream::iter(pieces)
    };
    for (body, expected) in [
        (RequestBody::empty(), ""),
        (RequestBody::from("short"), "short"),
        (RequestBody::from(long.clone()), &*long),
        (RequestBody::stream(pieces(&long), None), &*long),
        (RequestBody::stream(pieces(&long), Some(300_000)), &*long),
    ] {
        let what = format!("{body:?}");
        let request = Request::post(format!("http://{address}/b")).header("x-ask", "me").body(body);
        let response = client.send(request.expect("it is valid")).await.expect("it is answered");
        assert_eq!(response.headers()["x-answer"], "yes");
        let body = response.into_body().bytes(1_000_000).await.expect("it arrives");
        assert!(body == format!("POST /b me {expected}"), "{what}: {} bytes came back", body.len());
    }
    assert_eq!(client.pool_metrics().total.misses, 1, "all of them went over one connection");
}

#[tokio::test]
async fn a_body_beyond_what_the_caller_wants_is_an_error() {
    let (address, _server) = echo().await;
    let client = Client::new();
    for length in [100, 300_000] {
        let request =
            Request::post(format!("http://{address}/")).body("x".repeat(length)).expect("it is valid");
        let response = client.send(request).await.expect("it is answered");
        assert!(response.into_body().bytes(50).await.is_err());
    }
}

#[tokio::test]
async fn through_azures_trait_the_record_comes_beside_the_response() {
    let (address, _server) = echo().await;
    let client: Box<dyn HttpClient> = Box::new(Client::new());
    let url = Url::parse(&format!("http://{address}/dbs?q=1")).expect("it is valid");
    let mut request = AzureRequest::new(url, Method::Put);
    request.insert_header("x-ask", "azure");
    request.set_body("hello");
    for reuse in [Reuse::New, Reuse::Reused] {
        let (record, response) = observe(client.execute_request(&request)).await;
        let response = response.expect("it is answered");
        assert_eq!(record.reuse, Some(reuse));
        assert_eq!(record.sent, Sent::Sent);
        assert!(record.first_byte.is_some());
        assert_eq!(response.headers().get_optional_str(&"x-answer".into()), Some("yes"));
        let body = response.into_body().collect_string().await.expect("it arrives");
        assert_eq!(body, "PUT /dbs azure hello");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let client = Client::new();
    let mut call = Box::pin(client.send(get(address)));
    let (mut peer, _) = tokio::select! {
        _ = &mut call => panic!("nobody answers"),
        accepted = listener.accept() => accepted.expect("it connects"),
    };
    let mut request = Vec::new();
    // The call must be polled for its request to be sent.
    tokio::select! {
        _ = &mut call => panic!("nobody answers"),
        _ = async { while !request.ends_with(b"\r\n\r\n") {
            tokio::io::AsyncReadExt::read_buf(&mut peer, &mut request).await.expect("it is sent");
        } } => {}
    }
    drop(call);
    let end = tokio::io::AsyncReadExt::read_buf(&mut peer, &mut request).await;
    assert_eq!(end.unwrap_or(0), 0, "the connection is closed");
    let metrics = client.pool_metrics().total;
    assert_eq!((metrics.idle, metrics.active, metrics.discards), (0, 0, 1));
}
