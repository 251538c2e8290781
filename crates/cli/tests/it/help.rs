//! Snapshots of the help texts, so that changes of them are reviewed.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p perihelion-cli` updates them.

use std::path::Path;

use crate::binary::{TestFolder, text};

#[track_caller]
fn check(arguments: &[&str], snapshot: &str) {
    let output = TestFolder::new().run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots").join(snapshot);
    let shown = text(&output.stdout);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, shown).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{snapshot} differs; UPDATE_SNAPSHOTS=1 updates it");
}

#[test]
fn the_help_of_each_command_matches_its_snapshot() {
    check(&["--help"], "help.txt");
    check(&["up", "--help"], "up.txt");
    check(&["cert", "--help"], "cert.txt");
    let commands = [
        "chaos",
        "clock",
        "completions",
        "durable",
        "events",
        "export",
        "fault",
        "import",
        "partition",
        "query",
        "region",
        "requests",
        "reset",
        "snapshot",
        "status",
    ];
    for command in commands {
        check(&[command, "--help"], &format!("{command}.txt"));
    }
    for action in ["list", "show", "history", "why", "cancel", "raise", "purge", "retry", "tail"] {
        check(&["durable", action, "--help"], &format!("durable-{action}.txt"));
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let output = TestFolder::new().run(&["--version"]);
    assert_eq!(text(&output.stdout), format!("peri {}\n", env!("CARGO_PKG_VERSION")));
}
