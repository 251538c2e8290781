//! Regions that fail, drain, lag, throttle and fail over: work goes on.

use std::time::Duration;

use emulator::faults::{ConnectionEffect, Down, OperationKind as Asked, Rule};
use emulator::regions::Lag;
use perihelion_driver::ErrorKind;
use perihelion_driver::diagnostics::metrics::{BreakerGauge, SeriesKey, SeriesSnapshot};
use perihelion_driver::options::{DriverOptions, HedgingOptions, HedgingThreshold, OperationOptions};
use perihelion_driver::transport::request::ExecutionContext;
use protocol::status::Status;
use serde_json::json;

use crate::lab::{EAST, Lab, NORTH, WEST, body, regions, run, within};

/// Options of a driver that never races, so that a test sees failover alone.
fn unraced() -> DriverOptions {
    let hedging = HedgingOptions::new().with_enabled(false);
    DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging))
}

#[tokio::test]
async fn reads_go_on_when_a_region_goes_down_whichever_way_it_does() {
    for how in [Down::Refused, Down::Unavailable] {
        let lab = Lab::start().await;
        let driver = lab.driver_with(unraced());
        run(&driver, &lab.create_item("a")).await.expect("made");
        lab.running.region(WEST).expect("a region").down(how).expect("down");
        for attempt in 0..20 {
            let read = run(&driver, &lab.read("a"))
                .await
                .unwrap_or_else(|error| panic!("{how:?} {attempt}: {error}"));
            assert_eq!(regions(&read).last().map(String::as_str), Some(EAST), "{how:?}");
            // Two failures are enough to know.
            assert!(attempt < 2 || regions(&read) == [EAST], "{how:?} {attempt}: {:?}", regions(&read));
        }
    }
}

#[tokio::test]
async fn a_black_hole_is_left_after_the_time_of_one_attempt() {
    use perihelion_driver::options::TimeoutOptions;
    let lab = Lab::start().await;
    let driver = lab.driver_with(unraced());
    run(&driver, &lab.create_item("a")).await.expect("made");
    lab.running.region(WEST).expect("a region").down(Down::BlackHole).expect("down");
    let timeouts = TimeoutOptions::new()
        .with_end_to_end(Duration::from_secs(20))
        .with_attempt(Duration::from_millis(300));
    let options = OperationOptions::new().with_timeouts(timeouts);
    let read = driver.execute_operation(&lab.read("a"), &options).await.expect("read elsewhere");
    assert_eq!(regions(&read).last().map(String::as_str), Some(EAST));
}

#[tokio::test]
async fn writes_follow_a_failover_of_the_write_region() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.create_item("a")).await.expect("made");
    lab.running.region(EAST).expect("a region").fail_over().expect("failed over");
    let written = run(&driver, &lab.upsert("a", 2)).await.expect("written in the new region");
    assert_eq!(regions(&written), [WEST, EAST]);
    let next = run(&driver, &lab.upsert("a", 3)).await.expect("written");
    assert_eq!(regions(&next), [EAST], "the map was read again");
    assert_eq!(body(&run(&driver, &lab.read("a")).await.expect("read"))["value"], 3);
}

#[tokio::test]
async fn a_region_that_drains_is_left_for_reads_and_writes() {
    let lab = Lab::start_multi_write().await;
    let driver = lab.driver_with(unraced());
    run(&driver, &lab.create_item("a")).await.expect("made");
    lab.running.region(WEST).expect("a region").drain().expect("draining");
    for operation in [lab.read("a"), lab.upsert("a", 2)] {
        let done = run(&driver, &operation).await.expect("done elsewhere");
        assert_ne!(regions(&done).last().map(String::as_str), Some(WEST));
    }
}

#[tokio::test]
async fn a_region_behind_the_session_is_left_for_the_one_that_is_not() {
    let lab = Lab::start_with(|config| config.lag = "1h".parse::<Lag>().expect("a lag")).await;
    let driver = lab.driver_preferring(&[NORTH, EAST, WEST]);
    run(&driver, &lab.create_item("a")).await.expect("made");
    let read = run(&driver, &lab.read("a")).await.expect("one's own write");
    assert_eq!(regions(&read), [NORTH, WEST], "straight to the region that has every write");
    assert_eq!(body(&read)["value"], 1);
}

#[tokio::test]
async fn a_partition_that_is_bad_in_one_region_is_left_alone_there_and_comes_back() {
    use perihelion_driver::options::CircuitBreakerOptions;
    let lab = Lab::start().await;
    let breaker = CircuitBreakerOptions::new().with_unavailability_probe_delay(Duration::from_millis(100));
    let driver = lab.driver_with(unraced().with_circuit_breaker(breaker));
    // Items of all partitions.
    let ids: Vec<String> = (0..40).map(|number| format!("item-{number}")).collect();
    for id in &ids {
        run(&driver, &lab.create_item(id)).await.expect("made");
    }
    let bad = 1;
    let mut rule = Rule::answer(503, 0).in_region(WEST);
    rule.filter.partition_key_range = Some(bad);
    let rule = lab.running.faults().add(rule).expect("a rule");
    let mut strikes = 0;
    for id in &ids {
        let read = run(&driver, &lab.read(id)).await.expect("read");
        let range = read.diagnostics().attempts()[0].range.expect("known").0;
        let went = regions(&read);
        match range == bad {
            true if went == [WEST, EAST] => strikes += 1,
            true => assert_eq!(went, [EAST]),
            false => assert_eq!(went, [WEST], "other partitions stay"),
        }
    }
    assert_eq!(strikes, 2, "two failed reads open the breaker");
    let metrics = driver.metrics_snapshot();
    let open = |series: &&(SeriesKey, SeriesSnapshot)| series.1.breaker == BreakerGauge::Open;
    let open: Vec<_> = metrics.series.iter().filter(open).map(|(key, _)| key).collect();
    assert!(
        matches!(&open[..], [key] if key.region.as_str() == WEST && key.range.is_some_and(|range| range.0 == bad))
    );
    lab.running.faults().remove(&rule).expect("removed");
    // The background finds out that it is well again.
    let recovered = async {
        while !driver.partition_state().is_empty() {
            for id in &ids {
                run(&driver, &lab.read(id)).await.expect("read");
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), recovered).await.expect("its traffic comes back");
}

/// Moves the writes of one range, as the service does of its own accord.
async fn move_range(lab: &Lab, range: u32, region: &str) {
    let path = format!("/databases/d/containers/c/partitions/{range}/failover");
    lab.control(http::Method::POST, &path, json!({"region": region})).await;
}

#[tokio::test]
async fn a_partition_whose_writes_moved_is_written_where_they_went_and_the_others_stay() {
    let lab = Lab::start_with(|config| config.partition_failover = true).await;
    let driver = lab.driver_with(unraced());
    let ids: Vec<String> = (0..40).map(|number| format!("item-{number}")).collect();
    for id in &ids {
        run(&driver, &lab.create_item(id)).await.expect("made");
    }
    let moved = 1;
    // Where it went, and how often that had to be found out.
    for (value, region, found_out) in [(2, EAST, 1), (3, NORTH, 1), (4, WEST, 1)] {
        move_range(&lab, moved, region).await;
        let mut refused = 0;
        for id in &ids {
            let written = run(&driver, &lab.upsert(id, value)).await.unwrap_or_else(|e| panic!("{id}: {e}"));
            let (went, range) =
                (regions(&written), written.diagnostics().attempts()[0].range.expect("known").0);
            match range == moved {
                true => {
                    assert_eq!(went.last().map(String::as_str), Some(region), "{went:?}");
                    refused += usize::from(went.len() > 1);
                }
                false => assert_eq!(went, [WEST], "the others stay"),
            }
            let read = run(&driver, &lab.read(id)).await.expect("read");
            assert_eq!(body(&read)["value"], value, "one's own write");
        }
        assert_eq!(refused, found_out, "one operation finds out that it is written in {region}");
        assert_eq!(driver.account().hub().region().as_str(), WEST, "the account's map is what it was");
    }
}

#[tokio::test]
async fn a_partition_that_cannot_be_written_in_its_region_is_written_where_the_service_took_it() {
    let lab = Lab::start_with(|config| config.partition_failover = true).await;
    let driver = lab.driver_with(unraced());
    let made = run(&driver, &lab.create_item("a")).await.expect("made");
    let range = made.diagnostics().attempts()[0].range.expect("known").0;
    for rule in [Rule::answer(503, 0), Rule::answer(429, 3092), Rule::answer(410, 0)] {
        let mut rule = rule.on(Asked::Write).in_region(WEST);
        rule.filter.partition_key_range = Some(range);
        let id = lab.running.faults().add(rule).expect("a rule");
        move_range(&lab, range, EAST).await;
        let written = run(&driver, &lab.upsert("a", 2)).await.expect("written where it went");
        assert_eq!(regions(&written).last().map(String::as_str), Some(EAST));
        lab.running.faults().remove(&id).expect("removed");
        move_range(&lab, range, WEST).await;
        run(&driver, &lab.upsert("a", 3)).await.expect("written where it came back to");
    }
}

#[tokio::test]
async fn a_split_is_survived_by_reads_writes_and_sessions() {
    let lab = Lab::start_with(|config| config.partitions = std::num::NonZeroU32::new(1)).await;
    let driver = lab.driver();
    let ids: Vec<String> = (0..20).map(|number| format!("item-{number}")).collect();
    for id in &ids {
        run(&driver, &lab.create_item(id)).await.expect("made");
    }
    let known =
        driver.partitions(&driver.container(&lab.container).await.expect("known")).await.expect("known");
    assert_eq!(known.map().partitions().len(), 1);
    let path = "/databases/d/containers/c/partitions/0/split";
    lab.control(http::Method::POST, path, json!({"lockDurationMs": 0})).await;
    for id in &ids {
        assert_eq!(body(&run(&driver, &lab.read(id)).await.expect("read"))["value"], 1);
        run(&driver, &lab.upsert(id, 2)).await.expect("written");
    }
    // A request for the range that is gone says so, and the ranges that took its place are known then.
    use perihelion_driver::operation::{Operation, OperationKind, Scope, Target};
    let by_number = Operation::new(OperationKind::ReadFeed, Target::items(&lab.container))
        .with_scope(Scope::Partition(protocol::partition_range::RangeId(0)));
    let error = run(&driver, &by_number).await.expect_err("gone");
    assert_eq!(error.status(), Some(Status::GONE));
    let container = driver.container(&lab.container).await.expect("known");
    let after = driver.partitions(&container).await.expect("known");
    assert_eq!(after.map().partitions().len(), 2);
    // A stretch that two partitions cover now has to be divided by whoever asked.
    let whole = Scope::Range(protocol::partition::EpkRange::FULL);
    let error = run(&driver, &by_number.with_scope(whole)).await.expect_err("divided");
    assert_eq!(error.status(), Some(Status::GONE));
    let first = Scope::Range(after.map().partitions()[0].range.clone());
    let feed = Operation::new(OperationKind::ReadFeed, Target::items(&lab.container)).with_scope(first);
    run(&driver, &feed).await.expect("one partition");
}

#[tokio::test]
async fn a_throttle_storm_is_waited_out_in_the_region_that_throttles() {
    let lab = Lab::start().await;
    let driver = lab.driver_with(unraced());
    run(&driver, &lab.create_item("a")).await.expect("made");
    let storm = Rule::answer(429, 3200).retry_after(Duration::from_millis(10)).in_region(WEST).times(3);
    lab.running.faults().add(storm).expect("a rule");
    let read = run(&driver, &lab.read("a")).await.expect("read in the end");
    assert_eq!(regions(&read), [WEST; 4]);
    assert_eq!(read.diagnostics().totals().throttled, 3);
    // One that does not end is the caller's.
    let storm = Rule::answer(429, 3200).retry_after(Duration::from_millis(1)).in_region(WEST);
    lab.running.faults().add(storm).expect("a rule");
    let error = run(&driver, &lab.read("a")).await.expect_err("throttled");
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert!(error.retry_after().is_some());
}

#[tokio::test]
async fn in_a_brown_out_the_second_region_answers_soon_after_the_threshold() {
    let lab = Lab::start().await;
    let hedging = HedgingOptions::new()
        .with_threshold(HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates"));
    let driver =
        lab.driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)));
    run(&driver, &lab.create_item("a")).await.expect("made");
    lab.running.region(WEST).expect("a region").slow(Duration::from_secs(15)).expect("slow");
    for _ in 0..5 {
        let read = run(&driver, &lab.read("a")).await.expect("read");
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
async fn a_raced_create_that_meets_its_own_twin_is_a_success() {
    let lab = Lab::start_multi_write().await;
    let hedging = HedgingOptions::new()
        .with_threshold(HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates"));
    let driver =
        lab.driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)));
    run(&driver, &lab.create_item("warm")).await.expect("made");
    // The first region does it at once and says so late; without lag the second one knows by then.
    let late = Rule::delay(Duration::from_millis(700)).holding_the_answer().on(Asked::Create).in_region(WEST);
    lab.running.faults().add(late).expect("a rule");
    for number in 0..3 {
        let id = format!("twin-{number}");
        let made = run(&driver, &lab.create_item(&id)).await.expect("its own write");
        assert_eq!(made.status(), Status::CREATED);
        let statuses: Vec<_> = made
            .diagnostics()
            .attempts()
            .iter()
            .filter_map(|attempt| attempt.outcome.sent()?.status.map(|(status, _)| status.0))
            .collect();
        assert!(statuses.contains(&201), "{statuses:?}");
        // Somebody else's item is still a conflict.
        let twice = run(&driver, &lab.create_item(&id)).await.expect_err("it is there");
        assert_eq!(twice.kind(), ErrorKind::Conflict);
    }
}

/// A driver that races after 50 ms.
fn racing(lab: &Lab) -> perihelion_driver::CosmosDriver {
    let threshold = HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates");
    let hedging = HedgingOptions::new().with_threshold(threshold);
    lab.driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)))
}

#[tokio::test]
async fn raced_writes_are_done_once_and_never_meet_their_own_twin() {
    use perihelion_driver::operation::{Operation, Precondition};
    use protocol::partition::PartitionKey;
    let lab = Lab::start_multi_write().await;
    let driver = racing(&lab);
    let key = || PartitionKey::single("a");
    let replace = || Operation::replace_item(&lab.container, key(), "a", crate::lab::item("a", 3));
    let delete = || Operation::delete_item(&lab.container, key(), "a");
    let (raced, alone) = (true, false);
    for (name, operation, is_guarded, expected, value) in [
        ("create", lab.create_item("a"), false, raced, Some(1)),
        ("upsert if unchanged", lab.upsert("a", 2), true, raced, Some(2)),
        ("replace if unchanged", replace(), true, raced, Some(3)),
        ("delete if unchanged", delete(), true, raced, None),
        ("upsert that may be repeated", lab.upsert("a", 2).repeatable(), false, raced, Some(2)),
        ("upsert", lab.upsert("a", 2), false, alone, Some(2)),
        ("replace", replace(), false, alone, Some(3)),
        ("delete", delete(), false, alone, None),
    ] {
        let exists = name != "create";
        if exists {
            run(&driver, &lab.upsert("a", 1)).await.expect("written");
        }
        let operation = if is_guarded {
            let read = run(&driver, &lab.read("a")).await.expect("read");
            operation.with_precondition(Precondition::IfMatch(read.etag().expect("an etag").to_owned()))
        } else {
            operation
        };
        // The first region does it at once and says so late; without lag the second one knows by then.
        let late =
            Rule::delay(Duration::from_millis(700)).holding_the_answer().on(Asked::Write).in_region(WEST);
        let rule = lab.running.faults().add(late).expect("a rule");
        let done = run(&driver, &operation).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        lab.running.faults().remove(&rule).expect("removed");
        let totals = done.diagnostics().totals();
        assert_eq!(totals.hedges > 0, expected == raced, "{name}: {}", done.diagnostics().summary());
        let read = run(&driver, &lab.read("a")).await;
        match value {
            Some(value) => assert_eq!(body(&read.expect("it is there"))["value"], value, "{name}"),
            None => assert_eq!(read.expect_err("it is gone").kind(), ErrorKind::NotFound, "{name}"),
        }
        assert_eq!((driver.open_hedges(), driver.in_flight()), (0, 0), "{name}");
    }
}

#[tokio::test]
async fn the_twin_of_a_raced_write_that_runs_late_changes_nothing() {
    use perihelion_driver::operation::{Operation, Precondition};
    use perihelion_driver::options::RegionOptions;
    use protocol::partition::PartitionKey;
    let lab = Lab::start_multi_write().await;
    let (driver, west) = (racing(&lab), lab.driver_preferring(&[WEST]));
    let slow = || {
        let rule = Rule::delay(Duration::from_secs(15)).on(Asked::Write).in_region(WEST);
        lab.running.faults().add(rule).expect("a rule")
    };
    let made = run(&driver, &lab.upsert("b", 1)).await.expect("written");
    let unchanged = Precondition::IfMatch(made.etag().expect("an etag").to_owned());
    let key = || PartitionKey::single("b");
    for (operation, refusal) in [
        (lab.create_item("a"), ErrorKind::Conflict),
        (lab.upsert("b", 2).with_precondition(unchanged.clone()), ErrorKind::PreconditionFailed),
        (
            Operation::delete_item(&lab.container, key(), "b").with_precondition(unchanged),
            ErrorKind::PreconditionFailed,
        ),
    ] {
        let id = if refusal == ErrorKind::Conflict { "a" } else { "b" };
        if operation.kind() != perihelion_driver::OperationKind::Delete {
            let rule = slow();
            let done = run(&driver, &operation).await.expect("done by the second region");
            assert_eq!(done.diagnostics().totals().abandoned, 1, "{}", done.diagnostics().summary());
            lab.running.faults().remove(&rule).expect("removed");
        }
        // Somebody writes, and only then the region gets round to the attempt that was dropped.
        run(&driver, &lab.upsert(id, 9)).await.expect("acknowledged");
        let in_west = RegionOptions::new().with_excluded([EAST, NORTH]);
        let late = west.execute_operation(&operation, &OperationOptions::new().with_regions(in_west)).await;
        assert_eq!(late.expect_err("refused").kind(), refusal);
        let read = run(&driver, &lab.read(id)).await.expect("read");
        assert_eq!(body(&read)["value"], 9, "what was acknowledged stands");
    }
}

#[tokio::test]
async fn a_write_whose_late_twin_would_undo_later_ones_is_not_raced() {
    let lab = Lab::start_multi_write().await;
    let hedging = HedgingOptions::new()
        .with_threshold(HedgingThreshold::after(Duration::from_millis(50)).expect("within the gates"));
    let driver =
        lab.driver_with(DriverOptions::new().with_operation(OperationOptions::new().with_hedging(hedging)));
    run(&driver, &lab.create_item("a")).await.expect("made");
    // What is sent there now is carried out when the region can be reached again.
    lab.running.region(WEST).expect("a region").down(Down::BlackHole).expect("down");
    let upsert = lab.upsert("a", 2);
    let error = driver.execute_operation(&upsert, &within(Duration::from_millis(400))).await;
    let error = error.expect_err("nobody answers");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    assert_eq!(error.diagnostics().expect("told").totals().hedges, 0, "{error}");
    // The second of two creates finds an item, and this caller knows that nothing comes after it.
    for harmless in [lab.create_item("b"), lab.upsert("c", 1).repeatable()] {
        let written = run(&driver, &harmless).await.expect("written elsewhere");
        assert_eq!(written.diagnostics().totals().hedges, 1);
    }
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_undecided_and_was_done_once() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.create_item("warm")).await.expect("made");
    let rule = Rule::connection(ConnectionEffect::CloseAfter).on(Asked::Create).times(1);
    lab.running.faults().add(rule).expect("a rule");
    let error = run(&driver, &lab.create_item("a")).await.expect_err("nobody knows");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    assert_eq!(body(&run(&driver, &lab.read("a")).await.expect("it was done"))["value"], 1);
}

#[tokio::test]
async fn no_operation_outlives_its_deadline_whatever_the_regions_do() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.create_item("a")).await.expect("made");
    let everywhere = |rule: Rule| rule.on(Asked::Read).on(Asked::Write);
    for (name, rule) in [
        ("slow", Rule::delay(Duration::from_secs(60))),
        ("503", Rule::answer(503, 0)),
        ("403/3", Rule::answer(403, 3)),
        ("449", Rule::answer(449, 0)),
        ("429", Rule::answer(429, 3200).retry_after(Duration::from_secs(30))),
        ("404/1002", Rule::answer(404, 1002)),
        ("410/1007", Rule::answer(410, 1007)),
        ("closed", Rule::connection(ConnectionEffect::CloseBefore)),
    ] {
        let id = lab.running.faults().add(everywhere(rule)).expect(name);
        for operation in [lab.read("a"), lab.upsert("a", 2)] {
            let deadline = Duration::from_millis(700);
            let error = driver.execute_operation(&operation, &within(deadline)).await.expect_err(name);
            let took = error.diagnostics().expect("told").elapsed();
            // What is allowed beyond is the machine's, not the driver's.
            assert!(took < deadline + Duration::from_secs(2), "{name}: {took:?} {error}");
        }
        lab.running.faults().remove(&id).expect("removed");
    }
}

#[tokio::test]
async fn a_dropped_operation_leaves_nothing_in_flight() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.create_item("a")).await.expect("made");
    lab.running.region(WEST).expect("a region").slow(Duration::from_secs(30)).expect("slow");
    lab.running.region(EAST).expect("a region").slow(Duration::from_secs(30)).expect("slow");
    for milliseconds in [0, 1, 5, 30, 80, 200] {
        let operation = lab.read("a");
        let options = within(Duration::from_secs(20));
        let execution = driver.execute_operation(&operation, &options);
        let dropped = tokio::time::timeout(Duration::from_millis(milliseconds), execution).await;
        assert!(dropped.is_err(), "slow regions answered");
        assert_eq!(driver.open_hedges(), 0);
        assert_eq!(driver.in_flight(), 0);
    }
}
