//! Compatibility probes of data directories. Each probe has a directory and an account of its own.

use std::fs;
use std::path::PathBuf;

use http::Method;
use perihelion_emulator::{DataDir, Emulator, EmulatorConfig, Fsync, OpenError, StartError};
use serde_json::{Value, json};

use super::fixture::{CompatibilityFixture, DOCS, KEY};
use super::{Probes, supported};
use crate::live::LiveAccount;

pub(super) fn probes() -> Probes {
    vec![
        ("data-dir", supported!(data_dir)),
        ("data-fsync", supported!(fsync)),
        ("data-growth", supported!(pending_offer)),
        ("data-torn-tail", supported!(torn_tail)),
        ("data-version", supported!(version)),
        ("data-lock", supported!(lock)),
    ]
}

/// The data directory of a probe, removed on drop.
struct ProbeDirectory(tempfile::TempDir);

impl ProbeDirectory {
    fn new() -> ProbeDirectory {
        ProbeDirectory(tempfile::tempdir().unwrap())
    }

    fn config(&self, fsync: Fsync) -> EmulatorConfig {
        let mut config = EmulatorConfig::default();
        let mut data = DataDir::new(self.0.path());
        data.fsync = fsync;
        config.data = Some(data);
        config
    }

    async fn open(&self) -> LiveAccount {
        LiveAccount::start(self.config(Fsync::Never)).await
    }

    /// The error of opening the directory.
    async fn open_error(&self) -> OpenError {
        match Emulator::start(self.config(Fsync::Never)).await {
            Err(StartError::CannotOpen(error)) => error,
            other => panic!("it is refused: {other:?}"),
        }
    }

    fn newest_journal(&self) -> PathBuf {
        let files = fs::read_dir(self.0.path().join("journal")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path: &PathBuf| path.extension().is_some_and(|end| end == "log")).max().unwrap()
    }
}

/// Creates a container with one item, stops the account, and returns the item.
async fn fill(directory: &ProbeDirectory, fsync: Fsync) -> Value {
    let account = LiveAccount::start(directory.config(fsync)).await;
    account.create_container(json!({})).await;
    let item = account.create(json!({"id": "1", "pk": "a"})).await.expect(201).body;
    account.stop().await;
    item
}

async fn data_dir(_: &CompatibilityFixture) {
    let directory = ProbeDirectory::new();
    let written = fill(&directory, Fsync::Never).await;
    let account = directory.open().await;
    let read = account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    assert_eq!(read.body, written, "with its _rid, _etag and _ts");
    account.create(json!({"id": "1", "pk": "a"})).await.expect(409);
}

async fn fsync(_: &CompatibilityFixture) {
    for fsync in [Fsync::Always, Fsync::Interval, Fsync::Never] {
        let directory = ProbeDirectory::new();
        fill(&directory, fsync).await;
        directory.open().await.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    }
}

/// An offer that the partitions did not follow before the end.
async fn pending_offer(_: &CompatibilityFixture) {
    let directory = ProbeDirectory::new();
    let mut config = directory.config(Fsync::Never);
    config.partitions = 1.try_into().ok();
    let account = LiveAccount::start(config).await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    account.post("/dbs/d/colls", &[("x-ms-offer-throughput", "30000")], body).await.expect(201);
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account.stop().await;
    let account = directory.open().await;
    loop {
        let offers = account.get("/offers", &[]).await.expect(200).body;
        let path = format!("/offers/{}", offers["Offers"][0]["id"].as_str().unwrap());
        let offer = account.get(&path, &[]).await.expect(200);
        let listed = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
        let ranges = listed["PartitionKeyRanges"].as_array().unwrap().len();
        if offer.header("x-ms-offer-replace-pending") == "false" {
            assert_eq!(ranges, 3);
            break;
        }
        tokio::task::yield_now().await;
    }
    account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
}

async fn torn_tail(_: &CompatibilityFixture) {
    let directory = ProbeDirectory::new();
    fill(&directory, Fsync::Never).await;
    let journal = directory.newest_journal();
    let mut bytes = fs::read(&journal).unwrap();
    bytes.extend_from_slice(b"PeRj half a record");
    fs::write(&journal, bytes).unwrap();
    let account = directory.open().await;
    let ready = account.control(Method::GET, "/health/ready", "").await.expect(200).body;
    assert!(ready["data"]["cutOff"].as_str().unwrap().contains("18 bytes"), "{ready}");
    account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
}

async fn version(_: &CompatibilityFixture) {
    let directory = ProbeDirectory::new();
    fill(&directory, Fsync::Never).await;
    fs::write(directory.0.path().join("format"), "perihelion data directory, format 9\n").unwrap();
    assert!(matches!(directory.open_error().await, OpenError::OtherVersion { .. }));
}

async fn lock(_: &CompatibilityFixture) {
    let directory = ProbeDirectory::new();
    let account = directory.open().await;
    assert!(matches!(directory.open_error().await, OpenError::InUse { .. }));
    account.stop().await;
    directory.open().await;
}
