//! A region that is added to a multi-write account while clients write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::Method;
use perihelion_emulator::clock::Clock;
use perihelion_emulator::{DataDir, EmulatorConfig, Fsync};
use serde_json::{Value, json};

use crate::live::LiveAccount;

const DOCS: &str = "/dbs/d/colls/c/docs";

fn config(path: &std::path::Path) -> EmulatorConfig {
    let mut config = EmulatorConfig::default();
    let mut data = DataDir::new(path);
    data.fsync = Fsync::Never;
    config.data = Some(data);
    config.multi_write = true;
    config.partitions = 3.try_into().ok();
    config
}

/// What the writers and the test tell each other. Relaxed throughout: nothing else is read because of it.
#[derive(Default)]
struct Writing {
    stop: AtomicBool,
    written: AtomicU64,
}

/// Upserts items of its own until it is told to stop. Returns the session token of each that was acknowledged.
async fn write(
    account: LiveAccount,
    name: &'static str,
    writing: Arc<Writing>,
) -> Vec<(String, String, String)> {
    let mut written = Vec::new();
    while !writing.stop.load(Ordering::Relaxed) {
        let (id, key) = (format!("{name}-{}", written.len()), format!("{name}{}", written.len() % 7));
        let response = account.create(json!({"id": id, "pk": key})).await;
        assert_eq!(response.status, 201, "{name}: {}", response.body);
        written.push((id, key, response.header("x-ms-session-token").to_owned()));
        writing.written.fetch_add(1, Ordering::Relaxed);
        // All write the same item as well, so that there are conflicts.
        let shared = json!({"id": "shared", "pk": "shared", "by": name, "n": written.len()});
        let headers =
            [("x-ms-documentdb-partitionkey", r#"["shared"]"#), ("x-ms-documentdb-is-upsert", "true")];
        let response = account.post(DOCS, &headers, shared).await;
        assert!(matches!(response.status, 200 | 201), "{name}: {}", response.body);
    }
    written
}

async fn read(account: &LiveAccount, (id, key, token): &(String, String, String)) -> (u16, String) {
    let key = json!([key]).to_string();
    let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-session-token", token)];
    let response = account.get(&format!("{DOCS}/{id}"), &headers).await;
    (response.status, response.sub_status().to_owned())
}

async fn shared(account: &LiveAccount) -> Value {
    let headers = [("x-ms-documentdb-partitionkey", r#"["shared"]"#)];
    account.get(&format!("{DOCS}/shared"), &headers).await.expect(200).body
}

/// Waits for `condition`, which replication brings about.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let started = Clock::system().uptime();
    while !condition().await {
        assert!((Clock::system().uptime() - started).as_secs() < 30, "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_is_added_while_clients_write_has_every_acknowledged_write_and_writes() {
    let directory = tempfile::tempdir().unwrap();
    let mut started = config(directory.path());
    started.regions = vec!["West US".to_owned(), "East US".to_owned()].into();
    let account = LiveAccount::start(started).await;
    account.create_container(json!({})).await;
    let writing = Arc::<Writing>::default();
    let writers: Vec<_> = [(0, "west"), (1, "east")]
        .map(|(region, name)| tokio::spawn(write(account.in_region(region), name, Arc::clone(&writing))))
        .into();
    let count = || writing.written.load(Ordering::Relaxed);
    until("writers write", async || count() > 40).await;
    let before = count();
    account.control(Method::POST, "/regions/North%20Europe/add", "").await.expect(200);
    let third = tokio::spawn(write(account.in_region(2), "north", Arc::clone(&writing)));
    until("writers go on", async || count() > before + 60).await;
    writing.stop.store(true, Ordering::Relaxed);
    let mut written = Vec::new();
    for writer in writers.into_iter().chain([third]) {
        written.extend(writer.await.unwrap());
    }
    assert!(written.iter().any(|(id, ..)| id.starts_with("north")), "the new region writes");
    let document = account.get("/", &[]).await.expect(200).body;
    for list in ["readableLocations", "writableLocations"] {
        assert_eq!(document[list][2]["name"], "North Europe", "{document}");
    }
    let ranges = account.get("/dbs/d/colls/c/pkranges", &[]).await.expect(200).body;
    let ids: Vec<&str> = ranges["PartitionKeyRanges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["0", "1", "2"], "no range was split");
    check_everywhere(&account, &written).await;
    account.stop().await;
    // The directory names the regions now.
    let account = LiveAccount::start(config(directory.path())).await;
    check_everywhere(&account, &written).await;
    let again = account.in_region(2).create(json!({"id": "late", "pk": "late"})).await.expect(201);
    let token = again.header("x-ms-session-token").to_owned();
    let late = ("late".to_owned(), "late".to_owned(), token);
    for region in 0..3 {
        until("the last write arrives", async || read(&account.in_region(region), &late).await.0 == 200)
            .await;
    }
}

/// Every write that was acknowledged arrives in every region, a read with its session token never misses it, and
/// the regions agree about the item that all of them wrote.
async fn check_everywhere(account: &LiveAccount, written: &[(String, String, String)]) {
    for region in 0..3 {
        let account = account.in_region(region);
        for write in written {
            until("a write arrives", async || {
                let (status, sub_status) = read(&account, write).await;
                // 404/1002: the region is not there yet. 404/0 would be a lost write.
                assert!(
                    status == 200 || (status, sub_status.as_str()) == (404, "1002"),
                    "{write:?} in {region}"
                );
                status == 200
            })
            .await;
        }
    }
    let (west, east, north) = (account.in_region(0), account.in_region(1), account.in_region(2));
    until("the regions agree", async || {
        let (west, east, north) = (shared(&west).await, shared(&east).await, shared(&north).await);
        west == east && east == north
    })
    .await;
}

#[tokio::test]
async fn a_region_is_not_added_while_replication_to_another_is_paused() {
    let account = LiveAccount::with(|config| {
        config.regions = vec!["West US".to_owned(), "East US".to_owned()].into();
        config.multi_write = true;
    })
    .await;
    account.control(Method::POST, "/regions/East%20US/replication/pause", "").await.expect(200);
    let refused = account.control(Method::POST, "/regions/North%20Europe/add", "").await.expect(409);
    assert!(refused.message().contains("'East US' is paused"), "{}", refused.message());
}
