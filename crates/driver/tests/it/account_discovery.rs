//! The account is met, and met again, while the endpoint that it is known by, or a region, is down.

use std::time::Duration;

use emulator::faults::{DownMode, FaultRule, OperationKind as Asked};
use perihelion_driver::options::DriverOptions;
use perihelion_driver::{Account, ErrorKind};
use tokio::time::Instant;

use crate::test_account::{EAST, NORTH, TestAccount, WEST, body, regions, run, within, without_hedging};

/// The endpoint of a region.
fn endpoint(test_account: &TestAccount, region: &str) -> String {
    let regions = test_account.running.regions();
    regions.iter().find(|known| known.name == region).expect("a region").endpoint.clone()
}

/// Host and port of a region.
fn authority(test_account: &TestAccount, region: &str) -> String {
    endpoint(test_account, region).trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// The account as it is known by the endpoint of its first region, which goes down with it, with the endpoints
/// of these regions beside it.
fn account_with(test_account: &TestAccount, backups: &[&str]) -> Account {
    let backups = backups.iter().map(|region| endpoint(test_account, region));
    let account = Account::with_key(&endpoint(test_account, WEST), test_account.running.key());
    account.expect("valid").with_backup_endpoints(backups).expect("valid")
}

fn down(test_account: &TestAccount, region: &str, how: DownMode) {
    test_account.running.region(region).expect("a region").down(how).expect("down");
}

#[tokio::test]
async fn a_driver_begins_at_a_backup_endpoint_while_the_accounts_own_is_down() {
    for how in [DownMode::Refused, DownMode::Unavailable, DownMode::BlackHole] {
        let test_account = TestAccount::start_multi_write().await;
        run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
        down(&test_account, WEST, how);
        let driver = test_account.driver_of(&account_with(&test_account, &[EAST]), DriverOptions::new());
        #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
        let began = Instant::now();
        driver.warm_up(&[], &Default::default()).await.unwrap_or_else(|error| panic!("{how:?}: {error}"));
        // Silence is not waited out: one attempt at metadata may take five seconds.
        assert!(began.elapsed() < Duration::from_secs(5), "{how:?}: {:?}", began.elapsed());
        assert_eq!(driver.account().reads().len(), 3, "{how:?}: all regions are known");
        for operation in [test_account.read("a"), test_account.create_item("b")] {
            let done = run(&driver, &operation).await.unwrap_or_else(|error| panic!("{how:?}: {error}"));
            assert_eq!(regions(&done).last().map(String::as_str), Some(EAST), "{how:?}");
        }
    }
}

#[tokio::test]
async fn a_driver_begins_and_refreshes_at_the_accounts_own_endpoint_while_any_region_is_down() {
    for how in [DownMode::Refused, DownMode::Unavailable, DownMode::BlackHole] {
        let test_account = TestAccount::start().await;
        run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
        for region in [WEST, EAST, NORTH] {
            down(&test_account, region, how);
            let driver = test_account.driver_with(without_hedging());
            let read = run(&driver, &test_account.read("a"))
                .await
                .unwrap_or_else(|error| panic!("{region} {how:?}: {error}"));
            assert_ne!(regions(&read).last().map(String::as_str), Some(region), "{how:?}");
            let known: Vec<_> =
                driver.account().reads().iter().map(|known| known.region().as_str().to_owned()).collect();
            assert_eq!(known, [WEST, EAST, NORTH], "{region} {how:?}: the endpoint is no region");
            test_account.running.region(region).expect("a region").up().expect("up");
        }
        let driver = test_account.driver_with(without_hedging());
        run(&driver, &test_account.read("a")).await.expect("read");
        down(&test_account, WEST, how);
        test_account.running.region(EAST).expect("a region").fail_over().expect("failed over");
        driver.refresh_account().await;
        assert_eq!(driver.account().hub().region().as_str(), EAST, "{how:?}");
        let written = run(&driver, &test_account.upsert("a", 2)).await.expect("written");
        assert_eq!(regions(&written), [EAST], "{how:?}");
    }
}

#[tokio::test]
async fn without_a_backup_endpoint_the_error_names_the_only_one_there_is() {
    let test_account = TestAccount::start().await;
    down(&test_account, WEST, DownMode::Refused);
    let driver = test_account.driver_of(&account_with(&test_account, &[]), DriverOptions::new());
    let error = run(&driver, &test_account.read("a")).await.expect_err("no endpoint responds");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let west = format!("no account can be reached at {}", authority(&test_account, WEST));
    assert!(error.message().starts_with(&west), "{error}");
}

#[tokio::test]
async fn when_no_endpoint_responds_the_error_names_each_within_the_deadline() {
    let test_account = TestAccount::start().await;
    let account = account_with(&test_account, &[EAST, NORTH]);
    let all: Vec<String> = [WEST, EAST, NORTH].map(|region| authority(&test_account, region)).to_vec();
    for (how, deadline, kind) in [
        (DownMode::Refused, Duration::from_secs(20), ErrorKind::Unavailable),
        (DownMode::Unavailable, Duration::from_secs(20), ErrorKind::Unavailable),
        (DownMode::BlackHole, Duration::from_secs(2), ErrorKind::DeadlineExceeded),
    ] {
        for region in [WEST, EAST, NORTH] {
            down(&test_account, region, how);
        }
        let driver = test_account.driver_of(&account, without_hedging());
        #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
        let began = Instant::now();
        let error = driver
            .execute_operation(&test_account.read("a"), &within(deadline))
            .await
            .expect_err("all are down");
        assert_eq!(error.kind(), kind, "{how:?}: {error}");
        assert!(all.iter().all(|name| error.message().contains(name)), "{how:?}: {error}");
        // What is allowed beyond is the machine's, not the driver's.
        assert!(began.elapsed() < deadline + Duration::from_secs(2), "{how:?}: {:?}", began.elapsed());
        for region in [WEST, EAST, NORTH] {
            test_account.running.region(region).expect("a region").up().expect("up");
        }
        run(&driver, &test_account.upsert("a", 1)).await.expect("the same driver meets the account later");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_no_account_does_not_stand_in_the_way() {
    let test_account = TestAccount::start().await;
    run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
    let other = Account::with_key(&test_account.running.control_endpoint(), test_account.running.key())
        .expect("valid");
    let account = other.with_backup_endpoints([test_account.running.endpoint()]).expect("valid");
    run(&test_account.driver_of(&account, without_hedging()), &test_account.read("a")).await.expect("read");
}

#[tokio::test]
async fn the_regions_that_are_known_tell_of_a_failover_while_the_accounts_own_endpoint_is_down() {
    for how in [DownMode::Refused, DownMode::Unavailable, DownMode::BlackHole] {
        let test_account = TestAccount::start().await;
        let driver = test_account.driver_of(&account_with(&test_account, &[]), without_hedging());
        run(&driver, &test_account.create_item("a")).await.expect("made");
        // The account is known by the endpoint of West US: both are gone.
        down(&test_account, WEST, how);
        test_account.running.region(EAST).expect("a region").fail_over().expect("failed over");
        driver.refresh_account().await;
        assert_eq!(driver.account().hub().region().as_str(), EAST, "{how:?}");
        let written = run(&driver, &test_account.upsert("a", 2))
            .await
            .unwrap_or_else(|error| panic!("{how:?}: {error}"));
        assert_eq!(regions(&written), [EAST], "{how:?}");
        assert_eq!(body(&run(&driver, &test_account.read("a")).await.expect("read"))["value"], 2);
    }
}

#[tokio::test]
async fn a_slow_endpoint_is_not_waited_for_when_another_responds() {
    let test_account = TestAccount::start().await;
    run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
    let slow = FaultRule::delay(Duration::from_secs(4)).on(Asked::Metadata).in_region(WEST);
    test_account.running.faults().add(slow).expect("a rule");
    let driver = test_account.driver_of(&account_with(&test_account, &[NORTH]), without_hedging());
    #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
    let began = Instant::now();
    driver.warm_up(&[], &Default::default()).await.expect("met in North Europe");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}
