//! Databases, containers and their throughput.

use futures::TryStreamExt;
use perihelion::{ContainerProperties, CosmosClient, ErrorKind, PartitionKeyDefinition, Throughput};

use crate::TestAccount;

#[tokio::test]
async fn databases_and_containers_are_created_read_and_deleted() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let properties = orders.read().await.expect("read").into_value();
    assert_eq!(properties.id, "orders");
    let longer = ContainerProperties { default_ttl: Some(60), ..properties };
    assert_eq!(orders.replace(&longer).await.expect("replaced").value().default_ttl, Some(60));
    let shop = account.client.database("shop");
    assert_eq!(shop.read().await.expect("read").value().id, "shop");
    orders.delete().await.expect("deleted");
    shop.delete().await.expect("deleted");
    assert_eq!(shop.read().await.expect_err("deleted").kind(), ErrorKind::NotFound);
    assert_eq!(orders.read().await.expect_err("deleted").kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn throughput_is_read_and_changed() {
    let account = TestAccount::start().await;
    account.client.create_database("shop").await.expect("created");
    let shop = account.client.database("shop");
    let key = PartitionKeyDefinition::hash("/customer").expect("a path");
    let manual = Throughput::Manual(500);
    shop.create_container_with(&ContainerProperties::new("orders", key), &manual).await.expect("created");
    let orders = shop.container("orders");
    let read = orders.throughput().await.expect("read");
    assert!(read.charge() > 0.0 && !read.diagnostics().attempts().is_empty());
    assert_eq!(read.into_value(), Some(manual));
    let autoscale = Throughput::Autoscale { max: 4000, increment_percent: None };
    orders.set_throughput(&autoscale).await.expect("changed");
    assert_eq!(orders.throughput().await.expect("read").value(), &Some(autoscale));
    assert_eq!(shop.throughput().await.expect("read").value(), &None);
}

#[tokio::test]
async fn the_containers_of_a_database_share_its_throughput() {
    let account = TestAccount::start().await;
    let shared = Throughput::Autoscale { max: 2000, increment_percent: None };
    account.client.create_database_with("shop", &shared).await.expect("created");
    let shop = account.client.database("shop");
    let key = PartitionKeyDefinition::hash("/customer").expect("a path");
    shop.create_container(&ContainerProperties::new("orders", key)).await.expect("created");
    assert_eq!(shop.throughput().await.expect("read").value(), &Some(shared));
    assert_eq!(shop.container("orders").throughput().await.expect("read").value(), &None);
    let manual = Throughput::Manual(600);
    shop.set_throughput(&manual).await.expect("changed");
    assert_eq!(shop.throughput().await.expect("read").value(), &Some(manual));
}

#[tokio::test]
async fn a_wrong_key_is_an_authentication_error() {
    let account = TestAccount::start().await;
    let endpoint = account.client.driver().account().hub().url().to_string();
    let client = CosmosClient::with_key(&endpoint, "d3Jvbmc=").expect("a key, if not the right one");
    let error = client.database("d").read().await.expect_err("a wrong key");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated, "{error}");
}

#[tokio::test]
async fn existing_resources_are_listed_and_not_created_twice() {
    let account = TestAccount::start().await;
    for id in ["a", "b", "c", "b"] {
        let database = account.client.create_database_if_missing(id).await.expect("there");
        assert_eq!(database.value().id, id);
    }
    let mut pages = account.client.list_databases().pages();
    let page = pages.next_page().await.expect("a page").expect("one at least");
    assert!(page.charge() > 0.0 && page.value().len() == 3);
    assert!(pages.next_page().await.expect("no page").is_none() && pages.continuation().is_none());

    let database = account.client.database("a");
    for (id, path) in [("x", "/one"), ("y", "/two"), ("x", "/three")] {
        let properties = ContainerProperties::new(id, PartitionKeyDefinition::hash(path).expect("a path"));
        let there = database.create_container_if_missing(&properties).await.expect("there").into_value();
        assert_ne!(
            there.partition_key.paths[0].to_string(),
            "/three",
            "the one that is there stays as it is"
        );
    }
    let containers: Vec<ContainerProperties> =
        database.list_containers().stream().try_collect().await.expect("listed");
    let mut ids: Vec<_> = containers.iter().map(|container| &*container.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["x", "y"]);
    let error = account.client.database("none").list_containers().pages().next_page().await;
    assert_eq!(error.expect_err("no such database").kind(), ErrorKind::NotFound);
}
