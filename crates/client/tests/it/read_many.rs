//! Many items by their partition keys and ids.

use std::num::NonZeroUsize;

use emulator::faults::{FaultRule, OperationKind};
use perihelion::{
    Account, ContainerClient, ContainerProperties, CosmosClient, ErrorKind, ItemIdentity, PartitionKey,
    PartitionKeyComponent, PartitionKeyDefinition,
};
use serde_json::{Value, json};

use crate::{Order, TestAccount, control};

fn numbered(number: usize) -> Order {
    Order { id: format!("o-{number}"), customer: format!("customer-{}", number % 40), total: number as f64 }
}

async fn fill(orders: &ContainerClient, count: usize) {
    let orders_to_create = (0..count).map(numbered);
    let bulk = orders_to_create.fold(orders.bulk(), |bulk, order| bulk.create(&order.customer, &order));
    assert_eq!(bulk.await.failed().count(), 0);
}

fn requested(numbers: impl IntoIterator<Item = usize>) -> Vec<(String, String)> {
    let order = |number| {
        let order = numbered(number);
        (order.customer, order.id)
    };
    numbers.into_iter().map(order).collect()
}

#[tokio::test]
async fn items_of_several_partitions_come_in_the_order_asked_for() {
    let account = TestAccount::start().await;
    let orders = account.wide_orders().await;
    fill(&orders, 100).await;
    // In no order, some twice, some missing.
    let numbers = [70, 3, 500, 42, 3, 99, 0, 501, 500, 17];
    let response = orders.read_many::<Order>(requested(numbers)).await.expect("read");
    let expected: Vec<Option<Order>> =
        numbers.iter().map(|&number| (number < 100).then(|| numbered(number))).collect();
    assert_eq!(response.items, expected);
    let missing: Vec<&str> = response.missing.iter().map(|item| &*item.id).collect();
    assert_eq!(missing, ["o-500", "o-501", "o-500"]);
    assert_eq!(response.found().count(), 7);
    let partitions = orders.feed_ranges().await.expect("known").len();
    assert!(partitions > 1 && response.requests as usize <= partitions, "{response:?}");
    assert!(response.charge > 0.0 && response.diagnostics.len() == response.requests as usize);
    assert!(response.session_token.is_some());
}

#[tokio::test]
async fn one_item_of_a_partition_is_a_point_read_and_none_is_no_request() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders, 2).await;
    let faults = account.running.faults();
    faults.add(FaultRule::status(400, 0).on(OperationKind::Query)).expect("a rule");
    let one = orders.read_many::<Order>(requested([1])).await.expect("no query");
    assert_eq!((one.requests, one.into_found()), (1, vec![numbered(1)]));
    let absent = orders.read_many::<Order>(requested([7])).await.expect("no query");
    assert_eq!((absent.items, absent.missing.len(), absent.charge > 0.0), (vec![None], 1, true));
    faults.add(FaultRule::status(400, 0)).expect("a rule");
    let none = orders.read_many::<Order>(Vec::<ItemIdentity>::new()).await.expect("nothing to ask");
    assert_eq!((none.items.len(), none.requests), (0, 0));
    orders.read_many::<Order>(requested([0, 1])).await.expect_err("that is a request");
}

#[tokio::test]
async fn more_than_a_thousand_items_are_read_although_partitions_split() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders, 2600).await;
    let partitions = async |client: &CosmosClient| {
        let ranges = client.database("shop").container("orders").feed_ranges().await;
        ranges.expect("listed").len()
    };
    assert_eq!(partitions(&account.client).await, 1, "and this client keeps thinking so");
    control(&account.running, "/databases/shop/containers/orders/partitions/0/split", json!({})).await;
    let other = CosmosClient::from_connection_string(&account.running.connection_string()).expect("valid");
    assert_eq!(partitions(&other).await, 2);
    let numbers: Vec<usize> = (0..2700).rev().collect();
    let read = orders.read_many::<Order>(requested(numbers.clone()));
    let response = read.parallel_max(NonZeroUsize::MIN).await.expect("read");
    let expected: Vec<Option<Order>> =
        numbers.iter().map(|&number| (number < 2600).then(|| numbered(number))).collect();
    assert!(response.items == expected, "{} of 2600", response.found().count());
    assert_eq!(response.missing.len(), 100);
    assert!(response.requests >= 3 && response.diagnostics.len() <= 64);
}

#[tokio::test]
async fn hierarchical_and_unusual_keys_identify_items() {
    let account = TestAccount::start().await;
    account.client.create_database("shop").await.expect("created");
    let shop = account.client.database("shop");
    let levels = PartitionKeyDefinition::multi_hash(&["/tenant", "/user/name"]).expect("paths");
    shop.create_container(&ContainerProperties::new("events", levels)).await.expect("created");
    let events = shop.container("events");
    let key =
        |tenant: PartitionKeyComponent, user: PartitionKeyComponent| PartitionKey::new(vec![tenant, user]);
    let undefined = || PartitionKeyComponent::Undefined;
    let items = [
        (key("a".into(), "x".into()), json!({"id": "1", "tenant": "a", "user": {"name": "x"}})),
        (key("a".into(), "y".into()), json!({"id": "1", "tenant": "a", "user": {"name": "y"}})),
        (key("a".into(), 7.into()), json!({"id": "1", "tenant": "a", "user": {"name": 7}})),
        (key("a".into(), false.into()), json!({"id": "1", "tenant": "a", "user": {"name": false}})),
        (
            key("a".into(), PartitionKeyComponent::Null),
            json!({"id": "1", "tenant": "a", "user": {"name": null}}),
        ),
        (key("a".into(), undefined()), json!({"id": "1", "tenant": "a"})),
        (
            key("quote \" '".into(), "z".into()),
            json!({"id": "it's \"quoted\"", "tenant": "quote \" '", "user": {"name": "z"}}),
        ),
    ];
    for (key, item) in &items {
        events.create_item(key.clone(), item).await.expect("created");
    }
    let identities =
        items.iter().map(|(key, item)| ItemIdentity::new(key.clone(), item["id"].as_str().expect("text")));
    let response = events.read_many::<Value>(identities).await.expect("read");
    assert!(response.missing.is_empty(), "{:?}", response.missing);
    for ((_, written), read) in items.iter().zip(response.found()) {
        for property in ["id", "tenant", "user"] {
            assert_eq!(written.get(property), read.get(property), "{read}");
        }
    }
    let error = events.read_many::<Value>([("a", "1"), ("a", "2")]).await.expect_err("a prefix is no key");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    let shown = error.to_string();
    assert!(shown.contains("give the whole key") && shown.contains("query_items"), "{shown}");
}

#[tokio::test]
async fn a_session_token_is_passed_on() {
    let account = TestAccount::start_with(|config| config.lag = "1h".parse().expect("a lag")).await;
    let orders = account.wide_orders().await;
    fill(&orders, 50).await;
    let token = orders.session_token().await.expect("known").expect("fifty writes");
    let account = Account::from_connection_string(&account.running.connection_string()).expect("valid");
    let reader = CosmosClient::builder(account).preferred_regions(["North Europe"]).build().expect("valid");
    let orders = reader.database("shop").container("orders");
    let behind = orders.read_many::<Order>(requested(0..50)).await.expect("read");
    assert_eq!(behind.missing.len(), 50);
    let seen = orders.read_many::<Order>(requested(0..50)).session_token(&token).await.expect("read");
    assert_eq!(seen.into_found().len(), 50);
}

#[tokio::test]
async fn a_container_that_was_created_again_is_read_anew() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    fill(&orders, 10).await;
    orders.read_many::<Order>(requested(0..10)).await.expect("read");
    let other = CosmosClient::from_connection_string(&account.running.connection_string()).expect("valid");
    let shop = other.database("shop");
    shop.container("orders").delete().await.expect("deleted");
    let key = PartitionKeyDefinition::hash("/id").expect("a path");
    shop.create_container(&ContainerProperties::new("orders", key)).await.expect("created");
    for number in 0..3 {
        let order = numbered(number);
        shop.container("orders").create_item(&order.id, &order).await.expect("created");
    }
    let by_id = (0..4).map(|number| (format!("o-{number}"), format!("o-{number}")));
    let response = orders.read_many::<Order>(by_id).await.expect("read");
    assert_eq!((response.found().count(), response.missing.len()), (3, 1));
}
