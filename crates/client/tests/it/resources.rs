//! Databases, containers and what they may spend.

use perihelion::{ContainerProperties, CosmosClient, ErrorKind, PartitionKeyDefinition, Throughput};

use crate::Lab;

#[tokio::test]
async fn databases_and_containers_are_made_read_and_deleted() {
    let lab = Lab::start().await;
    let orders = lab.orders().await;
    let properties = orders.read().await.expect("read").into_value();
    assert_eq!(properties.id, "orders");
    let longer = ContainerProperties { default_ttl: Some(60), ..properties };
    assert_eq!(orders.replace(&longer).await.expect("replaced").value().default_ttl, Some(60));
    let shop = lab.client.database("shop");
    assert_eq!(shop.read().await.expect("read").value().id, "shop");
    orders.delete().await.expect("deleted");
    shop.delete().await.expect("deleted");
    assert_eq!(shop.read().await.expect_err("deleted").kind(), ErrorKind::NotFound);
    assert_eq!(orders.read().await.expect_err("deleted").kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn throughput_is_read_and_changed() {
    let lab = Lab::start().await;
    lab.client.create_database("shop").await.expect("made");
    let shop = lab.client.database("shop");
    let key = PartitionKeyDefinition::hash("/customer").expect("a path");
    let manual = Throughput::Manual(500);
    shop.create_container_with(&ContainerProperties::new("orders", key), &manual).await.expect("made");
    let orders = shop.container("orders");
    assert_eq!(orders.throughput().await.expect("read"), Some(manual));
    let autoscale = Throughput::Autoscale { max: 4000, increment_percent: None };
    orders.set_throughput(&autoscale).await.expect("changed");
    assert_eq!(orders.throughput().await.expect("read"), Some(autoscale));
    assert_eq!(shop.throughput().await.expect("read"), None);
}

#[tokio::test]
async fn a_wrong_key_is_named_as_such() {
    let lab = Lab::start().await;
    let endpoint = lab.client.driver().account().hub().url().to_string();
    let client = CosmosClient::with_key(&endpoint, "d3Jvbmc=").expect("a key, if not the right one");
    let error = client.database("d").read().await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
}
