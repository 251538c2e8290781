//! `peri up --data-dir`: what is kept, and the ways a directory can be wrong.

use std::fs;

use serde_json::Value;

use crate::binary::{Home, Up, get, text};
use crate::client::Client;

const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

fn up(home: &Home) -> Up {
    home.up(&["--regions", "West US", "--data-dir", "data"])
}

fn client(up: &Up) -> Client {
    Client::new(&up.account()["endpoint"])
}

fn create(client: &mut Client, id: u32, fill: usize) -> (u16, String) {
    let body = format!(r#"{{"id":"{id}","pk":"a","fill":"{}"}}"#, "x".repeat(fill));
    let answer = client.ask("POST", DOCS, &[KEY], &body);
    (answer.status, answer.text())
}

#[test]
fn an_account_goes_on_where_it_was_after_a_clean_end() {
    let home = Home::new();
    let first = up(&home);
    client(&first).make_container();
    assert_eq!(create(&mut client(&first), 1, 10).0, 201);
    let before = client(&first).ask("GET", &format!("{DOCS}/1"), &[KEY], "").text();
    first.signal("TERM");
    assert_eq!(first.end().0.code(), Some(0));
    let second = up(&home);
    assert_eq!(client(&second).ask("GET", &format!("{DOCS}/1"), &[KEY], "").text(), before);
    assert_eq!(create(&mut client(&second), 1, 10).0, 409);
    let health = get(&second.ready["control"]["endpoint"], "/health/ready");
    assert!(health.contains(r#""writable":true"#), "{health}");
}

#[test]
fn a_second_process_is_refused_and_told_who_is_there() {
    let home = Home::new();
    let _first = up(&home);
    let output = home.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "data"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("in use by process ") && stderr.contains("hint: stop that process"), "{stderr}");
}

#[test]
fn a_directory_that_is_not_ours_is_refused_and_left_alone() {
    let cases = [
        ("data/notes.txt", "mine", "not empty", "choose an empty directory"),
        ("data/format", "perihelion data directory, format 9\n", "format 9", "the version of peri"),
        ("data", "a file", "data", "not a file"),
    ];
    for (name, content, problem, advice) in cases {
        let home = Home::new();
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let output = home.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "data"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(8), "{name}: {stderr}");
        assert!(stderr.contains(problem) && stderr.contains(advice), "{name}: {stderr}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "{name}");
    }
}

#[test]
fn regions_that_all_write_are_the_same_ones_the_next_time() {
    let home = Home::new();
    let regions = ["--regions", "West US,East US", "--data-dir", "data"];
    let first = home.up(&[&regions[..], &["--multi-write"]].concat());
    client(&first).make_container();
    drop(first);
    let again = [&["up", "--port", "0", "--control-port", "0"][..], &regions].concat();
    let output = home.run(&again);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("all write: West US,East US") && stderr.contains("--multi-write"), "{stderr}");
    drop(home.up(&[&regions[..], &["--multi-write"]].concat()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_without_permission_says_what_to_do() {
    let home = Home::new();
    // Nobody may make anything there, root included.
    let output = home.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "/proc/perihelion"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("cannot create /proc/perihelion") && stderr.contains("--data-dir"), "{stderr}");
}

#[test]
fn a_torn_tail_is_cut_off_and_reported() {
    let home = Home::new();
    let first = up(&home);
    client(&first).make_container();
    for id in 0..5 {
        assert_eq!(create(&mut client(&first), id, 10).0, 201);
    }
    drop(first);
    let newest =
        fs::read_dir(home.path().join("data/journal")).unwrap().map(|entry| entry.unwrap().path()).max();
    let newest = newest.unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    bytes.extend_from_slice(b"PeRj half a record");
    fs::write(&newest, bytes).unwrap();
    let second = up(&home);
    let health = get(&second.ready["control"]["endpoint"], "/health/ready");
    assert!(health.contains("18 bytes cut off"), "{health}");
    assert_eq!(client(&second).ask("GET", &format!("{DOCS}/4"), &[KEY], "").status, 200);
    second.signal("TERM");
    let (status, _, stderr) = second.end();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("cut off"), "{stderr}");
}

#[test]
fn damage_where_data_was_safe_is_refused() {
    let home = Home::new();
    let first = up(&home);
    client(&first).make_container();
    for id in 0..5 {
        assert_eq!(create(&mut client(&first), id, 10).0, 201);
    }
    first.signal("TERM");
    first.end();
    let oldest =
        fs::read_dir(home.path().join("data/journal")).unwrap().map(|entry| entry.unwrap().path()).min();
    let oldest = oldest.unwrap();
    let mut bytes = fs::read(&oldest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&oldest, bytes).unwrap();
    let output = home.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "data"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("damaged") && stderr.contains("put back a copy"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_full_disk_refuses_writes_keeps_reads_and_loses_nothing() {
    let home = Home::new();
    // The limit stands for the disk: files may have 256 blocks of 512 bytes.
    let peri = env!("CARGO_BIN_EXE_peri");
    let script = format!(
        "trap '' XFSZ && ulimit -f 256 && \
         exec '{peri}' up --port 0 --control-port 0 --json --regions 'West US' --data-dir data"
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(home.path()).env("PERI_HOME", home.path());
    let full = Up::start(command);
    let mut writer = client(&full);
    writer.make_container();
    let mut stored = 0;
    let (status, refusal) = loop {
        match create(&mut writer, stored, 1_000) {
            (201, _) => stored += 1,
            refused => break refused,
        }
        assert!(stored < 10_000, "the limit holds");
    };
    assert_eq!(status, 503, "{refusal}");
    assert!(refusal.contains("is full") && refusal.contains("Make room"), "{refusal}");
    let read = |client: &mut Client, id: u32| client.ask("GET", &format!("{DOCS}/{id}"), &[KEY], "").status;
    assert_eq!((read(&mut writer, stored - 1), read(&mut writer, stored)), (200, 404));
    assert_eq!(writer.ask("POST", "/dbs", &[], &format!(r#"{{"id":"{}"}}"#, "y".repeat(250))).status, 503);
    drop(full);
    let after = up(&home);
    let health: String = get(&after.ready["control"]["endpoint"], "/health/ready");
    let health: Value = serde_json::from_str(health.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(health["data"]["cutOff"], Value::Null, "a refused write leaves nothing behind");
    let mut reader = client(&after);
    assert_eq!((read(&mut reader, stored - 1), read(&mut reader, stored)), (200, 404));
    assert_eq!(create(&mut reader, stored, 1_000).0, 201);
}
