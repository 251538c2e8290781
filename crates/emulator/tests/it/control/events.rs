//! Tests of the event log, and of the traces that outages leave.

use std::time::Duration;

use perihelion_emulator::{DataDir, EmulatorConfig, Fsync};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::account::two_regions;
use crate::live::LiveAccount;

/// How long a test waits for something that should happen at once.
const SOON: Duration = Duration::from_secs(30);

/// The kinds and regions of the events, oldest first.
async fn events(account: &LiveAccount) -> Vec<(String, String)> {
    let listed = account.control_get("/events").await.expect(200).body;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = listed["events"].as_array().unwrap().iter().rev();
    events.map(|event| (text(&event["kind"]), text(&event["region"]))).collect()
}

fn expected(events: &[(&str, &str)]) -> Vec<(String, String)> {
    events.iter().map(|(kind, region)| ((*kind).to_owned(), (*region).to_owned())).collect()
}

/// Waits until `done` returns something.
async fn eventually<T, F: Future<Output = Option<T>>>(mut done: impl FnMut() -> F) -> T {
    let wait = async {
        loop {
            if let Some(value) = done().await {
                return value;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, wait).await.expect("it happens")
}

#[tokio::test]
async fn what_is_done_to_the_account_and_what_it_causes_are_events() {
    let account = two_regions().await;
    for (path, body) in [
        ("/regions/eastus/down", json!({})),
        ("/regions/eastus/up", json!({})),
        ("/regions/eastus/storm", json!({})),
        ("/regions/eastus/up", json!({})),
        ("/regions/eastus/failover", json!({})),
        ("/regions/westus/replication/pause", json!({})),
        ("/regions/westus/replication/resume", json!({})),
        ("/regions/UK%20South/add", json!({})),
        ("/faults", json!({"id": "f", "effect": {"status": 503}, "match": {"container": "none"}})),
    ] {
        account.control_post(path, body).await.expect(200);
    }
    let partitions = "/databases/d/containers/c/partitions";
    account.control_post(&format!("{partitions}/0/split"), json!({})).await.expect(202);
    account.control_post(&format!("{partitions}/merge"), json!({"partitionIds": [1, 2]})).await.expect(202);
    account.control_post("/snapshots/clean", json!({})).await.expect(200);
    account.control_post("/snapshots/clean/restore", json!({})).await.expect(200);
    let all = expected(&[
        ("regionDown", "East US"),
        ("portClosed", "East US"),
        ("regionUp", "East US"),
        ("portOpened", "East US"),
        ("regionStorm", "East US"),
        ("regionUp", "East US"),
        ("failover", "East US"),
        ("replicationPaused", "West US"),
        ("replicationResumed", "West US"),
        ("regionAdded", "UK South"),
        ("faultAdded", ""),
        ("split", ""),
        ("merge", ""),
        ("snapshotSaved", ""),
        ("snapshotRestored", ""),
    ]);
    assert_eq!(events(&account).await, all);
    let splits = account.control_get("/events?kind=split").await.expect(200).body;
    assert_eq!(splits["events"][0]["message"], "d/c: range 0 was split into 1 and 2");
    assert!(splits["events"][0]["time"].as_str().unwrap().contains('T'), "{splits}");
    let newest = splits["newest"].as_u64().unwrap();
    let after = account.control_get(&format!("/events?after={}&limit=5", newest - 1)).await.expect(200).body;
    assert_eq!(after["events"].as_array().unwrap().len(), 1);
    let west = account.control_get("/events?region=westus").await.expect(200).body;
    assert_eq!(west["events"].as_array().unwrap().len(), 2);
    account.control_get("/events?region=Mars").await.expect(404);
}

#[tokio::test]
async fn a_fault_that_ends_by_itself_is_an_event() {
    let account = LiveAccount::with(|_| {}).await;
    account.control_post("/regions/southcentralus/storm", json!({"for": "5s"})).await.expect(200);
    account.advance(5);
    eventually(|| async {
        let events = events(&account).await;
        (events.last().unwrap().0 == "faultEnded").then_some(())
    })
    .await;
}

#[tokio::test]
async fn connections_that_a_region_resets_or_swallows_are_counted_by_fault_and_region() {
    let account = two_regions().await;
    let east = account.in_region(1);
    // A connection that the server has not accepted yet when its port closes is reset by the system, uncounted.
    let (reset, rules) = eventually(|| async {
        let _open = TcpStream::connect(("127.0.0.1", east.port())).await.unwrap();
        account.control_post("/regions/eastus/down", json!({})).await.expect(200);
        let rules = account.control_get("/faults").await.expect(200).body["rules"].clone();
        let counted = rules[0]["connections"]["East US"].as_u64();
        if counted.is_none() {
            account.control_post("/regions/eastus/up", json!({})).await.expect(200);
        }
        counted.map(|count| (count, rules))
    })
    .await;
    assert_eq!((&rules[0]["id"], &rules[0]["struck"]), (&json!("region:eastus"), &json!(reset)));
    account.control_post("/regions/eastus/down", json!({"as": "blackHole"})).await.expect(200);
    let _swallowed = TcpStream::connect(("127.0.0.1", east.port())).await.unwrap();
    eventually(|| async {
        let rules = account.control_get("/faults").await.expect(200).body["rules"].clone();
        rules[0]["connections"]["East US"].as_u64().filter(|count| *count >= 1)
    })
    .await;
    let metrics = account.control_get("/metrics").await.expect(200).body;
    let line = r#"perihelion_fault_connections_total{rule="region:eastus",region="East US"} "#;
    assert!(metrics.as_str().unwrap().contains(line), "{metrics}");
    let requests = account.control_get("/requests?operation=connection&region=eastus").await.expect(200).body;
    let outcomes: Vec<_> =
        requests["requests"].as_array().unwrap().iter().map(|one| one["outcome"].clone()).collect();
    assert!(outcomes.contains(&json!("closed")) && outcomes.contains(&json!("unanswered")), "{requests}");
    assert_eq!(requests["requests"][0]["rules"], json!(["region:eastus"]));
}

#[tokio::test]
async fn the_recovery_from_disk_is_an_event() {
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let mut config = EmulatorConfig::default();
        let mut data = DataDir::new(directory.path());
        data.fsync = Fsync::Never;
        config.data = Some(data);
        LiveAccount::start(config)
    };
    let account = start().await;
    account.create_container(json!({})).await;
    account.create(json!({"id": "1", "pk": "p"})).await.expect(201);
    account.stop().await;
    let listed = start().await.control_get("/events").await.expect(200).body;
    let message = listed["events"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("read 1 containers with 1 items from "), "{message}");
}
