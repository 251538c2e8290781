//! `kill -9` in a loop, with damage to the directory in between: nothing is lost without an error.
//!
//! After each kill a copy of the directory is damaged in one of several ways. If the damage took anything away,
//! `peri up` must refuse the copy with exit code 8 and change nothing in it; with `--accept-data-loss` it must
//! open what is there and report the loss. The undamaged directory goes on with everything that was acknowledged.
//! `SEED=…` repeats the random choices of one run; `DAMAGES=…` sets the number of kills.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary::{TestFolder, get, text};
use crate::client::Client;
use crate::kill::number;

const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);
const JOURNAL_HEADER: usize = 32;
const RECORD_HEADER: usize = 28;

/// What happens to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    CutBetweenRecords,
    CutWithinRecord,
    CutWithinZeros,
    EmptiedJournal,
    DeletedNewestJournal,
    DeletedAnyJournal,
    DeletedJournalFolder,
    DeletedTreeFolder,
    DeletedManifest,
    CutManifest,
    DeletedMark,
    EmptiedMark,
    /// Records that were synced become zeros, the length of the file stays.
    ZeroedRecords,
    FlippedBit,
}

const ALL: [Damage; 14] = [
    Damage::CutBetweenRecords,
    Damage::CutWithinRecord,
    Damage::CutWithinZeros,
    Damage::EmptiedJournal,
    Damage::DeletedNewestJournal,
    Damage::DeletedAnyJournal,
    Damage::DeletedJournalFolder,
    Damage::DeletedTreeFolder,
    Damage::DeletedManifest,
    Damage::CutManifest,
    Damage::DeletedMark,
    Damage::EmptiedMark,
    Damage::ZeroedRecords,
    Damage::FlippedBit,
];

/// Every file of a directory, and its folders with no content.
fn contents(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).expect("a folder") {
        let entry = entry.expect("an entry").path();
        if entry.is_dir() {
            found.insert(entry.clone(), Vec::new());
            found.extend(contents(&entry));
        } else {
            found.insert(entry.clone(), fs::read(&entry).expect("a file"));
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).expect("a folder");
    for (path, content) in contents(from) {
        let target = to.join(path.strip_prefix(from).expect("below it"));
        if path.is_dir() {
            fs::create_dir_all(target).expect("a folder");
        } else {
            fs::write(target, content).expect("a file");
        }
    }
}

/// Where the records of a journal file begin, and where the last one ends.
fn record_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![JOURNAL_HEADER];
    while let Some(header) =
        bytes.get(*starts.last().expect("one")..).filter(|rest| rest.starts_with(b"PeRj"))
    {
        let length = u32::from_le_bytes(header[4..8].try_into().expect("four bytes")) as usize;
        starts.push(starts.last().expect("one") + RECORD_HEADER + length);
    }
    starts
}

fn journal_files(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory.join("journal")).expect("a journal");
    let mut files: Vec<PathBuf> = files.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "log"));
    files.sort();
    files
}

/// Damages a directory, and returns the file that the error has to name; none if nothing is lost.
fn damage(directory: &Path, damage: Damage, rng: &mut fastrand::Rng) -> Option<String> {
    let files = journal_files(directory);
    let newest = files.last().expect("a journal has a file");
    let any = &files[rng.usize(0..files.len())];
    let (manifest, mark) = (directory.join("manifest"), directory.join("synced"));
    let bytes = fs::read(newest).expect("a file");
    let starts = record_starts(&bytes);
    let end = *starts.last().expect("one");
    let name = |path: &Path| Some(path.file_name().expect("a name").to_string_lossy().into_owned());
    let truncate = |path: &Path, length: usize| {
        let file = fs::OpenOptions::new().write(true).open(path).expect("a file");
        file.set_len(length as u64).expect("it is shortened");
    };
    match damage {
        Damage::CutBetweenRecords => {
            truncate(newest, starts[rng.usize(0..starts.len())]);
            name(newest)
        }
        Damage::CutWithinRecord => {
            truncate(newest, rng.usize(1..end));
            name(newest)
        }
        Damage::CutWithinZeros => {
            truncate(newest, end + 1);
            None
        }
        Damage::EmptiedJournal => {
            truncate(any, 0);
            name(any)
        }
        Damage::DeletedNewestJournal => {
            fs::remove_file(newest).expect("it is there");
            name(newest)
        }
        Damage::DeletedAnyJournal => {
            fs::remove_file(any).expect("it is there");
            name(any)
        }
        Damage::DeletedJournalFolder => {
            fs::remove_dir_all(directory.join("journal")).expect("it is there");
            Some("journal".to_owned())
        }
        Damage::DeletedTreeFolder => {
            fs::remove_dir_all(directory.join("base")).expect("it is there");
            Some("base".to_owned())
        }
        Damage::DeletedManifest => {
            fs::remove_file(&manifest).expect("it is there");
            name(&manifest)
        }
        Damage::CutManifest => {
            let length = fs::metadata(&manifest).expect("it is there").len() as usize;
            truncate(&manifest, rng.usize(0..length));
            name(&manifest)
        }
        Damage::DeletedMark => {
            fs::remove_file(&mark).expect("it is there");
            name(&mark)
        }
        Damage::EmptiedMark => {
            truncate(&mark, 0);
            name(&mark)
        }
        Damage::ZeroedRecords => {
            // The oldest file of a process that opened it again was synced as a whole.
            let oldest = &files[0];
            let mut bytes = fs::read(oldest).expect("a file");
            let starts = record_starts(&bytes);
            if files.len() == 1 || starts.len() < 2 {
                return None;
            }
            bytes[starts[rng.usize(0..starts.len() - 1)]..].fill(0);
            fs::write(oldest, bytes).expect("it is written");
            // The next file begins with a record that does not follow.
            Some("journal".to_owned())
        }
        Damage::FlippedBit => {
            let oldest = &files[0];
            let mut bytes = fs::read(oldest).expect("a file");
            if files.len() == 1 {
                return None;
            }
            let end = *record_starts(&bytes).last().expect("one");
            bytes[rng.usize(0..end)] ^= 1 << rng.u8(0..8);
            fs::write(oldest, bytes).expect("it is written");
            name(oldest)
        }
    }
}

#[test]
fn damage_after_a_kill_is_never_silent() {
    let seed = number("SEED").unwrap_or(0x5EED_0007);
    // A multiple of the kinds of damage: each occurs.
    let kills = number("DAMAGES").unwrap_or(2 * ALL.len() as u64);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = TestFolder::new();
    let (data, copied) = (folder.path().join("data"), folder.path().join("copy"));
    let (mut acknowledged, mut refused) = (0_u64, 0);
    for kill in 0..kills {
        let fsync = ["interval", "never", "always"][rng.usize(0..3)];
        let up = folder.up(&["--regions", "West US", "--data-dir", "data", "--fsync", fsync]);
        let mut client = Client::new(&up.account()["endpoint"]);
        if kill == 0 {
            client.create_container();
        }
        let found = item_count(&mut client);
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "SEED={seed}, kill {kill}: {found} items"
        );
        let life = Duration::from_micros(2_000 + rng.u64(0..30_000));
        let killer = std::thread::spawn(move || {
            // The time until the kill; nothing is waited for.
            std::thread::sleep(life);
            drop(up);
        });
        // The last process may have stored one more than it acknowledged, so the first write may replace it.
        let upsert = [KEY, ("x-ms-documentdb-is-upsert", "true")];
        while let Ok(response) = client.send("POST", DOCS, &upsert, &item(acknowledged)) {
            assert!([200, 201].contains(&response.status), "{}", response.text());
            acknowledged += 1;
        }
        killer.join().expect("it kills");
        let kind = ALL[kill as usize % ALL.len()];
        copy(&data, &copied);
        let lost = damage(&copied, kind, &mut rng);
        let context = format!("SEED={seed}, kill {kill}, fsync {fsync}, {kind:?}");
        refused += u64::from(lost.is_some());
        check_damaged(&folder, lost.as_deref(), kind, &context);
    }
    assert!(acknowledged > kills && refused > kills / 2, "{acknowledged} writes, {refused} refused");
    let up = folder.up(&["--regions", "West US", "--data-dir", "data"]);
    let mut client = Client::new(&up.account()["endpoint"]);
    assert!(item_count(&mut client) >= acknowledged, "SEED={seed}: at the end");
}

fn item(id: u64) -> String {
    json!({ "id": id.to_string(), "pk": "a", "text": "x".repeat(id as usize % 300) }).to_string()
}

fn item_count(client: &mut Client) -> u64 {
    let query = json!({ "query": "SELECT VALUE COUNT(1) FROM c" }).to_string();
    let headers = [KEY, ("x-ms-documentdb-isquery", "true"), ("content-type", "application/query+json")];
    let response = client.request("POST", DOCS, &headers, &query);
    response.json()["Documents"][0].as_u64().unwrap_or(0)
}

/// Opens the damaged copy, which must be refused if something is `lost`, and opened otherwise.
#[track_caller]
fn check_damaged(folder: &TestFolder, lost: Option<&str>, kind: Damage, context: &str) {
    let arguments = ["--regions", "West US", "--data-dir", "copy"];
    let Some(named) = lost else {
        drop(folder.up(&arguments));
        return;
    };
    let copied = folder.path().join("copy");
    let before = contents(&copied);
    let refused = [&["up", "--port", "0", "--control-port", "0"], &arguments[..]].concat();
    let output = folder.run(&refused);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(8), "{context}: {stderr}");
    assert!(stderr.contains("is damaged") && stderr.contains(named), "{context}: {stderr}");
    assert!(stderr.contains("hint: put back a copy"), "{context}: {stderr}");
    assert!(contents(&copied) == before, "{context}: a refused opening changes nothing");
    let opened_on_request = ![Damage::DeletedJournalFolder, Damage::DeletedTreeFolder].contains(&kind);
    assert_eq!(stderr.contains("--accept-data-loss"), opened_on_request, "{context}: {stderr}");
    if opened_on_request {
        let up = folder.up(&[&arguments[..], &["--accept-data-loss"]].concat());
        let health = get(&up.ready["control"]["endpoint"], "/health/ready");
        let health: Value =
            serde_json::from_str(health.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
        let only_knowledge =
            [Damage::DeletedManifest, Damage::CutManifest, Damage::DeletedMark, Damage::EmptiedMark];
        let reported = health["data"]["cutOff"].as_str().is_some_and(|text| text.contains("data was lost"));
        assert_eq!(reported, !only_knowledge.contains(&kind), "{context}: {health}");
        // What is there is whole, and a next start needs no permission.
        up.signal("TERM");
        assert_eq!(up.end().0.code(), Some(0), "{context}");
        drop(folder.up(&arguments));
    }
}
