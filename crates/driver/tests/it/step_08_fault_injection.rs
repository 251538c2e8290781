//! Step 8: faults injected below sharding, seen from the operation: every layer above handles them like real ones.

use std::sync::Arc;
use std::time::Duration;

use perihelion_driver::faults::{
    ConnectionEffect, FaultInjectingHttpClientFactory, FaultInjector, FaultRule, OperationKind,
};
use perihelion_driver::options::{DriverOptions, HedgingOptions, OperationOptions};
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, ErrorKind};

use crate::test_account::{Clients, TestAccount, WEST, regions, run};

fn driver(test_account: &TestAccount, faults: &FaultInjector) -> CosmosDriver {
    let clients = FaultInjectingHttpClientFactory::new(Arc::new(Clients), faults.clone());
    let runtime = CosmosRuntime::builder(Arc::new(clients)).build().expect("valid");
    let account = Account::from_connection_string(&test_account.running.connection_string()).expect("valid");
    let no_hedging = OperationOptions::new().with_hedging(HedgingOptions::new().with_enabled(false));
    runtime.driver(&account, DriverOptions::new().with_operation(no_hedging)).expect("valid")
}

fn add(faults: &FaultInjector, rule: FaultRule) {
    faults.add(rule).expect("a rule that the driver can apply");
}

/// Limits a rule to point reads in the first region.
fn reads_in_west(rule: FaultRule) -> FaultRule {
    rule.on(OperationKind::Read).in_region(WEST).in_container("d", "c")
}

#[tokio::test]
async fn a_read_fails_over_and_every_attempt_is_recorded() {
    let test_account = TestAccount::start().await;
    run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
    for (name, rule) in [
        ("503", FaultRule::status(503, 0)),
        ("429-3092", FaultRule::status(429, 3092)),
        ("unreachable", FaultRule::connection(ConnectionEffect::FailBeforeSending)),
        ("lost", FaultRule::connection(ConnectionEffect::CloseAfter)),
    ] {
        let faults = FaultInjector::new(1);
        let driver = driver(&test_account, &faults);
        add(&faults, reads_in_west(rule).named(name));
        let response =
            run(&driver, &test_account.read("a")).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(faults.hits(name) > Some(0), "{name}");
        assert_ne!(regions(&response).last().map(String::as_str), Some(WEST), "{name}");
        let totals = response.diagnostics().totals();
        assert_eq!(totals.attempts as usize, regions(&response).len(), "{name}");
    }
}

#[tokio::test]
async fn throttling_is_waited_for_in_place() {
    let test_account = TestAccount::start().await;
    let faults = FaultInjector::new(1);
    let driver = driver(&test_account, &faults);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    add(&faults, reads_in_west(FaultRule::throttle(Duration::from_millis(5))).named("busy").times(3));
    let response = run(&driver, &test_account.read("a")).await.expect("read");
    assert_eq!(regions(&response), [WEST; 4], "three errors and a success");
    assert_eq!(response.diagnostics().totals().throttled, 3);
}

#[tokio::test]
async fn a_create_whose_response_is_lost_is_undecided_and_was_done_once() {
    let test_account = TestAccount::start().await;
    let faults = FaultInjector::new(1);
    let driver = driver(&test_account, &faults);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let lost = FaultRule::connection(ConnectionEffect::CloseAfter).named("lost");
    add(&faults, lost.on(OperationKind::Create).in_container("d", "c"));
    let error = run(&driver, &test_account.create_item("b")).await.expect_err("undecided");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    assert_eq!(faults.hits("lost"), Some(1), "it is not sent twice");
    faults.clear();
    run(&driver, &test_account.read("b")).await.expect("it was made");
}

#[tokio::test]
async fn a_share_of_failures_slows_reads_down_and_fails_none() {
    let test_account = TestAccount::start().await;
    let faults = FaultInjector::new(7);
    let driver = driver(&test_account, &faults);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let flaky = FaultRule::connection(ConnectionEffect::CloseAfter).named("flaky").share(0.2);
    add(&faults, flaky.on(OperationKind::Read).in_container("d", "c"));
    for _ in 0..100 {
        run(&driver, &test_account.read("a")).await.expect("read");
    }
    let hits = faults.hits("flaky").expect("the rule");
    assert!((5..=60).contains(&hits), "{hits} of 100 and their repeats");
}
