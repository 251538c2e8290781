//! The proof can fail: an account that breaks a promise is found out.

use emulator::{Emulator, EmulatorConfig, RunningEmulator};
use perihelion_chaos::report::Promise;
use perihelion_chaos::scenario::Writes;
use perihelion_chaos::schedule::Pace;
use perihelion_chaos::{Report, Scenario, Schedule, World, WorldError, run};

use crate::scenarios::play;

/// A scenario of one rule.
fn schedule(rule: &str) -> Schedule {
    let text = format!(
        "calm = '100ms'\n[load]\nworkers = 4\nrate = 40\ncreate = 40\ndeadline = '10s'\ntolerance = '5s'\n\
         [[fault]]\nkind = 'rule'\nregion = 'all'\nat = '100ms'\nfor = '900ms'\nrule = {rule}"
    );
    Schedule::new(&Scenario::read("liar", &text).expect("valid"), Writes::One, 1, Pace::default())
}

fn broken(report: &Report) -> Vec<Promise> {
    report.promises.iter().filter(|verdict| verdict.broken > 0).map(|verdict| verdict.promise).collect()
}

/// An account in the regions of the scenarios, outside of them.
async fn account() -> RunningEmulator {
    let mut config = EmulatorConfig::default();
    config.regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec();
    Emulator::start(config).await.expect("the emulator starts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_forgets_what_it_acknowledged_is_found_out() {
    let running = account().await;
    let schedule = schedule("{ effect = { delay = '1ms' } }");
    let control = running.control_endpoint();
    let world = World::attach(&running.connection_string(), &control, &schedule).await.expect("it fits");
    // Soon after the start everything is saved, and at the end it is as it was then.
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let forgetting = tokio::spawn(async move {
        let client = perihelion_http::Client::builder().no_proxy().build().expect("a client");
        let mut paths = ["snapshots/then", "snapshots/then/restore"].into_iter();
        while told.recv().await.is_some() {
            let Some(path) = paths.next() else { continue };
            let request = http::Request::post(format!("{control}{path}")).body(bytes::Bytes::new());
            let response = client.send(request.expect("a request")).await.expect("an answer");
            assert!(response.status().is_success(), "{path}: {}", response.status());
        }
    });
    let mut goals = [5, 25].into_iter().peekable();
    let mut watch = |progress: &perihelion_chaos::Progress| {
        if goals.next_if(|goal| progress.done >= *goal).is_some() {
            tell.send(()).expect("somebody listens");
        }
    };
    let report = run(&world, &schedule, &mut watch).await.expect("played");
    drop(tell);
    forgetting.await.expect("it forgot");
    assert!(broken(&report).contains(&Promise::NothingIsLost), "{report:#?}");
    world.finish().await.expect("nothing is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_fails_is_found_out() {
    let liar = schedule("{ match = { operations = ['read'] }, effect = { status = 404 } }");
    let report = play(&liar).await;
    assert_eq!(broken(&report), [Promise::ReadsSucceed], "{report:#?}");
    assert_eq!(report.all_reads.failures.keys().copied().collect::<Vec<_>>(), ["not_found"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_is_already_there_gets_back_what_it_had() {
    let running = account().await;
    let schedule = schedule("{ match = { operations = ['read'] }, effect = { status = 503 }, share = 0.1 }");
    let (connection, control) = (running.connection_string(), running.control_endpoint());
    let world = World::attach(&connection, &control, &schedule).await.expect("it fits");
    let report = run(&world, &schedule, &mut |_| {}).await.expect("played");
    assert!(report.holds(), "{report:#?}");
    world.finish().await.expect("nothing is left");
    assert!(running.faults().list().iter().all(|rule| rule.state == emulator::faults::RuleState::Ended));
    assert!(running.usage().is_empty(), "{:?}", running.usage());
}

#[tokio::test]
async fn an_account_that_the_scenario_is_not_about_is_refused() {
    let running = Emulator::start(EmulatorConfig::default()).await.expect("the emulator starts");
    let schedule = schedule("{ effect = { delay = '1ms' } }");
    let world = World::attach(&running.connection_string(), &running.control_endpoint(), &schedule).await;
    let Err(WorldError::Unfit(reason)) = world else { panic!("one region instead of three") };
    assert!(reason.contains("North Europe"), "{reason}");
}
