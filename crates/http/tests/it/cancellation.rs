//! A call that is dropped at any await: no connection stays checked out, and no task keeps running.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use http::Request;
use perihelion_http::trace::Reuse;
use perihelion_http::{Client, RequestBody};

use crate::certificates::CertificateAuthority;
use crate::client::{builder, client, get, get_traced, totals};
use crate::server::{Action, Script, Server, TEST_TIMEOUT, respond};

/// A response that is sent byte by byte, so that the call takes many polls.
const SLOW_RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nslow";

/// Polls a future this often, each time after it was woken, and drops it. Returns its output if it was ready.
pub(crate) async fn poll_times<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    let polled = poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    tokio::time::timeout(TEST_TIMEOUT, polled).await.expect("the call makes progress")
}

/// Waits until this runtime has at most this many tasks, without the test itself.
pub(crate) async fn wait_for_tasks(at_most: usize, what: &str) {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let gone = async {
        while tasks() > at_most {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(TEST_TIMEOUT, gone).await;
    assert!(waited.is_ok(), "{what}: {} tasks run on", tasks());
}

/// Drops a call after no poll, after one, and so on until one completes. Returns the number of dropped calls.
async fn check<F: Future>(server: &Server, client: &Client, call: impl Fn() -> F) -> usize {
    for polls in 0.. {
        let what = format!("dropped after {polls} polls");
        let ended = poll_times(polls, call()).await.is_some();
        let metrics = totals(client);
        assert_eq!(metrics.active, 0, "{what}: {metrics:?}");
        assert_eq!(
            metrics.idle,
            u64::from(ended),
            "{what}: only a complete response returns its connection: {metrics:?}"
        );
        wait_for_tasks(0, &what).await;
        if ended {
            return polls;
        }
        server.until(&what, |log| log.ended == log.accepted).await;
    }
    unreachable!("the numbers do not end")
}

#[tokio::test]
async fn a_get_can_be_dropped_at_every_await() {
    let slow = || vec![Action::Read, Action::Trickle(SLOW_RESPONSE.as_bytes().to_vec()), Action::Wait];
    let server = Server::plain(move |_| Script::from(slow()));
    let client = client();
    let url = server.url("/");
    let dropped = check(&server, &client, || get(&client, &url)).await;
    assert!(dropped >= 2, "{dropped} polls are too few for connecting and responding");
}

#[tokio::test]
async fn a_get_over_tls_can_be_dropped_at_every_await() {
    let ca = CertificateAuthority::new();
    let slow = || vec![Action::Read, Action::Trickle(SLOW_RESPONSE.as_bytes().to_vec()), Action::Wait];
    let server = Server::tls(ca.server("127.0.0.1", &["http/1.1"]), move |_| Script::from(slow()));
    let client = builder().trust_only([ca.root()]).build().expect("it is valid");
    let url = server.url("/");
    let dropped = check(&server, &client, || get(&client, &url)).await;
    assert!(dropped >= 2, "{dropped} polls are too few for connecting and responding");
}

#[tokio::test]
async fn an_upload_can_be_dropped_at_every_await() {
    const CHUNKS: usize = 20;
    let server = Server::plain(|_| Script::from(respond(1)));
    let client = client();
    let upload = || async {
        // Each chunk is ready at the second poll.
        let chunks = futures::stream::unfold(0, |sent| async move {
            tokio::task::yield_now().await;
            (sent < CHUNKS).then(|| (Ok::<_, std::io::Error>(bytes::Bytes::from_static(b"chunk")), sent + 1))
        });
        let body = RequestBody::stream(chunks, Some(5 * CHUNKS as u64));
        let request = Request::put(server.url("/")).body(body).expect("the URL is one");
        let response = client.send(request).await.expect("the server reads it");
        response.into_body().bytes(10).await.expect("the server responses")
    };
    let dropped = check(&server, &client, upload).await;
    assert!(dropped >= 2, "{dropped} polls are too few for connecting and responding");
}

#[tokio::test]
async fn a_body_that_is_dropped_before_its_end_closes_its_connection() {
    let half = || vec![Action::Read, Action::Write(SLOW_RESPONSE.as_bytes()[..40].to_vec()), Action::Wait];
    let server = Server::plain(move |number| Script::from(if number == 0 { half() } else { respond(1) }));
    let client = client();
    let request = Request::get(server.url("/")).body(()).expect("the URL is one");
    let response = client.send(request).await.expect("the head has arrived");
    assert_eq!(totals(&client).active, 1);
    drop(response);
    assert_eq!((totals(&client).active, totals(&client).idle), (0, 0));
    server.until("the connection is closed", |log| log.ended == 1).await;
    let (trace, response) = get_traced(&client, &server.url("/")).await;
    assert!(response.is_ok());
    assert_eq!(trace.reuse, Some(Reuse::New));
}
