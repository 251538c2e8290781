//! HTTP/2 streams: many share one connection, requests wait for a free one, and a dropped call resets its stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::Response;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use perihelion_http::Client;
use perihelion_http::trace::{Protocol, Reuse};

use crate::cancellation::{poll_times, wait_for_tasks};
use crate::client::{builder, get, get_traced};
use crate::server::Server;

/// How many handlers of the server run at once, now and at most.
#[derive(Clone, Default)]
struct Concurrency {
    now: Arc<AtomicUsize>,
    max: Arc<AtomicUsize>,
}

impl Concurrency {
    fn begin(&self) -> Guard {
        let now = self.now.fetch_add(1, Ordering::AcqRel) + 1;
        self.max.fetch_max(now, Ordering::AcqRel);
        Guard(self.clone())
    }
}

struct Guard(Concurrency);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A server that responds slowly, in many chunks, and allows this many streams.
fn server(streams: u32, concurrency: &Concurrency) -> Server {
    let concurrency = concurrency.clone();
    Server::start("http", move |_, stream, _| {
        let concurrency = concurrency.clone();
        let service = service_fn(move |_| {
            let guard = concurrency.begin();
            async move {
                let chunks = futures::stream::unfold((0, guard), |(sent, guard)| async move {
                    tokio::task::yield_now().await;
                    let chunk = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"chunk")));
                    (sent < 5).then(|| (chunk, (sent + 1, guard)))
                });
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(chunks))))
            }
        });
        async move {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(streams)
                .serve_connection(TokioIo::new(stream), service);
            // An error means that the client closed the connection, which the test checks elsewhere.
            let _ = connection.await;
        }
    })
}

fn client() -> Client {
    builder().protocol(Protocol::Http2).build().expect("it is valid")
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let server = server(100, &Concurrency::default());
    let (client, url) = (client(), server.url("/"));
    let responses = futures::future::join_all((0..50).map(|_| get_traced(&client, &url))).await;
    assert!(responses.iter().all(|(_, response)| response.is_ok()), "{responses:?}");
    assert_eq!(server.log().accepted, 1);
    assert_eq!(responses.iter().filter(|(trace, _)| trace.reuse == Some(Reuse::New)).count(), 1);
}

#[tokio::test]
async fn requests_above_the_stream_limit_of_the_server_wait() {
    let concurrency = Concurrency::default();
    let server = server(3, &concurrency);
    let (client, url) = (client(), server.url("/"));
    // The first response brings the limit.
    assert!(get(&client, &url).await.is_ok());
    let responses = futures::future::join_all((0..40).map(|_| get(&client, &url))).await;
    assert!(responses.iter().all(Result::is_ok), "{responses:?}");
    assert!(concurrency.max.load(Ordering::Acquire) <= 3);
    assert_eq!(server.log().accepted, 1);
}

/// With a limit of one stream, a permit that is not returned would block all later requests.
#[tokio::test]
async fn a_call_that_is_dropped_at_any_await_returns_its_stream_permit() {
    let concurrency = Concurrency::default();
    let server = server(1, &concurrency);
    let (client, url) = (client(), server.url("/"));
    let mut last = 0;
    for polls in 0.. {
        let ended = poll_times(polls, get(&client, &url)).await.is_some();
        // Only the driver task of the connection is left.
        wait_for_tasks(1, &format!("dropped after {polls} polls")).await;
        last = polls;
        if ended {
            break;
        }
        assert!(get(&client, &url).await.is_ok(), "dropped after {polls} polls, the next one is stuck");
    }
    assert!(last >= 2, "{last} polls are too few for connecting and responding");
    drop(client);
    wait_for_tasks(0, "the client is gone").await;
    server.until("its connections are closed", |log| log.ended == log.accepted).await;
    assert_eq!(concurrency.now.load(Ordering::Acquire), 0, "no stream is left open");
}
