//! An account without a server: what a test of an application writes, and what it need not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::TryStreamExt;
use perihelion::connections::{HttpClientConfig, Transport, TransportFactory};
use perihelion::testing::{FakeAccount, FakeResponse};
use perihelion::{Account, ContainerClient, CosmosClient, ErrorKind, Item, PartitionKey};
use serde_json::{Value, json};

use crate::{Order, order};

fn orders(account: FakeAccount) -> ContainerClient {
    let account = account.container("shop", "orders", "/customer");
    account.client().expect("a client").database("shop").container("orders")
}

#[tokio::test]
async fn items_queries_and_errors_are_what_the_test_says() {
    let orders = orders(FakeAccount::new().respond(|request| match request.item_id() {
        Some("o-1") if request.header("x-ms-documentdb-partitionkey") == Some(r#"["ada"]"#) => {
            FakeResponse::ok(&order("o-1", 5.0)).header("x-ms-request-charge", "2.5").header("etag", "\"7\"")
        }
        Some(_) => FakeResponse::not_found(),
        None if request.is_query() => FakeResponse::rows([order("o-1", 5.0), order("o-2", 6.0)]),
        None => match request.json::<Order>() {
            Ok(order) if order.id == "o-1" => FakeResponse::status(409),
            _ => FakeResponse::created(),
        },
    }));
    let read = orders.read_item::<Order>("ada", "o-1").await.expect("read");
    assert_eq!((read.value(), read.charge(), read.etag()), (&order("o-1", 5.0), 2.5, Some("\"7\"")));
    let missing = orders.read_item::<Order>("ada", "o-9").await.expect_err("missing");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(orders.read_item::<Order>("ada", "o-9").optional().await.expect("asked").is_none());
    let rows = orders.query_items::<Order>("SELECT * FROM o WHERE o.total > 1").stream();
    let rows: Vec<Order> = rows.try_collect().await.expect("queried");
    assert_eq!(rows, [order("o-1", 5.0), order("o-2", 6.0)]);
    orders.create_item("ada", &order("o-3", 1.0)).await.expect("created");
    let error = orders.create_item("ada", &order("o-1", 1.0)).await.expect_err("it exists");
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let container = orders.read().await.expect("metadata").into_value();
    assert_eq!((container.id.as_str(), container.partition_key.paths.len()), ("orders", 1));
    assert_eq!(orders.feed_ranges().await.expect("metadata").len(), 1);
}

#[tokio::test]
async fn an_optimistic_update_can_be_tested() {
    let orders = orders(FakeAccount::new().respond(|request| match request.header("if-match") {
        None => FakeResponse::item(&order("o-1", 5.0), "\"1\""),
        Some("\"1\"") => FakeResponse::item(&order("o-1", 6.0), "\"2\""),
        Some(_) => FakeResponse::status(412),
    }));
    let read = orders.read_item::<Item<Order>>("ada", "o-1").await.expect("read").into_value();
    assert_eq!(read.etag, "\"1\"");
    orders.replace_item("ada", "o-1", &order("o-1", 6.0)).if_match(read.etag).await.expect("replaced");
    let late = orders.replace_item("ada", "o-1", &order("o-1", 7.0)).if_match("\"0\"").await;
    assert_eq!(late.expect_err("it has changed").kind(), ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn a_response_that_the_client_retries_is_asked_for_again() {
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let orders = orders(FakeAccount::new().respond(move |_| match counter.fetch_add(1, Ordering::Relaxed) {
        0 => FakeResponse::status(429).header("x-ms-retry-after-ms", "1"),
        1 => FakeResponse::status(503),
        _ => FakeResponse::ok(&json!({"id": "o-1"})),
    }));
    let read = orders.read_item::<Value>("ada", "o-1").await.expect("read at last");
    assert_eq!(read.value()["id"], "o-1");
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn containers_that_were_not_declared_do_not_exist_and_keys_may_have_several_paths() {
    let account = FakeAccount::new().container("shop", "stock", "/site, /shelf").respond(|request| {
        assert_eq!(request.header("x-ms-documentdb-partitionkey"), Some(r#"["b","7"]"#));
        FakeResponse::ok(&json!({"id": "1"}))
    });
    let client = account.client().expect("a client");
    let key = PartitionKey::from(("b", "7"));
    client.database("shop").container("stock").read_item::<Value>(key, "1").await.expect("read");
    let missing = FakeAccount::new().client().expect("a client");
    let read = missing.database("shop").container("orders").read_item::<Value>("ada", "1").await;
    assert_eq!(read.expect_err("no container").kind(), ErrorKind::NotFound);
}

/// A factory of the test's own, as for another HTTP library.
#[derive(Debug)]
struct Counting(FakeAccount, Arc<AtomicU32>);

impl TransportFactory for Counting {
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.create(config)
    }
}

#[tokio::test]
async fn a_client_sends_through_the_transports_of_a_factory() {
    let fake = FakeAccount::new().container("shop", "orders", "/customer");
    let fake = fake.respond(|_| FakeResponse::ok(&json!({"id": "o-1"})));
    let made = Arc::new(AtomicU32::new(0));
    let account = Account::with_key("http://nowhere.invalid", "a2V5").expect("valid");
    let factory = Arc::new(Counting(fake, Arc::clone(&made)));
    let client = CosmosClient::builder(account).transport(factory).build().expect("valid");
    let orders = client.database("shop").container("orders");
    orders.read_item::<Value>("ada", "o-1").await.expect("read");
    assert!(made.load(Ordering::Relaxed) > 0);
}
