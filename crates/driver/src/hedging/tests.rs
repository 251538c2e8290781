//! Races of two attempts in time that the test moves, and the tables of eligibility and threshold.

use std::cell::Cell;

use bytes::Bytes;
use futures::FutureExt;
use futures::channel::oneshot;
use protocol::status::Status;

use super::*;
use crate::clock::ManualTime;
use crate::operation::{ContainerName, ResponseHeaders, Target};
use crate::routing::test_accounts::{account, properties};
use crate::transport::TransportResponse;

const MS: Duration = Duration::from_millis(1);
const THRESHOLD: Duration = Duration::from_millis(50);

fn result(status: u16) -> GatewayResult {
    let response = TransportResponse::new(Status(status), ResponseHeaders::default(), Bytes::new());
    GatewayResult { outcome: GatewayOutcome::Success(response), last: None, earlier: Vec::new() }
}

fn status(attempt: &RaceAttempt) -> Option<u16> {
    match &attempt.result()?.outcome {
        GatewayOutcome::Success(response) => Some(response.status.0),
        _ => None,
    }
}

/// An attempt that ends when the test sends its result.
fn attempt() -> (oneshot::Sender<GatewayResult>, impl Future<Output = GatewayResult>) {
    let (end, ended) = oneshot::channel();
    (end, async move { ended.await.expect("ended by the test") })
}

fn is_200(outcome: &GatewayOutcome) -> bool {
    matches!(outcome, GatewayOutcome::Success(response) if response.status == Status::OK)
}

#[test]
fn a_fast_first_attempt_runs_alone_without_a_timer() {
    let time = ManualTime::new();
    let second = || -> Option<(Permit, futures::future::Pending<GatewayResult>)> { panic!("not needed") };
    let clock = time.clock();
    let race =
        race(&clock, THRESHOLD, async { result(200) }, second, is_200).now_or_never().expect("at once");
    assert_eq!((status(&race.first), race.second_started), (Some(200), None));
    assert_eq!(time.sleepers(), 0);
}

#[test]
fn the_second_attempt_starts_at_the_threshold_and_the_loser_is_dropped() {
    let time = ManualTime::new();
    let clock = time.clock();
    for second_wins in [false, true] {
        let budget = HedgingBudget::default();
        let ((end_first, first), (end_second, second)) = (attempt(), attempt());
        let begun = Cell::new(false);
        let start = || {
            begun.set(true);
            Some((budget.take(1).expect("free"), second))
        };
        let mut racing = Box::pin(race(&clock, THRESHOLD, first, start, is_200));
        assert!((&mut racing).now_or_never().is_none());
        time.advance(THRESHOLD - Duration::from_millis(1));
        assert!((&mut racing).now_or_never().is_none() && !begun.get());
        time.advance(Duration::from_millis(1));
        assert!((&mut racing).now_or_never().is_none() && begun.get());
        assert_eq!(budget.open(), 1);
        let (winner, loser) = if second_wins { (end_second, end_first) } else { (end_first, end_second) };
        winner.send(result(200)).expect("awaited");
        let race = racing.now_or_never().expect("over");
        let (won, lost) = if second_wins { (race.second, race.first) } else { (race.first, race.second) };
        assert!(matches!((status(&won), lost), (Some(200), RaceAttempt::Abandoned)));
        assert!(loser.is_canceled(), "the loser was dropped");
        assert_eq!(budget.open(), 0);
    }
}

#[test]
fn a_result_that_is_not_final_waits_for_the_other_attempt() {
    let time = ManualTime::new();
    let clock = time.clock();
    let budget = HedgingBudget::default();
    let ((end_first, first), (end_second, second)) = (attempt(), attempt());
    let start = || Some((budget.take(1).expect("free"), second));
    let mut racing = Box::pin(race(&clock, THRESHOLD, first, start, is_200));
    assert!((&mut racing).now_or_never().is_none());
    time.advance(THRESHOLD);
    assert!((&mut racing).now_or_never().is_none());
    end_second.send(result(299)).expect("awaited");
    assert!((&mut racing).now_or_never().is_none());
    end_first.send(result(298)).expect("awaited");
    let race = racing.now_or_never().expect("over");
    assert_eq!((status(&race.first), status(&race.second)), (Some(298), Some(299)));
}

#[test]
fn without_a_permit_the_first_attempt_goes_on_alone() {
    let time = ManualTime::new();
    let clock = time.clock();
    let (end, first) = attempt();
    let second = || None::<(Permit, futures::future::Pending<GatewayResult>)>;
    let mut racing = Box::pin(race(&clock, THRESHOLD, first, second, is_200));
    assert!((&mut racing).now_or_never().is_none());
    time.advance(THRESHOLD);
    assert!((&mut racing).now_or_never().is_none());
    end.send(result(200)).expect("awaited");
    let race = racing.now_or_never().expect("over");
    assert!(race.was_denied && status(&race.first) == Some(200));
}

#[test]
fn a_race_dropped_at_any_time_leaves_nothing_behind() {
    for steps in 0..3 {
        let time = ManualTime::new();
        let clock = time.clock();
        let budget = HedgingBudget::default();
        let ((_first, first), (_second, second)) = (attempt(), attempt());
        let start = || Some((budget.take(1).expect("free"), second));
        let mut racing = Box::pin(race(&clock, THRESHOLD, first, start, is_200));
        for _ in 0..steps {
            assert!((&mut racing).now_or_never().is_none());
            time.advance(THRESHOLD);
        }
        drop(racing);
        assert_eq!((time.sleepers(), budget.open()), (0, 0), "after {steps} steps");
    }
}

#[test]
fn reads_are_hedged_everywhere_and_writes_on_multi_write_accounts() {
    let container = ContainerName::new("d", "c");
    let (single, multi) = (account(&["A"], &["A", "B"]), account(&["A", "B"], &["A", "B"]));
    let on = HedgingSettings::default();
    for kind in OperationKind::ALL {
        let operation = Operation::new(kind, Target::items(&container));
        let reads = matches!(kind, OperationKind::Read | OperationKind::ReadFeed | OperationKind::Query);
        let creates = kind == OperationKind::Create;
        assert_eq!(is_eligible(&operation, &on, &single), reads, "{kind:?}");
        assert_eq!(is_eligible(&operation, &on, &multi), reads || creates, "{kind:?}");
        // Other writes are hedged once a late duplicate does no harm.
        let writes =
            creates || matches!(kind, OperationKind::Replace | OperationKind::Upsert | OperationKind::Delete);
        let conditional = operation.clone().with_precondition(Precondition::IfMatch("e".to_owned()));
        for harmless in [conditional, operation.repeatable()] {
            assert_eq!(is_eligible(&harmless, &on, &single), reads, "{kind:?}");
            assert_eq!(is_eligible(&harmless, &on, &multi), reads || writes, "{kind:?}");
        }
    }
    let metadata = Operation::new(OperationKind::Read, Target::container(&container));
    assert!(!is_eligible(&metadata, &on, &multi));
}

#[test]
fn the_caller_and_the_account_may_forbid_hedging() {
    let read = Operation::new(OperationKind::Read, Target::item(&ContainerName::new("d", "c"), "i"));
    let off = HedgingSettings { enabled: false, ..HedgingSettings::default() };
    let regions = account(&["A"], &["A", "B"]);
    assert!(!is_eligible(&read, &off, &regions));
    let mut forbidding = properties(&["A"], &["A", "B"]);
    forbidding.disable_cross_regional_hedging = true;
    assert!(!is_eligible(&read, &HedgingSettings::default(), &regions.with_properties(&forbidding, &[])));
}

#[test]
fn the_threshold_stays_within_its_bounds() {
    let dynamic = HedgingThreshold::default();
    for (setting, p99, expected) in [
        (dynamic, Some(MS), 50 * MS),
        (dynamic, Some(200 * MS), 200 * MS),
        (dynamic, Some(60_000 * MS), 4000 * MS),
        (dynamic, None, 500 * MS),
        (HedgingThreshold::Dynamic { min: 50 * MS, max: 100 * MS }, None, 100 * MS),
        (HedgingThreshold::Static(70 * MS), Some(200 * MS), 70 * MS),
    ] {
        assert_eq!(threshold(setting, p99, Duration::MAX), expected);
    }
    // The second attempt needs time as well.
    assert_eq!(threshold(dynamic, None, 300 * MS), 100 * MS);
    assert_eq!(threshold(dynamic, Some(200 * MS), 300 * MS), 100 * MS);
    assert_eq!(threshold(HedgingThreshold::Static(200 * MS), None, 300 * MS), 200 * MS);
}

#[test]
fn a_permit_that_was_released_can_be_taken_again() {
    let budget = HedgingBudget::default();
    let (first, second) = (budget.take(2), budget.take(2));
    assert!(first.is_some() && second.is_some() && budget.take(2).is_none());
    drop(first);
    assert_eq!(budget.open(), 1);
    assert!(budget.clone().take(2).is_some());
}
