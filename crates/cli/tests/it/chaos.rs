//! The command `peri chaos`.

use serde_json::Value;

use crate::binary::{TestFolder, text};
use crate::test_account::TestAccount;

/// A scenario of a second in which reads fail although they must succeed.
const VIOLATION: &str = "\
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
    let folder = TestFolder::new();
    let shown = |seed: &str| text(&folder.run(&["chaos", "--show", "--seed", seed]).stdout).to_owned();
    assert_eq!(shown("7"), shown("7"));
    assert_ne!(shown("7"), shown("8"));
    assert!(shown("7").contains("region-down, one region writes, seed 7, schedule "));
}

#[test]
fn settings_of_the_client_choose_the_variants() {
    let folder = TestFolder::new();
    let titles = |arguments: &[&str]| -> Vec<String> {
        let shown = folder.run(&[&["chaos", "black-hole", "--show"], arguments].concat());
        let titles = text(&shown.stdout).lines().filter(|line| line.starts_with("black-hole, "));
        titles.map(|line| line.split(", seed").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(titles(&[]).len(), 8);
    assert_eq!(titles(&[])[0], "black-hole, one region writes, hedging on, deadline 5s");
    assert_eq!(
        titles(&["--hedging", "off", "--deadline", "7s"]),
        [
            "black-hole, one region writes, hedging off, deadline 7s",
            "black-hole, all regions write, hedging off, deadline 7s"
        ]
    );
    let longer = folder.run(&["chaos", "black-hole", "--show", "--scale", "15"]);
    assert!(text(&longer.stdout).contains("151.") || text(&longer.stdout).contains("152."), "{longer:?}");
    for (arguments, reason) in [(["--scale", "0"], "0.01 to 1000"), (["--deadline", "0s"], "zero")] {
        let output = folder.run(&[&["chaos", "--show"], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn the_built_in_scenarios_are_listed() {
    let listed = TestFolder::new().run(&["chaos", "--list"]);
    let listed = text(&listed.stdout);
    for name in ["region-down", "brown-out", "drain", "failover", "black-hole", "bad-partition"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name}: {listed}");
    }
}

#[test]
fn an_invalid_scenario_is_an_error_with_its_reason() {
    let folder = TestFolder::new();
    std::fs::write(folder.path().join("bad.toml"), "[[fault]]\nkind = 'flood'\nat = '1s'\nfor = '1s'")
        .expect("written");
    for (arguments, reason) in [
        (["chaos", "nothing"], "there is no scenario and no file 'nothing'"),
        (["chaos", "bad.toml"], "'flood' is not a kind of fault; there are down"),
    ] {
        let output = folder.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(reason), "{}", text(&output.stderr));
    }
}

#[test]
fn a_violated_guarantee_has_an_exit_code_and_says_how_to_repeat_the_run() {
    let folder = TestFolder::new();
    std::fs::write(folder.path().join("violation.toml"), VIOLATION).expect("written");
    let output = folder.run(&[
        "chaos",
        "violation.toml",
        "--seed",
        "3",
        "--json",
        "--hedging",
        "off",
        "--scale",
        "0.9",
    ]);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
    let again = "peri chaos violation.toml --seed 3 --scale 0.9 --hedging off";
    assert!(text(&output.stderr).contains(again), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!((&report["hedging"], &report["deadlineMs"]), (&false.into(), &5_000.into()));
    let output = folder.run(&["chaos", "violation.toml", "--seed", "3", "--json"]);
    assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!((&report["scenario"], &report["seed"]), (&"violation".into(), &3.into()));
    let violated: Vec<&str> = report["promises"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|result| result["broken"] != 0)
        .filter_map(|result| result["promise"].as_str())
        .collect();
    assert_eq!(violated, ["reads-succeed"]);
    assert!(report["faults"][0]["reads"]["during"]["failures"]["not_found"].as_u64() > Some(0));
    assert!(text(&output.stderr).contains("peri chaos violation.toml --seed 3"), "{}", text(&output.stderr));
    let output = folder.run(&["chaos", "violation.toml", "--seed", "3"]);
    let shown = text(&output.stdout);
    let digest = report["digest"].as_str().expect("text");
    assert!(shown.contains(&format!("violation, one region writes, seed 3, schedule {digest}: ")), "{shown}");
    for part in ["rule everywhere", " not_found", "times: reads succeed throughout", "held: nothing lost"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn attach_uses_a_running_account_and_cleans_up() {
    let account = TestAccount::with(&[]);
    let calm =
        VIOLATION.replace("status = 404", "delay = '1ms'").replace("calm", "writes = ['one', 'all']\ncalm");
    account.write("calm.toml", &calm.replace("[load]", "[load]\ndeadline = '20s'\ntolerance = '5s'"));
    let report: Value =
        serde_json::from_str(&account.stdout_of(&["chaos", "calm.toml", "--attach", "--json"]))
            .expect("one run: the account has one kind of write regions");
    assert_eq!(report["writes"], "one");
    let status: Value = serde_json::from_str(&account.stdout_of(&["status", "--json"])).expect("JSON");
    assert!(!status.to_string().contains("chaos-"), "{status}");
    assert!(account.stdout_of(&["fault", "list"]).lines().all(|line| !line.contains("active")));
    // A port without a listener.
    let gone = TestFolder::new().run(&["chaos", "--attach", "--control", "http://localhost:1"]);
    assert_eq!(gone.status.code(), Some(5), "{}", text(&gone.stderr));
}

/// A scenario that does not end during the test, with a fault that is active from the beginning.
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
fn a_signal_ends_a_run_and_cleans_up() {
    for signal in ["INT", "TERM"] {
        let account = TestAccount::with(&[]);
        account.write("endless.toml", ENDLESS);
        let mut command = account.command(&["chaos", "endless.toml", "--attach"]);
        let piped = std::process::Stdio::piped;
        let run = command.stdout(piped()).stderr(piped()).spawn().expect("the program starts");
        // The run has begun, and its fault is active.
        eventually(|| {
            account.stdout_of(&["status", "--json"]).contains("chaos-")
                && faults(&account).contains("chaos-0-0")
        });
        let killed =
            std::process::Command::new("kill").args([format!("-{signal}"), run.id().to_string()]).status();
        assert!(killed.expect("kill runs").success());
        let output = run.wait_with_output().expect("it ends");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{signal}: {stderr}");
        assert!(stderr.contains("faults were ended and its database chaos-"), "{signal}: {stderr}");
        assert!(stderr.contains("interrupted"), "{signal}: {stderr}");
        assert!(!account.stdout_of(&["status", "--json"]).contains("chaos-"), "{signal}");
        assert!(!faults(&account).contains("chaos-0-0"), "{signal}: {}", faults(&account));
    }
}

/// The rules that are active.
#[cfg(unix)]
fn faults(account: &TestAccount) -> String {
    let listed = account.stdout_of(&["fault", "list"]);
    listed.lines().filter(|line| line.contains("active")).collect::<Vec<_>>().join("\n")
}

/// Polls until the condition holds.
#[cfg(unix)]
#[track_caller]
fn eventually(holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it did not happen in time");
}

#[test]
fn what_the_client_logs_about_faults_is_shown_on_request_and_without_colors() {
    let folder = TestFolder::new();
    let down = VIOLATION.replace("region = 'all'", "region = 'West US'").replace("'rule'", "'down'");
    let down = down.lines().filter(|line| !line.starts_with("rule")).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.path().join("down.toml"), down).expect("written");
    for (verbose, is_shown) in [(&["chaos", "down.toml"][..], false), (&["chaos", "down.toml", "-v"], true)] {
        let output = folder.run(verbose);
        let logs = text(&output.stderr);
        assert_eq!(logs.contains("region marked unavailable"), is_shown, "{logs}");
        assert!(!logs.contains('\x1b'), "{logs}");
    }
}
