//! One deadline covers a call and everything it needs: the account, containers, partition ranges, query plans.

use std::num::NonZeroU32;
use std::time::Duration;

use futures::StreamExt;
use perihelion_driver::bulk::{BulkOperation, BulkOptions};
use perihelion_driver::change_feed::ChangeFeedOptions;
use perihelion_driver::options::{
    CircuitBreakerOptions, DriverOptions, OperationOptions, RetryOptions, TimeoutOptions,
};
use perihelion_driver::query::QueryOptions;
use perihelion_driver::{CosmosDriver, Error, ErrorKind};
use protocol::partition::PartitionKey;
use serde_json::json;

use crate::faulty_server::{FaultyResponse, FaultyServer, RequestTarget};
use crate::test_account::{TestAccount, item, run, within};

/// The deadline of the calls in these tests.
const TIMEOUT: Duration = Duration::from_millis(500);
/// What a call may take: the deadline, and what a busy machine adds.
const ALLOWED: Duration = Duration::from_millis(1500);

const QUERY: &str = r#"{"query": "SELECT * FROM c ORDER BY c.n"}"#;

/// Measures a call, and returns the error that it ends with.
async fn fails_in_time<T>(name: &str, call: impl Future<Output = Result<T, Error>>) -> Error {
    #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
    let started = tokio::time::Instant::now();
    let Err(error) = Box::pin(call).await else { panic!("{name}: nothing responds") };
    assert!(started.elapsed() < ALLOWED, "{name}: {:?} {error}", started.elapsed());
    error
}

/// Every kind of call that looks a container up, with a deadline of [`TIMEOUT`].
async fn check_all_calls(about: RequestTarget, driver: &dyn Fn() -> CosmosDriver, account: &TestAccount) {
    let (options, name) = (within(TIMEOUT), &account.container);
    let query = async {
        let mut pages = driver().query(name, QUERY, &QueryOptions::new(), &options).await?;
        pages.next_page().await
    };
    let feed = async {
        let mut feed = driver().change_feed(name, ChangeFeedOptions::new(), &options).await?;
        feed.next_page().await
    };
    let bulk = async {
        let operations = vec![Ok(BulkOperation::upsert(PartitionKey::single("a"), item("a", 1)))];
        let bulk = BulkOptions::new().with_operation(options.clone()).with_retry_for(TIMEOUT / 2);
        let mut results = driver().bulk(name, futures::stream::iter(operations), bulk);
        results.next().await.expect("one result").outcome
    };
    let ranges = async {
        let driver = driver();
        let options = driver.call_deadline(&options)?.options()?;
        let container = driver.container(name, &options).await?;
        driver.partitions(&container, &options).await
    };
    let warm_up = async { driver().warm_up(std::slice::from_ref(name), &options).await };
    let read = async { driver().execute_operation(&account.read("a"), &options).await };
    for (name, error) in [
        ("a query", fails_in_time("a query", query).await),
        ("a change feed", fails_in_time("a change feed", feed).await),
        ("a bulk", fails_in_time("a bulk", bulk).await),
        ("partitions", fails_in_time("partitions", ranges).await),
        ("a warm-up", fails_in_time("a warm-up", warm_up).await),
        ("a read", fails_in_time("a read", read).await),
    ] {
        assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{about:?}, {name}: {error}");
    }
}

#[tokio::test]
async fn a_lookup_that_gets_no_response_ends_with_the_call_that_needs_it() {
    let server = FaultyServer::start().await;
    for about in [RequestTarget::Account, RequestTarget::Container, RequestTarget::Ranges] {
        server.inject(about, FaultyResponse::Stalls(Vec::new()));
        let driver = || server.driver(DriverOptions::new());
        Box::pin(check_all_calls(about, &driver, &server.test_account)).await;
    }
}

#[tokio::test]
async fn a_page_that_takes_many_requests_has_one_deadline() {
    let server = FaultyServer::start().await;
    let driver = server.driver(DriverOptions::new());
    for id in ["a", "b", "c", "d"] {
        run(&driver, &server.test_account.create_item(id)).await.expect("made");
    }
    let options = within(TIMEOUT);
    let name = &server.test_account.container;
    // An ordered query needs a page of every partition before its first row.
    let mut pages = driver.query(name, QUERY, &QueryOptions::new(), &options).await.expect("planned");
    let mut feed = driver.change_feed(name, ChangeFeedOptions::new(), &options).await.expect("started");
    server.inject(RequestTarget::Items, FaultyResponse::Stalls(Vec::new()));
    let error = fails_in_time("a page of a query", pages.next_page()).await;
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{error}");
    let error = fails_in_time("a page of a change feed", feed.next_page()).await;
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{error}");
    // The next call has a deadline of its own.
    server.clear_fault();
    let page = pages.next_page().await.expect("read").expect("a page");
    assert_eq!(page.rows.len(), 4);
    assert!(feed.next_page().await.is_ok());
}

#[tokio::test]
async fn time_that_the_caller_takes_between_pages_is_not_the_pages() {
    let server = FaultyServer::start().await;
    let driver = server.driver(DriverOptions::new());
    for id in ["a", "b", "c", "d", "e", "f"] {
        run(&driver, &server.test_account.create_item(id)).await.expect("made");
    }
    let one = QueryOptions::new().with_page_items(NonZeroU32::new(1).expect("not zero"));
    let (name, options) = (&server.test_account.container, within(Duration::from_millis(300)));
    let mut pages = driver.query(name, QUERY, &one, &options).await.expect("planned");
    let mut rows = 0;
    // Pages are asked for ahead of need, and go on only while the caller waits for one.
    while let Some(page) = pages.next_page().await.unwrap_or_else(|error| panic!("{rows} rows: {error}")) {
        rows += page.rows.len();
        // A caller that works on the rows; the time is what is tested.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    assert_eq!(rows, 6);
}

#[tokio::test]
async fn a_deadline_of_the_work_ends_each_of_its_operations() {
    let server = FaultyServer::start().await;
    let driver = server.driver(DriverOptions::new());
    run(&driver, &server.test_account.create_item("a")).await.expect("made");
    let options =
        driver.call_deadline(&within(TIMEOUT)).and_then(|deadline| deadline.options()).expect("valid");
    server.inject(RequestTarget::Items, FaultyResponse::Stalls(Vec::new()));
    let work = async {
        for _ in 0..10 {
            let _ended = driver.execute_operation(&server.test_account.read("a"), &options).await;
        }
        driver.execute_operation(&server.test_account.read("a"), &options).await
    };
    let error = fails_in_time("eleven reads", work).await;
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{error}");
    let own = OperationOptions::new().with_timeouts(options.timeouts);
    let refused = DriverOptions::new().with_operation(own);
    let runtime =
        perihelion_driver::CosmosRuntime::builder(std::sync::Arc::new(crate::test_account::Clients));
    let runtime = runtime.build().expect("valid");
    let error =
        runtime.driver(&server.test_account.account(), refused).expect_err("a driver has no deadline");
    assert!(error.message().contains("timeouts.deadline"), "{error}");
}

#[tokio::test]
async fn timeouts_may_be_as_long_as_a_duration_can_be() {
    let test_account = TestAccount::start().await;
    let timeouts = TimeoutOptions::new()
        .with_end_to_end(Duration::MAX)
        .with_attempt(Duration::MAX)
        .with_metadata_attempt(Duration::MAX);
    let retry = RetryOptions::new().with_forbidden_wait_max(Duration::MAX).with_throttling(9, Duration::MAX);
    let breaker = CircuitBreakerOptions::new()
        .with_counter_reset_window(Duration::MAX)
        .with_failback_interval(Duration::MAX)
        .with_unavailability_probe_delay(Duration::from_millis(100));
    let operation = OperationOptions::new().with_timeouts(timeouts).with_retry(retry);
    let options = DriverOptions::new().with_operation(operation).with_circuit_breaker(breaker);
    let driver = test_account.driver_with(options);
    let run = |operation| {
        let driver = driver.clone();
        async move { driver.execute_operation(&operation, &OperationOptions::new()).await }
    };
    run(test_account.create_item("a")).await.expect("made");
    let west = || test_account.running.region(crate::test_account::WEST).expect("a region");
    // The breaker of the partition opens and counts, and the region is probed.
    west().down(emulator::faults::DownMode::Unavailable).expect("down");
    for _ in 0..5 {
        run(test_account.read("a")).await.expect("read in another region");
    }
    assert!(!driver.partition_state().is_empty());
    west().up().expect("up");
    let back = async {
        while !driver.partition_state().is_empty() {
            run(test_account.read("a")).await.expect("read");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), back)
        .await
        .expect("the partition is probed and used again");
    let body = json!({"query": "SELECT * FROM c"}).to_string();
    let mut pages = driver
        .query(&test_account.container, body, &QueryOptions::new(), &OperationOptions::new())
        .await
        .expect("planned");
    assert!(pages.next_page().await.is_ok());
}

#[tokio::test]
async fn pages_that_nobody_waits_for_say_nothing_about_their_region() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(crate::test_account::without_hedging());
    for number in 0..40 {
        run(&driver, &test_account.create_item(&number.to_string())).await.expect("made");
    }
    let one = QueryOptions::new().with_page_items(NonZeroU32::new(1).expect("not zero"));
    let name = &test_account.container;
    for _ in 0..3 {
        let mut pages = driver.query(name, QUERY, &one, &within(TIMEOUT)).await.expect("planned");
        pages.next_page().await.expect("read").expect("a page");
        // The caller works on the row for longer than the region may be silent, and leaves.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        drop(pages);
        let account = driver.account();
        assert!(!account.reads().iter().any(|endpoint| account.is_unavailable(endpoint.region(), true)));
        assert!(driver.partition_state().is_empty());
    }
}
