//! The commands that look at a running account and change its shape.

use std::process::Output;

use serde_json::Value;

use crate::binary::{Home, Up, text};

/// A running one, and a way to type commands about it.
struct Lab {
    home: Home,
    up: Up,
}

impl Lab {
    fn new() -> Lab {
        let home = Home::new();
        let up = home.up(&["--regions", "West US,East US"]);
        Lab { home, up }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.home.run(&[arguments, &["--control", self.up.control()]].concat())
    }

    /// What it prints.
    #[track_caller]
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    }

    #[track_caller]
    fn refuses(&self, arguments: &[&str], code: i32, reason: &str) {
        let output = self.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

#[test]
fn status_shows_the_regions_and_that_there_is_nothing_yet() {
    let lab = Lab::new();
    let status = lab.says(&["status"]);
    assert!(status.starts_with("consistency Session\n\nREGION "), "{status}");
    assert!(
        status.contains("\nWest US  http://localhost:") && status.ends_with("\n\nno containers"),
        "{status}"
    );
    let json: Value = serde_json::from_str(&lab.says(&["status", "--json"])).unwrap();
    assert_eq!(json["regions"][1]["name"], "East US");
}

#[test]
fn regions_are_set_apart_paused_and_resumed() {
    let lab = Lab::new();
    let lagged = lab.says(&["region", "lag", "1s..2s", "--to", "eastus"]);
    assert!(lagged.contains("reads   1s..2s"), "{lagged}");
    assert!(lab.says(&["region", "pause", "East US"]).contains("reads, paused"));
    assert!(!lab.says(&["region", "resume", "East US"]).contains("paused"));
    assert!(lab.says(&["region", "list"]).contains("writes"));
    lab.refuses(&["region", "pause", "Mars"], 6, "'West US'");
    lab.refuses(&["region", "lag", "soon"], 2, "20ms..50ms");
}

#[test]
fn snapshots_come_and_go() {
    let lab = Lab::new();
    assert_eq!(lab.says(&["snapshot", "save", "clean"]), "saved 'clean'");
    assert!(lab.says(&["snapshot", "list"]).contains("\nclean  "));
    assert_eq!(lab.says(&["snapshot", "restore", "clean"]), "the account is as it was in 'clean'");
    assert_eq!(lab.says(&["snapshot", "rm", "clean"]), "removed 'clean'");
    lab.refuses(&["snapshot", "restore", "clean"], 6, "peri snapshot list");
}

#[test]
fn partitions_of_containers_that_are_not_there_are_refused() {
    let lab = Lab::new();
    assert!(lab.says(&["partition", "list"]).starts_with("CONTAINER  RANGE"));
    lab.refuses(&["partition", "list", "shop/items"], 6, "'shop'");
    lab.refuses(&["partition", "split", "shop/items", "0", "--hold", "1ms"], 6, "'items'");
    lab.refuses(&["partition", "merge", "shop/items", "1"], 2, "RANGES");
    lab.refuses(&["partition", "split", "items", "0"], 2, "DATABASE/CONTAINER");
}
