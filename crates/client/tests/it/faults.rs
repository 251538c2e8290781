//! Faults that a user injects into the client in tests of an application, over real sockets.

use std::time::Duration;

use perihelion::faults::{ConnectionEffect, FaultInjector, FaultRule, OperationKind};
use perihelion::{Account, ContainerClient, CosmosClient, ErrorKind};
use serde_json::{Value, json};

use crate::TestAccount;

/// A client that obeys rules, and its container of orders.
fn client_with(test_account: &TestAccount, faults: &FaultInjector) -> ContainerClient {
    let account = Account::from_connection_string(&test_account.running.connection_string()).expect("valid");
    let client = CosmosClient::builder(account).faults(faults).build().expect("valid");
    client.database("shop").container("orders")
}

async fn orders_under_faults() -> (TestAccount, FaultInjector, ContainerClient) {
    let test_account = TestAccount::start().await;
    test_account.orders().await;
    let faults = FaultInjector::new(7);
    let orders = client_with(&test_account, &faults);
    (test_account, faults, orders)
}

fn order(id: &str) -> Value {
    json!({"id": id, "customer": "ada"})
}

#[tokio::test]
async fn a_read_leaves_a_region_whose_requests_fail() {
    let (_test_account, faults, orders) = orders_under_faults().await;
    orders.create_item("ada", &order("o-1")).await.expect("created");
    let json = br#"{"id": "full", "match": {"operations": ["read"], "regions": ["westus"]}, "effect": {"status": 503}}"#;
    faults.add(FaultRule::from_json(json).expect("a rule")).expect("supported");
    let read = orders.read_item::<Value>("ada", "o-1").await.expect("read in another region");
    let regions: Vec<String> =
        read.diagnostics().attempts().iter().map(|attempt| attempt.endpoint.region().to_string()).collect();
    assert_eq!(regions.first().map(String::as_str), Some("West US"));
    assert_ne!(regions.last().map(String::as_str), Some("West US"));
    assert!(faults.hits("full") > Some(0));
}

#[tokio::test]
async fn a_create_whose_response_is_lost_is_undecided_and_was_carried_out() {
    let (_test_account, faults, orders) = orders_under_faults().await;
    let lost = FaultRule::connection(ConnectionEffect::CloseAfter).on(OperationKind::Create);
    faults.add(lost.in_container("shop", "orders").named("lost").times(1)).expect("supported");
    let error = orders.create_item("ada", &order("o-1")).await.expect_err("no response");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    orders.read_item::<Value>("ada", "o-1").await.expect("it was created");
}

#[tokio::test]
async fn a_create_that_could_not_be_sent_is_tried_again_and_throttling_is_waited_for() {
    let (_test_account, faults, orders) = orders_under_faults().await;
    let unreachable = FaultRule::connection(ConnectionEffect::FailBeforeSending).on(OperationKind::Create);
    faults.add(unreachable.named("unreachable").times(1)).expect("supported");
    orders.create_item("ada", &order("o-1")).await.expect("created by a second attempt");
    let throttle = FaultRule::throttle(Duration::from_millis(5)).on(OperationKind::Read);
    faults.add(throttle.named("busy").times(2)).expect("supported");
    let read = orders.read_item::<Value>("ada", "o-1").await.expect("read in the end");
    assert_eq!(read.diagnostics().totals().throttled, 2);
    assert_eq!((faults.hits("unreachable"), faults.hits("busy")), (Some(1), Some(2)));
}

#[tokio::test]
async fn one_rule_works_in_the_client_and_in_the_account() {
    let (test_account, faults, orders) = orders_under_faults().await;
    orders.create_item("ada", &order("o-1")).await.expect("created");
    let json = br#"{"id": "gone", "match": {"operations": ["read"], "partitionKey": "ada"}, "count": 1,
                    "effect": {"status": 404, "message": "on purpose"}}"#;
    let rule = || FaultRule::from_json(json).expect("a rule");
    faults.add(rule()).expect("the client can do that");
    let error = orders.read_item::<Value>("ada", "o-1").await.expect_err("injected by the client");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    test_account.running.faults().add(rule()).expect("the account can do that");
    let error = orders.read_item::<Value>("ada", "o-1").await.expect_err("injected by the account");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    orders.read_item::<Value>("ada", "o-1").await.expect("both rules had their hit");
}

#[tokio::test]
async fn what_only_the_account_can_do_is_an_error_that_names_the_alternative() {
    let faults = FaultInjector::new(7);
    let refuse = FaultRule::connection(ConnectionEffect::Refuse).in_region("West US");
    let error = faults.add(refuse).expect_err("the client has no port").to_string();
    assert!(error.contains("failBeforeSending"), "{error}");
}
