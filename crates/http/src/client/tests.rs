//! The client against a correct server. Faulty servers are in `tests/it`.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use azure_core::http::{HttpClient, Method, Request as AzureRequest, Url};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::request_body::RequestBody;
use crate::trace::{Protocol, Reuse, Sent, Step, observe};
use crate::{Client, ClientBuilder, ErrorKind, Proxy, Resolve, Resolving};

/// The stream limit of Azure services.
const STREAMS_MAX: u32 = 20;

/// The TLS configuration of a server for `localhost`, and the certificate to trust.
fn tls(protocols: &[&str]) -> (tokio_rustls::TlsAcceptor, rustls::pki_types::CertificateDer<'static>) {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate can be made");
    let certificate = made.cert.der().clone();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows them")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .expect("they belong together");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    (tokio_rustls::TlsAcceptor::from(Arc::new(config)), certificate)
}

/// As [`echo`], over TLS. Returns the URL of the server, and a builder that trusts it.
async fn echo_tls(protocols: &[&str]) -> (String, ClientBuilder, JoinSet<()>) {
    let (acceptor, certificate) = tls(protocols);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let mut serve = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                serve.http2().max_concurrent_streams(STREAMS_MAX);
                // An error means that the client closed the connection.
                let _ = serve.serve_connection(TokioIo::new(stream), service_fn(respond)).await;
            });
        }
    });
    (format!("https://localhost:{port}"), Client::builder().trust_only([certificate]), tasks)
}

/// Starts a server that responds with the method, path, header `x-echo` and body of each request. It ends when its tasks
/// are dropped.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(async move {
                let serve = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                // An error means that the client closed the connection.
                let _ = serve.serve_connection(TokioIo::new(stream), service_fn(respond)).await;
            });
        }
    });
    (address, tasks)
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let header = parts.headers.get("x-echo").and_then(|value| value.to_str().ok()).unwrap_or("-");
    let head = format!("{} {} {header} ", parts.method, parts.uri.path());
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut response = Response::new(Full::from([head.as_bytes(), &body].concat()));
    response.headers_mut().insert("x-response", "yes".parse().expect("it is valid"));
    Ok(response)
}

fn get(address: SocketAddr) -> Request<()> {
    Request::get(format!("http://{address}/a")).body(()).expect("it is valid")
}

#[tokio::test]
async fn the_second_request_reuses_the_connection_of_the_first() {
    let (address, _server) = echo().await;
    let client = Client::builder().build().expect("defaults are valid");
    let first = client.send(get(address)).await.expect("it succeeds");
    let first = *first.body().trace();
    let second = client.send(get(address)).await.expect("it succeeds");
    let second = *second.body().trace();
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

/// A text as a stream of chunks.
fn chunks(text: &str) -> impl futures::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let chunks: Vec<Result<Bytes, Infallible>> =
        text.as_bytes().chunks(7_000).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    futures::stream::iter(chunks)
}

#[tokio::test]
async fn bodies_are_sent_and_received_in_one_chunk_or_many() {
    let (address, _server) = echo().await;
    let client = Client::new();
    let long = "x".repeat(300_000);
    for (body, expected) in [
        (RequestBody::empty(), ""),
        (RequestBody::from("short"), "short"),
        (RequestBody::from(long.clone()), &*long),
        (RequestBody::stream(chunks(&long), None), &*long),
        (RequestBody::stream(chunks(&long), Some(300_000)), &*long),
    ] {
        let what = format!("{body:?}");
        let request = Request::post(format!("http://{address}/b")).header("x-echo", "me").body(body);
        let response = client.send(request.expect("it is valid")).await.expect("it succeeds");
        assert_eq!(response.headers()["x-response"], "yes");
        let body = response.into_body().bytes(1_000_000).await.expect("it arrives");
        assert!(body == format!("POST /b me {expected}"), "{what}: {} bytes came back", body.len());
    }
    assert_eq!(client.pool_metrics().total.misses, 1, "all of them used one connection");
}

#[tokio::test]
async fn a_body_above_the_limit_of_the_caller_is_an_error() {
    let (address, _server) = echo().await;
    let client = Client::new();
    for length in [100, 300_000] {
        let request =
            Request::post(format!("http://{address}/")).body("x".repeat(length)).expect("it is valid");
        let response = client.send(request).await.expect("it succeeds");
        assert!(response.into_body().bytes(50).await.is_err());
    }
}

#[tokio::test]
async fn the_trace_is_returned_through_the_trait_of_azure_core() {
    let (address, _server) = echo().await;
    let client: Box<dyn HttpClient> = Box::new(Client::new());
    let url = Url::parse(&format!("http://{address}/dbs?q=1")).expect("it is valid");
    let mut request = AzureRequest::new(url, Method::Put);
    request.insert_header("x-echo", "azure");
    request.set_body("hello");
    for reuse in [Reuse::New, Reuse::Reused] {
        let (trace, response) = observe(client.execute_request(&request)).await;
        let response = response.expect("it succeeds");
        assert_eq!(trace.reuse, Some(reuse));
        assert_eq!(trace.sent, Sent::Sent);
        assert!(trace.first_byte.is_some());
        assert_eq!(response.headers().get_optional_str(&"x-response".into()), Some("yes"));
        let body = response.into_body().collect_string().await.expect("it arrives");
        assert_eq!(body, "PUT /dbs azure hello");
    }
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let client = Client::new();
    let mut call = Box::pin(client.send(get(address)));
    let (mut peer, _) = tokio::select! {
        _ = &mut call => panic!("no response was sent"),
        accepted = listener.accept() => accepted.expect("it connects"),
    };
    let mut request = Vec::new();
    // The call must be polled for its request to be sent.
    tokio::select! {
        _ = &mut call => panic!("no response was sent"),
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

#[tokio::test]
async fn alpn_chooses_the_protocol_unless_the_caller_does() {
    let http1 = Some(Protocol::Http1);
    let http2 = Some(Protocol::Http2);
    for (offered, required, expected) in [
        (&["h2", "http/1.1"][..], None, Ok(Protocol::Http2)),
        (&["http/1.1"], None, Ok(Protocol::Http1)),
        (&[], None, Ok(Protocol::Http1)),
        (&["h2", "http/1.1"], http1, Ok(Protocol::Http1)),
        (&["h2"], http2, Ok(Protocol::Http2)),
        (&["http/1.1"], http2, Err(Step::Tls)),
        (&[], http2, Err(Step::Tls)),
    ] {
        let (url, builder, _server) = echo_tls(offered).await;
        let client = builder.build().expect("it is valid");
        for round in 0..2 {
            let request = Request::get(format!("{url}/a")).body(()).expect("it is valid");
            let mut sent = observe(client.send(request));
            if let Some(required) = required {
                sent = sent.with_protocol(required);
            }
            let (trace, response) = sent.await;
            let found = response.as_ref().map(|_| trace.protocol.expect("a protocol was negotiated"));
            let found = found.map_err(|error| (error.step(), error.sent()));
            let expected = expected.map_err(|step| (step, Sent::NotSent));
            assert_eq!(found, expected, "{offered:?} offered, {required:?} required, round {round}");
            let reuse = if round == 0 { Reuse::New } else { Reuse::Reused };
            if let Ok(response) = response {
                assert_eq!(trace.reuse, Some(reuse));
                assert_eq!(trace.tls.is_some(), round == 0);
                let body = response.into_body().bytes(100).await.expect("it arrives");
                assert_eq!(body, "GET /a - ");
            }
        }
    }
}

#[tokio::test]
async fn many_requests_share_one_connection_within_the_stream_limit() {
    let (url, builder, _server) = echo_tls(&["h2"]).await;
    let client = builder.build().expect("it is valid");
    let requests = (0..10 * STREAMS_MAX).map(|_| async {
        let request =
            Request::post(format!("{url}/b")).header("x-echo", "me").body("hello").expect("it is valid");
        let response = client.send(request).await.expect("none is refused");
        let connection = response.body().trace().connection;
        assert_eq!(response.into_body().bytes(100).await.expect("it arrives"), "POST /b me hello");
        connection
    });
    let mut connections = futures::future::join_all(requests).await;
    connections.dedup();
    assert_eq!(connections.len(), 1, "{connections:?}");
}

#[tokio::test]
async fn the_number_of_http2_connections_is_configurable() {
    let (url, builder, _server) = echo_tls(&["h2"]).await;
    let client = builder.http2_connections(3).build().expect("it is valid");
    let requests = (0..3 * STREAMS_MAX).map(|_| async {
        let request = Request::get(format!("{url}/held")).body(()).expect("it is valid");
        client.send(request).await.expect("it succeeds").into_body().trace().connection
    });
    let mut connections = futures::future::join_all(requests).await;
    connections.sort_unstable();
    connections.dedup();
    assert!((2..=3).contains(&connections.len()), "{connections:?}");
}

#[tokio::test]
async fn bodies_are_sent_and_received_over_http2() {
    let (url, builder, _server) = echo_tls(&["h2"]).await;
    let client = builder.build().expect("it is valid");
    let long = "x".repeat(3_000_000);
    for (body, expected) in [
        (RequestBody::empty(), ""),
        (RequestBody::from("short"), "short"),
        (RequestBody::from(long.clone()), &*long),
        (RequestBody::stream(chunks(&long), None), &*long),
        (RequestBody::stream(chunks(&long), Some(3_000_000)), &*long),
        (RequestBody::stream(chunks(""), Some(0)), ""),
        (RequestBody::stream(chunks(""), None), ""),
    ] {
        let what = format!("{body:?}");
        let request = Request::put(format!("{url}/b")).body(body).expect("it is valid");
        let response = client.send(request).await.expect("it succeeds");
        let body = response.into_body().bytes(4_000_000).await.expect("it arrives");
        assert!(body == format!("PUT /b - {expected}"), "{what}: {} bytes came back", body.len());
    }
}

#[tokio::test]
async fn http2_is_used_over_plain_tcp_if_configured() {
    let (address, _server) = echo().await;
    let client = Client::builder().protocol(Protocol::Http2).build().expect("it is valid");
    let response = client.send(get(address)).await.expect("it succeeds");
    assert_eq!(response.body().trace().protocol, Some(Protocol::Http2));
    assert_eq!(response.version(), http::Version::HTTP_2);
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_not_trusted() {
    let (url, _, _server) = echo_tls(&["h2"]).await;
    let request = || Request::get(format!("{url}/")).body(()).expect("it is valid");
    let (_, other) = tls(&[]);
    let client = Client::builder().trust_only([other]).build().expect("it is valid");
    let error = client.send(request()).await.expect_err("it is not trusted");
    assert_eq!((error.kind(), error.step(), error.sent()), (ErrorKind::Untrusted, Step::Tls, Sent::NotSent));

    let accepting = Client::builder().danger_accept_invalid_certificates().build().expect("it is valid");
    accepting.send(request()).await.expect("any certificate is accepted");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_not_trusted() {
    let (url, builder, _server) = echo_tls(&["http/1.1"]).await;
    let client = builder.build().expect("it is valid");
    let url = url.replace("localhost", "127.0.0.1");
    let error =
        client.send(Request::get(url).body(()).expect("it is valid")).await.expect_err("not its name");
    assert_eq!((error.kind(), error.step(), error.sent()), (ErrorKind::Untrusted, Step::Tls, Sent::NotSent));
}

#[tokio::test]
async fn the_tasks_of_a_client_end_with_it() {
    let (url, builder, _server) = echo_tls(&["h2"]).await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let client = builder.build().expect("it is valid");
    let response = client.send(Request::get(&url).body(()).expect("it is valid")).await.expect("it succeeds");
    drop(response);
    let clone = client.clone();
    drop(client);
    let with_driver = tasks();
    drop(clone);
    // The driver task ends at its next poll, and then the task of the server. Each yield lets them run.
    while tasks() + 1 > with_driver {
        tokio::task::yield_now().await;
    }
}

/// Starts a proxy that connects every client to `target`, and passes on the CONNECT requests.
async fn proxy(target: SocketAddr) -> (SocketAddr, tokio::sync::mpsc::Receiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let (sender, requests) = tokio::sync::mpsc::channel(8);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut tunnels = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let sender = sender.clone();
            tunnels.spawn(async move {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let read = client.read_buf(&mut request).await.expect("the client sends CONNECT");
                    assert_ne!(read, 0, "the client sends all of it");
                }
                let request = String::from_utf8(request).expect("it is text");
                sender.send(request).await.expect("the test receives it");
                let mut server = tokio::net::TcpStream::connect(target).await.expect("the target listens");
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.expect("it is open");
                // Ends when either side closes; with an error if the test is over.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (address, requests, tasks)
}

#[tokio::test]
async fn a_proxy_tunnels_http_and_https() {
    let (plain, _plain_server) = echo().await;
    let (secure, builder, _secure_server) = echo_tls(&["h2"]).await;
    let secure_port: u16 = secure.rsplit_once(':').expect("it has a port").1.parse().expect("it is a number");
    for (url, target, protocol) in [
        (format!("http://localhost:{}/a", plain.port()), plain, Protocol::Http1),
        (format!("{secure}/a"), SocketAddr::from(([127, 0, 0, 1], secure_port)), Protocol::Http2),
    ] {
        let (proxy, mut requests, _proxy) = proxy(target).await;
        let proxy_url = format!("http://me:secret@{proxy}");
        let client = builder.clone().proxy(Proxy::new(&proxy_url).expect("it is valid"));
        let client = client.build().expect("it is valid");
        for round in 0..2 {
            let request = Request::get(&url).body(()).expect("it is valid");
            let response = client.send(request).await.expect("the proxy connects");
            let trace = *response.body().trace();
            assert_eq!((trace.remote, trace.protocol), (Some(proxy), Some(protocol)), "{url}");
            assert_eq!(trace.reuse == Some(Reuse::Reused), round == 1, "{url}");
            assert_eq!(response.into_body().bytes(100).await.expect("it arrives"), "GET /a - ");
        }
        let connect = requests.recv().await.expect("the proxy got a request");
        assert!(
            connect.starts_with(&format!("CONNECT localhost:{} HTTP/1.1\r\n", target.port())),
            "{connect}"
        );
        assert!(connect.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{connect}");
        assert!(requests.try_recv().is_err(), "the second request reused the tunnel of the first");
    }
}

/// A resolver that returns these addresses, or never completes.
#[derive(Debug)]
struct Resolver(Option<Vec<SocketAddr>>);

impl Resolve for Resolver {
    fn resolve<'a>(&'a self, host: &'a str, _port: u16) -> Resolving<'a> {
        assert_eq!(host, "account.example");
        Box::pin(async move {
            match &self.0 {
                Some(addresses) => Ok(addresses.clone()),
                None => std::future::pending().await,
            }
        })
    }
}

#[tokio::test]
async fn names_are_resolved_by_the_configured_resolver() {
    let (address, _server) = echo().await;
    let refusing =
        TcpListener::bind("127.0.0.1:0").await.expect("it is free").local_addr().expect("it is bound");
    let request = || Request::get("http://Account.example/a").body(()).expect("it is valid");
    let client = Client::builder().no_proxy().resolver(Resolver(Some(vec![refusing, address])));
    let response =
        client.build().expect("it is valid").send(request()).await.expect("the second address listens");
    let trace = response.body().trace();
    assert!(trace.dns.is_some() && trace.dns <= trace.connect);
    assert_eq!(trace.remote, Some(address));

    for (resolver, kind, step) in [
        (Resolver(Some(vec![])), ErrorKind::Unreachable, Step::Connect),
        (Resolver(Some(vec![refusing])), ErrorKind::Unreachable, Step::Connect),
        (Resolver(None), ErrorKind::TimedOut, Step::Dns),
    ] {
        let what = format!("{resolver:?}");
        let client =
            Client::builder().no_proxy().resolver(resolver).connect_timeout(Duration::from_millis(50));
        let error =
            client.build().expect("it is valid").send(request()).await.expect_err("no address listens");
        assert_eq!((error.kind(), error.step(), error.sent()), (kind, step, Sent::NotSent), "{what}");
    }
}

#[tokio::test]
async fn a_call_whose_deadline_has_passed_is_not_sent() {
    let (address, _server) = echo().await;
    let client = Client::new();
    // Leaves an idle connection.
    client.send(get(address)).await.expect("it succeeds");
    let (trace, sent) = observe(client.send(get(address))).with_deadline(crate::clock::now()).await;
    let error = sent.expect_err("the deadline has passed");
    assert_eq!((error.kind(), error.sent()), (ErrorKind::TimedOut, Sent::NotSent));
    assert_eq!(trace, *error.trace());
    assert_eq!(client.pool_metrics().total.idle, 1, "the connection is still idle");
}

#[tokio::test]
async fn a_client_with_a_separate_pool_has_its_own_connections() {
    let (url, builder, _server) = echo_tls(&["h2"]).await;
    let client = builder.build().expect("it is valid");
    let mut connections = Vec::new();
    for client in [&client, &client.with_separate_pool(), &client.clone()] {
        let request = Request::get(&url).body(()).expect("it is valid");
        connections.push(client.send(request).await.expect("it succeeds").body().trace().connection);
    }
    assert_ne!(connections[0], connections[1]);
    assert_eq!(connections[0], connections[2]);
}

#[tokio::test]
async fn invalid_urls_are_rejected() {
    let client = Client::new();
    for uri in ["/path/alone", "ftp://host/", "http://host:99999/"] {
        let Ok(request) = Request::get(uri).body(()) else { continue };
        let error = client.send(request).await.expect_err("it has no valid origin");
        assert_eq!(
            (error.kind(), error.step(), error.sent()),
            (ErrorKind::Invalid, Step::Prepare, Sent::NotSent)
        );
    }
}

#[test]
fn the_future_of_a_call_is_small() {
    let client = Client::new();
    let request = Request::get("http://host/").body(()).expect("it is valid");
    let size = size_of_val(&client.send(request));
    assert!(size <= 3_000, "a call takes {size} bytes");
}

#[tokio::test]
async fn a_call_without_cooperative_budget_is_polled_again() {
    // Once a task has used up its cooperative budget, tokio reports everything as pending. Wherever in a call that
    // happens, the call must be woken again.
    let (address, _server) = echo().await;
    let client = Client::builder().no_proxy().first_byte_timeout(Duration::from_secs(20));
    let client = client.build().expect("it is valid");
    let mut polls = 0;
    for round in 0..300 {
        let connection = if round % 2 == 0 { "keep-alive" } else { "close" };
        let request = Request::get(format!("http://{address}/a")).header("connection", connection);
        let mut call = std::pin::pin!(client.send(request.body(()).expect("it is valid")));
        let response = std::future::poll_fn(|cx| {
            polls += 1;
            // Uses up a different part of the budget first.
            for _ in 0..(polls * 5) % 131 {
                if let std::task::Poll::Ready(budget) = tokio::task::coop::poll_proceed(cx) {
                    budget.made_progress();
                }
            }
            call.as_mut().poll(cx)
        });
        response.await.expect("it succeeds");
    }
}
