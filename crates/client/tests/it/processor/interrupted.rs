//! Starts and splits that a crash interrupted, as the items of the lease container show them.

use std::time::Duration;

use perihelion::ContainerClient;
use serde_json::{Value, json};

use super::{Fixture, Received, eventually};

/// All items of the lease container.
async fn stored_items(leases: &ContainerClient) -> Vec<Value> {
    let mut pages = leases.query_items::<Value>("SELECT * FROM c").pages().await.expect("planned");
    let mut items = Vec::new();
    while let Some(page) = pages.next_page().await.expect("a page") {
        items.extend(page.items);
    }
    items
}

async fn store(leases: &ContainerClient, item: &Value) {
    leases.upsert_item(item["id"].as_str().expect("an id"), item).await.expect("stored");
}

/// An account where a processor has handled everything, and its stored items: its record, then its leases.
async fn after_a_run(partitions: u32) -> (Fixture, ContainerClient, Vec<Value>) {
    let fixture = Fixture::start(partitions).await;
    fixture.write(0..20, 1).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..20, 1).await;
    running.stop().await.expect("stopped");
    let leases = fixture.container("leases");
    let mut items = stored_items(&leases).await;
    items.sort_by_key(|item| item["id"].as_str().map(str::len));
    (fixture, leases, items)
}

#[tokio::test]
async fn an_interrupted_start_is_completed_by_the_next_one() {
    let (fixture, leases, items) = after_a_run(3).await;
    let mut record = items[0].clone();
    assert_eq!((&record["ready"], items.len()), (&true.into(), 4));
    record["ready"] = false.into();
    store(&leases, &record).await;
    let missing = items[2]["id"].as_str().expect("an id");
    leases.delete_item(missing, missing).await.expect("deleted");
    fixture.write(0..20, 2).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..20, 2).await;
    running.stop().await.expect("stopped");
    let leases = fixture.processor("p").leases().await.expect("listed");
    assert!(leases.len() == 3 && leases.iter().any(|lease| lease.id == missing), "{leases:?}");
}

#[tokio::test]
async fn an_interrupted_split_is_finished_by_the_next_owner() {
    let (fixture, leases, items) = after_a_run(1).await;
    let mut whole = items[1].clone();
    let (position, id) = (whole["position"].clone(), whole["id"].as_str().expect("an id").to_owned());
    let (min, max) = (whole["min"].clone(), whole["max"].clone());
    let part = |min: &Value, max: &Value| json!({"min": min, "max": max, "position": position});
    let middle = json!("20000000000000000000000000000000");
    whole["parts"] = json!([part(&min, &middle), part(&middle, &max)]);
    whole["owner"] = "a crashed instance".into();
    whole["term"] = 7.into();
    store(&leases, &whole).await;
    // The lease of one part exists already, with the same owner.
    let mut first = whole.clone();
    first["id"] = id.replace("-FF", "-20000000000000000000000000000000").into();
    (first["max"], first["parts"]) = (middle, json!([]));
    store(&leases, &first).await;
    fixture.write(0..20, 2).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p").lease_expiry(Duration::from_secs(1))).await;
    received.until_all(0..20, 2).await;
    eventually("two leases", async || (running.status().leases.len() == 2).then_some(())).await;
    running.stop().await.expect("stopped");
    assert_eq!(received.len(), 20, "{:?}", received.by_sensor());
    let ids: Vec<String> = stored_items(&leases).await.iter().map(|item| item["id"].to_string()).collect();
    assert!(ids.len() == 3 && !ids.contains(&format!("\"{id}\"")), "{ids:?}");
}

#[tokio::test]
async fn a_lease_requested_by_a_crashed_instance_is_acquired_by_another() {
    let (fixture, leases, items) = after_a_run(2).await;
    for lease in &items[1..] {
        let mut requested = lease.clone();
        requested["wanted"] = "a crashed instance".into();
        store(&leases, &requested).await;
    }
    fixture.write(0..20, 2).await;
    let received = Received::new();
    // Nothing waits for the expiry of the lease, because it has no owner.
    let running = received.start(fixture.processor("p").lease_expiry(Duration::from_secs(3600))).await;
    received.until_all(0..20, 2).await;
    running.stop().await.expect("stopped");
}
