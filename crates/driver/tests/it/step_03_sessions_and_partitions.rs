//! Step 3: sessions, and partitions that are bad in one region, move or split.

use std::time::Duration;

use emulator::faults::{FaultRule, OperationKind as Asked};
use emulator::regions::Lag;
use perihelion_driver::diagnostics::metrics::{BreakerGauge, SeriesKey, SeriesSnapshot};
use protocol::status::Status;
use serde_json::json;

use crate::lab::{EAST, Lab, NORTH, WEST, body, regions, run, unraced};

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
    let mut rule = FaultRule::status(503, 0).in_region(WEST);
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
    for rule in [FaultRule::status(503, 0), FaultRule::status(429, 3092), FaultRule::status(410, 0)] {
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
