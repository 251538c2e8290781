//! Tests of the rules in force: order, counts, schedules, seeds and ports.

use clock::HumanDuration;

use super::*;
use crate::filter::{OperationKind, ResourceKind};
use crate::region_fault::DownMode;

const READ: RequestAttributes<'static> = RequestAttributes {
    region: Some("West US"),
    method: "GET",
    operation: Some(OperationKind::Read),
    resource: Some(ResourceKind::Item),
    database: Some("d"),
    container: Some("c"),
    partition_key: None,
    partition_key_range: None,
    endpoint: None,
    shard: None,
};

fn set() -> FaultSet {
    FaultSet::new(Applier::Account, 1)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn status(decision: &FaultDecision) -> Option<u16> {
    decision.effect.as_ref().and_then(|effect| effect.status)
}

#[test]
fn delays_add_up_and_the_first_response_wins() {
    let set = set();
    for rule in [
        FaultRule::delay(seconds(1)).named("slow"),
        FaultRule::delay(seconds(2)).delaying_the_response().named("late"),
        FaultRule::status(503, 0).delayed_by(seconds(3)).named("down").on(OperationKind::Read),
        FaultRule::status(429, 3200).named("storm"),
        FaultRule::delay(seconds(4)).named("unreached").on(OperationKind::Create),
    ] {
        set.add(rule, seconds(0)).unwrap();
    }
    let decision = set.decide(&READ, seconds(0));
    assert_eq!(
        (decision.request_delay, decision.response_delay, status(&decision)),
        (seconds(4), seconds(2), Some(503))
    );
    assert_eq!(decision.rules, ["slow", "late", "down"]);
    let decision =
        set.decide(&RequestAttributes { operation: Some(OperationKind::Create), ..READ }, seconds(0));
    assert_eq!((decision.request_delay, status(&decision)), (seconds(1), Some(429)));
    let hits: Vec<u64> = set.list(seconds(0)).iter().map(|report| report.hits).collect();
    assert_eq!(hits, [2, 2, 1, 1, 0], "a rule counts only the requests that it was evaluated for");
}

#[test]
fn delays_that_add_up_are_limited() {
    let set = set();
    for _ in 0..3 {
        set.add(FaultRule::delay(seconds(300)), seconds(0)).unwrap();
    }
    assert_eq!(set.decide(&READ, seconds(0)).request_delay, DELAY_MAX);
}

#[test]
fn requests_are_evaluated_only_while_a_rule_is_about_them() {
    let set = set();
    assert!(!set.has_request_rules());
    set.add(FaultRule::connection(ConnectionEffect::Refuse).in_region("East US").named("shut"), seconds(0))
        .unwrap();
    assert!(!set.has_request_rules(), "a closed port is nothing a request has to look at");
    set.add(FaultRule::status(503, 0).named("down").times(1), seconds(0)).unwrap();
    assert!(set.has_request_rules());
    assert_eq!(status(&set.decide(&READ, seconds(0))), Some(503));
    assert!(!set.has_request_rules(), "it had all its hits");
    set.add(FaultRule::status(503, 0).named("down").lasting(seconds(5)), seconds(0)).unwrap();
    assert_eq!(status(&set.decide(&READ, seconds(5))), None);
    assert!(!set.has_request_rules(), "its time has passed");
}

#[test]
fn a_rule_applies_from_its_start_to_its_end_and_is_remembered() {
    let set = set();
    let rule = FaultRule::status(503, 0).starting_after(seconds(2)).lasting(seconds(10));
    let id = set.add(rule, seconds(100)).unwrap();
    assert_eq!(id, "fault-1");
    for (now, state, starts, ends, expected) in [
        (100, RuleState::Waiting, Some(2), None, None),
        (102, RuleState::Active, None, Some(10), Some(503)),
        (111, RuleState::Active, None, Some(1), Some(503)),
        (112, RuleState::Ended, None, None, None),
        (9_999, RuleState::Ended, None, None, None),
    ] {
        let decision = set.decide(&READ, seconds(now));
        assert_eq!(status(&decision), expected, "at {now}");
        let report = &set.list(seconds(now))[0];
        let times = (starts.map(|s| HumanDuration(seconds(s))), ends.map(|s| HumanDuration(seconds(s))));
        assert_eq!((report.state, (report.starts_in, report.ends_in)), (state, times), "at {now}");
    }
    assert_eq!(set.list(seconds(200))[0].hits, 2);
    assert!(set.remove("fault-1") && set.list(seconds(200)).is_empty());
}

#[test]
fn a_rule_with_a_known_id_replaces_the_other_in_its_place_and_counts_from_zero() {
    let set = set();
    for rule in
        [FaultRule::status(503, 0).named("a"), FaultRule::status(429, 0).named("b").on(OperationKind::Read)]
    {
        set.add(rule, seconds(0)).unwrap();
    }
    set.decide(&READ, seconds(0));
    set.add(FaultRule::status(500, 0).named("a"), seconds(0)).unwrap();
    let listed: Vec<_> = set.list(seconds(0)).into_iter().map(|r| (r.rule.effect.status, r.hits)).collect();
    assert_eq!(listed, [(Some(500), 0), (Some(429), 0)]);
    assert!(set.remove("a") && !set.remove("a"));
    assert_eq!(status(&set.decide(&READ, seconds(0))), Some(429));
    assert_eq!(set.clear(seconds(0)), 1);
    assert!(!set.has_request_rules() && set.list(seconds(0)).is_empty());
}

#[test]
fn a_rule_that_could_never_apply_is_rejected() {
    let on_reads = || FaultRule::status(429, 3200).on(OperationKind::Read);
    let cases = [
        ("the same requests", on_reads(), on_reads(), true),
        ("a delay after a response", on_reads(), FaultRule::delay(seconds(1)).on(OperationKind::Read), true),
        ("other requests", on_reads(), FaultRule::status(503, 0).on(OperationKind::Create), false),
        ("more requests", on_reads(), FaultRule::status(503, 0), false),
        ("one after the other", on_reads().times(2), on_reads(), false),
        ("one after a while", on_reads().lasting(seconds(1)), on_reads(), false),
        ("the rest of a share", on_reads().share(0.5), on_reads(), false),
        ("delays add up", FaultRule::delay(seconds(1)), FaultRule::delay(seconds(1)), false),
    ];
    for (name, first, second, is_rejected) in cases {
        let set = set();
        set.add(first.named("first"), seconds(0)).unwrap();
        let added = set.add(second.clone().named("second"), seconds(0));
        assert_eq!(added.is_err(), is_rejected, "{name}: {added:?}");
        if let Err(error) = added {
            assert!(error.to_string().contains("peri fault rm first"), "{error}");
            set.add(second.named("first"), seconds(0)).expect("replacing is no overlap");
        }
    }
}

#[test]
fn the_number_of_rules_and_of_remembered_rules_is_limited() {
    let set = set();
    for _ in 0..RULES_MAX {
        set.add(FaultRule::status(503, 0).times(9), seconds(0)).unwrap();
    }
    let error = set.add(FaultRule::status(503, 0).times(9), seconds(0)).unwrap_err().to_string();
    assert!(error.contains("64") && error.contains("remove one"), "{error}");
    set.add(FaultRule::status(500, 0).named("fault-1"), seconds(0)).expect("replacing needs no room");
    set.clear(seconds(0));
    for _ in 0..100 {
        set.add(FaultRule::status(503, 0).lasting(seconds(1)), seconds(0)).unwrap();
        set.list(seconds(1));
    }
    assert_eq!(set.list(seconds(1)).len(), ENDED_MAX);
}

#[test]
fn equal_seeds_hit_equal_requests() {
    let set = set();
    set.add(FaultRule::status(503, 0).named("some").share(0.4), seconds(0)).unwrap();
    let run =
        || -> Vec<bool> { (0..200).map(|_| status(&set.decide(&READ, seconds(0))).is_some()).collect() };
    let first = run();
    let share = first.iter().filter(|hit| **hit).count();
    assert!((60..100).contains(&share), "{share} of 200");
    assert_ne!(run(), first, "the random numbers go on");
    set.set_seed(1);
    assert_eq!(run(), first);
    set.set_seed(2);
    assert_ne!(run(), first);
    assert_eq!(set.seed(), 2);
}

#[test]
fn a_count_is_exact_with_many_threads() {
    let set = set();
    set.add(FaultRule::status(503, 0).times(100), seconds(0)).unwrap();
    let hits: usize = std::thread::scope(|scope| {
        let count_hits = || (0..100).filter(|_| status(&set.decide(&READ, seconds(0))).is_some()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(count_hits)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(hits, 100);
}

#[test]
fn a_port_has_the_state_of_the_first_active_rule_of_its_region() {
    let set = set();
    let (west, east) = ("West US", "East US");
    assert_eq!(set.port_state(east, seconds(0)), (PortState::Open, None));
    let refuse = FaultRule::connection(ConnectionEffect::Refuse).in_region("eastus").named("shut");
    set.add(refuse.clone().lasting(seconds(5)), seconds(0)).unwrap();
    let hole = FaultRule::connection(ConnectionEffect::BlackHole).named("hole");
    set.add(hole.starting_after(seconds(2)), seconds(0)).unwrap();
    for (region, now, expected) in [
        (east, 0, (PortState::Refused, Some(seconds(2)))),
        (west, 0, (PortState::Open, Some(seconds(2)))),
        (east, 2, (PortState::Refused, Some(seconds(3)))),
        (west, 2, (PortState::Silent, None)),
        (east, 5, (PortState::Silent, None)),
    ] {
        assert_eq!(set.port_state(region, seconds(now)), expected, "{region:?} at {now}");
    }
}

#[test]
fn requests_are_skipped_and_hits_are_limited() {
    let set = FaultSet::new(Applier::Driver, 1);
    set.add(FaultRule::status(503, 0).named("some").skipping(1).times(2), seconds(0)).unwrap();
    let statuses: Vec<_> = (0..5).map(|_| status(&set.decide(&READ, seconds(0)))).collect();
    assert_eq!(statuses, [None, Some(503), Some(503), None, None]);
    let report = set.report("some", seconds(0)).unwrap();
    assert_eq!((report.state, report.matched, report.hits), (RuleState::Ended, 3, 2));
    assert_eq!(set.report("other", seconds(0)), None);
}

#[test]
fn what_the_applier_cannot_do_is_rejected_when_it_is_added() {
    let (account, driver) = (set(), FaultSet::new(Applier::Driver, 1));
    let fail = FaultRule::connection(ConnectionEffect::FailBeforeSending);
    driver.add(fail.clone(), seconds(0)).unwrap();
    assert!(account.add(fail, seconds(0)).unwrap_err().to_string().contains("closeBefore"));
    let down = RegionFault::Down(DownMode::Refused);
    account.set_region_fault("East US", down, None, seconds(0)).unwrap();
    let error = driver.set_region_fault("East US", down, None, seconds(0)).unwrap_err().to_string();
    assert!(error.contains("failBeforeSending"), "{error}");
}

#[test]
fn a_region_has_one_fault_and_it_is_evaluated_before_other_rules() {
    let set = set();
    set.add(FaultRule::status(500, 0).named("single"), seconds(0)).unwrap();
    let throttle = RegionFault::Storm { retry_after: None, share: None };
    for (fault, expected) in [(RegionFault::Drain, 403), (throttle, 429)] {
        set.set_region_fault("west us", fault, Some(seconds(9)), seconds(0)).unwrap();
        assert_eq!(status(&set.decide(&READ, seconds(0))), Some(expected));
        let ids: Vec<_> = set.list(seconds(0)).into_iter().filter_map(|report| report.rule.id).collect();
        assert_eq!(ids, ["region:westus", "single"]);
    }
    assert_eq!(status(&set.decide(&READ, seconds(9))), Some(500), "its time has passed");
}
