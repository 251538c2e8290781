//! What somebody began and did not finish, as whoever died in the middle of it left it behind.

use std::time::Duration;

use perihelion::ContainerClient;
use serde_json::{Value, json};

use super::{Plant, Told, eventually};

/// Everything the processor keeps.
async fn kept(leases: &ContainerClient) -> Vec<Value> {
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

/// An account where a processor has run over everything, and what it keeps: its plan, then its leases.
async fn after_a_run(partitions: u32) -> (Plant, ContainerClient, Vec<Value>) {
    let plant = Plant::start(partitions).await;
    plant.write(0..20, 1).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..20, 1).await;
    running.stop().await.expect("stopped");
    let leases = plant.container("leases");
    let mut items = kept(&leases).await;
    items.sort_by_key(|item| item["id"].as_str().map(str::len));
    (plant, leases, items)
}

#[tokio::test]
async fn a_start_that_was_interrupted_is_completed_by_the_next() {
    let (plant, leases, items) = after_a_run(3).await;
    let mut plan = items[0].clone();
    assert_eq!((&plan["ready"], items.len()), (&true.into(), 4));
    plan["ready"] = false.into();
    store(&leases, &plan).await;
    let missing = items[2]["id"].as_str().expect("an id");
    leases.delete_item(missing, missing).await.expect("deleted");
    plant.write(0..20, 2).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..20, 2).await;
    running.stop().await.expect("stopped");
    let leases = plant.processor("p").leases().await.expect("listed");
    assert!(leases.len() == 3 && leases.iter().any(|lease| lease.id == missing), "{leases:?}");
}

#[tokio::test]
async fn a_division_that_was_interrupted_is_finished_by_whoever_takes_the_lease() {
    let (plant, leases, items) = after_a_run(1).await;
    let mut whole = items[1].clone();
    let (position, id) = (whole["position"].clone(), whole["id"].as_str().expect("an id").to_owned());
    let (min, max) = (whole["min"].clone(), whole["max"].clone());
    let part = |min: &Value, max: &Value| json!({"min": min, "max": max, "position": position});
    let middle = json!("20000000000000000000000000000000");
    whole["parts"] = json!([part(&min, &middle), part(&middle, &max)]);
    whole["owner"] = "somebody who died".into();
    whole["term"] = 7.into();
    store(&leases, &whole).await;
    // One of the two parts is there already, in the hands of the same.
    let mut first = whole.clone();
    first["id"] = id.replace("-FF", "-20000000000000000000000000000000").into();
    (first["max"], first["parts"]) = (middle, json!([]));
    store(&leases, &first).await;
    plant.write(0..20, 2).await;
    let told = Told::new();
    let running = told.start(plant.processor("p").lease_expiry(Duration::from_secs(1))).await;
    told.until_all(0..20, 2).await;
    eventually("two leases", async || (running.status().leases.len() == 2).then_some(())).await;
    running.stop().await.expect("stopped");
    assert_eq!(told.len(), 20, "{:?}", told.by_sensor());
    let ids: Vec<String> = kept(&leases).await.iter().map(|item| item["id"].to_string()).collect();
    assert!(ids.len() == 3 && !ids.contains(&format!("\"{id}\"")), "{ids:?}");
}

#[tokio::test]
async fn a_lease_that_was_asked_for_by_somebody_who_died_does_not_lie_idle() {
    let (plant, leases, items) = after_a_run(2).await;
    for lease in &items[1..] {
        let mut wanted = lease.clone();
        wanted["wanted"] = "somebody who died".into();
        store(&leases, &wanted).await;
    }
    plant.write(0..20, 2).await;
    let told = Told::new();
    // Nobody has to wait for the lease to run out: nobody has it.
    let running = told.start(plant.processor("p").lease_expiry(Duration::from_secs(3600))).await;
    told.until_all(0..20, 2).await;
    running.stop().await.expect("stopped");
}
