//! Containers that another client deletes, or deletes and creates again under the same name: caches are refreshed.

use futures::TryStreamExt;
use perihelion::{
    Batch, ChangeFeedStart, ContainerClient, ContainerProperties, CosmosClient, Error, ErrorKind,
    PartitionKeyDefinition, Result,
};
use serde_json::{Value, json};

use crate::TestAccount;

/// An item that fits every key of these tests.
fn item(id: &str) -> Value {
    json!({"id": id, "customer": "ada", "region": "west", "total": 1})
}

fn by(paths: &[&str]) -> ContainerProperties {
    let key = match paths {
        [one] => PartitionKeyDefinition::hash(one),
        several => PartitionKeyDefinition::multi_hash(several),
    };
    ContainerProperties::new("orders", key.expect("paths"))
}

/// Deletes and creates the container again with another client, so that the caches of the tested one are stale.
async fn recreate(other: &CosmosClient, paths: &[&str]) {
    let shop = other.database("shop");
    shop.container("orders").delete().await.expect("deleted");
    shop.create_container(&by(paths)).await.expect("created again");
}

/// All kinds of operations on a container, one after the other.
async fn use_all(orders: &ContainerClient, first: &str) -> Result<()> {
    let key = || ("ada", "west");
    let id = |n: u32| format!("{first}-{n}");
    orders.upsert_item(key(), &item(&id(0))).await?;
    orders.read_item::<Value>(key(), &id(0)).await?;
    orders.execute_batch(Batch::new(key()).create(&item(&id(1)))).await?;
    let query = orders.query_items::<Value>("SELECT * FROM c ORDER BY c.id").partition_key(key());
    let rows: Vec<Value> = query.stream().try_collect().await?;
    assert_eq!(rows.len(), 2);
    let mut feed = orders.change_feed::<Value>().from(ChangeFeedStart::Beginning).start().await?;
    assert!(!feed.next_page().await?.caught_up);
    Ok(())
}

#[tokio::test]
async fn a_deleted_container_is_named_in_the_error_and_a_new_one_is_used() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let other = CosmosClient::from_connection_string(&account.running.connection_string()).expect("a client");
    orders.upsert_item("ada", &item("1")).await.expect("created");
    other.database("shop").container("orders").delete().await.expect("deleted");

    let gone = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("orders"), "{error}");
    };
    for _ in 0..2 {
        gone(orders.read_item::<Value>("ada", "1").await.expect_err("gone"));
        gone(orders.upsert_item("ada", &item("1")).await.expect_err("gone"));
        gone(
            orders
                .query_items::<Value>("SELECT * FROM c")
                .stream()
                .try_collect::<Vec<_>>()
                .await
                .expect_err("gone"),
        );
        gone(orders.change_feed::<Value>().start().await.expect_err("gone"));
    }
    other.database("shop").create_container(&by(&["/customer"])).await.expect("created again");
    orders.upsert_item("ada", &item("2")).await.expect("created");
    orders.read_item::<Value>("ada", "2").await.expect("there");
}

/// In each round another operation is the first one on the new container.
#[tokio::test]
async fn a_container_recreated_by_another_client_is_used() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let other = CosmosClient::from_connection_string(&account.running.connection_string()).expect("a client");
    for n in 0..5 {
        // The session tokens of the old container are far ahead of those of the new one.
        for turn in 0..20 {
            orders.upsert_item("ada", &item(&format!("{turn}"))).await.expect("written");
        }
        recreate(&other, &["/customer"]).await;
        match n {
            0 => drop(orders.upsert_item("ada", &item("new")).await.expect("written to the new one")),
            1 => {
                let read = orders.read_item::<Value>("ada", "1").optional().await;
                assert!(read.expect("a response of the new container").is_none());
            }
            2 => {
                let rows =
                    orders.query_items::<Value>("SELECT * FROM c").stream().try_collect::<Vec<_>>().await;
                assert_eq!(rows.expect("rows of the new one").len(), 0);
            }
            3 => {
                drop(orders.execute_batch(Batch::new("ada").create(&item("new"))).await.expect("carried out"))
            }
            _ => {
                let feed = orders.change_feed::<Value>().from(ChangeFeedStart::Beginning).start().await;
                assert!(feed.expect("started").next_page().await.expect("a page").caught_up);
            }
        }
        orders.upsert_item("ada", &item("after")).await.expect("written");
        orders.read_item::<Value>("ada", "after").await.expect("read");
    }
}

#[tokio::test]
async fn a_container_recreated_with_another_partition_key_is_used_with_that_key() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let other = CosmosClient::from_connection_string(&account.running.connection_string()).expect("a client");
    orders.upsert_item("ada", &item("1")).await.expect("written");

    // Another path.
    recreate(&other, &["/region"]).await;
    let error = orders.upsert_item("ada", &item("1")).await.expect_err("of another key");
    assert_eq!(error.kind(), ErrorKind::BadRequest, "{error}");
    orders.upsert_item("west", &item("1")).await.expect("written");
    orders.read_item::<Value>("west", "1").await.expect("read");

    // A hierarchical key; in each round another operation meets the stale cache first.
    for first in ["a query", "an item"] {
        recreate(&other, &["/customer", "/region"]).await;
        if first == "a query" {
            let query = orders.query_items::<Value>("SELECT * FROM c").partition_key(("ada", "west"));
            let rows: Vec<Value> = query.stream().try_collect().await.expect("of the new one");
            assert_eq!(rows.len(), 0);
        }
        use_all(&orders, first).await.unwrap_or_else(|error| panic!("{first}: {error}"));
        recreate(&other, &["/region"]).await;
        orders.upsert_item("west", &item("1")).await.expect("written");
    }
}
