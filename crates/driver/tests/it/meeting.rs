//! The account is met, and met again, while its own endpoint is down.

use std::time::Duration;

use emulator::faults::{DownMode, FaultRule, OperationKind as Asked};
use perihelion_driver::options::DriverOptions;
use perihelion_driver::{Account, ErrorKind};
use tokio::time::Instant;

use crate::lab::{EAST, Lab, NORTH, WEST, body, regions, run, unraced, within};

/// The endpoint of a region.
fn endpoint(lab: &Lab, region: &str) -> String {
    let regions = lab.running.regions();
    regions.iter().find(|known| known.name == region).expect("a region").endpoint.clone()
}

/// Host and port of a region.
fn authority(lab: &Lab, region: &str) -> String {
    endpoint(lab, region).trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// The account with the endpoints of these regions beside its own, which is the first region's.
fn account_with(lab: &Lab, backups: &[&str]) -> Account {
    let backups = backups.iter().map(|region| endpoint(lab, region));
    lab.account().with_backup_endpoints(backups).expect("valid")
}

fn down(lab: &Lab, region: &str, how: DownMode) {
    lab.running.region(region).expect("a region").down(how).expect("down");
}

#[tokio::test]
async fn a_driver_begins_at_a_backup_endpoint_while_the_accounts_own_is_down() {
    for how in [DownMode::Refused, DownMode::Unavailable, DownMode::BlackHole] {
        let lab = Lab::start_multi_write().await;
        run(&lab.driver(), &lab.create_item("a")).await.expect("made");
        down(&lab, WEST, how);
        let driver = lab.driver_of(&account_with(&lab, &[EAST]), DriverOptions::new());
        let began = Instant::now();
        driver.warm_up(&[]).await.unwrap_or_else(|error| panic!("{how:?}: {error}"));
        // Silence is not waited out: one attempt at metadata may take five seconds.
        assert!(began.elapsed() < Duration::from_secs(5), "{how:?}: {:?}", began.elapsed());
        assert_eq!(driver.account().reads().len(), 3, "{how:?}: all regions are known");
        for operation in [lab.read("a"), lab.create_item("b")] {
            let done = run(&driver, &operation).await.unwrap_or_else(|error| panic!("{how:?}: {error}"));
            assert_eq!(regions(&done).last().map(String::as_str), Some(EAST), "{how:?}");
        }
    }
}

#[tokio::test]
async fn without_a_backup_endpoint_the_error_names_the_only_one_there_is() {
    let lab = Lab::start().await;
    down(&lab, WEST, DownMode::Refused);
    let error = run(&lab.driver(), &lab.read("a")).await.expect_err("nobody to ask");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let west = format!("no account can be reached at {}", authority(&lab, WEST));
    assert!(error.message().starts_with(&west), "{error}");
}

#[tokio::test]
async fn when_no_endpoint_answers_the_error_names_each_within_the_deadline() {
    let lab = Lab::start().await;
    let account = account_with(&lab, &[EAST, NORTH]);
    let all: Vec<String> = [WEST, EAST, NORTH].map(|region| authority(&lab, region)).to_vec();
    for (how, deadline, kind) in [
        (DownMode::Refused, Duration::from_secs(20), ErrorKind::Unavailable),
        (DownMode::Unavailable, Duration::from_secs(20), ErrorKind::Unavailable),
        (DownMode::BlackHole, Duration::from_secs(2), ErrorKind::DeadlineExceeded),
    ] {
        for region in [WEST, EAST, NORTH] {
            down(&lab, region, how);
        }
        let driver = lab.driver_of(&account, unraced());
        let began = Instant::now();
        let error =
            driver.execute_operation(&lab.read("a"), &within(deadline)).await.expect_err("all are down");
        assert_eq!(error.kind(), kind, "{how:?}: {error}");
        assert!(all.iter().all(|name| error.message().contains(name)), "{how:?}: {error}");
        // What is allowed beyond is the machine's, not the driver's.
        assert!(began.elapsed() < deadline + Duration::from_secs(2), "{how:?}: {:?}", began.elapsed());
        for region in [WEST, EAST, NORTH] {
            lab.running.region(region).expect("a region").up().expect("up");
        }
        run(&driver, &lab.upsert("a", 1)).await.expect("the same driver meets the account later");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_no_account_does_not_stand_in_the_way() {
    let lab = Lab::start().await;
    run(&lab.driver(), &lab.create_item("a")).await.expect("made");
    let elsewhere = Account::with_key(&lab.running.control_endpoint(), lab.running.key()).expect("valid");
    let account = elsewhere.with_backup_endpoints([lab.running.endpoint()]).expect("valid");
    run(&lab.driver_of(&account, unraced()), &lab.read("a")).await.expect("read");
}

#[tokio::test]
async fn the_regions_that_are_known_tell_of_a_failover_while_the_accounts_own_endpoint_is_down() {
    for how in [DownMode::Refused, DownMode::Unavailable, DownMode::BlackHole] {
        let lab = Lab::start().await;
        let driver = lab.driver_with(unraced());
        run(&driver, &lab.create_item("a")).await.expect("made");
        // The account's own endpoint is West US's: both are gone.
        down(&lab, WEST, how);
        lab.running.region(EAST).expect("a region").fail_over().expect("failed over");
        driver.refresh_account().await;
        assert_eq!(driver.account().hub().region().as_str(), EAST, "{how:?}");
        let written =
            run(&driver, &lab.upsert("a", 2)).await.unwrap_or_else(|error| panic!("{how:?}: {error}"));
        assert_eq!(regions(&written), [EAST], "{how:?}");
        assert_eq!(body(&run(&driver, &lab.read("a")).await.expect("read"))["value"], 2);
    }
}

#[tokio::test]
async fn an_endpoint_that_is_slow_is_not_waited_for_when_another_answers() {
    let lab = Lab::start().await;
    run(&lab.driver(), &lab.create_item("a")).await.expect("made");
    let slow = FaultRule::delay(Duration::from_secs(4)).on(Asked::Metadata).in_region(WEST);
    lab.running.faults().add(slow).expect("a rule");
    let driver = lab.driver_of(&account_with(&lab, &[NORTH]), unraced());
    let began = Instant::now();
    driver.warm_up(&[]).await.expect("met in North Europe");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}
