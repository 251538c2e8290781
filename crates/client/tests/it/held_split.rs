//! The client while a split is held: every request to the range gets 410/1007 until the range is replaced.

use std::time::Duration;

use futures::TryStreamExt;
use perihelion::ContainerClient;
use serde_json::json;

use crate::{Order, TestAccount, control};

/// How long the range refuses requests.
const HOLD: Duration = Duration::from_millis(1_500);
const COUNT: usize = 40;

fn numbered(number: usize) -> Order {
    Order { id: format!("o-{number}"), customer: format!("customer-{number}"), total: number as f64 }
}

async fn held() -> (TestAccount, ContainerClient) {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    for number in 0..COUNT {
        let order = numbered(number);
        orders.create_item(&order.customer, &order).await.expect("created");
    }
    assert_eq!(orders.feed_ranges().await.expect("known").len(), 1);
    let hold = json!({"lockDurationMs": HOLD.as_millis() as u64});
    control(&account.running, "/databases/shop/containers/orders/partitions/0/split", hold).await;
    (account, orders)
}

/// How many requests the account answered with 410.
async fn refused(account: &TestAccount) -> usize {
    let client = perihelion_http::Client::builder().no_proxy().build().expect("a client");
    let url = format!("{}requests?status=410", account.running.control_endpoint());
    let request = http::Request::get(url).body(bytes::Bytes::new()).expect("a request");
    let response = client.send(request).await.expect("a response");
    let bytes = response.into_body().bytes(1 << 24).await.expect("a body");
    let listed: serde_json::Value = serde_json::from_slice(&bytes).expect("json");
    listed["requests"].as_array().expect("a list").len()
}

#[tokio::test]
async fn point_operations_and_batches_outlast_a_held_split() {
    let (account, orders) = held().await;
    let changed = Order { total: 100.0, ..numbered(1) };
    let new = numbered(COUNT);
    let (read, replaced, created, patched) = tokio::join!(
        async { orders.read_item::<Order>("customer-0", "o-0").await },
        async { orders.replace_item("customer-1", "o-1", &changed).await },
        async { orders.create_item(&new.customer, &new).await },
        async { orders.delete_item("customer-2", "o-2").await },
    );
    assert_eq!(read.expect("read").into_value(), numbered(0));
    replaced.expect("replaced");
    created.expect("created");
    patched.expect("deleted");
    assert!(refused(&account).await >= 4, "the split was held");
    assert_eq!(orders.read_item::<Order>("customer-1", "o-1").await.expect("read").into_value(), changed);
    assert!(orders.read_item::<Order>("customer-2", "o-2").optional().await.expect("asked").is_none());
}

#[tokio::test]
async fn queries_feeds_and_bulk_outlast_a_held_split() {
    let (account, orders) = held().await;
    let query = async {
        let rows = orders.query_items::<Order>("SELECT * FROM o ORDER BY o.total").stream();
        rows.try_collect::<Vec<Order>>().await
    };
    let feed =
        async { orders.query_items::<Order>("SELECT * FROM o").stream().try_collect::<Vec<Order>>().await };
    let many = async {
        let asked: Vec<(String, String)> =
            (0..COUNT).map(numbered).map(|order| (order.customer, order.id)).collect();
        orders.read_many::<Order>(asked).await
    };
    let bulk = async {
        let items = (100..120).map(numbered);
        items.fold(orders.bulk(), |bulk, order| bulk.create(&order.customer, &order)).await
    };
    let (sorted, unsorted, many, bulk) = tokio::join!(query, feed, many, bulk);
    assert_eq!(bulk.failed().count(), 0);
    let sorted = sorted.expect("queried");
    let old: Vec<&Order> = sorted.iter().filter(|order| order.total < COUNT as f64).collect();
    let all: Vec<Order> = (0..COUNT).map(numbered).collect();
    assert_eq!(old, all.iter().collect::<Vec<_>>());
    assert!(unsorted.expect("queried").len() >= COUNT);
    assert_eq!(many.expect("read").found().count(), COUNT);
    assert!(refused(&account).await > 0, "the split was held");
    assert_eq!(
        account.client.database("shop").container("orders").feed_ranges().await.expect("known").len(),
        2
    );
}
