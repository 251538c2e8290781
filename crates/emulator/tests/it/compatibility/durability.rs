//! What is kept with a data directory. Each probe has a directory and an account of its own.

use std::fs;
use std::path::PathBuf;

use http::Method;
use perihelion_emulator::{DataDir, Emulator, EmulatorConfig, Fsync, OpenError, StartError};
use serde_json::{Value, json};

use super::lab::{DOCS, KEY, Lab};
use super::{Probes, supported};
use crate::live::Account;

pub(super) fn probes() -> Probes {
    vec![
        ("data-dir", supported!(data_dir)),
        ("data-fsync", supported!(fsync)),
        ("data-growth", supported!(growth)),
        ("data-torn-tail", supported!(torn_tail)),
        ("data-version", supported!(version)),
        ("data-lock", supported!(lock)),
    ]
}

/// A directory that goes with the probe.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        Scratch(std::env::temp_dir().join(format!("perihelion-kept-{}", uuid::Uuid::new_v4())))
    }

    fn config(&self, fsync: Fsync) -> EmulatorConfig {
        let mut config = EmulatorConfig::default();
        let mut data = DataDir::new(&self.0);
        data.fsync = fsync;
        config.data = Some(data);
        config
    }

    async fn open(&self) -> Account {
        Account::start(self.config(Fsync::Never)).await
    }

    /// Why it cannot be opened.
    async fn refusal(&self) -> OpenError {
        match Emulator::start(self.config(Fsync::Never)).await {
            Err(StartError::CannotOpen(error)) => error,
            other => panic!("it is refused: {other:?}"),
        }
    }

    fn newest_journal(&self) -> PathBuf {
        let files = fs::read_dir(self.0.join("journal")).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path: &PathBuf| path.extension().is_some_and(|end| end == "log")).max().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A container with one item, made and closed again. Says what the item is.
async fn fill(scratch: &Scratch, fsync: Fsync) -> Value {
    let account = Account::start(scratch.config(fsync)).await;
    account.create_container(json!({})).await;
    let item = account.create(json!({"id": "1", "pk": "a"})).await.expect(201).body;
    account.stop().await;
    item
}

async fn data_dir(_: &Lab) {
    let scratch = Scratch::new();
    let written = fill(&scratch, Fsync::Never).await;
    let account = scratch.open().await;
    let read = account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    assert_eq!(read.body, written, "with its _rid, _etag and _ts");
    account.create(json!({"id": "1", "pk": "a"})).await.expect(409);
}

async fn fsync(_: &Lab) {
    for fsync in [Fsync::Always, Fsync::Interval, Fsync::Never] {
        let scratch = Scratch::new();
        fill(&scratch, fsync).await;
        scratch.open().await.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
    }
}

/// An offer that the partitions did not follow before the end.
async fn growth(_: &Lab) {
    let scratch = Scratch::new();
    let mut config = scratch.config(Fsync::Never);
    config.partitions = 1.try_into().ok();
    let account = Account::start(config).await;
    account.post("/dbs", &[], json!({"id": "d"})).await.expect(201);
    let body = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    account.post("/dbs/d/colls", &[("x-ms-offer-throughput", "30000")], body).await.expect(201);
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account.stop().await;
    let account = scratch.open().await;
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

async fn torn_tail(_: &Lab) {
    let scratch = Scratch::new();
    fill(&scratch, Fsync::Never).await;
    let journal = scratch.newest_journal();
    let mut bytes = fs::read(&journal).unwrap();
    bytes.extend_from_slice(b"PeRj half a record");
    fs::write(&journal, bytes).unwrap();
    let account = scratch.open().await;
    let ready = account.control(Method::GET, "/health/ready", "").await.expect(200).body;
    assert!(ready["data"]["cutOff"].as_str().unwrap().contains("18 bytes"), "{ready}");
    account.get(&format!("{DOCS}/1"), &[KEY]).await.expect(200);
}

async fn version(_: &Lab) {
    let scratch = Scratch::new();
    fill(&scratch, Fsync::Never).await;
    fs::write(scratch.0.join("format"), "perihelion data directory, format 9\n").unwrap();
    assert!(matches!(scratch.refusal().await, OpenError::OtherVersion { .. }));
}

async fn lock(_: &Lab) {
    let scratch = Scratch::new();
    let account = scratch.open().await;
    assert!(matches!(scratch.refusal().await, OpenError::InUse { .. }));
    account.stop().await;
    scratch.open().await;
}
