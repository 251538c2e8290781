//! The options of calls: each call obeys its deadline, and sends the headers that it was given.

use std::time::Duration;

use emulator::faults::FaultRule;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use perihelion::{
    Batch, ChangeFeedStart, ContainerProperties, CosmosClient, ErrorKind, HeaderOptions, HedgingOptions,
    OperationOptions, Patch, Priority, Result, Throughput, TimeoutOptions,
};
use serde_json::{Value, json};

use crate::bad_input::fails;
use crate::recording_relay::RecordingRelay;
use crate::{Order, TestAccount, order};

/// Calls of every kind, each with these setters, in an order in which all of them succeed.
macro_rules! every_call {
    ($client:expr, $($setters:tt)*) => {{
        let client: CosmosClient = $client;
        let shop = client.database("shop");
        let orders = shop.container("orders");
        let properties = {
            let key = perihelion::PartitionKeyDefinition::hash("/customer").expect("a path");
            ContainerProperties::new("returns", key)
        };
        let write = json!({"id": "2", "customer": "ada", "total": 2});
        let batch = Batch::new("ada").read("1");
        let first = |name, future: BoxFuture<'static, Result<()>>| (name, future);
        vec![
            first("create_database", done(client.create_database("more") $($setters)*)),
            first("create_database_if_missing", done(client.create_database_if_missing("new") $($setters)*)),
            first("create_container_if_missing", done(shop.create_container_if_missing(&properties) $($setters)*)),
            first("list_databases", next(client.list_databases() $($setters)*.pages())),
            first("list stream", next(shop.list_containers() $($setters)*.stream())),
            first("read", done(shop.read() $($setters)*)),
            first("throughput", done(orders.throughput() $($setters)*)),
            first("set_throughput", done(orders.set_throughput(&Throughput::autoscale(4000)) $($setters)*)),
            first("read_item", done(orders.read_item::<Order>("ada", "1") $($setters)*)),
            first("optional", done(orders.read_item::<Order>("ada", "no") $($setters)*.optional())),
            first("upsert_item", done(orders.upsert_item("ada", &write) $($setters)*)),
            first("returning", done(orders.upsert_item("ada", &write).returning::<Order>() $($setters)*)),
            first("patch_item", done(orders.patch_item("ada", "2", Patch::new().set("/total", 3)) $($setters)*)),
            first("execute_batch", done(orders.execute_batch(batch) $($setters)*)),
            first("query stream", next(orders.query_items::<Order>("SELECT * FROM c") $($setters)*.stream())),
            first("query pages", {
                let query = orders.query_items::<Order>("SELECT * FROM c ORDER BY c.total") $($setters)*;
                async move { next(query.pages().await?).await }.boxed()
            }),
            first("change feed stream", {
                next(orders.change_feed::<Order>().from(ChangeFeedStart::Beginning) $($setters)*.stream())
            }),
            first("read_many", done(orders.read_many::<Order>([("ada", "1"), ("ada", "2"), ("bob", "3")]) $($setters)*)),
            first("bulk", {
                let bulk = orders.bulk().upsert("ada", &write) $($setters)*;
                async move {
                    let response = bulk.await;
                    response.items.into_iter().try_for_each(|item| item.outcome.map(|_| ()))
                }
                .boxed()
            }),
        ]
    }};
}

fn done<T: Send + 'static>(
    call: impl IntoFuture<Output = Result<T>, IntoFuture = BoxFuture<'static, Result<T>>>,
) -> BoxFuture<'static, Result<()>> {
    call.into_future().map(|result| result.map(|_| ())).boxed()
}

/// The first page or entry of a stream.
fn next<T: Send>(
    stream: impl futures::Stream<Item = Result<T>> + Send + 'static,
) -> BoxFuture<'static, Result<()>> {
    async move { Box::pin(stream).next().await.expect("one at least").map(|_| ()) }.boxed()
}

async fn account_of_one_region() -> TestAccount {
    let account = TestAccount::start_with(|config| config.regions = vec!["West US".to_owned()].into()).await;
    let orders = account.orders().await;
    orders.create_item("ada", &order("1", 1.0)).await.expect("created");
    account
}

#[tokio::test]
async fn every_request_of_every_call_has_its_headers() {
    let account = account_of_one_region().await;
    let (relay, client) = RecordingRelay::start(&account).await;
    let shop = client.database("shop");
    client.warm_up(&[&shop.container("orders")]).await.expect("warmed up");
    assert!(client.endpoint().contains(&relay.authority()));
    relay.take();
    let calls =
        every_call!(client, .priority(Priority::Low).throughput_bucket(2).header("X-Shop", "one, two"));
    for (name, call) in calls {
        call.await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let heads = relay.take();
        // The second run of an operation on metadata of the container itself may list its partitions again.
        let own: Vec<_> = heads.iter().filter(|head| !head.contains("/pkranges")).collect();
        assert!(!own.is_empty(), "{name}");
        for head in own {
            for line in
                ["x-ms-cosmos-priority-level: low", "x-ms-cosmos-throughput-bucket: 2", "x-shop: one, two"]
            {
                assert!(head.lines().any(|header| header == line), "{name} lacks {line}: {head}");
            }
        }
    }
}

#[tokio::test]
async fn without_options_no_such_header_is_sent() {
    let account = account_of_one_region().await;
    let (relay, client) = RecordingRelay::start(&account).await;
    let orders = client.database("shop").container("orders");
    orders.read_item::<Order>("ada", "1").await.expect("read");
    let heads = relay.take();
    assert!(!heads.is_empty());
    for head in heads {
        assert!(!head.contains("priority-level") && !head.contains("throughput-bucket"), "{head}");
        assert!(!head.contains("populate"), "{head}");
    }
}

#[tokio::test]
async fn every_call_ends_at_its_deadline() {
    const DEADLINE: Duration = Duration::from_millis(300);
    let account = account_of_one_region().await;
    let client =
        || CosmosClient::from_connection_string(&account.running.connection_string()).expect("valid");
    let (cold, warm) = (client(), client());
    warm.warm_up(&[&warm.database("shop").container("orders")]).await.expect("warmed up");
    account.running.faults().add(FaultRule::delay(Duration::from_secs(600))).expect("a rule");
    for (client, state) in [(cold, "cold"), (warm, "warm")] {
        let orders = client.database("shop").container("orders");
        let mut calls = every_call!(client.clone(), .timeout(DEADLINE));
        if state == "cold" {
            calls.push(("warm_up", done(client.warm_up(&[&orders]).timeout(DEADLINE))));
            calls.push(("feed_ranges", done(orders.feed_ranges().timeout(DEADLINE))));
            calls.push(("session_token", done(orders.session_token().timeout(DEADLINE))));
        }
        for (name, call) in calls {
            // A bulk sends operations again that were not done in time; its own limit is `BulkOptions::retry_for`.
            if name == "bulk" {
                continue;
            }
            let error = fails(call, DEADLINE).await;
            let expected = [ErrorKind::DeadlineExceeded, ErrorKind::Undecided, ErrorKind::Unavailable];
            assert!(expected.contains(&error.kind()), "{state} {name}: {error}");
        }
    }
}

#[tokio::test]
async fn calls_of_several_requests_have_one_deadline() {
    let account = account_of_one_region().await;
    let orders = account.client.database("shop").container("orders");
    // Each request is quick enough; all together are not.
    account.running.faults().add(FaultRule::delay(Duration::from_millis(400))).expect("a rule");
    let timeout = Duration::from_millis(600);
    let error = fails(orders.throughput().timeout(timeout).into_future(), timeout).await;
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{error}");
    let missing = account.client.create_database_if_missing("late").timeout(timeout);
    let error = fails(missing.into_future(), timeout).await;
    assert_eq!(error.kind(), ErrorKind::Undecided, "the create was sent: {error}");
    let change = orders.set_throughput(&Throughput::autoscale(8000)).timeout(4 * timeout);
    let error = fails(change.into_future(), 4 * timeout).await;
    assert_eq!(error.kind(), ErrorKind::Undecided, "its kind was changed and its amount not: {error}");
    let page = async {
        let query = orders.query_items::<Value>("SELECT * FROM c").timeout(timeout);
        query.pages().await?.next_page().await
    };
    assert!(page.await.expect("each page has the whole time").is_some());
}

#[tokio::test]
async fn regions_and_hedging_are_chosen_for_one_call() {
    let account = TestAccount::start().await;
    let orders = account.orders().await;
    orders.create_item("ada", &order("1", 1.0)).await.expect("created");
    let regions = |read: &perihelion::ItemResponse<Order>| -> Vec<String> {
        let attempts = read.diagnostics().attempts().iter();
        attempts.map(|attempt| attempt.endpoint.region().to_string()).collect()
    };
    let read = || orders.read_item::<Order>("ada", "1");
    assert_eq!(regions(&read().await.expect("read")), ["West US"]);
    assert_eq!(regions(&read().excluded_regions(["West US"]).await.expect("read")), ["East US"]);
    let none: [&str; 0] = [];
    let back = read().excluded_regions(["West US"]).excluded_regions(none);
    assert_eq!(regions(&back.await.expect("read")), ["West US"], "the last value counts");

    let slow = FaultRule::delay(Duration::from_millis(700)).in_region("West US");
    account.running.faults().add(slow).expect("a rule");
    let hedged = read().hedging(Duration::from_millis(50)).await.expect("read");
    assert!(regions(&hedged).contains(&"East US".to_owned()), "{}", hedged.diagnostics().summary());
    assert_eq!(regions(&read().hedging(false).await.expect("read")), ["West US"]);
}

#[tokio::test]
async fn options_are_merged_in_the_order_in_which_they_are_set() {
    let account = account_of_one_region().await;
    let (relay, client) = RecordingRelay::start(&account).await;
    let orders = client.database("shop").container("orders");
    client.warm_up(&[&orders]).await.expect("warmed up");
    relay.take();
    let headers = HeaderOptions::new().with_header("x-b", "2").with_priority(Priority::High);
    let options = || OperationOptions::new().with_headers(headers.clone());
    let read = orders.read_item::<Order>("ada", "1").header("x-a", "1").priority(Priority::Low);
    read.options(options()).header("x-b", "3").await.expect("read");
    let head = relay.take().pop().expect("one request");
    for line in ["x-a: 1", "x-b: 3", "x-ms-cosmos-priority-level: high"] {
        assert!(head.lines().any(|header| header == line), "{line}: {head}");
    }
    // The deadline of `timeout` survives options that set none, and is replaced by options that set one.
    account.running.faults().add(FaultRule::delay(Duration::from_secs(600))).expect("a rule");
    let soon = Duration::from_millis(200);
    let read = orders.read_item::<Order>("ada", "1").timeout(soon).options(options());
    fails(read.into_future(), soon).await;
    let minute = TimeoutOptions::new().with_end_to_end(Duration::from_secs(60));
    let read = orders.read_item::<Order>("ada", "1").options(OperationOptions::new().with_timeouts(minute));
    fails(read.timeout(soon).into_future(), soon).await;
    let bulk_options = perihelion::BulkOptions::new()
        .with_operation(OperationOptions::new().with_hedging(HedgingOptions::new().with_enabled(false)))
        .with_retry_for(Duration::from_millis(1));
    let bulk = orders.bulk().upsert("ada", &json!({"id": "9", "customer": "ada"}));
    let response = bulk.timeout(soon).returning_content().options(bulk_options).await;
    assert_eq!(response.failed().count(), 1, "within the timeout that was set before the options");
}

#[tokio::test]
async fn options_that_cannot_be_obeyed_say_what_to_do() {
    let account = account_of_one_region().await;
    let orders = account.client.database("shop").container("orders");
    let read = || orders.read_item::<Order>("ada", "1");
    for (read, parts) in [
        (read().header("x-ms-session-token", "0:-1#1"), "set the session token"),
        (read().header("Authorization", "me"), "change the credential"),
        (read().header("x a", "1"), "use letters, digits"),
        (read().header("x-a", "naïve"), "encode it"),
        (read().throughput_bucket(9), "a number from 1 to 5"),
        (read().timeout(Duration::ZERO), "must be longer"),
        (read().hedging(Duration::from_secs(9)), "between 50 ms and 4 s"),
    ] {
        let error = read.await.expect_err(parts);
        assert_eq!(error.kind(), ErrorKind::Configuration, "{error}");
        assert!(error.to_string().contains(parts), "{error}");
    }
    let query = orders.query_items::<Order>("SELECT * FROM c").header("x-ms-continuation", "x");
    let error = query.stream().try_collect::<Vec<_>>().await.expect_err("use `continuation`");
    assert!(error.to_string().contains("set the continuation"), "{error}");
    read().await.expect("the regions are as they were");
    read().timeout(Duration::MAX).await.expect("no limit at all");
    let query = orders.query_items::<Order>("SELECT * FROM c").timeout(Duration::MAX);
    assert_eq!(query.stream().try_collect::<Vec<_>>().await.expect("rows").len(), 1);
}
