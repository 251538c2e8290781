//! Each built-in scenario, faster and with less load, in all of its variants.

use std::time::Duration;

use emulator::clock::HumanDuration;
use perihelion_chaos::report::FaultImpact;
use perihelion_chaos::schedule::RunOptions;
use perihelion_chaos::workload::Workload;
use perihelion_chaos::{Report, Schedule, TargetAccount, built_in, run};

/// The factor of all times.
const SCALE: f64 = 0.4;
/// The factor where a region must be left: within 3 s, which is not scaled.
const LEFT_SCALE: f64 = 0.6;
const SEED: u64 = 1;
/// The operations per second of all variants of a scenario that has many.
const RATE_ALL: u32 = 64;

/// Executes a schedule on a new account.
pub(crate) async fn execute(schedule: &Schedule) -> Report {
    let account = TargetAccount::start(schedule).await.expect("the account starts");
    let report = run(&account, schedule, &mut |_| {}).await.expect("a report");
    account.clean_up().await.expect("cleaned up");
    report
}

/// Runs all variants of a scenario at once; every guarantee must hold in each.
async fn survives(name: &str) -> Vec<Report> {
    let mut scenario = built_in::find(name).expect("a built-in scenario");
    // A load for a machine with two busy cores and a build without optimisation.
    let variants = scenario.variants();
    let workload = &mut scenario.workload;
    if workload.workers == Workload::default().workers {
        (workload.workers, workload.readers) = (8, workload.readers / 2);
    }
    workload.rate = workload.rate.min(if variants.len() > 2 { RATE_ALL / variants.len() as u32 } else { 50 });
    workload.deadline = Duration::from_secs(15);
    workload.tolerance = Duration::from_secs(2);
    let mut scale = SCALE;
    for fault in &mut scenario.faults {
        // Recovery times and latencies are only meaningful on an idle machine. Which regions are used is not a
        // matter of speed, and is checked.
        (fault.expect.reads_within, fault.expect.writes_within) = (None, None);
        fault.expect.median_tolerance = Some(HumanDuration(Duration::from_secs(5)));
        if fault.expect.left_within.or(fault.expect.writes_left_within).is_some() {
            scale = LEFT_SCALE * (8.0 / fault.duration.from.as_secs_f64());
        }
    }
    if scenario.workload.cold > 0 {
        // A new client needs several look-ups during the fault to be late.
        scale = 1.0;
    }
    let options = RunOptions { time_scale: scale, duration: None };
    let schedules = variants.into_iter().map(|variant| Schedule::new(&scenario, variant, SEED, options));
    let schedules: Vec<Schedule> = schedules.collect();
    let reports = futures::future::join_all(schedules.iter().map(execute)).await;
    for report in &reports {
        let violated: Vec<_> = report.guarantees.iter().filter(|result| result.violations > 0).collect();
        assert!(violated.is_empty(), "{name}, {}: {violated:#?} {:#?}", report.variant, report.faults);
        assert!(report.all_reads.operations > 0 && report.all_writes.operations > 0);
        assert_eq!(report.invalid_calls > 0, scenario.workload.invalid > 0, "{report:#?}");
    }
    reports
}

/// The impact of all faults.
fn impacts(reports: &[Report]) -> impl Iterator<Item = &FaultImpact> {
    reports.iter().flat_map(|report| &report.faults)
}

/// Whether an operation was retried. In an account with writes in all regions a write may find the fault before any read.
fn was_retried(impact: &FaultImpact) -> bool {
    impact.reads.during.retries + impact.writes.during.retries > 0
}

/// Whether reads were hedged or slow.
fn was_slow(impact: &FaultImpact) -> bool {
    impact.reads.during.hedges > 0 || impact.reads.during.max > Some(Duration::from_millis(200))
}

/// Whether reads used the region of the fault for a while, then avoided it, and returned after the fault.
fn was_left_and_found(impact: &FaultImpact) -> bool {
    impact.reads.left.is_some() && impact.reads.diverted > 0 && impact.reads.found.is_some()
}

macro_rules! survived {
    ($($test:ident: $scenario:literal, $noticed:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let reports = survives($scenario).await;
                let noticed: fn(&FaultImpact) -> bool = $noticed;
                assert!(impacts(&reports).all(noticed), "the fault had no effect: {reports:#?}");
            }
        )*
    };
}

survived! {
    a_region_that_is_down_is_survived: "region-down", was_retried;
    a_region_that_is_slow_is_survived: "brown-out", was_slow;
    a_region_that_drains_is_survived: "drain", was_retried;
    another_region_that_takes_the_writes_is_survived: "failover",
        |impact| impact.writes.during.retries + impact.writes.during.failed() > 0;
    a_region_that_never_answers_is_survived: "black-hole", was_left_and_found;
    a_write_region_that_never_answers_is_survived: "silent-writes",
        |impact| was_left_and_found(impact) && impact.writes.left.is_some() && impact.writes.diverted > 0;
    a_write_region_that_stops_reading_is_survived: "stalled-peer",
        |impact| impact.writes.during.max > Some(Duration::from_millis(500));
    a_runtime_that_ends_is_survived: "runtime-ends", was_left_and_found;
    invalid_arguments_of_callers_are_survived: "invalid-arguments", was_left_and_found;
    times_without_a_limit_are_survived: "unlimited-times",
        |impact| impact.reads.during.retries + impact.reads.diverted > 0;
    a_region_without_writes_is_survived: "no-writes",
        |impact| impact.writes.during.retries > 0 && impact.writes.diverted > 0;
    slow_metadata_is_survived: "slow-metadata",
        |impact| impact.reads.during.max > Some(Duration::from_secs(1));
    writes_that_are_throttled_and_then_lost_are_survived: "throttled-then-lost",
        |impact| impact.writes.during.operations > 0;
    a_partition_that_is_bad_in_one_region_is_survived: "bad-partition",
        |impact| impact.reads.during.retries + impact.writes.during.retries + impact.writes.during.failed() > 0;
    a_throttle_storm_is_survived: "throttle-storm", |impact| impact.reads.during.retries > 0;
    a_split_storm_is_survived: "split-storm", |impact| impact.reads.during.operations > 0;
    connections_that_are_reset_are_survived: "resets", |impact| impact.reads.during.retries > 0;
    one_fault_after_the_other_is_survived: "anything", |impact| impact.reads.during.operations > 0;
}

#[test]
fn every_built_in_scenario_has_a_test_here() {
    let here = include_str!("scenarios.rs");
    for name in built_in::names() {
        assert!(here.contains(&format!(": \"{name}\",")), "{name}");
    }
}
