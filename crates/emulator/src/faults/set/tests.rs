use protocol::account::ConsistencyLevel;

use super::super::filter::{OperationKind, ResourceKind};
use super::*;
use engine::regions::{Lag, Region, Topology};

const READ: Facts<'static> = Facts {
    region: RegionId(0),
    method: "GET",
    operation: Some(OperationKind::Read),
    resource: Some(ResourceKind::Item),
    database: Some("d"),
    container: Some("c"),
    partition_key: None,
    partition_key_range: None,
};

fn set() -> FaultSet {
    let regions = ["West US", "East US"].map(|name| Region::new(name, 0)).to_vec();
    let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
    FaultSet::new(Arc::new(Regions::new(topology)), 1)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn status(strike: &Strike) -> Option<u16> {
    strike.outcome.as_ref().and_then(|effect| effect.status)
}

#[test]
fn delays_add_up_and_the_first_answer_wins() {
    let set = set();
    for rule in [
        Rule::delay(seconds(1)).named("slow"),
        Rule::delay(seconds(2)).holding_the_answer().named("late"),
        Rule::answer(503, 0).delayed_by(seconds(3)).named("down").on(OperationKind::Read),
        Rule::answer(429, 3200).named("storm"),
        Rule::delay(seconds(4)).named("unreached").on(OperationKind::Create),
    ] {
        set.add(rule, seconds(0)).unwrap();
    }
    let strike = set.strike(&READ, seconds(0));
    assert_eq!((strike.before, strike.after, status(&strike)), (seconds(4), seconds(2), Some(503)));
    assert_eq!(strike.by, ["slow", "late", "down"]);
    let strike = set.strike(&Facts { operation: Some(OperationKind::Create), ..READ }, seconds(0));
    assert_eq!((strike.before, status(&strike)), (seconds(1), Some(429)));
    let struck: Vec<u64> = set.list(seconds(0)).iter().map(|report| report.struck).collect();
    assert_eq!(struck, [2, 2, 1, 1, 0], "a rule is counted only for requests that got as far as it");
}

#[test]
fn waits_that_add_up_end_at_the_longest_there_is() {
    let set = set();
    for _ in 0..3 {
        set.add(Rule::delay(seconds(300)), seconds(0)).unwrap();
    }
    assert_eq!(set.strike(&READ, seconds(0)).before, DELAY_MAX);
}

#[test]
fn without_rules_about_requests_it_is_quiet() {
    let set = set();
    assert!(set.is_quiet());
    set.add(Rule::connection(ConnectionEffect::Refuse).in_region("East US").named("shut"), seconds(0))
        .unwrap();
    assert!(set.is_quiet(), "a closed port is nothing a request has to look at");
    set.add(Rule::answer(503, 0).named("down").times(1), seconds(0)).unwrap();
    assert!(!set.is_quiet());
    assert_eq!(status(&set.strike(&READ, seconds(0))), Some(503));
    assert!(set.is_quiet(), "it struck as often as it should");
    set.add(Rule::answer(503, 0).named("down").lasting(seconds(5)), seconds(0)).unwrap();
    assert_eq!(status(&set.strike(&READ, seconds(5))), None);
    assert!(set.is_quiet(), "its time has passed");
}

#[test]
fn a_rule_strikes_from_its_start_to_its_end_and_is_remembered() {
    let set = set();
    let rule = Rule { after: Some(HumanDuration(seconds(2))), ..Rule::answer(503, 0) }.lasting(seconds(10));
    let id = set.add(rule, seconds(100)).unwrap();
    assert_eq!(id, "fault-1");
    for (now, state, starts, ends, expected) in [
        (100, RuleState::Waiting, Some(2), None, None),
        (102, RuleState::Active, None, Some(10), Some(503)),
        (111, RuleState::Active, None, Some(1), Some(503)),
        (112, RuleState::Ended, None, None, None),
        (9_999, RuleState::Ended, None, None, None),
    ] {
        let strike = set.strike(&READ, seconds(now));
        assert_eq!(status(&strike), expected, "at {now}");
        let report = &set.list(seconds(now))[0];
        let spans = (starts.map(|s| HumanDuration(seconds(s))), ends.map(|s| HumanDuration(seconds(s))));
        assert_eq!((report.state, (report.starts_in, report.ends_in)), (state, spans), "at {now}");
    }
    assert_eq!(set.list(seconds(200))[0].struck, 2);
    assert!(set.remove("fault-1") && set.list(seconds(200)).is_empty());
}

#[test]
fn an_id_is_replaced_in_its_place_and_counts_anew() {
    let set = set();
    for rule in [Rule::answer(503, 0).named("a"), Rule::answer(429, 0).named("b").on(OperationKind::Read)] {
        set.add(rule, seconds(0)).unwrap();
    }
    set.strike(&READ, seconds(0));
    set.add(Rule::answer(500, 0).named("a"), seconds(0)).unwrap();
    let listed: Vec<_> = set.list(seconds(0)).into_iter().map(|r| (r.rule.effect.status, r.struck)).collect();
    assert_eq!(listed, [(Some(500), 0), (Some(429), 0)]);
    assert!(set.remove("a") && !set.remove("a"));
    assert_eq!(status(&set.strike(&READ, seconds(0))), Some(429));
    assert_eq!(set.clear(seconds(0)), 1);
    assert!(set.is_quiet() && set.list(seconds(0)).is_empty());
}

#[test]
fn a_rule_that_could_never_strike_is_refused() {
    let on_reads = || Rule::answer(429, 3200).on(OperationKind::Read);
    let cases = [
        ("the same requests", on_reads(), on_reads(), true),
        ("a delay after the last word", on_reads(), Rule::delay(seconds(1)).on(OperationKind::Read), true),
        ("other requests", on_reads(), Rule::answer(503, 0).on(OperationKind::Create), false),
        ("more requests", on_reads(), Rule::answer(503, 0), false),
        ("one after the other", on_reads().times(2), on_reads(), false),
        ("one after a while", on_reads().lasting(seconds(1)), on_reads(), false),
        ("the rest of a share", on_reads().share(0.5), on_reads(), false),
        ("delays add up", Rule::delay(seconds(1)), Rule::delay(seconds(1)), false),
    ];
    for (name, first, second, refused) in cases {
        let set = set();
        set.add(first.named("first"), seconds(0)).unwrap();
        let added = set.add(second.clone().named("second"), seconds(0));
        assert_eq!(added.is_err(), refused, "{name}: {added:?}");
        if let Err(error) = added {
            assert!(error.to_string().contains("peri fault rm first"), "{error}");
            set.add(second.named("first"), seconds(0)).expect("replacing is no overlap");
        }
    }
}

#[test]
fn there_is_a_most_of_rules_and_of_memories() {
    let set = set();
    for _ in 0..RULES_MAX {
        set.add(Rule::answer(503, 0).times(9), seconds(0)).unwrap();
    }
    let error = set.add(Rule::answer(503, 0).times(9), seconds(0)).unwrap_err().to_string();
    assert!(error.contains("64") && error.contains("remove one"), "{error}");
    set.add(Rule::answer(500, 0).named("fault-1"), seconds(0)).expect("replacing needs no room");
    set.clear(seconds(0));
    for _ in 0..100 {
        set.add(Rule::answer(503, 0).lasting(seconds(1)), seconds(0)).unwrap();
        set.list(seconds(1));
    }
    assert_eq!(set.list(seconds(1)).len(), ENDED_MAX);
}

#[test]
fn the_same_seed_strikes_the_same_requests() {
    let set = set();
    set.add(Rule::answer(503, 0).named("some").share(0.4), seconds(0)).unwrap();
    let run =
        || -> Vec<bool> { (0..200).map(|_| status(&set.strike(&READ, seconds(0))).is_some()).collect() };
    let first = run();
    let share = first.iter().filter(|struck| **struck).count();
    assert!((60..100).contains(&share), "{share} of 200");
    assert_ne!(run(), first, "chance goes on");
    set.set_seed(1);
    assert_eq!(run(), first);
    set.set_seed(2);
    assert_ne!(run(), first);
    assert_eq!(set.seed(), 2);
}

#[test]
fn a_count_is_kept_exactly_by_many_at_once() {
    let set = set();
    set.add(Rule::answer(503, 0).times(100), seconds(0)).unwrap();
    let struck: usize = std::thread::scope(|scope| {
        let strikes = || (0..100).filter(|_| status(&set.strike(&READ, seconds(0))).is_some()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(strikes)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(struck, 100);
}

#[test]
fn a_door_is_as_the_first_active_rule_of_its_region_says() {
    let set = set();
    let (west, east) = (RegionId(0), RegionId(1));
    assert_eq!(set.doorway(east, seconds(0)), (Doorway::Open, None));
    let refuse = Rule::connection(ConnectionEffect::Refuse).in_region("eastus").named("shut");
    set.add(refuse.clone().lasting(seconds(5)), seconds(0)).unwrap();
    let hole = Rule::connection(ConnectionEffect::BlackHole).named("hole");
    set.add(Rule { after: Some(HumanDuration(seconds(2))), ..hole }, seconds(0)).unwrap();
    for (region, now, expected) in [
        (east, 0, (Doorway::Refused, Some(seconds(2)))),
        (west, 0, (Doorway::Open, Some(seconds(2)))),
        (east, 2, (Doorway::Refused, Some(seconds(3)))),
        (west, 2, (Doorway::Silent, None)),
        (east, 5, (Doorway::Silent, None)),
    ] {
        assert_eq!(set.doorway(region, seconds(now)), expected, "{region:?} at {now}");
    }
}
