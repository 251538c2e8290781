//! Step 5: gateways, as ALPN and the account's properties tell them apart.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perihelion_driver::options::DriverOptions;
use serde_json::json;

use crate::lab::{WEST, body, run};
use crate::liar::{About, Liar, Lie};

#[tokio::test]
async fn gateway_2_0_locations_are_recognised_and_nothing_is_sent_there() {
    let liar = Liar::start().await;
    // Somebody listens there, and would notice.
    let trap = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}/", trap.local_addr().expect("bound"));
    let (visits, visited) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = Arc::clone(&visited);
    let watching = tokio::spawn(async move {
        while trap.accept().await.is_ok() {
            counting.fetch_add(1, Ordering::Relaxed);
        }
    });
    let told = address.clone();
    liar.lie(
        About::Account,
        Lie::twisted_json(move |account| {
            visits.fetch_add(1, Ordering::Relaxed);
            let there = json!([{"name": WEST, "databaseAccountEndpoint": told}]);
            account["thinClientWritableLocations"] = there.clone();
            // One of them is nonsense, which is no reason to doubt the rest.
            account["thinClientReadableLocations"] =
                json!([there[0], {"name": "", "databaseAccountEndpoint": 7}]);
        }),
    );
    let driver = liar.driver(DriverOptions::new());
    run(&driver, &liar.lab.create_item("a")).await.expect("made");
    assert_eq!(body(&run(&driver, &liar.lab.read("a")).await.expect("read"))["value"], 1);
    driver.refresh_account().await;
    let read = run(&driver, &liar.lab.read("a")).await.expect("read");
    let account = driver.account();
    for endpoints in [&account.gateway2().writable, &account.gateway2().readable] {
        let [endpoint] = &endpoints[..] else { panic!("one location: {endpoints:?}") };
        assert_eq!((endpoint.region().as_str(), endpoint.url().as_str()), (WEST, address.as_str()));
    }
    assert!(account.gateway2().is_offered());
    let used = account.all().chain(account.failover_writes()).map(|endpoint| endpoint.url().as_str());
    assert!(used.into_iter().all(|url| url != address), "it is no place to send to");
    assert!(read.diagnostics().attempts().iter().all(|attempt| attempt.endpoint.url().as_str() != address));
    assert_eq!(visited.load(Ordering::Relaxed), 0, "nobody was there");
    watching.abort();
}
