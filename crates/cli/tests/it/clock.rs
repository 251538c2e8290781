//! The command `peri clock`, and the options of all commands that use the control port.

use std::net::TcpListener;

use serde_json::Value;

use crate::binary::{TestFolder, text};

#[test]
fn the_clock_is_shown_moved_frozen_and_resumed() {
    let folder = TestFolder::new();
    let up = folder.up(&[]);
    let clock = |arguments: &[&str]| {
        let output = folder.run(&[&["clock"], arguments, &["--control", up.control()]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    };
    assert!(clock(&[]).ends_with("running, with the machine's time"));
    assert!(clock(&["freeze"]).contains("frozen"));
    let set = clock(&["set", "2030-01-31T08:00:00Z", "--json"]);
    let set: Value = serde_json::from_str(&set).unwrap();
    assert_eq!((&set["now"], &set["frozen"]), (&"2030-01-31T08:00:00Z".into(), &true.into()));
    assert!(clock(&["advance", "1h30m"]).starts_with("2030-01-31T09:30:00Z   frozen, "));
    assert!(clock(&["resume"]).contains("running, "));
    assert!(clock(&["show"]).starts_with("2030-01-31T09:3"));
    assert!(clock(&["reset"]).ends_with("running, with the machine's time"));
}

#[test]
fn the_control_port_comes_from_the_flag_or_the_environment() {
    let folder = TestFolder::new();
    let up = folder.up(&[]);
    let output = folder.peri(&["clock"]).env("PERI_CONTROL", up.control()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn without_a_running_account_the_error_says_how_to_start_one() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = TestFolder::new().run(&["clock", "--control", &format!("http://127.0.0.1:{free}")]);
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("`peri up`"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn invalid_commands_fail_with_a_reason_and_an_exit_code() {
    let folder = TestFolder::new();
    let up = folder.up(&[]);
    let account = up.account()["endpoint"].as_str().unwrap();
    folder.run(&["clock", "set", "9999-12-31", "--control", up.control()]);
    let cases: [(&[&str], i32, &str); 7] = [
        (&["advance", "soon", "--control", up.control()], 2, "1h30m"),
        (&["set", "noon", "--control", up.control()], 2, "2030-01-31"),
        (&["advance", "--control", up.control()], 2, "DURATION"),
        (&["show", "--control", "https://localhost:1234"], 2, "http://"),
        (&["show", "--control", "http://localhost"], 2, "port"),
        (&["advance", "2d", "--control", up.control(), "--json"], 6, "9999"),
        (&["--control", account], 1, "not that of the account"),
    ];
    for (arguments, code, reason) in cases {
        let output = folder.run(&[&["clock"], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}
