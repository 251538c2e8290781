//! Regions that give no response: the loop leaves them, whatever the deadline is and whoever gives up first.

use super::*;
use crate::operation::Access;
use crate::options::HedgingOptions;
use crate::routing::PartitionRegion;

const SECOND: Duration = Duration::from_secs(1);

fn without_hedging(timeout: Duration) -> OperationOptions {
    within(timeout).with_hedging(HedgingOptions::new().with_enabled(false))
}

/// A is silent, and the others respond after 2 ms.
fn silent_first_region(writes: &[&str], status: u16) -> Fixture {
    let (silent, well) = (&[Reply::Silent][..], &[Reply::Response(status, 0)][..]);
    Fixture::new(writes, &[("A", MS, silent), ("B", 2 * MS, well), ("C", 2 * MS, well)])
}

fn upsert() -> Operation {
    Operation::new(OperationKind::Upsert, Target::items(&ContainerName::new("d", "c"))).with_body("{}")
}

fn is_unavailable(fixture: &Fixture, region: &str) -> bool {
    fixture.account.snapshot().is_unavailable(&Region::new(region), true)
}

#[test]
fn hedged_reads_leave_a_silent_region_within_three_seconds() {
    for options in [usual(), within(5 * SECOND), within(SECOND)] {
        let fixture = silent_first_region(&["A"], 200);
        while fixture.time.elapsed() < 3 * SECOND {
            assert!(fixture.run(&read(), options.clone()).0.is_ok());
            if is_unavailable(&fixture, "A") {
                break;
            }
        }
        assert!(is_unavailable(&fixture, "A"), "the losers of races count");
        let (result, took) = fixture.run(&read(), options);
        assert_eq!((result.expect("a response").status(), took), (Status::OK, 2 * MS));
    }
}

#[test]
fn without_hedging_reads_continue_elsewhere_whatever_their_deadline() {
    for (timeout, first_took) in [(60, 2000), (5, 2000), (2, 1000), (1, 500)] {
        let fixture = silent_first_region(&["A"], 200);
        let options = without_hedging(timeout * SECOND);
        let (result, took) = fixture.run(&read(), options.clone());
        assert_eq!(took, first_took * MS + 2 * MS, "{timeout} s");
        let response = result.expect("another region responds");
        assert_eq!(fixture.regions(), ["A", "B"]);
        assert_eq!(fixture.metadata_calls(), ["probe"]);
        assert_eq!(response.diagnostics().totals().failovers, 1);
        while !is_unavailable(&fixture, "A") && fixture.time.elapsed() < 3 * SECOND {
            assert!(fixture.run(&read(), options.clone()).0.is_ok());
        }
        let (result, took) = fixture.run(&read(), options);
        assert_eq!((result.is_ok(), took), (true, 2 * MS), "{timeout} s");
    }
}

#[test]
fn two_silent_regions_leave_time_for_the_third() {
    for options in [within(5 * SECOND), without_hedging(5 * SECOND)] {
        let fixture = silent_first_region(&["A"], 200);
        fixture.scripts.lock().expect("unpoisoned").get_mut("B").expect("B").replies = [Reply::Silent].into();
        let (result, took) = fixture.run(&read(), options);
        assert!(result.is_ok() && took < 5 * SECOND, "{took:?}");
    }
}

#[test]
fn on_multi_write_accounts_writes_leave_a_silent_region() {
    for timeout in [60, 5, 1] {
        let fixture = silent_first_region(&["A", "B", "C"], 201);
        let mut undecided = 0;
        while !is_unavailable(&fixture, "A") {
            assert_eq!(failed(fixture.run(&upsert(), within(timeout * SECOND)).0), ErrorKind::Undecided);
            undecided += 1;
        }
        assert!(undecided <= 2, "{undecided} writes were not known to be carried out");
        let (result, took) = fixture.run(&upsert(), within(timeout * SECOND));
        assert_eq!((result.is_ok(), took), (true, 2 * MS), "{timeout} s");
    }
}

#[test]
fn a_caller_who_leaves_early_has_still_seen_the_silence() {
    let fixture = silent_first_region(&["A"], 200);
    let settings = DriverSettings::default();
    let options = without_hedging(60 * SECOND);
    let settings = settings.for_operation(Some(&options)).expect("valid");
    for _ in 0..4 {
        let operation = read();
        let mut call = Box::pin(execute(&fixture, &operation, &settings, fixture.clock.now()));
        assert!((&mut call).now_or_never().is_none());
        fixture.time.advance(300 * MS);
        drop(call);
    }
    assert!(is_unavailable(&fixture, "A"));
    let (result, took) = fixture.run(&read(), options);
    assert_eq!((result.is_ok(), took), (true, 2 * MS));
}

#[test]
fn a_slow_operation_in_a_region_that_responds_is_waited_for() {
    let well = &[Reply::Response(200, 0)][..];
    let fixture = Fixture::new(&["A"], &[("A", 8 * SECOND, well), ("B", MS, well)]);
    let (result, took) = fixture.run(&read(), without_hedging(60 * SECOND));
    assert_eq!((result.is_ok(), took), (true, 8 * SECOND));
    assert_eq!(fixture.regions(), ["A"]);
    assert_eq!(fixture.metadata_calls(), ["probe"; 7], "one each second");
    assert!(!is_unavailable(&fixture, "A"));
}

/// A region does not fall silent between two requests: some are under way, and began before its last response.
#[test]
fn a_region_that_responds_once_more_and_then_falls_silent_is_left() {
    for (timeout, latest) in [(60, 2020), (5, 2020), (1, 520)] {
        let fixture = silent_first_region(&["A"], 200);
        let settings = DriverSettings::default();
        let options = without_hedging(timeout * SECOND);
        let settings = settings.for_operation(Some(&options)).expect("valid");
        let operation = read();
        let mut call = Box::pin(execute(&fixture, &operation, &settings, fixture.clock.now()));
        assert!((&mut call).now_or_never().is_none());
        fixture.time.advance(10 * MS);
        let account = fixture.account.snapshot();
        let a = account.all().find(|endpoint| endpoint.region() == &Region::new("A")).expect("A");
        a.last_response().record(fixture.clock.now());
        let result = loop {
            match (&mut call).now_or_never() {
                Some(result) => break result,
                None => assert!(fixture.time.advance_to_next().is_some(), "the operation waits for nothing"),
            }
        };
        assert!(result.is_ok(), "{timeout} s: {result:?}");
        assert_eq!(fixture.regions(), ["A", "B"], "{timeout} s");
        assert!(fixture.time.elapsed() <= latest * MS, "{timeout} s: {:?}", fixture.time.elapsed());
        if timeout > 1 {
            assert!(is_unavailable(&fixture, "A"), "the attempt and its probe count");
        }
    }
}

#[test]
fn throttling_is_not_silence() {
    let fixture = silent_first_region(&["A"], 200);
    fixture.scripts.lock().expect("unpoisoned").get_mut("A").expect("A").replies = [Reply::Throttled].into();
    for _ in 0..20 {
        assert!(fixture.run(&read(), usual()).0.is_ok());
    }
    assert!(fixture.time.elapsed() > 2 * SECOND);
    assert!(!is_unavailable(&fixture, "A") && fixture.partitions.snapshot().is_empty());
}

#[test]
fn what_the_last_attempt_showed_counts_although_there_is_no_time_for_another() {
    let replies = &[Reply::Response(503, 0)][..];
    let fixture = Fixture::new(&["A"], &[("A", 30 * MS, replies)]);
    assert_eq!(failed(fixture.run(&create(), within(40 * MS)).0), ErrorKind::DeadlineExceeded);
    let (partitions, partition) =
        (fixture.partitions.snapshot(), crate::routing::test_partitions::partition(0));
    let key = PartitionRegion { partition, region: Region::new("A"), access: Access::Write };
    assert!(partitions.remembers(&key));
}

#[test]
fn a_wait_after_a_slow_refresh_does_not_pass_the_deadline() {
    let mut fixture = Fixture::new(&["A"], &[("A", MS, &[Reply::Response(403, 3)])]);
    fixture.refresh_takes = 800 * MS;
    let (result, took) = fixture.run(&create(), within(SECOND));
    assert_eq!(failed(result), ErrorKind::DeadlineExceeded);
    assert!(took <= SECOND, "{took:?}");
}

#[test]
fn a_repeatable_write_that_may_have_been_received_is_undecided_at_the_deadline() {
    let fixture = Fixture::new(&["A"], &[("A", 40 * MS, &[Reply::Lost(Sent::Sent)])]);
    let (result, _) = fixture.run(&create().repeatable(), within(50 * MS));
    assert_eq!(failed(result), ErrorKind::Undecided);
}
