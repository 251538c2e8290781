//! Many streams, one connection: shared, waited for, reset when dropped.

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
use perihelion_http::exchange::{Protocol, Reuse};

use crate::cancellation::{polled, until_tasks};
use crate::client::{builder, get, observed};
use crate::server::Server;

/// What the server's handlers count.
#[derive(Clone, Default)]
struct Busy {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Busy {
    fn begin(&self) -> Guard {
        let now = self.now.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(now, Ordering::AcqRel);
        Guard(self.clone())
    }
}

struct Guard(Busy);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Answers slowly, in many pieces, and allows so many streams.
fn server(streams: u32, busy: &Busy) -> Server {
    let busy = busy.clone();
    Server::start("http", move |_, stream, _| {
        let busy = busy.clone();
        let service = service_fn(move |_| {
            let guard = busy.begin();
            async move {
                let pieces = futures::stream::unfold((0, guard), |(sent, guard)| async move {
                    tokio::task::yield_now().await;
                    let piece = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"piece")));
                    (sent < 5).then(|| (piece, (sent + 1, guard)))
                });
                tokio::task::yield_now().await;
                Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(pieces))))
            }
        });
        async move {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .max_concurrent_streams(streams)
                .serve_connection(TokioIo::new(stream), service);
            // How a connection ends is the client's affair.
            let _ = connection.await;
        }
    })
}

fn client() -> Client {
    builder().protocol(Protocol::Http2).build().expect("it is right")
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let server = server(100, &Busy::default());
    let (client, url) = (client(), server.url("/"));
    let answers = futures::future::join_all((0..50).map(|_| observed(&client, &url))).await;
    assert!(answers.iter().all(|(_, answer)| answer.is_ok()), "{answers:?}");
    assert_eq!(server.seen().accepted, 1);
    assert_eq!(answers.iter().filter(|(record, _)| record.reuse == Some(Reuse::New)).count(), 1);
}

#[tokio::test]
async fn requests_beyond_what_the_peer_allows_wait_for_their_turn() {
    let busy = Busy::default();
    let server = server(3, &busy);
    let (client, url) = (client(), server.url("/"));
    // Only now the limit is known.
    assert!(get(&client, &url).await.is_ok());
    let answers = futures::future::join_all((0..40).map(|_| get(&client, &url))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert!(busy.most.load(Ordering::Acquire) <= 3);
    assert_eq!(server.seen().accepted, 1);
}

/// With one stream allowed, a place that is not given back would be the last.
#[tokio::test]
async fn a_call_can_be_dropped_at_every_await_and_gives_its_place_back() {
    let busy = Busy::default();
    let server = server(1, &busy);
    let (client, url) = (client(), server.url("/"));
    let mut last = 0;
    for polls in 0.. {
        let ended = polled(polls, get(&client, &url)).await.is_some();
        // The connection's own task is all that is left.
        until_tasks(1, &format!("dropped after {polls} polls")).await;
        last = polls;
        if ended {
            break;
        }
        assert!(get(&client, &url).await.is_ok(), "dropped after {polls} polls, the next one is stuck");
    }
    assert!(last >= 2, "{last} polls are few: connect, answer");
    drop(client);
    until_tasks(0, "the client is gone").await;
    server.until("its connections are closed", |seen| seen.ended == seen.accepted).await;
    assert_eq!(busy.now.load(Ordering::Acquire), 0, "no stream is left open");
}
