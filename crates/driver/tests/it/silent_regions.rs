//! A region that accepts requests and never responds: it is left within seconds, and found again when it is back.

use std::time::{Duration, Instant};

use emulator::faults::DownMode;
use perihelion_driver::diagnostics::AttemptRecord;
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions, TimeoutOptions};
use perihelion_driver::{Access, CosmosDriver, Error, ErrorKind, Operation, Response};

use crate::test_account::{TestAccount, WEST};

const SECOND: Duration = Duration::from_secs(1);
/// A silent region is left within this time.
const LEFT_WITHIN: Duration = Duration::from_secs(3);
/// A region that responds again is used again within this time.
const FOUND_WITHIN: Duration = Duration::from_secs(30);

/// Options with a deadline for operations and a timeout for attempts.
fn options(hedging: bool, deadline: Duration, attempt: Duration) -> DriverOptions {
    let timeouts = TimeoutOptions::new().with_end_to_end(deadline).with_attempt(attempt);
    let hedging = HedgingOptions::new().with_enabled(hedging);
    DriverOptions::new().with_operation(OperationOptions::new().with_timeouts(timeouts).with_hedging(hedging))
}

/// Carries out an operation with the options of the driver.
async fn run(driver: &CosmosDriver, operation: &Operation) -> Result<Response, Error> {
    driver.execute_operation(operation, &OperationOptions::new()).await
}

fn now() -> Instant {
    perihelion_driver::Clock::machine().now()
}

/// Whether an attempt of the operation was sent to the region that is silent.
fn went_west(response: &Response) -> bool {
    response.diagnostics().attempts().iter().any(|attempt| attempt.endpoint.region().as_str() == WEST)
}

/// A driver that has used its first region for a while.
async fn warm_driver(test_account: &TestAccount, options: DriverOptions) -> CosmosDriver {
    let driver = test_account.driver_with(options);
    run(&driver, &test_account.upsert("a", 1)).await.expect("written");
    for _ in 0..60 {
        assert!(went_west(&run(&driver, &test_account.read("a")).await.expect("read")));
    }
    driver
}

/// Runs `operation` again and again while the first region is silent and then is back, and checks when it is left
/// and found. Returns how many of the operations failed.
async fn left_and_found(
    test_account: &TestAccount,
    driver: &CosmosDriver,
    operation: &Operation,
    deadline: Duration,
    label: &str,
) -> u32 {
    let mut failures = 0;
    let region = test_account.running.region(WEST).expect("a region");
    region.down(DownMode::BlackHole).expect("down");
    let silent_since = now();
    let (mut last_west, mut avoided) = (Duration::ZERO, 0);
    // A write that cannot be sent again waits for its response to the end.
    let end = LEFT_WITHIN.max(deadline.min(5 * SECOND)) + 2 * SECOND;
    while silent_since.elapsed() < end {
        let began = silent_since.elapsed();
        match run(driver, operation).await {
            Ok(response) if went_west(&response) => last_west = began,
            Ok(response) => {
                avoided += 1;
                let diverted =
                    response.diagnostics().attempts().first().and_then(|first| first.diversion.as_ref());
                assert_eq!(diverted.expect("it says so").region.as_str(), WEST, "{label}");
            }
            Err(error) => {
                assert!(began < LEFT_WITHIN, "{label}: {began:?} later {error}");
                let expected =
                    if operation.kind().is_read_only() { None } else { Some(ErrorKind::Undecided) };
                assert_eq!(Some(error.kind()), expected, "{label}: {error}");
                (last_west, failures) = (began, failures + 1);
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(last_west < LEFT_WITHIN, "{label}: still there after {last_west:?}");
    assert!(avoided > 20, "{label}: {avoided} operations avoided the region");
    region.up().expect("up");
    let back_since = now();
    loop {
        let response = run(driver, operation).await.unwrap_or_else(|error| panic!("{label}: {error}"));
        if went_west(&response) {
            assert!(
                response
                    .diagnostics()
                    .attempts()
                    .iter()
                    .all(|attempt: &AttemptRecord| attempt.diversion.is_none())
            );
            break;
        }
        assert!(back_since.elapsed() < FOUND_WITHIN, "{label}: {:?}", driver.account());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    failures
}

async fn reads_continue(hedging: bool, deadline: Duration, attempt: Duration) {
    let label = format!("hedging {hedging}, deadline {deadline:?}, attempt {attempt:?}");
    let test_account = TestAccount::start().await;
    let driver = warm_driver(&test_account, options(hedging, deadline, attempt)).await;
    let failures = left_and_found(&test_account, &driver, &test_account.read("a"), deadline, &label).await;
    assert_eq!(failures, 0, "{label}");
}

async fn writes_continue(deadline: Duration, attempt: Duration) {
    let label = format!("writes, deadline {deadline:?}, attempt {attempt:?}");
    let test_account = TestAccount::start_multi_write().await;
    let driver = warm_driver(&test_account, options(true, deadline, attempt)).await;
    let failures =
        left_and_found(&test_account, &driver, &test_account.upsert("a", 2), deadline, &label).await;
    assert!(failures <= 3, "{label}: {failures} writes are undecided");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_region_is_left_within_three_seconds_and_found_again() {
    // Deadlines above and below the timeout of an attempt.
    tokio::join!(
        reads_continue(true, 60 * SECOND, 10 * SECOND),
        reads_continue(true, 5 * SECOND, 10 * SECOND),
        reads_continue(false, 60 * SECOND, 10 * SECOND),
        reads_continue(false, 5 * SECOND, 10 * SECOND),
        reads_continue(false, 2 * SECOND, SECOND),
        writes_continue(5 * SECOND, 10 * SECOND),
        writes_continue(3 * SECOND, SECOND),
    );
}

/// Callers often limit calls themselves, and drop them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_who_leave_early_leave_the_region_too() {
    let test_account = TestAccount::start().await;
    let driver = warm_driver(&test_account, options(false, 60 * SECOND, 10 * SECOND)).await;
    test_account.running.region(WEST).expect("a region").down(DownMode::BlackHole).expect("down");
    let silent_since = now();
    let mut in_time = 0;
    while silent_since.elapsed() < LEFT_WITHIN + SECOND {
        let began = silent_since.elapsed();
        let read =
            tokio::time::timeout(Duration::from_millis(300), run(&driver, &test_account.read("a"))).await;
        if let Ok(read) = read {
            read.expect("read");
            in_time += 1;
        } else {
            assert!(began < LEFT_WITHIN, "a read waited {began:?} after the region became silent");
        }
    }
    assert!(in_time > 20, "{in_time} reads");
}

/// A driver that knows little has to look containers up, and does not know how fast its regions are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drivers_that_have_just_begun_leave_the_region_too() {
    // The first driver knows its container, the second one only the account.
    for (deadline, knows_container) in [(Duration::from_millis(600), true), (3 * SECOND, false)] {
        let test_account = TestAccount::start().await;
        run(&test_account.driver(), &test_account.upsert("a", 1)).await.expect("written");
        let driver = test_account.driver_with(options(true, deadline, 10 * SECOND));
        if knows_container {
            run(&driver, &test_account.read("a")).await.expect("read");
        } else {
            driver.refresh_account().await;
        }
        test_account.running.region(WEST).expect("a region").down(DownMode::BlackHole).expect("down");
        let silent_since = now();
        while silent_since.elapsed() < LEFT_WITHIN + SECOND {
            let began = silent_since.elapsed();
            let read = run(&driver, &test_account.read("a")).await;
            read.unwrap_or_else(|error| panic!("deadline {deadline:?}, at {began:?}: {error}"));
        }
    }
}

/// A partition that takes no writes in a region may still be read there.
#[tokio::test]
async fn writes_that_fail_move_elsewhere_and_reads_stay() {
    use emulator::faults::{FaultRule, OperationKind as Asked};
    let test_account = TestAccount::start_multi_write().await;
    let driver = test_account.driver();
    run(&driver, &test_account.upsert("a", 1)).await.expect("written");
    let fault = FaultRule::status(503, 0).on(Asked::Write).in_region(WEST).named("no-writes");
    test_account.running.faults().add(fault).expect("a rule");
    // Reads that succeed in between do not hide that writes fail.
    for _ in 0..5 {
        run(&driver, &test_account.upsert("a", 2)).await.expect("written elsewhere");
        assert!(went_west(&run(&driver, &test_account.read("a")).await.expect("read")));
    }
    let written = run(&driver, &test_account.upsert("a", 3)).await.expect("written elsewhere");
    assert!(!went_west(&written), "{}", written.diagnostics().summary());
    let diversion = written.diagnostics().attempts()[0].diversion.as_ref().expect("it says why");
    assert!(diversion.cause.to_string().contains("writes is open after 5 failures"), "{}", diversion.cause);
    let read = run(&driver, &test_account.read("a")).await.expect("read");
    assert!(went_west(&read) && read.diagnostics().attempts().len() == 1, "{}", read.diagnostics().summary());
    let state = driver.partition_state();
    assert!(state.breakers().all(|(key, _)| key.access == Access::Write));
}

/// A region that is slow for minutes is found available by every probe, and left again: hedging must not forget in
/// between how fast the region was before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_stays_slow_is_hedged_for_as_long_as_it_is() {
    let test_account = TestAccount::start().await;
    let driver = warm_driver(&test_account, options(true, 60 * SECOND, 10 * SECOND)).await;
    test_account.running.region(WEST).expect("a region").slow(Duration::from_millis(900)).expect("slow");
    let slow_since = now();
    let mut returned_west = 0;
    // Two rounds of probes, each of which reads the account again.
    while slow_since.elapsed() < 16 * SECOND {
        let began = now();
        let response = run(&driver, &test_account.read("a")).await.expect("read");
        let (took, summary) = (began.elapsed(), response.diagnostics().summary().to_string());
        returned_west += u32::from(slow_since.elapsed() > LEFT_WITHIN && went_west(&response));
        assert!(took < Duration::from_millis(600), "{:?} later: {summary}", slow_since.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(returned_west > 0, "the region was tried again");
}
