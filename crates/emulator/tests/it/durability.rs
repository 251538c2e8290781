//! What clients see of the data directory: what is stored, and what happens when the disk fails.

use std::sync::Arc;

use http::Method;
use perihelion_emulator::{DataDir, EmulatorConfig, Fsync, SyncFault};
use serde_json::{Value, json};

use crate::live::LiveAccount;

const ITEM: &str = "/dbs/d/colls/c/docs/1";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", r#"["a"]"#);

fn config(folder: &tempfile::TempDir, fsync: Fsync, fault: &SyncFault) -> EmulatorConfig {
    let mut data = DataDir::new(folder.path());
    data.fsync = fsync;
    data.sync_fault = fault.clone();
    let mut config = EmulatorConfig::default();
    config.data = Some(data);
    config
}

#[tokio::test]
async fn an_increment_beyond_the_largest_double_is_refused_and_the_item_stays() {
    let folder = tempfile::tempdir().unwrap();
    let account = LiveAccount::start(config(&folder, Fsync::Interval, &SyncFault::default())).await;
    account.create_container(json!({})).await;
    account.create(json!({"id": "1", "pk": "a", "n": 1.5e308})).await.expect(201);
    let operations = json!({"operations": [{"op": "incr", "path": "/n", "value": 1.5e308}]});
    let refused = account.patch(ITEM, &[KEY], operations.clone()).await.expect(400);
    assert!(refused.message().contains("largest number"), "{}", refused.body);
    let in_batch = json!([{"operationType": "Patch", "id": "1", "resourceBody": operations}]);
    let batch = [KEY, ("x-ms-cosmos-is-batch-request", "True"), ("x-ms-cosmos-batch-atomic", "True")];
    let refused = account.post("/dbs/d/colls/c/docs", &batch, in_batch).await;
    assert_eq!(refused.body[0]["statusCode"], 400, "{}", refused.body);
    assert_eq!(account.get(ITEM, &[KEY]).await.expect(200).body["n"], json!(1.5e308));
    account.stop().await;
    let account = LiveAccount::start(config(&folder, Fsync::Interval, &SyncFault::default())).await;
    assert_eq!(account.get(ITEM, &[KEY]).await.expect(200).body["n"], json!(1.5e308));
    assert_eq!(account.get("/dbs/d/colls/c/docs", &[]).await.expect(200).documents().len(), 1);
    account.delete(ITEM, &[KEY]).await.expect(204);
}

#[tokio::test]
async fn patches_that_nest_an_item_too_deeply_are_refused() {
    let account = LiveAccount::with_container(1, json!({})).await;
    account.create(json!({"id": "1", "pk": "a", "a": {"b": {}}})).await.expect(201);
    let deep = (0..120).fold(json!({}), |inner, _| json!([inner]));
    let add = |path: &str| json!({"operations": [{"op": "add", "path": path, "value": deep}]});
    account.patch(ITEM, &[KEY], add("/deep")).await.expect(200);
    let inner = "/deep".to_owned() + &"/0".repeat(120) + "/more";
    let refused = account.patch(ITEM, &[KEY], add(&inner)).await.expect(400);
    assert!(refused.message().contains("nested"), "{}", refused.body);
    account.get(ITEM, &[KEY]).await.expect(200);
    account.delete(ITEM, &[KEY]).await.expect(204);
}

#[tokio::test]
async fn a_write_whose_sync_fails_is_undecided_and_no_reader_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let fault = SyncFault::default();
    let account = LiveAccount::start(config(&folder, Fsync::Always, &fault)).await;
    account.create_container(json!({})).await;
    account
        .post("/dbs/d/colls", &[], json!({"id": "other", "partitionKey": {"paths": ["/pk"]}}))
        .await
        .expect(201);
    account.post("/dbs/d/colls/other/docs", &[KEY], json!({"id": "1", "pk": "a"})).await.expect(201);
    account.create(json!({"id": "1", "pk": "a", "n": 1})).await.expect(201);
    let ready = account.control(Method::GET, "/health/ready", "").await.expect(200).body;
    assert_eq!(ready["data"]["writable"], true, "{ready}");
    fault.set(true);
    let response = account.put(ITEM, &[KEY], json!({"id": "1", "pk": "a", "n": 2})).await.expect(408);
    assert!(response.message().contains("not known"), "{}", response.body);
    // What came of the write is unknown, so no read may show it, nor that it is missing.
    let read = account.get(ITEM, &[KEY]).await.expect(503);
    assert!(read.message().contains("cannot be shown"), "{}", read.body);
    account.query("SELECT * FROM c", &[KEY]).await.expect(503);
    account.get("/dbs/d/colls/c/docs", &[]).await.expect(503);
    account.get("/dbs/d/colls/c/docs/none", &[KEY]).await.expect(503);
    // The other container has no such write.
    account.get("/dbs/d/colls/other/docs/1", &[KEY]).await.expect(200);
    account.get("/dbs/d/colls/c", &[]).await.expect(200);
    // Later writes are certainly not made.
    let later = account.create(json!({"id": "2", "pk": "a"})).await.expect(503);
    assert!(later.message().contains("not stored"), "{}", later.body);
    let ready = account.control(Method::GET, "/health/ready", "").await.expect(503).body;
    assert_eq!(ready["data"]["writable"], false, "{ready}");
    assert!(ready["data"]["problem"].as_str().unwrap().contains("synced"), "{ready}");
    account.stop().await;
    let account = LiveAccount::start(config(&folder, Fsync::Always, &SyncFault::default())).await;
    let n = account.get(ITEM, &[KEY]).await.expect(200).body["n"].clone();
    assert!([json!(1), json!(2)].contains(&n), "{n}");
    account.get("/dbs/d/colls/c/docs/2", &[KEY]).await.expect(404);
}

/// Readers race with writers whose sync fails at some point: what a reader saw is there after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_a_reader_saw_is_there_after_the_disk_failed() {
    let folder = tempfile::tempdir().unwrap();
    let fault = SyncFault::default();
    let account = LiveAccount::start(config(&folder, Fsync::Always, &fault)).await;
    account.create_container(json!({})).await;
    account.create(json!({"id": "1", "pk": "a", "n": 0})).await.expect(201);
    let (reader, writer) = (Arc::new(account.in_region(0)), account.in_region(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let reader = Arc::clone(&reader);
            tokio::spawn(async move {
                let mut newest = 0;
                loop {
                    let response = reader.get(ITEM, &[KEY]).await;
                    match response.status {
                        200 => newest = newest.max(response.body["n"].as_u64().unwrap()),
                        503 => return newest,
                        other => panic!("{other}: {}", response.body),
                    }
                }
            })
        })
        .collect();
    let writer = tokio::spawn(async move {
        for n in 1.. {
            if n == 40 {
                fault.set(true);
            }
            let response = writer.put(ITEM, &[KEY], json!({"id": "1", "pk": "a", "n": n})).await;
            if response.status != 200 {
                assert_eq!(response.status, 408, "{}", response.body);
                return n - 1;
            }
        }
        unreachable!("the disk fails")
    });
    let acknowledged: u64 = writer.await.unwrap();
    let mut seen = 0;
    for reader in readers {
        seen = seen.max(reader.await.unwrap());
    }
    assert!(seen <= acknowledged, "a reader saw {seen}, and {acknowledged} was the last write on the disk");
    drop(reader);
    account.stop().await;
}

#[tokio::test]
async fn a_damaged_journal_is_refused_with_the_file_and_the_choices() {
    let folder = tempfile::tempdir().unwrap();
    let account = LiveAccount::start(config(&folder, Fsync::Interval, &SyncFault::default())).await;
    account.create_container(json!({})).await;
    account.create(json!({"id": "1", "pk": "a"})).await.expect(201);
    account.stop().await;
    let journal = folder.path().join("journal/000000000001.log");
    std::fs::remove_file(&journal).unwrap();
    let mut config = config(&folder, Fsync::Interval, &SyncFault::default());
    let error = perihelion_emulator::Emulator::start(config.clone()).await.unwrap_err().to_string();
    assert!(error.contains("000000000001.log is damaged: it is missing"), "{error}");
    config.data.as_mut().unwrap().accept_loss = true;
    let account = LiveAccount::start(config).await;
    let ready: Value = account.control(Method::GET, "/health/ready", "").await.expect(200).body;
    assert!(ready["data"]["cutOff"].as_str().unwrap().contains("data was lost"), "{ready}");
    account.get("/dbs/d", &[]).await.expect(404);
}
