//! Operations on one item, batches and bulk.

use perihelion::{Batch, ContainerClient, CosmosClient, ErrorKind, Item, Patch};

use serde_json::{Value, json};

use crate::{Order, TestAccount, order};

#[tokio::test]
async fn an_item_is_created_read_replaced_and_deleted() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let created = orders.create_item("ada", &order("1", 10.0)).await.expect("created");
    assert!(created.charge() > 1.0 && created.etag().is_some() && created.raw().body().is_empty());

    let read = orders.read_item::<Item<Order>>("ada", "1").await.expect("read");
    assert_eq!(read.value().value, order("1", 10.0));
    assert_eq!(Some(read.value().etag.as_str()), created.etag());
    assert_eq!(read.diagnostics().attempts().len(), 1);

    let stored =
        orders.replace_item("ada", "1", &order("1", 11.0)).returning::<Order>().await.expect("replaced");
    assert_eq!(stored.into_value().total, 11.0);
    orders.delete_item("ada", "1").await.expect("deleted");
    let gone = orders.read_item::<Order>("ada", "1").await.expect_err("deleted");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_write_can_depend_on_the_etag_that_was_read() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let first = orders.upsert_item("ada", &order("1", 1.0)).await.expect("created");
    let etag = first.etag().expect("a version").to_owned();
    orders.replace_item("ada", "1", &order("1", 2.0)).if_match(&etag).await.expect("unchanged until now");
    let late = orders.replace_item("ada", "1", &order("1", 3.0)).if_match(&etag).await.expect_err("changed");
    assert_eq!(late.kind(), ErrorKind::PreconditionFailed);
    let again = orders.create_item("ada", &order("1", 4.0)).await.expect_err("there is one");
    assert_eq!(again.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_patch_changes_properties_of_an_item_under_a_condition() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    orders.create_item("ada", &order("1", 10.0)).await.expect("created");
    let patch = || Patch::new().increment("/total", 5).set("/note", "paid");
    let patched =
        orders.patch_item("ada", "1", patch()).returning::<serde_json::Value>().await.expect("patched");
    assert_eq!((&patched.value()["total"], &patched.value()["note"]), (&15.into(), &"paid".into()));
    let conditional = patch().only_if("FROM c WHERE c.total < 0");
    let error = orders.patch_item("ada", "1", conditional).await.expect_err("the condition does not hold");
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn every_patch_operation_works() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let stored = json!({"id": "1", "customer": "ada", "total": 1, "lines": ["a", "c"], "old": {"note": "n"}, "gone": 1});
    orders.create_item("ada", &stored).await.expect("created");
    let patch = Patch::new()
        .set("/new", "set")
        .add("/lines/1", "b")
        .replace("/total", 2)
        .increment("/total", 0.5)
        .remove("/gone")
        .move_from("/old/note", "/note");
    let patched = orders.patch_item("ada", "1", patch).returning::<Value>().await.expect("patched");
    let mut patched = patched.into_value();
    patched.as_object_mut().expect("an object").retain(|name, _| !name.starts_with('_'));
    let expected = json!({"id": "1", "customer": "ada", "total": 2.5, "lines": ["a", "b", "c"], "old": {}, "new": "set", "note": "n"});
    assert_eq!(patched, expected);
}

#[tokio::test]
async fn a_bulk_returns_the_stored_items_if_asked_to() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    for wanted in [false, true] {
        let bulk = orders
            .bulk()
            .upsert("ada", &order("1", 1.0))
            .upsert("bob", &json!({"id": "2", "customer": "bob"}));
        let bulk = if wanted { bulk.returning_content() } else { bulk };
        let done = bulk.await;
        for item in &done.items {
            let response = item.outcome.as_ref().expect("stored");
            let stored = response.value::<Value>().expect("JSON");
            assert_eq!(stored.is_some_and(|stored| stored["_etag"].is_string()), wanted, "{item:?}");
        }
        assert_eq!(done.items.len(), 2);
    }
}

#[tokio::test]
async fn a_batch_is_applied_as_a_whole_or_not_at_all() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let batch = Batch::new("ada")
        .create(&order("1", 1.0))
        .upsert(&order("2", 2.0))
        .patch("1", Patch::new().increment("/total", 1))
        .read("1");
    let done = orders.execute_batch(batch).await.expect("all were applied");
    assert_eq!(done.value().len(), 4);
    assert_eq!(done.value()[3].value::<Order>().expect("an order"), Some(order("1", 2.0)));

    let batch = Batch::new("ada").delete("2").create(&order("1", 9.0));
    let failed = orders.execute_batch(batch).await.expect_err("there is an item 1");
    assert_eq!(failed.kind(), ErrorKind::Conflict);
    let message = failed.message();
    assert!(message.starts_with("operation 1 of the batch (counted from 0) failed with 409"), "{message}");
    assert!(message.contains("already exists"), "the message of the service: {message}");
    assert!(!message.contains(['{', '[']) && !message.contains("ActivityId"), "no raw JSON: {message}");
    orders.read_item::<Order>("ada", "2").await.expect("not deleted: no operation was applied");
}

#[tokio::test]
async fn a_value_without_a_json_form_is_an_error_before_anything_is_sent() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let unprintable = std::collections::HashMap::from([((1, 2), 3)]);
    let error = orders.create_item("ada", &unprintable).await.expect_err("keys are not text");
    assert_eq!(error.kind(), ErrorKind::BadRequest);
    assert!(error.diagnostics().is_none(), "nothing was sent");
    let error =
        orders.patch_item("ada", "1", Patch::new().set("/a", &unprintable)).await.expect_err("the same");
    assert!(error.message().contains("/a"), "{error}");
}

#[tokio::test]
async fn a_response_of_another_type_is_an_error() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    orders.create_item("ada", &order("1", 1.0)).await.expect("created");
    let error = orders.read_item::<Vec<u8>>("ada", "1").await.expect_err("an object, not a list");
    assert_eq!(error.kind(), ErrorKind::Mismatch);
}

#[tokio::test]
async fn a_missing_item_can_be_none_and_a_missing_container_is_always_an_error() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    assert!(orders.read_item::<Order>("ada", "1").optional().await.expect("a response").is_none());
    let made = orders.create_item("ada", &order("1", 1.0)).await.expect("created");
    let read = orders.read_item::<Order>("ada", "1").optional().await.expect("a response").expect("there");
    assert_eq!(read.etag(), made.etag());
    let missing = account.client.database("shop").container("none");
    let error = missing.read_item::<Order>("ada", "1").optional().await.expect_err("no container");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    orders.delete().await.expect("deleted");
    let error = orders.read_item::<Order>("ada", "1").optional().await.expect_err("no container any more");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[tokio::test]
async fn an_item_is_read_only_if_it_changed() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let first = orders.upsert_item("ada", &order("1", 1.0)).await.expect("created");
    let etag = first.etag().expect("a version");
    let read = || orders.read_item::<Order>("ada", "1").if_none_match(etag);
    assert!(read().await.expect("a response").is_none());
    orders.upsert_item("ada", &order("1", 2.0)).await.expect("changed");
    assert_eq!(read().await.expect("a response").expect("changed").value().total, 2.0);
}

/// Calls can be sent to other threads, and own everything they need.
#[test]
fn calls_are_send_and_static() {
    fn check<T: Send + 'static>(_: &impl Fn(&ContainerClient) -> T) {}
    check(&|orders| orders.read_item::<Order>("k", "i").into_future());
    check(&|orders| orders.read_item::<Order>("k", "i").optional().into_future());
    check(&|orders| orders.create_item("k", &order("1", 1.0)).returning::<Order>().into_future());
    check(&|orders| orders.execute_batch(Batch::new("k")).into_future());
    check(&|orders| orders.query_items::<Order>("SELECT * FROM c").pages());
    check(&|orders| orders.query_items::<Order>("SELECT * FROM c").stream());
    check(&|orders| orders.change_feed::<Order>().start());
    fn shared<T: Send + Sync + 'static + std::fmt::Debug>() {}
    shared::<CosmosClient>();
    shared::<ContainerClient>();
    shared::<perihelion::Response<Order>>();
    shared::<perihelion::Error>();
    shared::<Batch>();
    shared::<Patch>();
}

#[tokio::test]
async fn a_bulk_has_one_result_for_each_operation() {
    use futures::StreamExt as _;
    use perihelion::BulkOperation;

    let account = TestAccount::start().await;
    let orders = account.orders().await;
    let unprintable = std::collections::HashMap::from([((1, 2), 3)]);
    let done = orders
        .bulk()
        .create("ada", &order("1", 1.0))
        .upsert("ada", &unprintable)
        .read("bob", "nothing")
        .create("ada", &order("2", 2.0))
        .await;
    let kinds: Vec<_> =
        done.items.iter().map(|item| item.outcome.as_ref().err().map(perihelion::Error::kind)).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::BadRequest), Some(ErrorKind::NotFound), None]);
    assert_eq!((done.summary.succeeded, done.failed().count()), (2, 2));

    let more = (3..500).map(|n| {
        let customer = format!("c{n}");
        let order = Order { customer: customer.clone(), ..order(&n.to_string(), f64::from(n)) };
        BulkOperation::create(customer.as_str(), &order)
    });
    let mut results = orders.bulk().patch("ada", "1", Patch::new().increment("/total", 1)).execute(more);
    let mut results_count = 0;
    while let Some(item) = results.next().await {
        item.outcome.expect("all are new");
        results_count += 1;
    }
    assert_eq!((results_count, results.summary().operations), (498, 498));
    let reads = orders.bulk().read("ada", "1").read("c7", "7").await;
    let totals: Vec<f64> = reads
        .items
        .iter()
        .map(|item| {
            item.outcome.as_ref().expect("read").value::<Order>().expect("an order").expect("one").total
        })
        .collect();
    assert_eq!(totals, [2.0, 7.0]);
}
