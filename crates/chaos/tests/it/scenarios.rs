//! Each scenario that comes with it, faster and with less load, on every kind of account it is for.

use std::time::Duration;

use perihelion_chaos::report::Felt;
use perihelion_chaos::schedule::Pace;
use perihelion_chaos::{Report, Schedule, World, built_in, run};

/// Everything takes this share of its time.
const SCALE: f64 = 0.4;
const SEED: u64 = 1;

/// Plays a schedule on an account of its own.
pub(crate) async fn play(schedule: &Schedule) -> Report {
    let world = World::start(schedule).await.expect("the account starts");
    let report = run(&world, schedule, &mut |_| {}).await.expect("it is played to the end");
    world.finish().await.expect("nothing is left");
    report
}

/// Plays a scenario on all its accounts at once; every promise must hold on each.
async fn survives(name: &str) -> Vec<Report> {
    let mut scenario = built_in::find(name).expect("it comes with it");
    // What a machine with two busy cores and a build without optimisation can carry.
    scenario.load.workers = 8;
    scenario.load.rate = 50;
    scenario.load.deadline = Duration::from_secs(15);
    scenario.load.tolerance = Duration::from_secs(2);
    for fault in &mut scenario.faults {
        // How fast it recovers is for a quiet machine to say.
        (fault.expect.reads_within, fault.expect.writes_within) = (None, None);
    }
    let pace = Pace { scale: SCALE, lasting: None };
    let schedules = scenario.writes.iter().map(|writes| Schedule::new(&scenario, *writes, SEED, pace));
    let schedules: Vec<Schedule> = schedules.collect();
    let reports = futures::future::join_all(schedules.iter().map(play)).await;
    for report in &reports {
        let broken: Vec<_> = report.promises.iter().filter(|verdict| verdict.broken > 0).collect();
        assert!(broken.is_empty(), "{name}, {}: {broken:#?}", report.writes);
        assert!(report.all_reads.operations > 0 && report.all_writes.operations > 0);
    }
    reports
}

/// What was felt of all faults.
fn felt(reports: &[Report]) -> impl Iterator<Item = &Felt> {
    reports.iter().flat_map(|report| &report.faults)
}

/// A second region was asked, or the first one was waited for.
fn was_slow(felt: &Felt) -> bool {
    felt.reads.during.hedges > 0 || felt.reads.during.max > Some(Duration::from_millis(200))
}

macro_rules! survived {
    ($($test:ident: $scenario:literal, $noticed:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let reports = survives($scenario).await;
                let noticed: fn(&Felt) -> bool = $noticed;
                assert!(felt(&reports).all(noticed), "the fault did nothing: {reports:#?}");
            }
        )*
    };
}

survived! {
    a_region_that_is_down_is_survived: "region-down", |felt| felt.reads.during.retries > 0;
    a_region_that_is_slow_is_survived: "brown-out", was_slow;
    a_region_that_drains_is_survived: "drain", |felt| felt.reads.during.retries > 0;
    another_region_that_takes_the_writes_is_survived: "failover",
        |felt| felt.writes.during.retries + felt.writes.during.failed() > 0;
    a_region_that_never_answers_is_survived: "black-hole", was_slow;
    a_partition_that_is_bad_in_one_region_is_survived: "bad-partition",
        |felt| felt.reads.during.retries + felt.writes.during.retries + felt.writes.during.failed() > 0;
    a_throttle_storm_is_survived: "throttle-storm", |felt| felt.reads.during.retries > 0;
    a_split_storm_is_survived: "split-storm", |felt| felt.reads.during.operations > 0;
    connections_that_are_reset_are_survived: "resets", |felt| felt.reads.during.retries > 0;
    one_fault_after_the_other_is_survived: "anything", |felt| felt.reads.during.operations > 0;
}

#[test]
fn every_scenario_that_comes_with_it_is_played_here() {
    let here = include_str!("scenarios.rs");
    for name in built_in::names() {
        assert!(here.contains(&format!(": \"{name}\",")), "{name}");
    }
}
