//! Many operations at once, over real sockets.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use emulator::RequestUnitMode;
use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Asked};
use futures::{StreamExt, stream};
use perihelion_driver::bulk::{BulkOperation, BulkOptions, BulkResult, BulkStream, BulkSummary};
use perihelion_driver::faults::{FaultInjectingHttpClientFactory, FaultInjector};
use perihelion_driver::operation::{ContainerName, Operation, OperationKind, Target};
use perihelion_driver::options::DriverOptions;
use perihelion_driver::query::QueryOptions;
use perihelion_driver::{Account, CosmosDriver, CosmosRuntime, Error, ErrorKind};
use protocol::headers as names;
use protocol::partition::PartitionKey;
use protocol::status::Status;
use serde_json::{Value, json};

use crate::test_account::{Clients, TestAccount, run, within, without_hedging};

fn key(number: usize) -> PartitionKey {
    PartitionKey::single(format!("k{number}").as_str())
}

fn item(number: usize) -> String {
    json!({"id": format!("i{number}"), "pk": format!("k{number}"), "n": number, "text": "x".repeat(100)})
        .to_string()
}

fn upserts(numbers: std::ops::Range<usize>) -> impl Iterator<Item = Result<BulkOperation, Error>> + Send {
    numbers.map(|number| Ok(BulkOperation::upsert(key(number), item(number)).repeatable()))
}

async fn all(mut results: BulkStream) -> (Vec<BulkResult>, BulkSummary) {
    let collected = results.by_ref().collect().await;
    (collected, results.summary())
}

#[track_caller]
fn assert_each_once(results: &[BulkResult], count: usize) {
    let indices: BTreeSet<u64> = results.iter().map(|result| result.index).collect();
    assert_eq!((results.len(), indices.len()), (count, count));
    assert!(indices.into_iter().eq(0..count as u64));
}

#[track_caller]
fn assert_all_done(results: &[BulkResult], count: usize) {
    assert_each_once(results, count);
    if let Some(failed) = results.iter().find(|result| result.outcome.is_err()) {
        panic!("{failed:?}");
    }
}

/// How many items the container has.
async fn count(driver: &CosmosDriver, container: &ContainerName) -> u64 {
    let body = json!({"query": "SELECT VALUE COUNT(1) FROM c"}).to_string();
    let mut pages = driver
        .query(container, body, &QueryOptions::new(), &within(crate::test_account::DEADLINE))
        .await
        .expect("a query");
    let mut count = 0;
    while let Some(page) = pages.next_page().await.expect("a page") {
        count +=
            page.rows.iter().map(|row| serde_json::from_slice::<u64>(row).expect("a number")).sum::<u64>();
    }
    count
}

fn faulty(test_account: &TestAccount, faults: &FaultInjector) -> CosmosDriver {
    let clients = FaultInjectingHttpClientFactory::new(Arc::new(Clients), faults.clone());
    let runtime = CosmosRuntime::builder(Arc::new(clients)).build().expect("valid");
    let account = Account::from_connection_string(&test_account.running.connection_string()).expect("valid");
    runtime.driver(&account, DriverOptions::new()).expect("valid")
}

/// Breaks the connections of a share of the batches.
fn broken_batches(name: &str, connection: ConnectionEffect, share: f64) -> FaultRule {
    FaultRule::connection(connection).named(name).on(Asked::Batch).in_container("d", "c").share(share)
}

#[tokio::test]
async fn ten_thousand_items_over_four_partitions_each_get_one_result() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let results = driver.bulk(&test_account.container, stream::iter(upserts(0..10_000)), BulkOptions::new());
    let (results, summary) = all(results).await;
    assert_all_done(&results, 10_000);
    assert_eq!((summary.succeeded, summary.failed, summary.sent), (10_000, 0, 10_000));
    assert!((100..=200).contains(&summary.requests), "{summary:?}");
    assert_eq!(summary.windows.len(), 4);
    assert!(results.iter().all(|result| result.charge > 1.0));
    assert_eq!(count(&driver, &test_account.container).await, 10_000);
}

#[tokio::test]
async fn each_operation_has_its_own_response() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let operations = [
        BulkOperation::create(key(1), item(1)),
        BulkOperation::read(key(2), "i2"),
        BulkOperation::delete(key(3), "i3"),
        BulkOperation::create(key(4), r#"{"pk":"k4"}"#),
        BulkOperation::upsert(key(5), item(5)),
    ];
    let first = driver.bulk(&test_account.container, stream::iter(operations.map(Ok)), BulkOptions::new());
    let (mut results, _) = all(first).await;
    assert_each_once(&results, 5);
    results.sort_by_key(|result| result.index);
    let status = |result: &BulkResult| match &result.outcome {
        Ok(response) => response.status.0,
        Err(error) => error.status().map_or(0, |status| status.0),
    };
    assert_eq!(results.iter().map(status).collect::<Vec<_>>(), [201, 404, 404, 400, 201]);
    let etag = results[4].outcome.as_ref().expect("stored").etag.clone().expect("a version");

    let patch = json!({"operations": [{"op": "incr", "path": "/n", "value": 2}]}).to_string();
    let operations = [
        Ok(BulkOperation::create(key(1), item(1))),
        Ok(BulkOperation::patch(key(5), "i5", patch).with_if_match(etag.clone())),
        Err(Error::new(ErrorKind::BadRequest, "not an operation")),
        Ok(BulkOperation::read(key(1), "i1")),
    ];
    let options = BulkOptions::new().returning_content();
    let (mut results, _) = all(driver.bulk(&test_account.container, stream::iter(operations), options)).await;
    results.sort_by_key(|result| result.index);
    assert_eq!(results.iter().map(status).collect::<Vec<_>>(), [409, 200, 0, 200]);
    assert_eq!(results[0].outcome.as_ref().expect_err("there").kind(), ErrorKind::Conflict);
    let body = |at: usize| -> Value {
        serde_json::from_slice(&results[at].outcome.as_ref().expect("done").body).expect("JSON")
    };
    assert_eq!((&body(1)["n"], &body(3)["n"]), (&json!(7), &json!(1)));
    let late = [Ok(BulkOperation::replace(key(5), "i5", item(5)).with_if_match(etag))];
    let (results, _) =
        all(driver.bulk(&test_account.container, stream::iter(late), BulkOptions::new())).await;
    let error = results[0].outcome.as_ref().expect_err("changed since");
    assert_eq!(error.kind(), ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn a_budget_is_used_up_and_no_operation_fails_of_it() {
    const RATE: f64 = 400.0;
    let test_account =
        TestAccount::start_with(|config| config.request_units = RequestUnitMode::Enforce).await;
    let driver = test_account.driver();
    let body = json!({"id": "t", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let create = Operation::new(OperationKind::Create, Target::containers("d"))
        .with_body(body.to_string())
        .with_header(names::OFFER_THROUGHPUT, RATE.to_string());
    run(&driver, &create).await.expect("made");
    let container = ContainerName::new("d", "t");
    let (results, summary) =
        all(driver.bulk(&container, stream::iter(upserts(0..300)), BulkOptions::new())).await;
    assert_all_done(&results, 300);
    assert!(summary.throttled > 0, "{summary:?}");
    // A second's worth was saved up, and partitions are not equally full.
    let ideal = (summary.charge - RATE) / RATE;
    let took = summary.elapsed.as_secs_f64();
    assert!(took > ideal * 0.8, "{took} s of {ideal} s: {summary:?}");
    assert!(took < ideal * 2.0 + 10.0, "{took} s of {ideal} s: {summary:?}");
    assert_eq!(count(&driver, &container).await, 300);
}

#[tokio::test]
async fn partitions_that_split_under_way_lose_nothing() {
    let test_account = TestAccount::start_with(|config| config.partitions = NonZeroU32::new(2)).await;
    let driver = test_account.driver();
    let options = BulkOptions::new().with_waiting_max(500.try_into().expect("not zero"));
    let mut bulk = driver.bulk(&test_account.container, stream::iter(upserts(0..6000)), options);
    let mut results = Vec::new();
    let mut splits = [0, 1, 2, 3].into_iter();
    while let Some(result) = bulk.next().await {
        results.push(result);
        if results.len() % 1000 == 500
            && let Some(range) = splits.next()
        {
            let path = format!("/databases/d/containers/c/partitions/{range}/split");
            test_account.control(http::Method::POST, &path, json!({})).await;
        }
    }
    assert_all_done(&results, 6000);
    let summary = bulk.summary();
    assert!(summary.regrouped > 0, "{summary:?}");
    assert_eq!(summary.windows.len(), 6, "{summary:?}");
    assert_eq!(count(&driver, &test_account.container).await, 6000);
}

#[tokio::test]
async fn lost_connections_lose_no_operation() {
    let test_account = TestAccount::start().await;
    let faults = FaultInjector::new(7);
    let driver = faulty(&test_account, &faults);
    for (name, connection) in
        [("before", ConnectionEffect::FailBeforeSending), ("after", ConnectionEffect::CloseAfter)]
    {
        faults.add(broken_batches(name, connection, 0.15)).expect("a rule");
    }
    let (results, summary) =
        all(driver.bulk(&test_account.container, stream::iter(upserts(0..5000)), BulkOptions::new())).await;
    assert_all_done(&results, 5000);
    assert!(summary.sent > 5000 && faults.hits("after") > Some(0), "{summary:?}");

    // Creates are not repeated: what was lost is said to be undecided, and was made.
    faults.clear();
    faults.add(broken_batches("lost", ConnectionEffect::CloseAfter, 0.3)).expect("a rule");
    let creates = (5000..8000).map(|number| Ok(BulkOperation::create(key(number), item(number))));
    let (results, summary) =
        all(driver.bulk(&test_account.container, stream::iter(creates), BulkOptions::new())).await;
    assert_each_once(&results, 3000);
    assert!(summary.failed > 0);
    for result in &results {
        if let Err(error) = &result.outcome {
            assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
        }
    }
    faults.clear();
    assert_eq!(count(&driver, &test_account.container).await, 8000);
}

/// Why a conflict that a lost request may have caused is never settled by looking (`docs/decisions/012`).
#[tokio::test]
async fn a_create_cannot_tell_its_own_item_from_that_of_another_client() {
    let test_account = TestAccount::start().await;
    let (driver, other) = (test_account.driver_with(without_hedging()), test_account.driver());
    let body = |id: &str, mark: &str| json!({"id": id, "pk": "k", "mark": mark}).to_string();
    let key = || PartitionKey::single("k");
    for (id, mine, theirs, lost) in [
        // Carried out, and the response is lost; no other client writes.
        ("made", "same", None, ConnectionEffect::CloseAfter),
        // The request is lost; another client has created an equal item.
        ("theirs", "same", Some("same"), ConnectionEffect::CloseBefore),
        // The same two with marks.
        ("made with a mark", "me", None, ConnectionEffect::CloseAfter),
        ("theirs with a mark", "me", Some("them"), ConnectionEffect::CloseBefore),
    ] {
        if let Some(theirs) = theirs {
            run(&other, &Operation::create_item(&test_account.container, key(), body(id, theirs)))
                .await
                .expect("made");
        }
        test_account
            .running
            .faults()
            .add(FaultRule::connection(lost).on(Asked::Batch).times(1))
            .expect("a rule");
        let create = BulkOperation::create(key(), body(id, mine)).repeatable();
        let (results, _) =
            all(driver.bulk(&test_account.container, stream::iter([Ok(create)]), BulkOptions::new())).await;
        let error = results[0].outcome.as_ref().expect_err("a conflict, of whose making?");
        assert_eq!((error.kind(), error.status()), (ErrorKind::Undecided, Some(Status::CONFLICT)), "{id}");
        let found =
            run(&driver, &Operation::read_item(&test_account.container, key(), id)).await.expect("there");
        let found: Value = serde_json::from_slice(found.body()).expect("JSON");
        assert_eq!(found["mark"], theirs.unwrap_or(mine), "{id}");
    }
}

#[tokio::test]
async fn an_item_that_is_too_large_fails_alone() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let large = json!({"id": "large", "pk": "k50", "text": "x".repeat(3 << 20)}).to_string();
    let operations =
        upserts(0..50).chain([Ok(BulkOperation::upsert(key(50), large))]).chain(upserts(51..100));
    let options = BulkOptions::new().with_batch(100.try_into().expect("not zero"), 64 << 20);
    let operations: Vec<_> = operations.collect();
    let (results, _) = all(driver.bulk(&test_account.container, stream::iter(operations), options)).await;
    assert_each_once(&results, 100);
    for result in results {
        match result.outcome {
            Ok(_) => assert_ne!(result.index, 50),
            Err(error) => {
                assert_eq!((result.index, error.kind()), (50, ErrorKind::TooLarge), "{error}");
                assert_eq!(error.status(), Some(Status::REQUEST_ENTITY_TOO_LARGE));
            }
        }
    }
}

#[tokio::test]
async fn dropping_a_bulk_ends_it() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    driver.warm_up(std::slice::from_ref(&test_account.container), &Default::default()).await.expect("known");
    let (guard, ended) = futures::channel::oneshot::channel::<()>();
    let endless = (0..).map(move |number| {
        let _held = &guard;
        Ok(BulkOperation::upsert(key(number), item(number)))
    });
    let mut bulk = driver.bulk(&test_account.container, stream::iter(endless), BulkOptions::new());
    for _ in 0..1000 {
        assert!(bulk.next().await.expect("endless").outcome.is_ok());
    }
    let summary = bulk.summary();
    let inside = summary.operations - summary.succeeded;
    assert!(inside <= 10_000, "the input is read no further than it must: {summary:?}");
    drop(bulk);
    assert!(ended.await.is_err(), "the input is dropped with it");
    // Requests in flight may still be carried out; none is sent after.
    assert!(count(&driver, &test_account.container).await <= summary.sent);
}

#[tokio::test]
async fn a_missing_container_fails_each_operation() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let nowhere = ContainerName::new("d", "nowhere");
    let (results, _) = all(driver.bulk(&nowhere, stream::iter(upserts(0..10)), BulkOptions::new())).await;
    assert_each_once(&results, 10);
    for result in results {
        assert_eq!(result.outcome.expect_err("no container").kind(), ErrorKind::NotFound);
    }
}
