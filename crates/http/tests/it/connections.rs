//! The life of connections: how many a host has, for how long one is used, and what is sent on an idle one.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use perihelion_http::pool::PoolConfig;
use perihelion_http::trace::{Protocol, RequestTrace};
use perihelion_http::{Resolve, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::certificates::CertificateAuthority;
use crate::client::{builder, get, get_traced};
use crate::server::{Server, TEST_TIMEOUT};

/// A correct server, of HTTP/1.1 or HTTP/2 as each connection negotiates. It sends the second half of `/slow` when
/// `slow` has a permit.
pub(crate) fn server(
    tls: impl Fn(usize) -> Option<TlsAcceptor> + Send + 'static,
    slow: &Arc<Semaphore>,
) -> Server {
    let (slow, scheme) = (Arc::clone(slow), if tls(0).is_some() { "https" } else { "http" });
    Server::start(scheme, move |number, stream, _| {
        let (tls, slow) = (tls(number), Arc::clone(&slow));
        let service = service_fn(move |request: Request<Incoming>| {
            let slow = Arc::clone(&slow);
            async move {
                let is_slow = request.uri().path() == "/slow";
                let chunks = futures::stream::unfold(0, move |sent| {
                    let slow = Arc::clone(&slow);
                    async move {
                        if sent == 1 && is_slow {
                            slow.acquire().await.expect("it is never closed").forget();
                        }
                        let chunk = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"half")));
                        (sent < 2).then_some((chunk, sent + 1))
                    }
                });
                Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(chunks))))
            }
        });
        async move {
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // Ends with the client's connection.
            let _ = match tls {
                None => builder.serve_connection(TokioIo::new(stream), service).await,
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => builder.serve_connection(TokioIo::new(stream), service).await,
                    Err(_) => Ok(()),
                },
            };
        }
    })
}

fn plain_server() -> Server {
    server(|_| None, &Arc::new(Semaphore::new(0)))
}

#[tokio::test]
async fn above_max_hosts_the_host_that_was_not_used_for_longest_is_closed() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let servers = [plain_server(), plain_server(), plain_server()];
        let pool = PoolConfig::builder().max_hosts(2).build().expect("it is valid");
        let client = builder().protocol(protocol).pool(pool).build().expect("it is valid");
        let send = async |number: usize| {
            get(&client, &servers[number].url("/")).await.expect("it is served");
        };
        send(0).await;
        send(1).await;
        send(0).await;
        // The second was not used for longest.
        send(2).await;
        servers[1].until("its connection is closed", |log| log.ended == 1).await;
        send(0).await;
        let accepted = servers.each_ref().map(|server| server.log().accepted);
        assert_eq!(accepted, [1, 1, 1], "{protocol}: the others keep their connections");
        if protocol == Protocol::Http1 {
            assert_eq!(client.pool_metrics().hosts.len(), 2);
        }
    }
}

/// Resolves every name to a port that the test can change, on the loopback interface.
#[derive(Debug)]
struct Moving(Arc<AtomicU16>);

impl Resolve for Moving {
    fn resolve<'a>(&'a self, _host: &'a str, _port: u16) -> Resolving<'a> {
        let address = SocketAddr::from(([127, 0, 0, 1], self.0.load(Ordering::SeqCst)));
        Box::pin(async move { Ok(vec![address]) })
    }
}

#[tokio::test]
async fn a_busy_connection_is_replaced_at_its_age_and_follows_dns() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let slow = Arc::new(Semaphore::new(0));
        let (old, new) = (server(|_| None, &slow), plain_server());
        let port = Arc::new(AtomicU16::new(old.address().port()));
        let client = builder()
            .protocol(protocol)
            .resolver(Moving(Arc::clone(&port)))
            .max_connection_age(Some(Duration::from_millis(200)))
            .build()
            .expect("it is valid");
        let url = |path: &str| format!("http://account.example:1{path}");
        let (first, response) = get_traced(&client, &url("/")).await;
        response.expect("it is served");
        // Only HTTP/2 has other requests on the same connection.
        let mut in_progress = None;
        if protocol == Protocol::Http2 {
            let slow = client.send(Request::get(url("/slow")).body(()).expect("it is valid")).await;
            in_progress = Some(slow.expect("its first half has arrived").into_body());
        }
        port.store(new.address().port(), Ordering::SeqCst);
        let moved = async {
            loop {
                let (trace, response): (RequestTrace, _) = get_traced(&client, &url("/")).await;
                response.expect("no request fails while connections are replaced");
                if trace.remote == Some(new.address()) {
                    return;
                }
                assert_eq!(trace.connection, first.connection, "the connection is used until its age");
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, moved).await.expect("requests follow DNS");
        slow.add_permits(1);
        if let Some(in_progress) = in_progress {
            let body = in_progress.bytes(100).await.expect("what is in progress completes");
            assert_eq!(body, "halfhalf");
        }
        old.until("the old connections are closed", |log| log.ended == log.accepted).await;
    }
}

#[tokio::test]
async fn without_a_maximum_age_a_connection_stays() {
    let server = plain_server();
    let client = builder().max_connection_age(None).build().expect("it is valid");
    for _ in 0..3 {
        get(&client, &server.url("/")).await.expect("it is served");
    }
    assert_eq!(server.log().accepted, 1);
}

#[tokio::test]
async fn a_host_that_changes_to_http2_keeps_to_its_number_of_connections() {
    let authority = CertificateAuthority::new();
    let (http1, http2) =
        (authority.server("127.0.0.1", &["http/1.1"]), authority.server("127.0.0.1", &["h2"]));
    let slow = Arc::new(Semaphore::new(0));
    let server = server(move |number| Some(if number == 0 { http1.clone() } else { http2.clone() }), &slow);
    let client = builder().trust_only([authority.root()]).build().expect("it is valid");
    let (trace, response) = get_traced(&client, &server.url("/")).await;
    response.expect("it is served");
    assert_eq!(trace.protocol, Some(Protocol::Http1));
    let url = server.url("/");
    let traces = futures::future::join_all((0..10).map(|_| get_traced(&client, &url))).await;
    let mut connections = Vec::new();
    for (trace, response) in traces {
        response.expect("it is served");
        if trace.protocol == Some(Protocol::Http2) {
            connections.push(trace.connection);
        }
    }
    assert!(connections.len() >= 8, "the others found that the host speaks HTTP/2 now");
    connections.sort();
    connections.dedup();
    assert_eq!(connections.len(), 1, "one HTTP/2 connection is the maximum");
}

/// A server of frames that records each PING.
fn ping_recorder() -> Server {
    Server::start("http", |number, mut stream, log| async move {
        let mut hello = vec![0; 24];
        if stream.read_exact(&mut hello).await.is_err()
            || stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.is_err()
        {
            return;
        }
        let mut head = [0; 9];
        while stream.read_exact(&mut head).await.is_ok() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            if stream.read_exact(&mut payload).await.is_err() {
                return;
            }
            let answer = match head[3] {
                // HEADERS: `:status: 200` and the end of the stream.
                1 => [&[0, 0, 1, 1, 5], &head[5..], &[0x88]].concat(),
                6 => {
                    log.send_modify(|log| log.requests.push((number, "PING".to_owned())));
                    [&[0, 0, 8, 6, 1, 0, 0, 0, 0], payload.as_slice()].concat()
                }
                _ => continue,
            };
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    })
}

#[tokio::test]
async fn a_keepalive_of_zero_sends_no_pings() {
    let connected = async |interval: Duration, timeout: Duration| {
        let server = ping_recorder();
        let client = builder().protocol(Protocol::Http2).http2_keepalive(interval, timeout).build();
        let client = client.expect("it is valid");
        for _ in 0..200 {
            get(&client, &server.url("/")).await.expect("the connection stays open");
        }
        assert_eq!(server.log().accepted, 1);
        (server, client)
    };
    let (short, long) = (Duration::from_nanos(1), Duration::from_secs(30));
    let silent = [connected(Duration::ZERO, long).await, connected(short, Duration::ZERO).await];
    // A client with pings sends several meanwhile.
    let (pinged, _client) = connected(short, long).await;
    pinged.until("ten pings", |log| log.requests.len() >= 10).await;
    for (server, _client) in silent {
        assert_eq!(server.log().requests, []);
    }
}
