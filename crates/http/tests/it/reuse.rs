//! Which connections are reused, and which must not be.

use std::time::Duration;

use perihelion_http::pool::PoolConfig;
use perihelion_http::trace::{RequestTrace, Reuse};

use crate::client::{builder, client, get, get_traced, totals};
use crate::server::{Action, Script, Server, respond, write};

async fn trace(client: &perihelion_http::Client, url: &str) -> RequestTrace {
    let (trace, response) = get_traced(client, url).await;
    assert!(response.is_ok(), "{response:?}");
    trace
}

#[tokio::test]
async fn the_second_request_reuses_the_connection_of_the_first() {
    let server = Server::plain(|_| Script::from(respond(10)));
    let client = client();
    let first = trace(&client, &server.url("/one")).await;
    let second = trace(&client, &server.url("/two")).await;
    assert_eq!((first.reuse, second.reuse), (Some(Reuse::New), Some(Reuse::Reused)));
    assert_eq!(first.connection, second.connection);
    assert_eq!((first.local, first.remote), (second.local, Some(server.address())));
    assert!(first.connect.is_some() && second.connect.is_none(), "{second:?}");
    assert_eq!(server.log().accepted, 1);
    let metrics = totals(&client);
    assert_eq!((metrics.hits, metrics.misses, metrics.idle, metrics.hit_rate()), (1, 1, 1, Some(0.5)));
}

#[tokio::test]
async fn the_first_request_uses_a_connection_that_was_opened_before() {
    let server = Server::plain(|_| Script::from(respond(10)));
    let client = client();
    let uri: http::Uri = server.url("/").parse().expect("a URL");
    for _ in 0..2 {
        client.connect(&uri).await.expect("the server listens");
    }
    let first = trace(&client, &server.url("/one")).await;
    assert_eq!((first.reuse, first.connect), (Some(Reuse::Reused), None));
    assert_eq!(server.log().accepted, 1, "the second connect opened nothing");
    let without_host = http::Uri::from_static("/no/host");
    let error = client.connect(&without_host).await.expect_err("there is no host in it");
    assert_eq!(error.kind(), perihelion_http::ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn parallel_requests_have_a_connection_each_and_the_pool_keeps_the_limit() {
    let server = Server::plain(|_| Script::from(respond(10)));
    let config = PoolConfig::builder().max_per_host(3).build().expect("it is valid");
    let client = builder().pool(config).build().expect("it is valid");
    let url = server.url("/");
    let responses = futures::future::join_all((0..8).map(|_| get(&client, &url))).await;
    assert!(responses.iter().all(Result::is_ok), "{responses:?}");
    let metrics = totals(&client);
    assert_eq!((metrics.active, metrics.idle), (0, 3), "{metrics:?}");
    assert_eq!(metrics.opened, 3 + metrics.evictions, "{metrics:?}");
    server.until("the others are closed", |log| log.ended == log.accepted - 3).await;
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_closed() {
    let server = Server::plain(|_| Script::from(respond(10)));
    let config = PoolConfig::builder().max_idle_time(Duration::from_nanos(1)).build().expect("it is valid");
    let client = builder().pool(config).build().expect("it is valid");
    trace(&client, &server.url("/")).await;
    let second = trace(&client, &server.url("/")).await;
    assert_eq!(second.reuse, Some(Reuse::New));
    server.until("the first is closed", |log| log.ended == 1).await;
    assert_eq!(client.cleanup_stale(), 1);
    server.until("the second is closed", |log| log.ended == 2).await;
    assert_eq!(totals(&client).expirations, 2);
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_not_reused() {
    let server = Server::plain(|number| {
        let once = || vec![Action::Read, write(crate::server::OK)];
        Script::from(if number == 0 { once() } else { respond(1) })
    });
    let client = client();
    trace(&client, &server.url("/")).await;
    server.until("it is closed", |log| log.ended == 1).await;
    let second = trace(&client, &server.url("/")).await;
    assert_eq!(
        (second.reuse, second.attempts),
        (Some(Reuse::New), 1),
        "the closed connection was found before the request was sent"
    );
    let metrics = totals(&client);
    assert_eq!((metrics.hits, metrics.misses, metrics.discards), (0, 2, 1), "{metrics:?}");
}

#[tokio::test]
async fn a_response_with_connection_close_closes_the_connection() {
    let texts = [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n\r\nok",
    ];
    for text in texts {
        let server = Server::plain(move |number| {
            let mut script = vec![Action::Read, write(text)];
            // Without a content length, the end of the connection is the end of the body.
            script.extend(text.contains("content-length").then_some(Action::Wait));
            Script::from(if number == 0 { script } else { respond(1) })
        });
        let client = client();
        trace(&client, &server.url("/")).await;
        assert_eq!(totals(&client).idle, 0, "{text:?}");
        assert_eq!(trace(&client, &server.url("/")).await.reuse, Some(Reuse::New), "{text:?}");
        server.until("it is closed", |log| log.ended >= 1).await;
    }
}

#[tokio::test]
async fn hosts_compare_case_insensitively_and_ports_have_connections_of_their_own() {
    let [one, two] = [0, 1].map(|_| Server::plain(|_| Script::from(respond(10))));
    let client = client();
    for (url, reuse) in [
        (one.url_by_name("localhost", "/"), Reuse::New),
        (one.url_by_name("LOCALHOST", "/"), Reuse::Reused),
        (one.url_by_name("127.0.0.1", "/"), Reuse::New),
        (two.url_by_name("localhost", "/"), Reuse::New),
    ] {
        assert_eq!(trace(&client, &url).await.reuse, Some(reuse), "{url}");
    }
}
