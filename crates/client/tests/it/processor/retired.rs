//! Processors that are no longer wanted.

use std::time::Duration;

use futures::TryStreamExt;
use perihelion::ErrorKind;
use serde_json::{Value, json};

use super::{Plant, Told, eventually};

/// What the lease container holds.
async fn kept(plant: &Plant) -> Vec<Value> {
    let leases = plant.elsewhere().0.database("plant").container("leases");
    leases.query_items::<Value>("SELECT * FROM c").stream().try_collect().await.expect("rows")
}

#[tokio::test]
async fn a_processor_that_was_stopped_leaves_nothing_behind_and_another_one_stays() {
    let plant = Plant::start(3).await;
    plant.write(0..10, 1).await;
    let told = Told::new();
    for name in ["kept", "retired"] {
        let running = told.start(plant.processor(name)).await;
        told.until(name, |told| told.len() >= 10).await;
        running.stop().await.expect("stopped");
    }
    assert_eq!(plant.processor("retired").retire().await.expect("removed"), 3);
    let left = kept(&plant).await;
    assert_eq!(left.len(), 4, "a plan and three leases of the other: {left:?}");
    assert!(left.iter().all(|item| item["processor"].as_str().is_some_and(|id| id.starts_with("kept."))));
    let again = plant.processor("retired").retire().await.expect_err("there is none");
    assert_eq!(again.kind(), ErrorKind::NotFound);

    // The name is free: whoever starts under it begins anew.
    let anew = Told::new();
    let running = anew.start(plant.processor("retired")).await;
    anew.until_all(0..10, 1).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_processor_at_work_is_not_retired_unless_it_is_forced() {
    let plant = Plant::start(2).await;
    plant.write(0..10, 1).await;
    let told = Told::new();
    let running = told.start(plant.processor("p").instance("busy")).await;
    told.until_all(0..10, 1).await;
    let outside = plant.elsewhere().processor("p");
    let refused = outside.retire().await.expect_err("somebody is at work");
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains(running.instance()), "{refused}");
    assert_eq!(outside.leases().await.expect("listed").len(), 2, "nothing was removed");
    plant.write(0..10, 2).await;
    told.until_all(0..10, 2).await;

    assert_eq!(outside.retire_by_force().await.expect("removed"), 2);
    eventually("no lease, and told so", async || {
        let status = running.status();
        let told = status.last_error.is_some_and(|error| error.contains("removed it"));
        (status.leases.is_empty() && told).then_some(())
    })
    .await;
    running.stop().await.expect("stopped");
    assert!(kept(&plant).await.is_empty(), "nothing comes back");
}

#[tokio::test]
async fn leases_of_an_instance_that_died_are_removed_once_they_have_run_out() {
    let plant = Plant::start(2).await;
    plant.write(0..10, 1).await;
    let told = Told::new();
    let running = told.start(plant.processor("p")).await;
    told.until_all(0..10, 1).await;
    // Without a word: its leases still name it.
    drop(running);
    let expiry = Duration::from_millis(600);
    let outside = plant.elsewhere().processor("p").lease_expiry(expiry);
    #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
    let began = tokio::time::Instant::now();
    // A sign of life that was on its way when it died may arrive late.
    let removed = eventually("removed", async || match outside.retire().await {
        Err(error) if error.kind() == ErrorKind::Conflict => None,
        removed => Some(removed.expect("removed")),
    })
    .await;
    assert_eq!(removed, 2);
    assert!(began.elapsed() >= expiry, "{:?}", began.elapsed());
    assert!(kept(&plant).await.is_empty());
}

#[tokio::test]
async fn what_a_lease_container_keeps_is_listed_and_removed_also_of_containers_that_are_gone() {
    let plant = Plant::start(2).await;
    plant.write(0..10, 1).await;
    let told = Told::new();
    let stopped = told.start(plant.processor("old.one")).await;
    told.until_all(0..10, 1).await;
    stopped.stop().await.expect("stopped");
    // The container is made anew: the old leases are of one that is gone.
    plant.container("readings").delete().await.expect("deleted");
    plant.create("readings", "/sensor").await;
    let leases = plant.container("leases");
    leases.create_item("note", &json!({"id": "note", "processor": 7})).await.expect("not of a processor");
    let running = told.start(plant.elsewhere().processor("busy")).await;
    eventually("leases", async || (running.status().leases.len() == 2).then_some(())).await;

    let kept = leases.kept_processors().await.expect("listed");
    let names: Vec<(&str, usize)> = kept.iter().map(|kept| (kept.name.as_str(), kept.leases.len())).collect();
    assert_eq!(names, [("busy", 2), ("old.one", 2)]);
    assert!(
        kept[0].leases.iter().any(|lease| lease.owner.as_deref() == Some(running.instance())),
        "{kept:?}"
    );
    assert_ne!(kept[0].container_rid, kept[1].container_rid);
    let by_name =
        plant.elsewhere().processor("old.one").retire().await.expect_err("it is another container's");
    assert_eq!(by_name.kind(), ErrorKind::NotFound);

    let refused = kept[0].retire(Duration::from_secs(20)).await.expect_err("at work");
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(kept[1].retire(Duration::from_secs(20)).await.expect("removed"), 2);
    let left = leases.kept_processors().await.expect("listed");
    assert_eq!(left.iter().map(|kept| kept.name.as_str()).collect::<Vec<_>>(), ["busy"]);
    running.stop().await.expect("stopped");
    assert_eq!(kept[0].retire_by_force().await.expect("removed"), 2);
    assert!(leases.kept_processors().await.expect("listed").is_empty());
}
