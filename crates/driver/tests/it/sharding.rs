//! Connections: HTTP/2 over TLS in shards, HTTP/1.1 in one pool, and what becomes of requests when one breaks.
//!
//! The emulator takes 20 streams per HTTP/2 connection, as the service does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use azure_core::http::Url;
use emulator::faults::{ConnectionEffect, OperationKind as Op, Rule};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use perihelion_driver::operation::{Operation, Response};
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions};
use perihelion_driver::routing::Endpoint;
use perihelion_driver::sharding::{ConnectAhead, HttpClientConfig, HttpClientFactory, NewClient};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Error};
use perihelion_http::Client;
use perihelion_http::exchange::{ConnectionId, Exchange, Protocol, Reuse};

use crate::lab::{Lab, run, within};

/// Longer than anything here takes, on the slowest machine.
const LONG: Duration = Duration::from_secs(60);

/// Clients with one TLS configuration, each with connections of its own, that connect ahead and count it.
#[derive(Debug)]
struct Clients {
    template: Client,
    connected: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Warm(Client, Arc<AtomicUsize>);

impl HttpClientFactory for Clients {
    fn create(&self, _: &HttpClientConfig) -> NewClient {
        let client = self.template.sibling();
        let warm = Warm(client.clone(), Arc::clone(&self.connected));
        NewClient::new(Arc::new(client)).with_connect(Arc::new(warm))
    }
}

impl ConnectAhead for Warm {
    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        async move {
            let uri = endpoint.as_str().parse().expect("an endpoint's URL");
            self.0.connect(&uri).await?;
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        .boxed()
    }
}

/// A driver over TLS, in a runtime of its own.
struct Secure {
    runtime: CosmosRuntime,
    driver: CosmosDriver,
    connected: Arc<AtomicUsize>,
}

impl Secure {
    async fn new(lab: &Lab) -> Secure {
        let authority = lab.running.authority_pem().await.expect("a certificate authority");
        let template = Client::builder().no_proxy().trust_pem(authority.as_bytes()).expect("PEM").build();
        let connected = Arc::default();
        let clients = Clients { template: template.expect("a client"), connected: Arc::clone(&connected) };
        let runtime = CosmosRuntime::builder(Arc::new(clients)).build().expect("valid");
        let account = Account::from_connection_string(&lab.running.https_connection_string());
        let options = DriverOptions::new().with_operation(no_hedging());
        let driver = runtime.driver(&account.expect("valid"), options).expect("valid");
        Secure { runtime, driver, connected }
    }

    /// Shards of the endpoint that reads go to.
    fn shards(&self, answered: &Response) -> usize {
        self.runtime.transport().gateway(endpoint(answered)).shards().count()
    }
}

fn no_hedging() -> OperationOptions {
    OperationOptions::new().with_hedging(HedgingOptions::new().with_enabled(false))
}

async fn read(driver: &CosmosDriver, operation: &Operation) -> Result<Response, Error> {
    driver.execute_operation(operation, &within(LONG)).await
}

fn endpoint(response: &Response) -> &Endpoint {
    &response.diagnostics().attempts().last().expect("one attempt at least").endpoint
}

/// What happened on the connection that brought the answer.
fn exchange(response: &Response) -> Exchange {
    let attempt = response.diagnostics().attempts().last().expect("one attempt at least");
    attempt.outcome.sent().expect("answered").exchange
}

fn shard(response: &Response) -> Option<u64> {
    let attempt = response.diagnostics().attempts().last().expect("one attempt at least");
    attempt.outcome.sent().expect("answered").shard
}

#[tokio::test]
async fn sixty_four_requests_at_once_take_several_connections_and_dropping_them_leaves_nothing() {
    let lab = Lab::start().await;
    let secure = Secure::new(&lab).await;
    run(&secure.driver, &lab.create_item("a")).await.expect("made");
    let operation = lab.read("a");
    let first = read(&secure.driver, &operation).await.expect("read");
    assert_eq!(exchange(&first).protocol, Some(Protocol::Http2));

    lab.running.faults().add(Rule::delay(LONG).on(Op::Read).named("hold")).expect("a rule");
    {
        let reads = join_all((0..64).map(|_| read(&secure.driver, &operation)));
        let all_held = lab.running.faults().until_held(64);
        let held = futures::future::select(Box::pin(reads), Box::pin(all_held));
        match tokio::time::timeout(LONG, held).await.expect("64 requests reach the server") {
            futures::future::Either::Left((answers, _)) => panic!("none is answered yet: {answers:?}"),
            futures::future::Either::Right(((), _reads)) => {
                assert_eq!(secure.driver.in_flight(), 64);
                assert!(secure.shards(&first) >= 4, "sixteen on each, and twenty are not exceeded");
            }
        }
    }
    assert_eq!(secure.driver.in_flight(), 0, "dropped calls are not counted");
    let none_held = lab.running.faults().until_held(0);
    tokio::time::timeout(LONG, none_held).await.expect("the server sees that nobody waits");

    lab.running.faults().clear().expect("cleared");
    let again = read(&secure.driver, &operation).await.expect("read");
    assert_eq!(exchange(&again).reuse, Some(Reuse::Reused), "a reset stream does not cost its connection");
}

#[tokio::test]
async fn the_answers_of_a_burst_come_over_connections_that_share_it() {
    let lab = Lab::start().await;
    let secure = Secure::new(&lab).await;
    run(&secure.driver, &lab.create_item("a")).await.expect("made");
    let operation = lab.read("a");
    let wait = Duration::from_millis(200);
    lab.running.faults().add(Rule::delay(wait).on(Op::Read).named("slow")).expect("a rule");
    let answers = join_all((0..64).map(|_| read(&secure.driver, &operation))).await;
    let mut per_connection: BTreeMap<ConnectionId, usize> = BTreeMap::new();
    for answer in answers {
        let answer = answer.expect("answered");
        let connection = exchange(&answer).connection.expect("one");
        *per_connection.entry(connection).or_default() += 1;
    }
    assert!(per_connection.len() >= 4, "{per_connection:?}");
    assert_eq!(secure.driver.in_flight(), 0);
}

#[tokio::test]
async fn a_shard_is_connected_before_it_is_needed() {
    let lab = Lab::start().await;
    let secure = Secure::new(&lab).await;
    run(&secure.driver, &lab.create_item("a")).await.expect("made");
    let operation = lab.read("a");
    let first = read(&secure.driver, &operation).await.expect("read");
    assert_eq!(secure.shards(&first), 1);
    lab.running.faults().add(Rule::delay(LONG).on(Op::Read).named("hold")).expect("a rule");
    // Thirteen of sixteen: nothing is full yet, but it will be.
    let mut reads = Box::pin(join_all((0..13).map(|_| read(&secure.driver, &operation))));
    let grown = async {
        while secure.shards(&first) < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answers = &mut reads => panic!("none is answered yet: {answers:?}"),
        grown = tokio::time::timeout(LONG, grown) => grown.expect("a second shard"),
    }
    assert_eq!(secure.connected.load(Ordering::Relaxed), 1, "its connection was made first");
}

#[tokio::test]
async fn requests_whose_connection_breaks_are_answered_over_another() {
    let lab = Lab::start().await;
    let secure = Secure::new(&lab).await;
    run(&secure.driver, &lab.create_item("a")).await.expect("made");
    let operation = lab.read("a");
    read(&secure.driver, &operation).await.expect("read");
    // Each takes up to fifteen others with it.
    let breaks = Rule::connection(ConnectionEffect::CloseBefore).on(Op::Read).times(3);
    lab.running.faults().add(breaks).expect("a rule");
    for answer in join_all((0..48).map(|_| read(&secure.driver, &operation))).await {
        answer.expect("answered");
    }
    assert_eq!(secure.driver.in_flight(), 0);
}

#[tokio::test]
async fn over_http1_there_are_no_shards() {
    let lab = Lab::start().await;
    let driver = lab.driver_with(DriverOptions::new().with_operation(no_hedging()));
    run(&driver, &lab.create_item("a")).await.expect("made");
    let operation = lab.read("a");
    for answer in join_all((0..40).map(|_| read(&driver, &operation))).await {
        let answer = answer.expect("answered");
        assert_eq!((exchange(&answer).protocol, shard(&answer)), (Some(Protocol::Http1), None));
    }
}
