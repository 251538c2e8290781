//! Step 4: a second attempt in another region when the first is slow.

use perihelion_driver::diagnostics::ExecutionContext;
use std::time::Duration;

use emulator::faults::{DownMode, FaultRule, OperationKind as Asked};
use perihelion_driver::ErrorKind;
use perihelion_driver::options::{DriverOptions, HedgingOptions, HedgingThreshold, OperationOptions};
use protocol::status::Status;

use crate::test_account::{EAST, NORTH, TestAccount, WEST, body, regions, run, within};

/// A driver that races after 50 ms.
fn racing(test_account: &TestAccount) -> perihelion_driver::CosmosDriver {
    let threshold = HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates");
    let hedging = HedgingOptions::new().with_threshold(threshold);
    test_account
        .driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)))
}

/// How each attempt came about.
fn contexts(response: &perihelion_driver::Response) -> Vec<ExecutionContext> {
    response.diagnostics().attempts().iter().map(|attempt| attempt.context).collect()
}

/// Makes reads in a region wait.
fn slow_reads(test_account: &TestAccount, region: &str, wait: Duration) {
    test_account
        .running
        .faults()
        .add(FaultRule::delay(wait).on(Asked::Read).in_region(region))
        .expect("a rule");
}

#[tokio::test]
async fn a_first_attempt_that_is_slow_and_still_first_wins_its_race() {
    let test_account = TestAccount::start().await;
    let driver = racing(&test_account);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    slow_reads(&test_account, WEST, Duration::from_millis(400));
    slow_reads(&test_account, EAST, Duration::from_secs(15));
    let read = run(&driver, &test_account.read("a")).await.expect("read");
    let attempts = read.diagnostics().attempts().iter();
    let finished: Vec<_> = attempts.filter(|attempt| attempt.outcome.sent().is_some()).collect();
    assert!(matches!(&finished[..], [first] if first.context == ExecutionContext::Initial));
    assert_eq!((read.diagnostics().totals().hedges, read.diagnostics().totals().abandoned), (1, 1));
    assert_eq!(driver.open_hedges(), 0);
}

#[tokio::test]
async fn when_both_hedged_attempts_fail_a_third_region_is_tried() {
    let test_account = TestAccount::start().await;
    let driver = racing(&test_account);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    for region in [WEST, EAST] {
        let late = FaultRule::status(503, 0).delayed_by(Duration::from_millis(300)).on(Asked::Read);
        test_account.running.faults().add(late.in_region(region)).expect("a rule");
    }
    let read = run(&driver, &test_account.read("a")).await.expect("read");
    let contexts = contexts(&read);
    assert!(contexts.contains(&ExecutionContext::Initial) && contexts.contains(&ExecutionContext::Hedging));
    assert_eq!(regions(&read).last().map(String::as_str), Some(NORTH), "{}", read.diagnostics().summary());
}

#[tokio::test]
async fn writes_are_raced_only_where_several_regions_take_them() {
    for multi_write in [false, true] {
        let test_account = TestAccount::start_with(|config| config.multi_write = multi_write).await;
        let driver = racing(&test_account);
        run(&driver, &test_account.create_item("a")).await.expect("made");
        let slow = FaultRule::delay(Duration::from_millis(700)).on(Asked::Create).in_region(WEST);
        test_account.running.faults().add(slow).expect("a rule");
        let made = run(&driver, &test_account.create_item("b")).await.expect("made").diagnostics().totals();
        assert_eq!(made.hedges, u32::from(multi_write));
    }
}

#[tokio::test]
async fn hedging_is_off_for_an_operation_that_disables_it() {
    let test_account = TestAccount::start().await;
    let driver = racing(&test_account);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    slow_reads(&test_account, WEST, Duration::from_millis(400));
    let off = within(Duration::from_secs(20)).with_hedging(HedgingOptions::new().with_enabled(false));
    let read = driver.execute_operation(&test_account.read("a"), &off).await.expect("read");
    assert_eq!((regions(&read), read.diagnostics().totals().hedges), (vec![WEST.to_owned()], 0));
}

#[tokio::test]
async fn in_a_brown_out_the_second_region_responds_soon_after_the_threshold() {
    let test_account = TestAccount::start().await;
    let hedging = HedgingOptions::new()
        .with_threshold(HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates"));
    let driver = test_account
        .driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)));
    run(&driver, &test_account.create_item("a")).await.expect("made");
    test_account.running.region(WEST).expect("a region").slow(Duration::from_secs(15)).expect("slow");
    for _ in 0..5 {
        let read = run(&driver, &test_account.read("a")).await.expect("read");
        assert!(read.diagnostics().elapsed() < Duration::from_secs(10), "{}", read.diagnostics().summary());
        let contexts: Vec<_> = read.diagnostics().attempts().iter().map(|attempt| attempt.context).collect();
        assert!(
            contexts.contains(&ExecutionContext::Initial) && contexts.contains(&ExecutionContext::Hedging)
        );
        let totals = read.diagnostics().totals();
        assert_eq!((totals.hedges, totals.abandoned), (1, 1));
        assert_eq!(driver.open_hedges(), 0);
    }
}

#[tokio::test]
async fn a_hedged_create_that_finds_its_own_item_is_a_success() {
    let test_account = TestAccount::start_multi_write().await;
    let hedging = HedgingOptions::new()
        .with_threshold(HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates"));
    let driver = test_account
        .driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)));
    run(&driver, &test_account.create_item("warm")).await.expect("made");
    // The first region does it at once and says so late; without lag the second one knows by then.
    let late = FaultRule::delay(Duration::from_millis(700))
        .delaying_the_response()
        .on(Asked::Create)
        .in_region(WEST);
    test_account.running.faults().add(late).expect("a rule");
    for number in 0..3 {
        let id = format!("item-{number}");
        let made = run(&driver, &test_account.create_item(&id)).await.expect("its own write");
        assert_eq!(made.status(), Status::CREATED);
        let statuses: Vec<_> = made
            .diagnostics()
            .attempts()
            .iter()
            .filter_map(|attempt| attempt.outcome.sent()?.status.map(|(status, _)| status.0))
            .collect();
        assert!(statuses.contains(&201), "{statuses:?}");
        // Another client's item is still a conflict.
        let twice = run(&driver, &test_account.create_item(&id)).await.expect_err("it is there");
        assert_eq!(twice.kind(), ErrorKind::Conflict);
    }
}

#[tokio::test]
async fn hedged_writes_are_done_once_and_do_not_conflict_with_themselves() {
    use perihelion_driver::operation::{Operation, Precondition};
    use protocol::partition::PartitionKey;
    let test_account = TestAccount::start_multi_write().await;
    let driver = racing(&test_account);
    let key = || PartitionKey::single("a");
    let replace =
        || Operation::replace_item(&test_account.container, key(), "a", crate::test_account::item("a", 3));
    let delete = || Operation::delete_item(&test_account.container, key(), "a");
    let (raced, alone) = (true, false);
    for (name, operation, is_guarded, expected, value) in [
        ("create", test_account.create_item("a"), false, raced, Some(1)),
        ("upsert if unchanged", test_account.upsert("a", 2), true, raced, Some(2)),
        ("replace if unchanged", replace(), true, raced, Some(3)),
        ("delete if unchanged", delete(), true, raced, None),
        ("upsert that may be repeated", test_account.upsert("a", 2).repeatable(), false, raced, Some(2)),
        ("upsert", test_account.upsert("a", 2), false, alone, Some(2)),
        ("replace", replace(), false, alone, Some(3)),
        ("delete", delete(), false, alone, None),
    ] {
        let exists = name != "create";
        if exists {
            run(&driver, &test_account.upsert("a", 1)).await.expect("written");
        }
        let operation = if is_guarded {
            let read = run(&driver, &test_account.read("a")).await.expect("read");
            operation.with_precondition(Precondition::IfMatch(read.etag().expect("an etag").to_owned()))
        } else {
            operation
        };
        // The first region does it at once and says so late; without lag the second one knows by then.
        let late = FaultRule::delay(Duration::from_millis(700))
            .delaying_the_response()
            .on(Asked::Write)
            .in_region(WEST);
        let rule = test_account.running.faults().add(late).expect("a rule");
        let done = run(&driver, &operation).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        test_account.running.faults().remove(&rule).expect("removed");
        let totals = done.diagnostics().totals();
        assert_eq!(totals.hedges > 0, expected == raced, "{name}: {}", done.diagnostics().summary());
        let read = run(&driver, &test_account.read("a")).await;
        match value {
            Some(value) => assert_eq!(body(&read.expect("it is there"))["value"], value, "{name}"),
            None => assert_eq!(read.expect_err("it is gone").kind(), ErrorKind::NotFound, "{name}"),
        }
        assert_eq!((driver.open_hedges(), driver.in_flight()), (0, 0), "{name}");
    }
}

#[tokio::test]
async fn the_duplicate_of_a_hedged_write_that_arrives_late_changes_nothing() {
    use perihelion_driver::operation::{Operation, Precondition};
    use perihelion_driver::options::RegionOptions;
    use protocol::partition::PartitionKey;
    let test_account = TestAccount::start_multi_write().await;
    let (driver, west) = (racing(&test_account), test_account.driver_preferring(&[WEST]));
    let slow = || {
        let rule = FaultRule::delay(Duration::from_secs(15)).on(Asked::Write).in_region(WEST);
        test_account.running.faults().add(rule).expect("a rule")
    };
    let made = run(&driver, &test_account.upsert("b", 1)).await.expect("written");
    let unchanged = Precondition::IfMatch(made.etag().expect("an etag").to_owned());
    let key = || PartitionKey::single("b");
    for (operation, expected) in [
        (test_account.create_item("a"), ErrorKind::Conflict),
        (test_account.upsert("b", 2).with_precondition(unchanged.clone()), ErrorKind::PreconditionFailed),
        (
            Operation::delete_item(&test_account.container, key(), "b").with_precondition(unchanged),
            ErrorKind::PreconditionFailed,
        ),
    ] {
        let id = if expected == ErrorKind::Conflict { "a" } else { "b" };
        if operation.kind() != perihelion_driver::OperationKind::Delete {
            let rule = slow();
            let done = run(&driver, &operation).await.expect("done by the second region");
            assert_eq!(done.diagnostics().totals().abandoned, 1, "{}", done.diagnostics().summary());
            test_account.running.faults().remove(&rule).expect("removed");
        }
        // Another client writes, and only then the region carries out the attempt that was dropped.
        run(&driver, &test_account.upsert(id, 9)).await.expect("acknowledged");
        let in_west = RegionOptions::new().with_excluded([EAST, NORTH]);
        let late = west.execute_operation(&operation, &OperationOptions::new().with_regions(in_west)).await;
        assert_eq!(late.expect_err("rejected").kind(), expected);
        let read = run(&driver, &test_account.read(id)).await.expect("read");
        assert_eq!(body(&read)["value"], 9, "what was acknowledged stands");
    }
}

#[tokio::test]
async fn a_write_that_could_overwrite_later_ones_is_not_hedged() {
    let test_account = TestAccount::start_multi_write().await;
    let hedging = HedgingOptions::new()
        .with_threshold(HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates"));
    let driver = test_account
        .driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)));
    run(&driver, &test_account.create_item("a")).await.expect("made");
    // What is sent there now is carried out when the region can be reached again.
    test_account.running.region(WEST).expect("a region").down(DownMode::BlackHole).expect("down");
    let upsert = test_account.upsert("a", 2);
    let error = driver.execute_operation(&upsert, &within(Duration::from_millis(400))).await;
    let error = error.expect_err("no region responds");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    assert_eq!(error.diagnostics().expect("diagnostics").totals().hedges, 0, "{error}");
    // The second of two creates finds an item, and this caller knows that nothing comes after it.
    for harmless in [test_account.create_item("b"), test_account.upsert("c", 1).repeatable()] {
        let written = run(&driver, &harmless).await.expect("written in another region");
        assert_eq!(written.diagnostics().totals().hedges, 1);
    }
}

#[tokio::test]
async fn a_dropped_operation_leaves_nothing_in_flight() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    run(&driver, &test_account.create_item("a")).await.expect("made");
    test_account.running.region(WEST).expect("a region").slow(Duration::from_secs(30)).expect("slow");
    test_account.running.region(EAST).expect("a region").slow(Duration::from_secs(30)).expect("slow");
    for milliseconds in [0, 1, 5, 30, 80, 200] {
        let operation = test_account.read("a");
        let options = within(Duration::from_secs(20));
        let execution = driver.execute_operation(&operation, &options);
        let dropped = tokio::time::timeout(Duration::from_millis(milliseconds), execution).await;
        assert!(dropped.is_err(), "slow regions responded");
        assert_eq!(driver.open_hedges(), 0);
        assert_eq!(driver.in_flight(), 0);
    }
}
