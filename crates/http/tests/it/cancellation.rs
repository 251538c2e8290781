//! A call that is dropped, at whichever await: no connection stays checked out, and no task runs on.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use http::Request;
use perihelion_http::exchange::Reuse;
use perihelion_http::{Client, RequestBody};

use crate::certificates::Authority;
use crate::client::{builder, client, get, observed, totals};
use crate::server::{Act, FOREVER, Script, Server, well};

/// A call that takes many polls: an answer that comes byte by byte.
const SLOW_ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nslow";

/// Polls a future this often, each time when it wants to be, and drops it. Gives its output if it had one.
pub(crate) async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
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
    tokio::time::timeout(FOREVER, polled).await.expect("the call gets on")
}

/// Waits until this runtime runs at most so many tasks, the test itself not counted.
pub(crate) async fn until_tasks(at_most: usize, what: &str) {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let gone = async {
        while tasks() > at_most {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(FOREVER, gone).await;
    assert!(waited.is_ok(), "{what}: {} tasks run on", tasks());
}

/// Drops a call after one poll, after two, and so on until one ends by itself. Says how many were dropped.
async fn check<F: Future>(server: &Server, client: &Client, call: impl Fn() -> F) -> usize {
    for polls in 0.. {
        let what = format!("dropped after {polls} polls");
        let ended = polled(polls, call()).await.is_some();
        let metrics = totals(client);
        assert_eq!(metrics.active, 0, "{what}: {metrics:?}");
        assert_eq!(
            metrics.idle,
            u64::from(ended),
            "{what}: only a complete exchange gives back: {metrics:?}"
        );
        until_tasks(0, &what).await;
        if ended {
            return polls;
        }
        server.until(&what, |seen| seen.ended == seen.accepted).await;
    }
    unreachable!("the numbers do not end")
}

#[tokio::test]
async fn a_get_can_be_dropped_at_every_await() {
    let slow = || vec![Act::Read, Act::Trickle(SLOW_ANSWER.as_bytes().to_vec()), Act::Wait];
    let server = Server::plain(move |_| Script::from(slow()));
    let client = client();
    let url = server.url("/");
    let dropped = check(&server, &client, || get(&client, &url)).await;
    assert!(dropped >= 2, "{dropped} polls are few: connect, answer");
}

#[tokio::test]
async fn a_get_over_tls_can_be_dropped_at_every_await() {
    let authority = Authority::new();
    let slow = || vec![Act::Read, Act::Trickle(SLOW_ANSWER.as_bytes().to_vec()), Act::Wait];
    let server = Server::tls(authority.server("127.0.0.1", &["http/1.1"]), move |_| Script::from(slow()));
    let client = builder().trust_only([authority.root()]).build().expect("it is right");
    let url = server.url("/");
    let dropped = check(&server, &client, || get(&client, &url)).await;
    assert!(dropped >= 2, "{dropped} polls are few: connect, answer");
}

#[tokio::test]
async fn an_upload_can_be_dropped_at_every_await() {
    const PIECES: usize = 20;
    let server = Server::plain(|_| Script::from(well(1)));
    let client = client();
    let upload = || async {
        // Each piece comes when it is asked for the second time.
        let pieces = futures::stream::unfold(0, |sent| async move {
            tokio::task::yield_now().await;
            (sent < PIECES).then(|| (Ok::<_, std::io::Error>(bytes::Bytes::from_static(b"piece")), sent + 1))
        });
        let body = RequestBody::stream(pieces, Some(5 * PIECES as u64));
        let request = Request::put(server.url("/")).body(body).expect("the URL is one");
        let response = client.send(request).await.expect("the server reads it");
        response.into_body().bytes(10).await.expect("the server answers")
    };
    let dropped = check(&server, &client, upload).await;
    assert!(dropped >= 2, "{dropped} polls are few: connect, answer");
}

#[tokio::test]
async fn a_body_that_is_dropped_before_its_end_closes_its_connection() {
    let half = || vec![Act::Read, Act::Write(SLOW_ANSWER.as_bytes()[..40].to_vec()), Act::Wait];
    let server = Server::plain(move |number| Script::from(if number == 0 { half() } else { well(1) }));
    let client = client();
    let request = Request::get(server.url("/")).body(()).expect("the URL is one");
    let response = client.send(request).await.expect("the head is there");
    assert_eq!(totals(&client).active, 1);
    drop(response);
    assert_eq!((totals(&client).active, totals(&client).idle), (0, 0));
    server.until("the connection is closed", |seen| seen.ended == 1).await;
    let (record, answer) = observed(&client, &server.url("/")).await;
    assert!(answer.is_ok());
    assert_eq!(record.reuse, Some(Reuse::New));
}
