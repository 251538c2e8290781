//! Deleting the leases of a processor.

use std::time::Duration;

use futures::TryStreamExt;
use perihelion::ErrorKind;
use serde_json::{Value, json};

use super::{Fixture, Received, eventually};

/// All items of the lease container.
async fn stored_items(fixture: &Fixture) -> Vec<Value> {
    let leases = fixture.other_process().0.database("plant").container("leases");
    leases.query_items::<Value>("SELECT * FROM c").stream().try_collect().await.expect("rows")
}

#[tokio::test]
async fn deleting_a_stopped_processor_leaves_no_items_and_no_other_processor_is_affected() {
    let fixture = Fixture::start(3).await;
    fixture.write(0..10, 1).await;
    let received = Received::new();
    for name in ["other", "deleted"] {
        let running = received.start(fixture.processor(name)).await;
        received.until(name, |received| received.len() >= 10).await;
        running.stop().await.expect("stopped");
    }
    assert_eq!(fixture.processor("deleted").delete_leases().await.expect("deleted"), 3);
    let left = stored_items(&fixture).await;
    assert_eq!(left.len(), 4, "a record and three leases of the other: {left:?}");
    assert!(left.iter().all(|item| item["processor"].as_str().is_some_and(|id| id.starts_with("other."))));
    let again = fixture.processor("deleted").delete_leases().await.expect_err("there is none");
    assert_eq!(again.kind(), ErrorKind::NotFound);

    // The name is free: an instance that starts with it has no stored position.
    let restarted = Received::new();
    let running = restarted.start(fixture.processor("deleted")).await;
    restarted.until_all(0..10, 1).await;
    running.stop().await.expect("stopped");
}

#[tokio::test]
async fn a_running_processor_is_deleted_only_by_force() {
    let fixture = Fixture::start(2).await;
    fixture.write(0..10, 1).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p").instance("busy")).await;
    received.until_all(0..10, 1).await;
    let outside = fixture.other_process().processor("p");
    let error = outside.delete_leases().await.expect_err("an instance runs");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains(running.instance()), "{error}");
    assert_eq!(outside.leases().await.expect("listed").len(), 2, "nothing was deleted");
    fixture.write(0..10, 2).await;
    received.until_all(0..10, 2).await;

    assert_eq!(outside.force_delete_leases().await.expect("deleted"), 2);
    eventually("no lease, and an error in the status", async || {
        let status = running.status();
        let is_reported = status.last_error.is_some_and(|error| error.contains("it was deleted"));
        (status.leases.is_empty() && is_reported).then_some(())
    })
    .await;
    running.stop().await.expect("stopped");
    assert!(stored_items(&fixture).await.is_empty(), "no item is created again");
}

#[tokio::test]
async fn leases_of_a_crashed_instance_are_deleted_once_they_have_expired() {
    let fixture = Fixture::start(2).await;
    fixture.write(0..10, 1).await;
    let received = Received::new();
    let running = received.start(fixture.processor("p")).await;
    received.until_all(0..10, 1).await;
    // A crash: its leases still name it as their owner.
    drop(running);
    let expiry = Duration::from_millis(600);
    let outside = fixture.other_process().processor("p").lease_expiry(expiry);
    #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
    let began = tokio::time::Instant::now();
    // A renewal that was in flight at the crash may arrive late.
    let deleted = eventually("deleted", async || match outside.delete_leases().await {
        Err(error) if error.kind() == ErrorKind::Conflict => None,
        deleted => Some(deleted.expect("deleted")),
    })
    .await;
    assert_eq!(deleted, 2);
    assert!(began.elapsed() >= expiry, "{:?}", began.elapsed());
    assert!(stored_items(&fixture).await.is_empty());
}

#[tokio::test]
async fn processors_are_listed_and_deleted_also_those_of_deleted_containers() {
    let fixture = Fixture::start(2).await;
    fixture.write(0..10, 1).await;
    let received = Received::new();
    let stopped = received.start(fixture.processor("old.one")).await;
    received.until_all(0..10, 1).await;
    stopped.stop().await.expect("stopped");
    // The container is created again: the old leases belong to one that no longer exists.
    fixture.container("readings").delete().await.expect("deleted");
    fixture.create("readings", "/sensor").await;
    let leases = fixture.container("leases");
    leases.create_item("note", &json!({"id": "note", "processor": 7})).await.expect("not of a processor");
    let running = received.start(fixture.other_process().processor("busy")).await;
    eventually("leases", async || (running.status().leases.len() == 2).then_some(())).await;

    let listed = leases.list_processors().await.expect("listed");
    let names: Vec<(&str, usize)> =
        listed.iter().map(|processor| (processor.name.as_str(), processor.leases.len())).collect();
    assert_eq!(names, [("busy", 2), ("old.one", 2)]);
    assert!(
        listed[0].leases.iter().any(|lease| lease.owner.as_deref() == Some(running.instance())),
        "{listed:?}"
    );
    assert_ne!(listed[0].container_rid, listed[1].container_rid);
    let by_name = fixture
        .other_process()
        .processor("old.one")
        .delete_leases()
        .await
        .expect_err("it is another container's");
    assert_eq!(by_name.kind(), ErrorKind::NotFound);

    let error = listed[0].delete_leases(Duration::from_secs(20)).await.expect_err("an instance runs");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(listed[1].delete_leases(Duration::from_secs(20)).await.expect("deleted"), 2);
    let left = leases.list_processors().await.expect("listed");
    assert_eq!(left.iter().map(|processor| processor.name.as_str()).collect::<Vec<_>>(), ["busy"]);
    running.stop().await.expect("stopped");
    assert_eq!(listed[0].force_delete_leases().await.expect("deleted"), 2);
    assert!(leases.list_processors().await.expect("listed").is_empty());
}
