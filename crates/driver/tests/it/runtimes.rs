//! One driver that several async runtimes use, one after the other or at the same time, as a `static` client in
//! tests is: background work and connections follow the runtimes that are alive.

use std::sync::Arc;
use std::time::Duration;

use emulator::faults::DownMode;
use perihelion_driver::options::{CircuitBreakerOptions, DriverOptions, OperationOptions, TimeoutOptions};
use perihelion_driver::{CosmosDriver, ErrorKind};
use tokio::runtime::Runtime;

use crate::faulty_server::{FaultyResponse, FaultyServer, RequestTarget};
use crate::test_account::{EAST, TestAccount, WEST, regions, run, without_hedging};

/// How often a region that is down is probed in these tests.
const PROBE_DELAY: Duration = Duration::from_millis(100);

/// A runtime of its own, as `#[tokio::test]` and `#[tokio::main]` make one.
fn runtime(workers: usize) -> Runtime {
    let mut builder = match workers {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(workers.max(1)).enable_all().build().expect("a runtime")
}

fn probing_often() -> DriverOptions {
    without_hedging()
        .with_circuit_breaker(CircuitBreakerOptions::new().with_unavailability_probe_delay(PROBE_DELAY))
}

/// An account on a runtime of its own, so that it lives through those of the driver.
fn account() -> (Runtime, Arc<TestAccount>) {
    let server = runtime(1);
    let test_account = server.block_on(TestAccount::start());
    (server, Arc::new(test_account))
}

/// Opens the port of the preferred region again, on the runtime of the account.
fn west_is_up(server: &Runtime, test_account: &TestAccount) {
    let _on_the_runtime_of_the_account = server.enter();
    test_account.running.region(WEST).expect("a region").up().expect("up");
}

/// Reads until the region responds. Every read succeeds, wherever it goes.
async fn until_read_from(region: &str, driver: &CosmosDriver, test_account: &TestAccount) {
    let found = async {
        loop {
            let read = run(driver, &test_account.read("a")).await.expect("read somewhere");
            if regions(&read) == [region] {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("the region is used");
}

#[test]
fn a_region_that_went_down_under_one_runtime_is_found_again_under_the_next() {
    for workers in [0, 2] {
        let (server, test_account) = account();
        let driver = test_account.driver_with(probing_often());
        let first = runtime(workers);
        first.block_on(async {
            run(&driver, &test_account.create_item("a")).await.expect("made");
            test_account.running.region(WEST).expect("a region").down(DownMode::Refused).expect("down");
            until_read_from(EAST, &driver, &test_account).await;
        });
        drop(first);
        west_is_up(&server, &test_account);
        runtime(workers).block_on(until_read_from(WEST, &driver, &test_account));
    }
}

#[test]
fn of_two_runtimes_the_one_that_stays_takes_over() {
    let (server, test_account) = account();
    let driver = test_account.driver_with(probing_often());
    let (first, second) = (runtime(1), runtime(1));
    first.block_on(async {
        run(&driver, &test_account.create_item("a")).await.expect("made");
    });
    second.block_on(async {
        test_account.running.region(WEST).expect("a region").down(DownMode::Refused).expect("down");
        until_read_from(EAST, &driver, &test_account).await;
    });
    drop(first);
    west_is_up(&server, &test_account);
    second.block_on(until_read_from(WEST, &driver, &test_account));
}

#[test]
fn connections_of_a_runtime_that_is_gone_cost_the_next_one_nothing() {
    let (_server, test_account) = account();
    let driver = test_account.driver_with(without_hedging());
    for round in 0..3 {
        // Many at once, so that many connections stay behind.
        runtime(2).block_on(async {
            let ids: Vec<String> = (0..40).map(|item| format!("{round}-{item}")).collect();
            let writes = ids.iter().map(async |id| {
                let write = run(&driver, &test_account.create_item(id)).await;
                write.unwrap_or_else(|error| panic!("{id}: {error}"));
            });
            futures::future::join_all(writes).await;
        });
    }
}

#[test]
fn a_lookup_that_waits_when_its_runtime_ends_does_not_harm_the_others() {
    let server = runtime(1);
    let faulty = server.block_on(FaultyServer::start());
    let timeouts = TimeoutOptions::new().with_metadata_attempt(Duration::from_millis(500));
    let options = OperationOptions::new().with_timeouts(timeouts);
    let driver = faulty.driver(DriverOptions::new().with_operation(options));
    let (first, second) = (runtime(1), runtime(1));
    second.block_on(driver.warm_up(&[], &Default::default())).expect("the account is known");
    faulty.inject(RequestTarget::Container, FaultyResponse::Stalls(Vec::new()));
    // Both wait for the same container: the lookup of the first runtime, and the second runtime beside it.
    let read_on = |runtime: &Runtime| {
        let (waits, started) = tokio::sync::oneshot::channel();
        let (driver, read) = (driver.clone(), faulty.test_account.read("a"));
        let reading = runtime.spawn(async move {
            let mut operation = std::pin::pin!(run(&driver, &read));
            assert!(futures::poll!(operation.as_mut()).is_pending());
            waits.send(()).expect("the test waits for it");
            operation.await
        });
        started.blocking_recv().expect("it waits for the container");
        reading
    };
    let _ends_with_its_runtime = read_on(&first);
    let reading = read_on(&second);
    server.block_on(faulty.stalled());
    drop(first);
    faulty.clear_fault();
    let error = second.block_on(reading).expect("no panic").expect_err("there is no such item");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}
