//! HTTP/2 against servers that close, refuse, reset or stall.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::ClientBuilder;
use crate::client::Client;
use crate::error::ErrorKind;
use crate::request_body::RequestBody;
use crate::trace::{Protocol, Reuse, Sent, Step};

type ReceivedRequest = (Request<RecvStream>, SendResponse<Bytes>);
type Connection = server::Connection<TcpStream, Bytes>;

/// Starts a server that runs `serve` for each connection, with the number of the connection.
async fn server<F>(serve: impl Fn(usize, TcpStream) -> F + Send + 'static) -> (SocketAddr, JoinSet<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            connections.spawn(serve(number, stream));
        }
    });
    (address, tasks)
}

async fn handshake(stream: TcpStream) -> Connection {
    server::handshake(stream).await.expect("the client speaks HTTP/2")
}

/// Drives a connection until it ends.
async fn drive(mut connection: Connection) {
    while connection.accept().await.is_some() {}
}

fn ok(mut respond: SendResponse<Bytes>) {
    let mut stream = respond.send_response(Response::new(()), false).expect("the stream is open");
    stream.send_data(Bytes::from_static(b"ok"), true).expect("the stream is open");
}

fn builder() -> ClientBuilder {
    Client::builder().protocol(Protocol::Http2).no_proxy()
}

fn client() -> Client {
    builder().build().expect("it is valid")
}

fn get(address: SocketAddr) -> Request<()> {
    Request::get(format!("http://{address}/")).body(()).expect("it is valid")
}

async fn next(connection: &mut Connection) -> ReceivedRequest {
    connection.accept().await.expect("a request arrives").expect("it is valid")
}

#[tokio::test]
async fn after_goaway_requests_in_progress_complete_and_new_ones_use_a_new_connection() {
    let (address, _server) = server(|number, stream| async move {
        let mut connection = handshake(stream).await;
        let (_, first) = next(&mut connection).await;
        if number == 0 {
            let (_, second) = next(&mut connection).await;
            ok(first);
            connection.graceful_shutdown();
            // The GOAWAY is sent before the second response.
            ok(second);
        } else {
            ok(first);
        }
        drive(connection).await;
    })
    .await;
    let client = client();
    let (first, second) = tokio::join!(client.send(get(address)), client.send(get(address)));
    let connection = |response: Response<crate::ResponseBody>| response.body().trace().connection;
    let first = connection(first.expect("it succeeds"));
    assert_eq!(first, connection(second.expect("it was in progress")));
    // The next one succeeds, whether or not the GOAWAY has arrived.
    let third = client.send(get(address)).await.expect("it succeeds");
    let trace = *third.body().trace();
    assert_ne!(trace.connection, first);
    assert_eq!(trace.sent, Sent::Sent);
}

#[tokio::test]
async fn a_refused_stream_is_safe_to_repeat() {
    let (address, _server) = server(|_, stream| async move {
        let mut connection = handshake(stream).await;
        let (_, mut first) = next(&mut connection).await;
        first.send_reset(Reason::REFUSED_STREAM);
        let (_, second) = next(&mut connection).await;
        ok(second);
        drive(connection).await;
    })
    .await;
    let client = client();
    let error = client.send(get(address)).await.expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_ne!(error.sent(), Sent::NotSent, "it was sent, but not processed");
    assert!(error.safe_to_repeat());
    let response = client.send(get(address)).await.expect("the connection stays open");
    assert_eq!(response.body().trace().reuse, Some(Reuse::Reused));
}

#[tokio::test]
async fn a_stream_above_the_last_stream_id_of_a_goaway_was_refused() {
    let (address, _server) = server(|_, mut stream| async move {
        // Raw frames: SETTINGS, and after the request a GOAWAY whose last stream id is 0.
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        stream.write_all(&settings).await.expect("the client listens");
        let mut received = vec![0; 1024];
        // Preface, settings and window update come before the headers, whose type is 1.
        let mut length = 0;
        while !has_headers(&received[..length]) {
            length += stream.read(&mut received[length..]).await.expect("the client sends");
        }
        let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        stream.write_all(&goaway).await.expect("the client listens");
        // Waits until the client closes the connection.
        let _ = stream.read(&mut received).await;
    })
    .await;
    let error = client().send(get(address)).await.expect_err("it is above the last stream id");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.safe_to_repeat());
}

/// Whether frames after the client's preface include HEADERS.
fn has_headers(received: &[u8]) -> bool {
    let Some(mut frames) = received.strip_prefix(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") else { return false };
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
        if *kind == 1 {
            return true;
        }
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        frames = rest.get(length..).unwrap_or_default();
    }
    false
}

#[tokio::test]
async fn a_reset_or_close_is_reported_with_the_step_that_was_reached() {
    #[derive(Clone, Copy, Debug)]
    enum Ends {
        Reset,
        ResetInBody,
        Close,
        CloseInBody,
    }
    for (ends, step) in [
        (Ends::Reset, Step::FirstByte),
        (Ends::ResetInBody, Step::Body),
        (Ends::Close, Step::FirstByte),
        (Ends::CloseInBody, Step::Body),
    ] {
        let (address, _server) = server(move |_, stream| async move {
            let mut connection = handshake(stream).await;
            let (_, mut respond) = next(&mut connection).await;
            match ends {
                Ends::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
                Ends::Close => return,
                Ends::ResetInBody | Ends::CloseInBody => {
                    let mut stream = respond.send_response(Response::new(()), false).expect("it is open");
                    stream.send_data(Bytes::from_static(b"half"), false).expect("it is open");
                    // Lets h2 send the first half. What `accept` returns does not matter.
                    for _ in 0..20 {
                        let _ = connection.accept().now_or_never();
                        tokio::task::yield_now().await;
                    }
                    match ends {
                        Ends::ResetInBody => stream.send_reset(Reason::INTERNAL_ERROR),
                        _ => return,
                    }
                }
            }
            drive(connection).await;
        })
        .await;
        let client = client();
        let error = match client.send(get(address)).await {
            Err(error) => error,
            Ok(response) => response.into_body().bytes(100).await.expect_err("the body is incomplete"),
        };
        assert_eq!((error.kind(), error.step()), (ErrorKind::Closed, step), "{ends:?}: {error}");
        assert_eq!(error.sent(), Sent::Sent, "{ends:?}");
        assert!(!error.safe_to_repeat(), "{ends:?}");
    }
}

#[tokio::test]
async fn dropping_a_call_or_a_body_resets_its_stream_only() {
    let (sender, mut resets) = mpsc::channel(4);
    let (address, _server) = server(move |_, stream| {
        let sender = sender.clone();
        async move {
            let mut connection = handshake(stream).await;
            let (_, mut first) = next(&mut connection).await;
            let (_, mut second) = next(&mut connection).await;
            let mut body = second.send_response(Response::new(()), false).expect("it is open");
            body.send_data(Bytes::from_static(b"half"), false).expect("it is open");
            let (_, third) = next(&mut connection).await;
            ok(third);
            let resets = async {
                for reset in [
                    std::future::poll_fn(|cx| first.poll_reset(cx)).await,
                    std::future::poll_fn(|cx| body.poll_reset(cx)).await,
                ] {
                    sender.send(reset.expect("the connection is open")).await.expect("the test receives it");
                }
                std::future::pending::<()>().await
            };
            tokio::select! { () = resets => {} () = drive(connection) => {} }
        }
    })
    .await;
    let client = client();
    let mut first = Box::pin(client.send(get(address)));
    let second = tokio::select! {
        biased;
        _ = &mut first => panic!("no response was sent"),
        second = client.send(get(address)) => second.expect("its head has arrived"),
    };
    drop(first);
    drop(second);
    let third = client.send(get(address)).await.expect("the connection stays open");
    assert_eq!(third.body().trace().reuse, Some(Reuse::Reused));
    for _ in 0..2 {
        assert_eq!(resets.recv().await, Some(Reason::CANCEL));
    }
}

#[tokio::test]
async fn a_request_that_times_out_while_it_waits_for_a_stream_was_not_sent() {
    let (address, _server) = server(|_, stream| async move {
        let mut connection = server::Builder::new()
            .max_concurrent_streams(1)
            .handshake::<_, Bytes>(stream)
            .await
            .expect("the client speaks HTTP/2");
        let (_, first) = next(&mut connection).await;
        ok(first);
        let (_, held) = next(&mut connection).await;
        drive(connection).await;
        drop(held);
    })
    .await;
    let client = builder().connect_timeout(Duration::from_millis(100)).build().expect("it is valid");
    // The first response brings the SETTINGS of the server.
    client.send(get(address)).await.expect("it succeeds");
    let held = client.send(get(address));
    let waiting = client.send(get(address));
    let error = tokio::select! {
        biased;
        _ = held => panic!("no response was sent"),
        waiting = waiting => waiting.expect_err("no stream is free"),
    };
    let found = (error.kind(), error.step(), error.sent());
    assert_eq!(found, (ErrorKind::TimedOut, Step::Wait, Sent::NotSent));
}

#[tokio::test]
async fn a_server_that_stops_responding_is_detected_by_a_ping() {
    let (address, _server) = server(|_, stream| async move {
        let mut connection = handshake(stream).await;
        let request = next(&mut connection).await;
        // Stops reading and writing, without closing the connection.
        std::future::pending::<()>().await;
        drop((request, connection));
    })
    .await;
    let millis = Duration::from_millis;
    let client = builder().http2_keepalive(millis(50), millis(50)).build().expect("it is valid");
    let error = client.send(get(address)).await.expect_err("there is no response");
    assert_eq!((error.kind(), error.sent()), (ErrorKind::Closed, Sent::Sent), "{error}");
}

#[tokio::test]
async fn a_slow_server_that_acknowledges_pings_is_not_closed() {
    let millis = Duration::from_millis;
    let (address, _server) = server(move |_, stream| async move {
        let mut connection = handshake(stream).await;
        let (_, respond) = next(&mut connection).await;
        let late = async {
            tokio::time::sleep(millis(300)).await;
            ok(respond);
            std::future::pending::<()>().await
        };
        tokio::select! { () = late => {} () = drive(connection) => {} }
    })
    .await;
    let client = builder().http2_keepalive(millis(20), Duration::from_secs(5)).build().expect("it is valid");
    client.send(get(address)).await.expect("the response is late, but arrives");
}

#[tokio::test]
async fn a_request_without_a_response_ends_at_the_first_byte_timeout() {
    let (address, _server) = server(|_, stream| async move {
        let mut connection = handshake(stream).await;
        let request = next(&mut connection).await;
        drive(connection).await;
        drop(request);
    })
    .await;
    let client = builder().first_byte_timeout(Duration::from_millis(50)).build().expect("it is valid");
    let error = client.send(get(address)).await.expect_err("there is no response");
    assert_eq!((error.kind(), error.step()), (ErrorKind::TimedOut, Step::FirstByte));
    assert_eq!(error.sent(), Sent::Sent);
}

#[tokio::test]
async fn a_server_that_does_not_speak_http2_is_malformed() {
    let (address, _server) = server(|_, mut stream| async move {
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.expect("it listens");
        // Waits until the client closes the connection.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let error = client().send(get(address)).await.expect_err("it is not HTTP/2");
    assert_eq!(error.kind(), ErrorKind::Malformed, "{error}");
}

#[tokio::test]
async fn a_response_above_the_header_limits_is_malformed() {
    for (count, length) in [(60, 1), (3, 2000)] {
        let (address, _server) = server(move |_, stream| async move {
            let mut connection = handshake(stream).await;
            let (_, mut respond) = next(&mut connection).await;
            let mut response = Response::new(());
            for number in 0..count {
                let name = format!("x-{number}").parse::<http::HeaderName>().expect("it is valid");
                response.headers_mut().insert(name, "x".repeat(length).parse().expect("it is valid"));
            }
            respond.send_response(response, true).expect("it is open");
            drive(connection).await;
        })
        .await;
        let client = builder().header_limits(50, 4096).build().expect("it is valid");
        let error = client.send(get(address)).await.expect_err("they are too many");
        assert_eq!(error.kind(), ErrorKind::Malformed, "{count} of {length}: {error}");
    }
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_is_accepted() {
    let (address, _server) = server(|_, stream| async move {
        let mut connection = handshake(stream).await;
        let (request, mut respond) = next(&mut connection).await;
        drop(request);
        let response = Response::builder().status(413).body(()).expect("it is valid");
        respond.send_response(response, true).expect("it is open");
        // Without a reader of the request, h2 resets its stream with NO_ERROR.
        drop(respond);
        drive(connection).await;
    })
    .await;
    let endless = futures::stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[0; 16 * 1024])));
    let request = Request::post(format!("http://{address}/")).body(RequestBody::stream(endless, None));
    let response = client().send(request.expect("it is valid")).await.expect("it succeeds");
    assert_eq!(response.status(), 413);
    assert_eq!(response.body().trace().sent, Sent::MaybeSent);
}

#[tokio::test]
async fn an_error_of_the_request_body_fails_the_request() {
    let (address, _server) = server(|_, stream| async move {
        drive(handshake(stream).await).await;
    })
    .await;
    let fails = futures::stream::iter([Ok(Bytes::from_static(b"half")), Err("no more")]);
    let request = Request::post(format!("http://{address}/")).body(RequestBody::stream(fails, None));
    let error = client().send(request.expect("it is valid")).await.expect_err("half is not enough");
    assert_eq!((error.kind(), error.step()), (ErrorKind::RequestBody, Step::Send), "{error}");
}

#[tokio::test]
async fn waiting_requests_get_streams_in_fifo_order() {
    let (address, _server) = server(|_, stream| async move {
        let mut connection = server::Builder::new()
            .max_concurrent_streams(1)
            .handshake::<_, Bytes>(stream)
            .await
            .expect("the client speaks HTTP/2");
        while let Some(Ok((_, respond))) = connection.accept().await {
            ok(respond);
        }
    })
    .await;
    let client = client();
    // The first response brings the SETTINGS of the server.
    client.send(get(address)).await.expect("it succeeds").into_body().bytes(10).await.expect("it arrives");
    let served = std::sync::Mutex::new(Vec::new());
    // Each of them sends again as soon as it has its response, and must not overtake those that wait.
    let send = async |name: usize| {
        for _ in 0..10 {
            let response = client.send(get(address)).await.expect("no request times out");
            response.into_body().bytes(10).await.expect("it arrives");
            served.lock().expect("no test panics").push(name);
        }
    };
    tokio::join!(send(0), send(1), send(2));
    let served = served.into_inner().expect("no test panics");
    let rounds: Vec<&[usize]> = served.chunks(3).collect();
    assert_eq!(rounds, vec![[0, 1, 2]; 10], "they alternate");
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let (sender, mut closed) = mpsc::channel(1);
    let (address, _server) = server(move |_, stream| {
        let sender = sender.clone();
        async move {
            let mut connection = handshake(stream).await;
            let (_, respond) = next(&mut connection).await;
            ok(respond);
            drive(connection).await;
            // Fails if the test is over, which then needs no notice.
            let _ = sender.send(()).await;
        }
    })
    .await;
    let millis = Duration::from_millis;
    let builder =
        builder().http2_keepalive(millis(20), Duration::from_secs(5)).http2_idle_timeout(millis(50));
    let client = builder.build().expect("it is valid");
    let first = client.send(get(address)).await.expect("it succeeds");
    let first = first.body().trace().connection;
    closed.recv().await.expect("the connection is closed");
    let second = client.send(get(address)).await.expect("it succeeds");
    assert_ne!(second.body().trace().connection, first);
}
