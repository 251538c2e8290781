//! Step 2: regions that fail, drain and fail over: work continues, and ends at its deadline.

use std::time::Duration;

use emulator::faults::{ConnectionEffect, DownMode, FaultRule, OperationKind as Asked};
use perihelion_driver::options::OperationOptions;

use crate::test_account::{EAST, TestAccount, WEST, body, regions, run, within, without_hedging};

#[tokio::test]
async fn reads_go_on_when_a_region_goes_down_whichever_way_it_does() {
    for how in [DownMode::Refused, DownMode::Unavailable] {
        let test_account = TestAccount::start().await;
        let driver = test_account.driver_with(without_hedging());
        run(&driver, &test_account.create_item("a")).await.expect("made");
        test_account.running.region(WEST).expect("a region").down(how).expect("down");
        for attempt in 0..20 {
            let read = run(&driver, &test_account.read("a"))
                .await
                .unwrap_or_else(|error| panic!("{how:?} {attempt}: {error}"));
            assert_eq!(regions(&read).last().map(String::as_str), Some(EAST), "{how:?}");
            // Two failures are enough to know.
            assert!(attempt < 2 || regions(&read) == [EAST], "{how:?} {attempt}: {:?}", regions(&read));
        }
    }
}

#[tokio::test]
async fn a_black_hole_is_avoided_after_the_timeout_of_one_attempt() {
    use perihelion_driver::options::TimeoutOptions;
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.create_item("a")).await.expect("made");
    test_account.running.region(WEST).expect("a region").down(DownMode::BlackHole).expect("down");
    let timeouts = TimeoutOptions::new()
        .with_end_to_end(Duration::from_secs(20))
        .with_attempt(Duration::from_millis(300));
    let options = OperationOptions::new().with_timeouts(timeouts);
    let read =
        driver.execute_operation(&test_account.read("a"), &options).await.expect("read in another region");
    assert_eq!(regions(&read).last().map(String::as_str), Some(EAST));
}

#[tokio::test]
async fn writes_follow_a_failover_of_the_write_region() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    run(&driver, &test_account.create_item("a")).await.expect("made");
    test_account.running.region(EAST).expect("a region").fail_over().expect("failed over");
    let written = run(&driver, &test_account.upsert("a", 2)).await.expect("written in the new region");
    assert_eq!(regions(&written), [WEST, EAST]);
    let next = run(&driver, &test_account.upsert("a", 3)).await.expect("written");
    assert_eq!(regions(&next), [EAST], "the map was read again");
    assert_eq!(body(&run(&driver, &test_account.read("a")).await.expect("read"))["value"], 3);
}

#[tokio::test]
async fn a_region_that_drains_loses_reads_and_writes() {
    let test_account = TestAccount::start_multi_write().await;
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.create_item("a")).await.expect("made");
    test_account.running.region(WEST).expect("a region").drain().expect("draining");
    for operation in [test_account.read("a"), test_account.upsert("a", 2)] {
        let done = run(&driver, &operation).await.expect("done in another region");
        assert_ne!(regions(&done).last().map(String::as_str), Some(WEST));
    }
}

#[tokio::test]
async fn no_operation_outlives_its_deadline_whatever_the_regions_do() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let everywhere = |rule: FaultRule| rule.on(Asked::Read).on(Asked::Write);
    for (name, rule) in [
        ("slow", FaultRule::delay(Duration::from_secs(60))),
        ("503", FaultRule::status(503, 0)),
        ("403/3", FaultRule::status(403, 3)),
        ("449", FaultRule::status(449, 0)),
        ("429", FaultRule::status(429, 3200).retry_after(Duration::from_secs(30))),
        ("404/1002", FaultRule::status(404, 1002)),
        ("410/1007", FaultRule::status(410, 1007)),
        ("closed", FaultRule::connection(ConnectionEffect::CloseBefore)),
    ] {
        let id = test_account.running.faults().add(everywhere(rule)).expect(name);
        for operation in [test_account.read("a"), test_account.upsert("a", 2)] {
            let deadline = Duration::from_millis(700);
            let error = driver.execute_operation(&operation, &within(deadline)).await.expect_err(name);
            let took = error.diagnostics().expect("diagnostics").elapsed();
            // What is allowed beyond is the machine's, not the driver's.
            assert!(took < deadline + Duration::from_secs(2), "{name}: {took:?} {error}");
        }
        test_account.running.faults().remove(&id).expect("removed");
    }
}
