//! Connections that are used again, and those that must not be.

use std::time::Duration;

use perihelion_http::exchange::{Exchange, Reuse};
use perihelion_http::pool::PoolConfig;

use crate::client::{builder, client, get, observed, totals};
use crate::server::{Act, Script, Server, well, write};

async fn record(client: &perihelion_http::Client, url: &str) -> Exchange {
    let (record, answer) = observed(client, url).await;
    assert!(answer.is_ok(), "{answer:?}");
    record
}

#[tokio::test]
async fn the_second_request_takes_the_first_one_s_connection() {
    let server = Server::plain(|_| Script::from(well(10)));
    let client = client();
    let first = record(&client, &server.url("/one")).await;
    let second = record(&client, &server.url("/two")).await;
    assert_eq!((first.reuse, second.reuse), (Some(Reuse::New), Some(Reuse::Reused)));
    assert_eq!(first.connection, second.connection);
    assert_eq!((first.local, first.remote), (second.local, Some(server.address())));
    assert!(first.connect.is_some() && second.connect.is_none(), "{second:?}");
    assert_eq!(server.seen().accepted, 1);
    let metrics = totals(&client);
    assert_eq!((metrics.hits, metrics.misses, metrics.idle, metrics.hit_rate()), (1, 1, 1, Some(0.5)));
}

#[tokio::test]
async fn a_connection_made_ahead_waits_for_the_first_request() {
    let server = Server::plain(|_| Script::from(well(10)));
    let client = client();
    let uri: http::Uri = server.url("/").parse().expect("a URL");
    for _ in 0..2 {
        client.connect(&uri).await.expect("the server is there");
    }
    let first = record(&client, &server.url("/one")).await;
    assert_eq!((first.reuse, first.connect), (Some(Reuse::Reused), None));
    assert_eq!(server.seen().accepted, 1, "the second found the first");
    let nowhere = http::Uri::from_static("/no/host");
    let error = client.connect(&nowhere).await.expect_err("there is no host in it");
    assert_eq!(error.kind(), perihelion_http::ErrorKind::Invalid, "{error}");
}

#[tokio::test]
async fn requests_at_once_have_a_connection_each_and_the_limit_of_them_wait() {
    let server = Server::plain(|_| Script::from(well(10)));
    let config = PoolConfig::builder().max_per_host(3).build().expect("it makes sense");
    let client = builder().pool(config).build().expect("it is right");
    let url = server.url("/");
    let answers = futures::future::join_all((0..8).map(|_| get(&client, &url))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let metrics = totals(&client);
    assert_eq!((metrics.active, metrics.idle), (0, 3), "{metrics:?}");
    assert_eq!(metrics.opened, 3 + metrics.evictions, "{metrics:?}");
    server.until("the others are closed", |seen| seen.ended == seen.accepted - 3).await;
}

#[tokio::test]
async fn a_connection_that_was_idle_for_too_long_is_closed() {
    let server = Server::plain(|_| Script::from(well(10)));
    let config =
        PoolConfig::builder().max_idle_time(Duration::from_nanos(1)).build().expect("it makes sense");
    let client = builder().pool(config).build().expect("it is right");
    record(&client, &server.url("/")).await;
    let second = record(&client, &server.url("/")).await;
    assert_eq!(second.reuse, Some(Reuse::New));
    server.until("the first is closed", |seen| seen.ended == 1).await;
    assert_eq!(client.cleanup_stale(), 1);
    server.until("the second is closed", |seen| seen.ended == 2).await;
    assert_eq!(totals(&client).expirations, 2);
}

#[tokio::test]
async fn a_connection_the_peer_has_closed_is_not_used_again() {
    let server = Server::plain(|number| {
        let once = || vec![Act::Read, write(crate::server::OK)];
        Script::from(if number == 0 { once() } else { well(1) })
    });
    let client = client();
    record(&client, &server.url("/")).await;
    server.until("it is closed", |seen| seen.ended == 1).await;
    let second = record(&client, &server.url("/")).await;
    assert_eq!((second.reuse, second.attempts), (Some(Reuse::New), 1), "nothing was tried in vain");
    let metrics = totals(&client);
    assert_eq!((metrics.hits, metrics.misses, metrics.discards), (0, 2, 1), "{metrics:?}");
}

#[tokio::test]
async fn a_response_that_says_close_is_obeyed() {
    let texts = [
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n\r\nok",
    ];
    for text in texts {
        let server = Server::plain(move |number| {
            let mut script = vec![Act::Read, write(text)];
            // Without a length the end of the connection is the end of the body.
            script.extend(text.contains("content-length").then_some(Act::Wait));
            Script::from(if number == 0 { script } else { well(1) })
        });
        let client = client();
        record(&client, &server.url("/")).await;
        assert_eq!(totals(&client).idle, 0, "{text:?}");
        assert_eq!(record(&client, &server.url("/")).await.reuse, Some(Reuse::New), "{text:?}");
        server.until("it is closed", |seen| seen.ended >= 1).await;
    }
}

#[tokio::test]
async fn hosts_compare_without_case_and_ports_and_schemes_are_kept_apart() {
    let [one, two] = [0, 1].map(|_| Server::plain(|_| Script::from(well(10))));
    let client = client();
    for (url, reuse) in [
        (one.url_by_name("localhost", "/"), Reuse::New),
        (one.url_by_name("LOCALHOST", "/"), Reuse::Reused),
        (one.url_by_name("127.0.0.1", "/"), Reuse::New),
        (two.url_by_name("localhost", "/"), Reuse::New),
    ] {
        assert_eq!(record(&client, &url).await.reuse, Some(reuse), "{url}");
    }
}
