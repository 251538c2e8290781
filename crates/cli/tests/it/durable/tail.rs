//! `peri durable tail` while orchestrations run.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::Workflows;

fn follow(workflows: &Workflows, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let arguments = [&["durable", "tail", "--interval", "50ms"], arguments].concat();
    let mut child = workflows.account.command(&arguments).stdout(Stdio::piped()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("piped"));
    (child, lines)
}

#[test]
fn starts_ends_and_failures_are_shown_as_they_happen() {
    let workflows = Workflows::started();
    workflows.start("before", "Broken", "long ago");
    workflows.end("before");
    let (mut child, mut lines) = follow(&workflows, &[]);
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        line
    };
    assert!(line().starts_with("TIME"));
    workflows.start("twice", "Twice", "first");
    workflows.end("twice");
    let mut shown = [line(), line(), line()].concat();
    workflows.start("broken", "Broken", "no money");
    workflows.end("broken");
    shown += &[line(), line()].concat();
    for (part, of) in [
        ("started", "twice"),
        ("continued", "twice"),
        ("completed", "twice"),
        ("started", "broken"),
        ("failed", "broken"),
        ("failed", "no money"),
    ] {
        assert!(shown.lines().any(|line| line.contains(part) && line.contains(of)), "{part} {of}: {shown}");
    }
    assert!(!shown.contains("before"), "{shown}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[cfg(unix)]
#[test]
fn a_tail_filters_and_ends_when_its_reader_does() {
    let workflows = Workflows::started();
    let (mut child, mut lines) = follow(&workflows, &["--failures", "--name", "Bro", "--json"]);
    // Nothing says that it follows before something happens, so the same happens until it is seen.
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        sender.send(line).expect("the test waits");
    });
    let line = (0..100).find_map(|n| {
        workflows.start(&format!("twice-{n}"), "Twice", "second");
        workflows.start(&format!("broken-{n}"), "Broken", "no");
        receiver.recv_timeout(Duration::from_millis(300)).ok()
    });
    let change: Value = serde_json::from_str(&line.expect("a failure")).expect("JSON");
    assert_eq!((change["kind"].as_str(), change["detail"].as_str()), (Some("failed"), Some("no")));
    reader.join().expect("the reader has gone");
    let (ended, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || ended.send(child.wait().expect("it ends").code()));
    assert_eq!(waiting.recv_timeout(Duration::from_secs(10)), Ok(Some(0)), "it goes on without a reader");
}
