//! The conflicts feed of a multi-write account, over real sockets.

use std::time::Duration;

use emulator::clock::Clock;
use futures::TryStreamExt;
use perihelion::policies::{ConflictResolutionMode, ConflictResolutionPolicy};
use perihelion::{
    Account, Conflict, ConflictOperation, ContainerClient, ContainerProperties, CosmosClient, ErrorKind,
    Item, PartitionKeyDefinition,
};

use crate::{Order, TestAccount, order};

async fn conflicts(container: &ContainerClient) -> Vec<Conflict<Item<Order>>> {
    container.list_conflicts().stream().try_collect().await.expect("listed")
}

#[tokio::test]
async fn conflicts_are_listed_read_and_deleted_with_the_item_that_lost() {
    // Stands still between the writes, at a time at which signatures of this machine are valid.
    let clock = Clock::manual(Clock::system().now());
    let account = TestAccount::start_with(|config| {
        config.multi_write = true;
        config.lag = "1s".parse().expect("a lag");
        config.clock = clock.clone();
    })
    .await;
    let orders_in = |region: &str| {
        let account = Account::from_connection_string(&account.running.connection_string()).expect("valid");
        let client = CosmosClient::builder(account).preferred_regions([region]).build().expect("valid");
        client.database("shop").container("orders")
    };
    let [hub, east, north] = ["West US", "East US", "North Europe"].map(orders_in);
    account.client.create_database("shop").await.expect("created");
    let key = PartitionKeyDefinition::hash("/customer").expect("a path");
    let mut properties = ContainerProperties::new("orders", key);
    properties.conflict_resolution_policy = ConflictResolutionPolicy {
        mode: ConflictResolutionMode::Custom,
        conflict_resolution_path: String::new(),
        conflict_resolution_procedure: String::new(),
    };
    account.client.database("shop").create_container(&properties).await.expect("created");
    let replicate = || clock.advance(Duration::from_secs(3));

    hub.create_item("ada", &order("o-1", 1.0)).await.expect("created");
    replicate();
    east.upsert_item("ada", &order("o-1", 2.0)).await.expect("written");
    north.upsert_item("ada", &order("o-1", 3.0)).await.expect("written");
    replicate();
    let winner = hub.read_item::<Item<Order>>("ada", "o-1").await.expect("read").into_value();
    assert_eq!(winner.value.total, 2.0, "the first to arrive at the hub stays");

    let listed = conflicts(&hub).await;
    let [conflict] = &listed[..] else { panic!("one conflict, not {listed:?}") };
    assert_eq!(conflict.operation, ConflictOperation::Replace);
    let lost = conflict.item.as_ref().expect("the item that lost");
    assert_eq!((lost.value.total, &lost.rid), (3.0, &winner.rid));
    assert_eq!(conflict.source_resource_id, winner.rid);
    let read = hub.read_conflict::<Item<Order>>("ada", &conflict.id).await.expect("read");
    assert_eq!(read.value(), conflict);

    hub.delete_conflict("ada", &conflict.id).await.expect("deleted");
    assert_eq!(conflicts(&hub).await, []);
    let error = hub.read_conflict::<Order>("ada", &conflict.id).await.expect_err("it is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_conflict_without_content_has_no_item() {
    let text = r#"{"id":"1","operationType":"delete","resourceType":"document","content":"","_ts":5}"#;
    let conflict: Conflict<Order> = serde_json::from_str(text).expect("a conflict");
    assert_eq!((conflict.item, conflict.operation, conflict.timestamp), (None, ConflictOperation::Delete, 5));
    let text = r#"{"id":"1","operationType":"patchSomehow","content":"{\"id\":1}"}"#;
    assert!(serde_json::from_str::<Conflict<Order>>(text).is_err(), "the content does not fit");
    let other: Conflict<serde_json::Value> = serde_json::from_str(text).expect("a conflict");
    assert_eq!(other.operation, ConflictOperation::Other);
}
