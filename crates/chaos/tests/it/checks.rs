//! Violations are detected: an account that violates a guarantee makes the run fail.

use std::time::Duration;

use control_client::ControlClient;
use emulator::{Emulator, EmulatorConfig, RunningEmulator};
use perihelion_chaos::guarantee::Guarantee;
use perihelion_chaos::scenario::WriteRegions;
use perihelion_chaos::schedule::RunOptions;
use perihelion_chaos::{Report, Scenario, Schedule, TargetAccount, TargetError, run};

use crate::scenarios::execute;

/// The schedule of a scenario with one fault rule.
fn schedule(rule: &str) -> Schedule {
    let text = format!(
        "calm = '100ms'\n[load]\nworkers = 4\nrate = 40\ncreate = 40\ndeadline = '10s'\ntolerance = '5s'\n\
         [[fault]]\nkind = 'rule'\nregion = 'all'\nat = '100ms'\nfor = '900ms'\nrule = {rule}"
    );
    Schedule::new(
        &Scenario::read("violations", &text).expect("valid"),
        WriteRegions::One,
        1,
        RunOptions::default(),
    )
}

fn violated(report: &Report) -> Vec<Guarantee> {
    report.guarantees.iter().filter(|result| result.violations > 0).map(|result| result.guarantee).collect()
}

/// An account that runs already, in the regions of the scenarios.
async fn account() -> RunningEmulator {
    let mut config = EmulatorConfig::default();
    config.regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec();
    Emulator::start(config).await.expect("the emulator starts")
}

/// A client of the control port of an account.
fn control_of(running: &RunningEmulator) -> ControlClient {
    ControlClient::new(&running.control_endpoint()).expect("a valid URL")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_loses_acknowledged_writes_is_detected() {
    let running = account().await;
    let schedule = schedule("{ effect = { delay = '1ms' } }");
    let control = control_of(&running);
    let account = TargetAccount::attach(&running.connection_string(), control.clone(), &schedule)
        .await
        .expect("the regions match");
    // Soon after the start a snapshot is saved, and later it is restored: writes in between are lost.
    let (next_step, mut steps) = tokio::sync::mpsc::unbounded_channel();
    let losing_writes = tokio::spawn(async move {
        let client = control;
        let mut paths = ["/snapshots/early", "/snapshots/early/restore"].into_iter();
        while steps.recv().await.is_some() {
            let Some(path) = paths.next() else { continue };
            client.post(path, &serde_json::json!({})).await.expect("a snapshot");
        }
    });
    let mut goals = [5, 25].into_iter().peekable();
    let mut watch = |progress: &perihelion_chaos::Progress| {
        if goals.next_if(|goal| progress.done >= *goal).is_some() {
            next_step.send(()).expect("the task runs");
        }
    };
    let report = run(&account, &schedule, &mut watch).await.expect("a report");
    drop(next_step);
    losing_writes.await.expect("no panic");
    assert!(violated(&report).contains(&Guarantee::NothingIsLost), "{report:#?}");
    account.clean_up().await.expect("cleaned up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_fails_is_detected() {
    let schedule = schedule("{ match = { operations = ['read'] }, effect = { status = 404 } }");
    let report = execute(&schedule).await;
    assert_eq!(violated(&report), [Guarantee::ReadsSucceed], "{report:#?}");
    assert_eq!(report.all_reads.failures.keys().copied().collect::<Vec<_>>(), ["not_found"]);
}

/// The report of a scenario with one fault that expects this, and no load but reads.
async fn reads_under(fault: &str, expect: &str) -> Report {
    let text = format!(
        "calm = '100ms'\n[load]\nworkers = 4\nrate = 40\nupsert = 0\ncreate = 0\n\
         deadline = '10s'\ntolerance = '5s'\n\
         [[fault]]\nat = '200ms'\nfor = '700ms'\n{fault}\nexpect = {{ {expect} }}"
    );
    let scenario = Scenario::read("regions", &text).expect("valid");
    execute(&Schedule::new(&scenario, WriteRegions::One, 1, RunOptions::default())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_is_not_left_or_not_found_is_detected() {
    let delay = |region: &str| format!("kind = 'slow'\nby = '1ms'\nregion = '{region}'");
    // A region that responds is not left, and one that is not preferred is not used without need.
    let (west, east) = (delay("West US"), delay("East US"));
    let (left, found, stay, fine) = tokio::join!(
        reads_under(&west, "left-within = '100ms', median-tolerance = '5s'"),
        reads_under(&east, "found-within = '500ms'"),
        reads_under(&east, "reads-stay = true"),
        reads_under(&west, "reads-stay = true, found-within = '30s'"),
    );
    assert_eq!(violated(&left), [Guarantee::RegionIsLeft], "{left:#?}");
    assert_eq!(violated(&found), [Guarantee::RegionIsFound], "{found:#?}");
    assert!(found.faults[0].observed >= Duration::from_millis(500), "the run waited for the region");
    assert_eq!(violated(&stay), [Guarantee::ReadsStay], "{stay:#?}");
    assert!(fine.all_hold(), "{fine:#?}");
    assert!(fine.lasted < Duration::from_secs(15), "the run ended when the region was found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_on_an_existing_account_leaves_no_database_and_no_fault() {
    let running = account().await;
    let schedule = schedule("{ match = { operations = ['read'] }, effect = { status = 503 }, share = 0.1 }");
    let (connection, control) = (running.connection_string(), control_of(&running));
    let account = TargetAccount::attach(&connection, control, &schedule).await.expect("the regions match");
    let report = run(&account, &schedule, &mut |_| {}).await.expect("a report");
    assert!(report.all_hold(), "{report:#?}");
    account.clean_up().await.expect("cleaned up");
    assert!(running.faults().list().iter().all(|rule| rule.state == emulator::faults::RuleState::Ended));
    assert!(running.usage().is_empty(), "{:?}", running.usage());
}

#[tokio::test]
async fn an_account_without_the_regions_of_the_scenario_is_an_error() {
    let running = Emulator::start(EmulatorConfig::default()).await.expect("the emulator starts");
    let schedule = schedule("{ effect = { delay = '1ms' } }");
    let account = TargetAccount::attach(&running.connection_string(), control_of(&running), &schedule).await;
    let Err(TargetError::Mismatch(reason)) = account else { panic!("one region instead of three") };
    assert!(reason.contains("North Europe"), "{reason}");
}
