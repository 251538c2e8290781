//! A container whose items all have one type, and items with their system properties.

use futures::TryStreamExt;
use perihelion::{ChangeFeedStart, ErrorKind, Item, Patch};

use crate::{Order, TestAccount, order};

#[tokio::test]
async fn a_typed_container_reads_and_writes_its_type() {
    let account = TestAccount::start().await;
    let orders = account.orders().await.typed::<Order>();
    orders.create("ada", &order("1", 1.0)).await.expect("created");
    orders.upsert("ada", &order("2", 2.0)).await.expect("written");
    orders.replace("ada", "2", &order("2", 3.0)).await.expect("replaced");
    orders.patch("ada", "1", Patch::new().set("/total", 9)).await.expect("patched");
    assert_eq!(orders.read("ada", "1").await.expect("read").into_value(), order("1", 9.0));
    let both = orders.read_many([("ada", "2"), ("ada", "1")]).await.expect("read").into_found();
    assert_eq!(both, [order("2", 3.0), order("1", 9.0)]);
    let rows: Vec<Order> =
        orders.query("SELECT * FROM c WHERE c.total > 5").stream().try_collect().await.expect("rows");
    assert_eq!(rows, [order("1", 9.0)]);
    let mut feed = orders.changes().from(ChangeFeedStart::Beginning).start().await.expect("started");
    assert_eq!(feed.next_page().await.expect("a page").items.len(), 2);
    orders.clone().delete("ada", "1").await.expect("deleted");
    assert_eq!(orders.read("ada", "1").await.expect_err("deleted").kind(), ErrorKind::NotFound);
    assert_eq!(orders.container().id(), "orders");
}

#[tokio::test]
async fn an_item_with_its_system_properties_is_written_back() {
    let account = TestAccount::start().await;
    let container = account.orders().await;
    container.create_item("ada", &order("1", 1.0)).await.expect("created");
    let items = container.typed::<Item<Order>>();
    let mut item = items.read("ada", "1").await.expect("read").into_value();
    let text = serde_json::to_string(&item).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Item<Order>>(&text).expect("an item"),
        item,
        "a cache returns it unchanged"
    );
    item.value.total = 5.0;
    items.replace("ada", "1", &item).if_match(item.etag.as_str()).await.expect("replaced");
    let newer = items.read("ada", "1").await.expect("read").into_value();
    assert_eq!(newer.value.total, 5.0);
    assert_eq!(newer.rid, item.rid);
    assert_ne!(newer.etag, item.etag, "the service ignores the old system properties");
}
