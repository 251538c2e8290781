//! `peri up --data-dir`: what survives a restart, and errors of the directory.

use std::fs;

use serde_json::Value;

use crate::binary::{TestFolder, Up, get, text};
use crate::client::Client;

const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

fn up(folder: &TestFolder) -> Up {
    folder.up(&["--regions", "West US", "--data-dir", "data"])
}

fn client(up: &Up) -> Client {
    Client::new(&up.account()["endpoint"])
}

fn create(client: &mut Client, id: u32, fill: usize) -> (u16, String) {
    let body = format!(r#"{{"id":"{id}","pk":"a","fill":"{}"}}"#, "x".repeat(fill));
    let response = client.request("POST", DOCS, &[KEY], &body);
    (response.status, response.text())
}

#[test]
fn an_account_is_loaded_after_a_clean_stop() {
    let folder = TestFolder::new();
    let first = up(&folder);
    client(&first).create_container();
    assert_eq!(create(&mut client(&first), 1, 10).0, 201);
    let before = client(&first).request("GET", &format!("{DOCS}/1"), &[KEY], "").text();
    first.signal("TERM");
    assert_eq!(first.end().0.code(), Some(0));
    let second = up(&folder);
    assert_eq!(client(&second).request("GET", &format!("{DOCS}/1"), &[KEY], "").text(), before);
    assert_eq!(create(&mut client(&second), 1, 10).0, 409);
    let health = get(&second.ready["control"]["endpoint"], "/health/ready");
    assert!(health.contains(r#""writable":true"#), "{health}");
}

#[test]
fn a_second_process_is_an_error_that_names_the_first() {
    let folder = TestFolder::new();
    let _first = up(&folder);
    let output = folder.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "data"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("in use by process ") && stderr.contains("hint: stop that process"), "{stderr}");
}

#[test]
fn a_directory_of_another_program_is_an_error_and_stays_unchanged() {
    let cases = [
        ("data/notes.txt", "mine", "not empty", "choose an empty directory"),
        ("data/format", "perihelion data directory, format 9\n", "format 9", "the version of peri"),
        ("data", "a file", "data", "not a file"),
    ];
    for (name, content, problem, advice) in cases {
        let folder = TestFolder::new();
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let output = folder.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "data"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(8), "{name}: {stderr}");
        assert!(stderr.contains(problem) && stderr.contains(advice), "{name}: {stderr}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "{name}");
    }
}

#[test]
fn the_write_regions_of_a_directory_do_not_change() {
    let folder = TestFolder::new();
    let regions = ["--regions", "West US,East US", "--data-dir", "data"];
    let first = folder.up(&[&regions[..], &["--multi-write"]].concat());
    client(&first).create_container();
    drop(first);
    let again = [&["up", "--port", "0", "--control-port", "0"][..], &regions].concat();
    let output = folder.run(&again);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("all write: West US,East US") && stderr.contains("--multi-write"), "{stderr}");
    drop(folder.up(&[&regions[..], &["--multi-write"]].concat()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_without_permission_says_what_to_do() {
    let folder = TestFolder::new();
    // No user may create a file there, not even root.
    let output = folder.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "/proc/perihelion"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("cannot create /proc/perihelion") && stderr.contains("--data-dir"), "{stderr}");
}

#[test]
fn a_torn_tail_is_cut_off_and_reported() {
    let folder = TestFolder::new();
    let first = up(&folder);
    client(&first).create_container();
    for id in 0..5 {
        assert_eq!(create(&mut client(&first), id, 10).0, 201);
    }
    drop(first);
    let newest =
        fs::read_dir(folder.path().join("data/journal")).unwrap().map(|entry| entry.unwrap().path()).max();
    let newest = newest.unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    bytes.extend_from_slice(b"PeRj half a record");
    fs::write(&newest, bytes).unwrap();
    let second = up(&folder);
    let health = get(&second.ready["control"]["endpoint"], "/health/ready");
    assert!(health.contains("18 bytes cut off"), "{health}");
    assert_eq!(client(&second).request("GET", &format!("{DOCS}/4"), &[KEY], "").status, 200);
    second.signal("TERM");
    let (status, _, stderr) = second.end();
    assert_eq!(status.code(), Some(0));
    assert!(stderr.contains("cut off"), "{stderr}");
}

#[test]
fn damage_before_the_tail_is_an_error() {
    let folder = TestFolder::new();
    let first = up(&folder);
    client(&first).create_container();
    for id in 0..5 {
        assert_eq!(create(&mut client(&first), id, 10).0, 201);
    }
    first.signal("TERM");
    first.end();
    let oldest =
        fs::read_dir(folder.path().join("data/journal")).unwrap().map(|entry| entry.unwrap().path()).min();
    let oldest = oldest.unwrap();
    let mut bytes = fs::read(&oldest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&oldest, bytes).unwrap();
    let output = folder.run(&["up", "--port", "0", "--control-port", "0", "--data-dir", "data"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{stderr}");
    assert!(stderr.contains("damaged") && stderr.contains("put back a copy"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_full_disk_rejects_writes_serves_reads_and_loses_nothing() {
    let folder = TestFolder::new();
    // The limit stands for the disk: files may have 256 blocks of 512 bytes.
    let peri = env!("CARGO_BIN_EXE_peri");
    let script = format!(
        "trap '' XFSZ && ulimit -f 256 && \
         exec '{peri}' up --port 0 --control-port 0 --json --regions 'West US' --data-dir data"
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path()).env("PERI_HOME", folder.path());
    let full = Up::start(command);
    let mut writer = client(&full);
    writer.create_container();
    let mut stored = 0;
    let (status, message) = loop {
        match create(&mut writer, stored, 1_000) {
            (201, _) => stored += 1,
            rejected => break rejected,
        }
        assert!(stored < 10_000, "the limit holds");
    };
    assert_eq!(status, 503, "{message}");
    assert!(message.contains("is full") && message.contains("Make room"), "{message}");
    let read =
        |client: &mut Client, id: u32| client.request("GET", &format!("{DOCS}/{id}"), &[KEY], "").status;
    assert_eq!((read(&mut writer, stored - 1), read(&mut writer, stored)), (200, 404));
    assert_eq!(
        writer.request("POST", "/dbs", &[], &format!(r#"{{"id":"{}"}}"#, "y".repeat(250))).status,
        503
    );
    drop(full);
    let after = up(&folder);
    let health: String = get(&after.ready["control"]["endpoint"], "/health/ready");
    let health: Value = serde_json::from_str(health.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(health["data"]["cutOff"], Value::Null, "a rejected write leaves nothing in the journal");
    let mut reader = client(&after);
    assert_eq!((read(&mut reader, stored - 1), read(&mut reader, stored)), (200, 404));
    assert_eq!(create(&mut reader, stored, 1_000).0, 201);
}
