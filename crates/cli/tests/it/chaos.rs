//! `peri chaos`, as a person types it.

use serde_json::Value;

use crate::binary::{Home, text};
use crate::lab::Lab;

/// A scenario of a second, in which reads fail and nobody said that they may.
const BROKEN: &str = "\
calm = '100ms'
[load]
workers = 2
rate = 30
[[fault]]
kind = 'rule'
region = 'all'
at = '100ms..200ms'
for = '700ms'
rule = { match = { operations = ['read'] }, effect = { status = 404 } }
";

#[test]
fn the_same_seed_is_the_same_schedule() {
    let home = Home::new();
    let shown = |seed: &str| text(&home.run(&["chaos", "--show", "--seed", seed]).stdout).to_owned();
    assert_eq!(shown("7"), shown("7"));
    assert_ne!(shown("7"), shown("8"));
    assert!(shown("7").contains("region-down, one region writes, seed 7, schedule "));
}

#[test]
fn the_scenarios_that_come_with_it_are_listed() {
    let listed = Home::new().run(&["chaos", "--list"]);
    let listed = text(&listed.stdout);
    for name in ["region-down", "brown-out", "drain", "failover", "black-hole", "bad-partition"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name}: {listed}");
    }
}

#[test]
fn a_scenario_that_cannot_be_played_is_named_with_its_reason() {
    let home = Home::new();
    std::fs::write(home.path().join("bad.toml"), "[[fault]]\nkind = 'flood'\nat = '1s'\nfor = '1s'")
        .expect("written");
    for (arguments, reason) in [
        (["chaos", "nothing"], "there is no scenario and no file 'nothing'"),
        (["chaos", "bad.toml"], "'flood' is no kind; there are down"),
    ] {
        let output = home.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn a_broken_promise_is_an_exit_code_and_says_how_to_see_it_again() {
    let home = Home::new();
    std::fs::write(home.path().join("broken.toml"), BROKEN).expect("written");
    let output = home.run(&["chaos", "broken.toml", "--seed", "3", "--json"]);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!((&report["scenario"], &report["seed"]), (&"broken".into(), &3.into()));
    let broken: Vec<&str> = report["promises"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|verdict| verdict["broken"] != 0)
        .filter_map(|verdict| verdict["promise"].as_str())
        .collect();
    assert_eq!(broken, ["reads-succeed"]);
    assert!(report["faults"][0]["reads"]["during"]["failures"]["not_found"].as_u64() > Some(0));
    assert!(text(&output.stderr).contains("peri chaos broken.toml --seed 3"), "{}", text(&output.stderr));
    let output = home.run(&["chaos", "broken.toml", "--seed", "3"]);
    let shown = text(&output.stdout);
    let digest = report["digest"].as_str().expect("text");
    assert!(shown.contains(&format!("broken, one region writes, seed 3, schedule {digest}: ")), "{shown}");
    for part in ["rule everywhere", " not_found", "times: reads succeed throughout", "held: nothing lost"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn the_account_of_a_running_one_is_used_and_left_as_it_was() {
    let lab = Lab::with(&[]);
    let calm =
        BROKEN.replace("status = 404", "delay = '1ms'").replace("calm", "writes = ['one', 'all']\ncalm");
    lab.write("calm.toml", &calm.replace("[load]", "[load]\ndeadline = '20s'\ntolerance = '5s'"));
    let report: Value = serde_json::from_str(&lab.says(&["chaos", "calm.toml", "--attach", "--json"]))
        .expect("one run: the other kind of account is another one");
    assert_eq!(report["writes"], "one");
    let status: Value = serde_json::from_str(&lab.says(&["status", "--json"])).expect("JSON");
    assert!(!status.to_string().contains("chaos-"), "{status}");
    assert!(lab.says(&["fault", "list"]).lines().all(|line| !line.contains("active")));
    // Nobody is there.
    let gone = Home::new().run(&["chaos", "--attach", "--control", "http://localhost:1"]);
    assert_eq!(gone.status.code(), Some(5), "{}", text(&gone.stderr));
}

/// A scenario that takes longer than anybody waits, with a fault that is in force from the beginning.
const ENDLESS: &str = "\
calm = '100ms'
[load]
workers = 2
rate = 30
[[fault]]
kind = 'slow'
region = 'all'
by = '1ms'
at = '0s'
for = '10m'
";

#[cfg(unix)]
#[test]
fn a_signal_ends_a_run_and_leaves_the_account_as_it_was() {
    for signal in ["INT", "TERM"] {
        let lab = Lab::with(&[]);
        lab.write("endless.toml", ENDLESS);
        let mut command = lab.command(&["chaos", "endless.toml", "--attach"]);
        let piped = std::process::Stdio::piped;
        let run = command.stdout(piped()).stderr(piped()).spawn().expect("the program starts");
        // At work, and the fault in force.
        eventually(|| {
            lab.says(&["status", "--json"]).contains("chaos-") && faults(&lab).contains("chaos-0-0")
        });
        let killed =
            std::process::Command::new("kill").args([format!("-{signal}"), run.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        let output = run.wait_with_output().expect("it ends");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{signal}: {stderr}");
        assert!(stderr.contains("faults have been ended and its database chaos-"), "{signal}: {stderr}");
        assert!(stderr.contains("cut short"), "{signal}: {stderr}");
        assert!(!lab.says(&["status", "--json"]).contains("chaos-"), "{signal}");
        assert!(!faults(&lab).contains("chaos-0-0"), "{signal}: {}", faults(&lab));
    }
}

/// The rules that are in force.
#[cfg(unix)]
fn faults(lab: &Lab) -> String {
    let listed = lab.says(&["fault", "list"]);
    listed.lines().filter(|line| line.contains("active")).collect::<Vec<_>>().join("\n")
}

/// Asks again and again, for what nobody tells.
#[cfg(unix)]
#[track_caller]
fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never happens");
}
