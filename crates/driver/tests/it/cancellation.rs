//! An operation that is dropped, at whichever await: nothing is in flight, no hedge is open, no connection is
//! checked out and no task runs on.

use perihelion_driver::transport::{HttpClientConfig, Transport, TransportFactory};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use perihelion_driver::change_feed::{ChangeFeedOptions, ChangeFeedStart};
use perihelion_driver::options::{DriverOptions, HedgingOptions, HedgingThreshold, OperationOptions};
use perihelion_driver::query::QueryOptions;
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime};
use perihelion_http::Client;
use tokio::runtime::{Builder, Runtime};

use crate::queries::start;
use crate::test_account::{DEADLINE, EAST, TestAccount, WEST, run, within};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
/// No operation here is polled more often, so one that is does not get on.
const POLLS_MAX: usize = 2_000;

/// Makes clients and remembers them, so that their connections can be counted.
#[derive(Debug)]
struct Clients {
    template: Client,
    made: Arc<Mutex<Vec<Client>>>,
}

impl TransportFactory for Clients {
    fn create(&self, _: &HttpClientConfig) -> Arc<dyn Transport> {
        let client = self.template.with_separate_pool();
        self.made.lock().expect("no panic while locked").push(client.clone());
        Arc::new(client)
    }
}

/// An account on threads of its own, so that every task of the test's runtime is the driver's.
struct ServerRuntime {
    test_account: TestAccount,
    authority: Arc<str>,
    _threads: Runtime,
}

impl ServerRuntime {
    fn new() -> ServerRuntime {
        let threads = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let test_account = threads.block_on(TestAccount::start());
        let authority =
            threads.block_on(test_account.running.authority_pem()).expect("a certificate authority");
        ServerRuntime { test_account, authority, _threads: threads }
    }
}

/// How an operation reaches the account.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    Http1,
    Http2,
}

/// A driver and the connections below it.
struct WatchedClient {
    driver: CosmosDriver,
    made: Arc<Mutex<Vec<Client>>>,
}

impl WatchedClient {
    fn new(server_runtime: &ServerRuntime, over: Over) -> WatchedClient {
        let ServerRuntime { test_account, authority, .. } = server_runtime;
        let template = Client::builder().no_proxy().trust_pem(authority.as_bytes()).expect("PEM").build();
        let made = Arc::default();
        let clients = Clients { template: template.expect("a client"), made: Arc::clone(&made) };
        let runtime = CosmosRuntime::builder(Arc::new(clients)).build().expect("valid");
        let connection = match over {
            Over::Http1 => test_account.running.connection_string(),
            Over::Http2 => test_account.running.https_connection_string(),
        };
        let account = Account::from_connection_string(&connection).expect("valid");
        let soon = HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates");
        let hedging = HedgingOptions::new().with_threshold(soon);
        let options = DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging));
        WatchedClient { driver: runtime.driver(&account, options).expect("valid"), made }
    }

    /// Connections that a call holds.
    fn held(&self) -> u64 {
        let made = self.made.lock().expect("no panic while locked");
        made.iter().map(|client| client.pool_metrics().total.active).sum()
    }

    /// What an operation may hold while it runs: requests, hedges and connections.
    fn taken(&self, over: Over) -> (u32, u32, u64) {
        // An HTTP/2 connection is shared: what counts there are requests.
        let held = if over == Over::Http1 { self.held() } else { 0 };
        (self.driver.in_flight(), self.driver.open_hedges(), held)
    }
}

/// Polls a future this often, each time when it wants to be, and drops it. Gives its output if it had one.
async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = times;
    let polled = poll_fn(|cx| {
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    tokio::time::timeout(LONG, polled).await.expect("the operation gets on")
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Waits until something is so, without a guess at how long that takes.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, so).await.is_ok(), "{what}");
}

/// Drops an operation after one poll, after two and so on, until one ends by itself. Says how many were dropped.
async fn dropped_everywhere<F: Future>(
    watched: &WatchedClient,
    over: Over,
    what: &str,
    operation: impl Fn() -> F,
) -> usize {
    // What the driver keeps running anyway, and connections that are shared.
    let tasks_before = tasks();
    for polls in 1..POLLS_MAX {
        let ended = polled(polls, Box::pin(operation())).await.is_some();
        let label = format!("{what}, {over:?}, dropped after {polls} polls");
        // A request that was cancelled over HTTP/2 is label so by the connection's task, a moment later.
        until(&format!("{label}: {:?} are still taken", watched.taken(over)), || {
            watched.taken(over) == (0, 0, 0)
        })
        .await;
        if over == Over::Http1 {
            until(&format!("{label}: {} tasks run on", tasks()), || tasks() <= tasks_before).await;
        }
        if ended {
            return polls - 1;
        }
    }
    panic!("{what}: not done after {POLLS_MAX} polls");
}

/// The driver's own runtime: one thread, so that counting its tasks is exact.
fn here() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn an_operation_can_be_dropped_at_every_await() {
    let server_runtime = ServerRuntime::new();
    let test_account = &server_runtime.test_account;
    for over in [Over::Http1, Over::Http2] {
        let watched = WatchedClient::new(&server_runtime, over);
        here().block_on(async {
            let driver = &watched.driver;
            run(driver, &test_account.upsert("a", 1)).await.expect("written");
            let (read, write, query) = (
                test_account.read("a"),
                test_account.upsert("a", 2),
                test_account.query("a", "SELECT * FROM c"),
            );
            for (what, operation) in [("a read", &read), ("a write", &write), ("a query", &query)] {
                let dropped = dropped_everywhere(&watched, over, what, || run(driver, operation)).await;
                assert!(dropped >= 1, "{what} waits at least once: {dropped}");
            }
            run(driver, &read).await.expect("it still works");
        });
    }
}

#[test]
fn the_first_operation_of_a_driver_can_be_dropped_at_every_await() {
    // It asks for the account, the container and its ranges before anything else.
    let server_runtime = ServerRuntime::new();
    let read = server_runtime.test_account.read("nothing");
    here().block_on(async {
        for polls in 1..POLLS_MAX {
            let watched = WatchedClient::new(&server_runtime, Over::Http1);
            let ended = polled(polls, Box::pin(run(&watched.driver, &read))).await.is_some();
            let label = format!("dropped after {polls} polls");
            until(&format!("{label}: {:?}", watched.taken(Over::Http1)), || {
                watched.taken(Over::Http1) == (0, 0, 0)
            })
            .await;
            drop(watched);
            // With the driver ends what it runs in the background.
            until(&format!("{label}: {} tasks run on", tasks()), || tasks() == 0).await;
            if ended {
                assert!(polls >= 3, "the account, the container and the item: {polls}");
                return;
            }
        }
        panic!("not done after {POLLS_MAX} polls");
    });
}

#[test]
fn a_race_and_its_retries_can_be_dropped_at_every_await() {
    let server_runtime = ServerRuntime::new();
    let test_account = &server_runtime.test_account;
    let watched = WatchedClient::new(&server_runtime, Over::Http1);
    here().block_on(async {
        run(&watched.driver, &test_account.upsert("a", 1)).await.expect("written");
        test_account.running.region(WEST).expect("a region").slow(Duration::from_millis(150)).expect("slow");
        test_account.running.region(EAST).expect("a region").storm().expect("throttled");
        let read = test_account.read("a");
        let dropped =
            dropped_everywhere(&watched, Over::Http1, "a race", || run(&watched.driver, &read)).await;
        assert!(dropped >= 2, "it waits for both regions: {dropped}");
    });
}

#[test]
fn pages_can_be_dropped_at_every_await() {
    let server_runtime = ServerRuntime::new();
    let test_account = &server_runtime.test_account;
    let watched = WatchedClient::new(&server_runtime, Over::Http1);
    here().block_on(async {
        let driver = &watched.driver;
        for number in 0..12 {
            run(driver, &test_account.upsert(&format!("i{number}"), number)).await.expect("written");
        }
        let all = async || {
            let text = "SELECT * FROM c ORDER BY c.id";
            let mut pages = start(test_account, driver, text, QueryOptions::new()).await.expect("a query");
            while pages.next_page().await.expect("a page").is_some() {}
        };
        let dropped = dropped_everywhere(&watched, Over::Http1, "a query of all partitions", all).await;
        // The four partitions are read at the same time, in tasks: several may have responded at one poll.
        assert!(dropped >= 1, "it waits for four partitions: {dropped}");
        let changes = async || {
            let options = ChangeFeedOptions::new().with_start(ChangeFeedStart::Beginning);
            let feed = driver.change_feed(&test_account.container, options, &within(DEADLINE)).await;
            let mut feed = feed.expect("a feed");
            while !feed.next_page().await.expect("a page").caught_up() {}
        };
        let dropped = dropped_everywhere(&watched, Over::Http1, "a change feed", changes).await;
        assert!(dropped >= 4, "it asks four partitions: {dropped}");
    });
}
