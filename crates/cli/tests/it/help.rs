//! Help text as snapshots: what people read is looked at when it changes.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p perihelion-cli` writes them anew.

use std::path::Path;

use crate::binary::{Home, text};

#[track_caller]
fn check(arguments: &[&str], snapshot: &str) {
    let output = Home::new().run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots").join(snapshot);
    let shown = text(&output.stdout);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, shown).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{snapshot} differs; UPDATE_SNAPSHOTS=1 writes it anew");
}

#[test]
fn help_says_what_each_command_is_for() {
    check(&["--help"], "help.txt");
    check(&["up", "--help"], "up.txt");
    check(&["cert", "--help"], "cert.txt");
    let commands = [
        "chaos",
        "clock",
        "export",
        "fault",
        "import",
        "partition",
        "region",
        "requests",
        "snapshot",
        "status",
    ];
    for command in commands {
        check(&[command, "--help"], &format!("{command}.txt"));
    }
}

#[test]
fn the_version_is_the_packages() {
    let output = Home::new().run(&["--version"]);
    assert_eq!(text(&output.stdout), format!("peri {}\n", env!("CARGO_PKG_VERSION")));
}
