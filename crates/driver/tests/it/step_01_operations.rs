//! Step 1: one operation at a time, against one region.

use std::time::Duration;

use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Asked};
use perihelion_driver::ErrorKind;
use perihelion_driver::operation::{Operation, Precondition};
use protocol::partition::PartitionKey;
use protocol::status::Status;

use crate::test_account::{TestAccount, WEST, body, item, regions, run, without_hedging};

#[tokio::test]
async fn an_item_is_made_read_changed_and_removed() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    let made = run(&driver, &test_account.create_item("a")).await.expect("made");
    assert_eq!(made.status(), Status::CREATED);
    assert!(made.charge() > 0.0 && made.etag().is_some() && made.session_token().is_some());

    let read = run(&driver, &test_account.read("a")).await.expect("read");
    assert_eq!((read.status(), &body(&read)["value"]), (Status::OK, &1.into()));
    assert_eq!(regions(&read), [WEST]);

    let etag = Precondition::IfMatch(read.etag().expect("an etag").to_owned());
    let replace =
        Operation::replace_item(&test_account.container, PartitionKey::single("a"), "a", item("a", 2));
    let replaced = run(&driver, &replace.clone().with_precondition(etag.clone())).await.expect("replaced");
    assert_eq!(body(&replaced)["value"], 2);
    let stale = run(&driver, &replace.with_precondition(etag)).await.expect_err("no longer that version");
    assert_eq!(stale.kind(), ErrorKind::PreconditionFailed);

    let twice = run(&driver, &test_account.create_item("a")).await.expect_err("it is there");
    assert_eq!((twice.kind(), twice.status()), (ErrorKind::Conflict, Some(Status::CONFLICT)));
    assert_eq!(run(&driver, &test_account.upsert("a", 3)).await.expect("written").status(), Status::OK);
    let found =
        run(&driver, &test_account.query("a", "SELECT VALUE c[\"value\"] FROM c")).await.expect("a page");
    assert_eq!(body(&found)["Documents"], serde_json::json!([3]));

    let delete = Operation::delete_item(&test_account.container, PartitionKey::single("a"), "a");
    assert_eq!(run(&driver, &delete).await.expect("removed").status(), Status::NO_CONTENT);
    let gone = run(&driver, &test_account.read("a")).await.expect_err("it is gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_container_made_again_under_its_name_is_found_again() {
    use perihelion_driver::operation::{OperationKind, Target};
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let other = test_account.driver();
    run(&other, &Operation::new(OperationKind::Delete, Target::container(&test_account.container)))
        .await
        .expect("removed");
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let again = Operation::new(OperationKind::Create, Target::containers("d")).with_body(body);
    run(&other, &again).await.expect("made again");
    let gone = run(&driver, &test_account.read("a")).await.expect_err("another container");
    assert_eq!((gone.kind(), gone.status()), (ErrorKind::NotFound, Some(Status::NOT_FOUND)));
    run(&driver, &test_account.create_item("a")).await.expect("made in the new one");
    run(&driver, &test_account.read("a")).await.expect("read from the new one");
}

#[tokio::test]
async fn bad_keys_and_missing_resources_are_different_errors() {
    use perihelion_driver::operation::ContainerName;
    use perihelion_driver::options::DriverOptions;
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(DriverOptions::new());
    let nowhere = ContainerName::new("d", "nowhere");
    let error = run(&driver, &Operation::read_item(&nowhere, PartitionKey::single("a"), "a")).await;
    assert_eq!(error.expect_err("no such container").kind(), ErrorKind::NotFound);
    let wrong_key = test_account.driver_with_key("d3Jvbmc=");
    let error = run(&wrong_key, &test_account.read("a")).await.expect_err("a wrong key");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn a_throttle_storm_is_waited_out_in_the_region_that_throttles() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let storm = FaultRule::status(429, 3200).retry_after(Duration::from_millis(10)).in_region(WEST).times(3);
    test_account.running.faults().add(storm).expect("a rule");
    let read = run(&driver, &test_account.read("a")).await.expect("read in the end");
    assert_eq!(regions(&read), [WEST; 4]);
    assert_eq!(read.diagnostics().totals().throttled, 3);
    // One that does not end is the caller's.
    let storm = FaultRule::status(429, 3200).retry_after(Duration::from_millis(1)).in_region(WEST);
    test_account.running.faults().add(storm).expect("a rule");
    let error = run(&driver, &test_account.read("a")).await.expect_err("throttled");
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert!(error.retry_after().is_some());
}

#[tokio::test]
async fn a_write_whose_response_is_lost_is_undecided_and_was_done_once() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver();
    run(&driver, &test_account.create_item("warm")).await.expect("made");
    let rule = FaultRule::connection(ConnectionEffect::CloseAfter).on(Asked::Create).times(1);
    test_account.running.faults().add(rule).expect("a rule");
    let error = run(&driver, &test_account.create_item("a")).await.expect_err("undecided");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    assert_eq!(body(&run(&driver, &test_account.read("a")).await.expect("it was done"))["value"], 1);
}
