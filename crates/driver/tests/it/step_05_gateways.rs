//! Step 5: gateways, as ALPN and the account's properties tell them apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use perihelion_driver::options::DriverOptions;
use perihelion_http::trace::Protocol;
use serde_json::json;

use crate::faulty_server::{FaultyResponse, FaultyServer, RequestTarget};
use crate::secure::{Secure, exchange, read, shard};
use crate::test_account::{TestAccount, WEST, body, run, without_hedging};

#[tokio::test]
async fn gateway_2_0_locations_are_recognised_and_nothing_is_sent_there() {
    let server = FaultyServer::start().await;
    // A listener there would notice a connection.
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}/", trap.local_addr().expect("bound"));
    let (visits, visited) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = Arc::clone(&visited);
    let watching = tokio::spawn(async move {
        while trap.accept().await.is_ok() {
            counting.fetch_add(1, Ordering::Relaxed);
        }
    });
    let announced = address.clone();
    server.inject(
        RequestTarget::Account,
        FaultyResponse::modified_json(move |account| {
            visits.fetch_add(1, Ordering::Relaxed);
            let there = json!([{"name": WEST, "databaseAccountEndpoint": announced}]);
            account["thinClientWritableLocations"] = there.clone();
            // One of them is nonsense, which is no reason to doubt the rest.
            account["thinClientReadableLocations"] =
                json!([there[0], {"name": "", "databaseAccountEndpoint": 7}]);
        }),
    );
    let driver = server.driver(DriverOptions::new());
    run(&driver, &server.test_account.create_item("a")).await.expect("made");
    assert_eq!(body(&run(&driver, &server.test_account.read("a")).await.expect("read"))["value"], 1);
    driver.refresh_account().await;
    let read = run(&driver, &server.test_account.read("a")).await.expect("read");
    let account = driver.account();
    for endpoints in [&account.gateway2().writable, &account.gateway2().readable] {
        let [endpoint] = &endpoints[..] else { panic!("one location: {endpoints:?}") };
        assert_eq!((endpoint.region().as_str(), endpoint.url().as_str()), (WEST, address.as_str()));
    }
    assert!(account.gateway2().is_offered());
    let used = account.all().chain(account.failover_writes()).map(|endpoint| endpoint.url().as_str());
    assert!(used.into_iter().all(|url| url != address), "it is no place to send to");
    assert!(read.diagnostics().attempts().iter().all(|attempt| attempt.endpoint.url().as_str() != address));
    assert_eq!(visited.load(Ordering::Relaxed), 0, "no connection was made");
    watching.abort();
}

#[tokio::test]
async fn over_http1_there_are_no_shards() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let operation = test_account.read("a");
    for response in join_all((0..40).map(|_| read(&driver, &operation))).await {
        let response = response.expect("a response");
        assert_eq!((exchange(&response).protocol, shard(&response)), (Some(Protocol::Http1), None));
    }
}

#[tokio::test]
async fn over_tls_http2_is_agreed_on_and_gets_shards() {
    let test_account = TestAccount::start().await;
    let secure = Secure::new(&test_account).await;
    run(&secure.driver, &test_account.create_item("a")).await.expect("made");
    let response = read(&secure.driver, &test_account.read("a")).await.expect("a response");
    assert_eq!(exchange(&response).protocol, Some(Protocol::Http2));
    assert!(shard(&response).is_some());
}
