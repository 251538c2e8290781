//! Step 3: sessions, and partitions that are bad in one region, move or split.

use std::time::Duration;

use emulator::faults::{FaultRule, OperationKind as Asked};
use emulator::regions::Lag;
use perihelion_driver::diagnostics::metrics::{BreakerGauge, SeriesKey, SeriesSnapshot};
use protocol::status::Status;
use serde_json::json;

use crate::test_account::{EAST, NORTH, TestAccount, WEST, body, regions, run, without_hedging};

#[tokio::test]
async fn a_read_behind_its_session_goes_to_a_region_that_is_not() {
    let test_account =
        TestAccount::start_with(|config| config.lag = "1h".parse::<Lag>().expect("a lag")).await;
    let driver = test_account.driver_preferring(&[NORTH, EAST, WEST]);
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let read = run(&driver, &test_account.read("a")).await.expect("one's own write");
    assert_eq!(regions(&read), [NORTH, WEST], "straight to the region that has every write");
    assert_eq!(body(&read)["value"], 1);
}

#[tokio::test]
async fn a_partition_that_is_bad_in_one_region_is_left_alone_there_and_comes_back() {
    use perihelion_driver::options::CircuitBreakerOptions;
    let test_account = TestAccount::start().await;
    let breaker = CircuitBreakerOptions::new().with_unavailability_probe_delay(Duration::from_millis(100));
    let driver = test_account.driver_with(without_hedging().with_circuit_breaker(breaker));
    // Items of all partitions.
    let ids: Vec<String> = (0..40).map(|number| format!("item-{number}")).collect();
    for id in &ids {
        run(&driver, &test_account.create_item(id)).await.expect("made");
    }
    let bad = 1;
    let mut rule = FaultRule::status(503, 0).in_region(WEST);
    rule.filter.partition_key_range = Some(bad);
    let rule = test_account.running.faults().add(rule).expect("a rule");
    let mut faults = 0;
    for id in &ids {
        let read = run(&driver, &test_account.read(id)).await.expect("read");
        let range = read.diagnostics().attempts()[0].range.expect("known").0;
        let went = regions(&read);
        match range == bad {
            true if went == [WEST, EAST] => faults += 1,
            true => assert_eq!(went, [EAST]),
            false => assert_eq!(went, [WEST], "other partitions stay"),
        }
    }
    assert_eq!(faults, 2, "two failed reads open the breaker");
    let metrics = driver.metrics_snapshot();
    let open = |series: &&(SeriesKey, SeriesSnapshot)| series.1.breaker == BreakerGauge::Open;
    let open: Vec<_> = metrics.series.iter().filter(open).map(|(key, _)| key).collect();
    assert!(
        matches!(&open[..], [key] if key.region.as_str() == WEST && key.range.is_some_and(|range| range.0 == bad))
    );
    test_account.running.faults().remove(&rule).expect("removed");
    // The background finds out that it is well again.
    let recovered = async {
        while !driver.partition_state().is_empty() {
            for id in &ids {
                run(&driver, &test_account.read(id)).await.expect("read");
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), recovered).await.expect("its traffic comes back");
}

/// Moves the writes of one range, as the service does of its own accord.
async fn move_range(test_account: &TestAccount, range: u32, region: &str) {
    let path = format!("/databases/d/containers/c/partitions/{range}/failover");
    test_account.control(http::Method::POST, &path, json!({"region": region})).await;
}

#[tokio::test]
async fn a_partition_whose_writes_moved_is_written_where_they_went_and_the_others_stay() {
    let test_account = TestAccount::start_with(|config| config.partition_failover = true).await;
    let driver = test_account.driver_with(without_hedging());
    let ids: Vec<String> = (0..40).map(|number| format!("item-{number}")).collect();
    for id in &ids {
        run(&driver, &test_account.create_item(id)).await.expect("made");
    }
    let moved = 1;
    // Where it went, and how often that had to be found out.
    for (value, region, found_out) in [(2, EAST, 1), (3, NORTH, 1), (4, WEST, 1)] {
        move_range(&test_account, moved, region).await;
        let mut rejected = 0;
        for id in &ids {
            let written =
                run(&driver, &test_account.upsert(id, value)).await.unwrap_or_else(|e| panic!("{id}: {e}"));
            let (went, range) =
                (regions(&written), written.diagnostics().attempts()[0].range.expect("known").0);
            match range == moved {
                true => {
                    assert_eq!(went.last().map(String::as_str), Some(region), "{went:?}");
                    rejected += usize::from(went.len() > 1);
                }
                false => assert_eq!(went, [WEST], "the others stay"),
            }
            let read = run(&driver, &test_account.read(id)).await.expect("read");
            assert_eq!(body(&read)["value"], value, "one's own write");
        }
        assert_eq!(rejected, found_out, "one operation finds out that it is written in {region}");
        assert_eq!(driver.account().hub().region().as_str(), WEST, "the account's map is what it was");
    }
}

#[tokio::test]
async fn a_partition_that_cannot_be_written_in_its_region_is_written_where_the_service_took_it() {
    let test_account = TestAccount::start_with(|config| config.partition_failover = true).await;
    let driver = test_account.driver_with(without_hedging());
    let made = run(&driver, &test_account.create_item("a")).await.expect("made");
    let range = made.diagnostics().attempts()[0].range.expect("known").0;
    for rule in [FaultRule::status(503, 0), FaultRule::status(429, 3092), FaultRule::status(410, 0)] {
        let mut rule = rule.on(Asked::Write).in_region(WEST);
        rule.filter.partition_key_range = Some(range);
        let id = test_account.running.faults().add(rule).expect("a rule");
        move_range(&test_account, range, EAST).await;
        let written = run(&driver, &test_account.upsert("a", 2)).await.expect("written where it went");
        assert_eq!(regions(&written).last().map(String::as_str), Some(EAST));
        test_account.running.faults().remove(&id).expect("removed");
        move_range(&test_account, range, WEST).await;
        run(&driver, &test_account.upsert("a", 3)).await.expect("written where it came back to");
    }
}

#[tokio::test]
async fn a_split_is_survived_by_reads_writes_and_sessions() {
    let test_account =
        TestAccount::start_with(|config| config.partitions = std::num::NonZeroU32::new(1)).await;
    let driver = test_account.driver();
    let ids: Vec<String> = (0..20).map(|number| format!("item-{number}")).collect();
    for id in &ids {
        run(&driver, &test_account.create_item(id)).await.expect("made");
    }
    let container = driver.container(&test_account.container, &Default::default()).await.expect("known");
    let known = driver.partitions(&container, &Default::default()).await.expect("known");
    assert_eq!(known.map().partitions().len(), 1);
    let path = "/databases/d/containers/c/partitions/0/split";
    test_account.control(http::Method::POST, path, json!({"lockDurationMs": 0})).await;
    for id in &ids {
        assert_eq!(body(&run(&driver, &test_account.read(id)).await.expect("read"))["value"], 1);
        run(&driver, &test_account.upsert(id, 2)).await.expect("written");
    }
    // A request for the range that is gone says so, and the ranges that took its place are known then.
    use perihelion_driver::operation::{Operation, OperationKind, Scope, Target};
    let by_number = Operation::new(OperationKind::ReadFeed, Target::items(&test_account.container))
        .with_scope(Scope::Partition(protocol::partition_range::RangeId(0)));
    let error = run(&driver, &by_number).await.expect_err("gone");
    assert_eq!(error.status(), Some(Status::GONE));
    let after = driver.partitions(&container, &Default::default()).await.expect("known");
    assert_eq!(after.map().partitions().len(), 2);
    // An EPK range that two partitions cover now has to be divided by the caller.
    let whole = Scope::Range(protocol::partition::EpkRange::FULL);
    let error = run(&driver, &by_number.with_scope(whole)).await.expect_err("divided");
    assert_eq!(error.status(), Some(Status::GONE));
    let first = Scope::Range(after.map().partitions()[0].range.clone());
    let feed =
        Operation::new(OperationKind::ReadFeed, Target::items(&test_account.container)).with_scope(first);
    run(&driver, &feed).await.expect("one partition");
}
