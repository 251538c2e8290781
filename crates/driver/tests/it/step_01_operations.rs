//! Step 1: one operation at a time, against one region.

use std::time::Duration;

use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Asked};
use perihelion_driver::ErrorKind;
use perihelion_driver::operation::{Operation, Precondition};
use protocol::partition::PartitionKey;
use protocol::status::Status;

use crate::lab::{Lab, WEST, body, item, regions, run, unraced};

#[tokio::test]
async fn an_item_is_made_read_changed_and_removed() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    let made = run(&driver, &lab.create_item("a")).await.expect("made");
    assert_eq!(made.status(), Status::CREATED);
    assert!(made.charge() > 0.0 && made.etag().is_some() && made.session_token().is_some());

    let read = run(&driver, &lab.read("a")).await.expect("read");
    assert_eq!((read.status(), &body(&read)["value"]), (Status::OK, &1.into()));
    assert_eq!(regions(&read), [WEST]);

    let etag = Precondition::IfMatch(read.etag().expect("an etag").to_owned());
    let replace = Operation::replace_item(&lab.container, PartitionKey::single("a"), "a", item("a", 2));
    let replaced = run(&driver, &replace.clone().with_precondition(etag.clone())).await.expect("replaced");
    assert_eq!(body(&replaced)["value"], 2);
    let stale = run(&driver, &replace.with_precondition(etag)).await.expect_err("no longer that version");
    assert_eq!(stale.kind(), ErrorKind::PreconditionFailed);

    let twice = run(&driver, &lab.create_item("a")).await.expect_err("it is there");
    assert_eq!((twice.kind(), twice.status()), (ErrorKind::Conflict, Some(Status::CONFLICT)));
    assert_eq!(run(&driver, &lab.upsert("a", 3)).await.expect("written").status(), Status::OK);
    let found = run(&driver, &lab.query("a", "SELECT VALUE c.value FROM c")).await.expect("a page");
    assert_eq!(body(&found)["Documents"], serde_json::json!([3]));

    let delete = Operation::delete_item(&lab.container, PartitionKey::single("a"), "a");
    assert_eq!(run(&driver, &delete).await.expect("removed").status(), Status::NO_CONTENT);
    let gone = run(&driver, &lab.read("a")).await.expect_err("it is gone");
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_container_made_again_under_its_name_is_found_again() {
    use perihelion_driver::operation::{OperationKind, Target};
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.create_item("a")).await.expect("made");
    let other = lab.driver();
    run(&other, &Operation::new(OperationKind::Delete, Target::container(&lab.container)))
        .await
        .expect("removed");
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    let again = Operation::new(OperationKind::Create, Target::containers("d")).with_body(body);
    run(&other, &again).await.expect("made again");
    let gone = run(&driver, &lab.read("a")).await.expect_err("another container");
    assert_eq!((gone.kind(), gone.status()), (ErrorKind::NotFound, Some(Status::NOT_FOUND)));
    run(&driver, &lab.create_item("a")).await.expect("made in the new one");
    run(&driver, &lab.read("a")).await.expect("read from the new one");
}

#[tokio::test]
async fn bad_keys_and_missing_things_are_told_apart() {
    use perihelion_driver::operation::ContainerName;
    use perihelion_driver::options::DriverOptions;
    let lab = Lab::start().await;
    let driver = lab.driver_with(DriverOptions::new());
    let nowhere = ContainerName::new("d", "nowhere");
    let error = run(&driver, &Operation::read_item(&nowhere, PartitionKey::single("a"), "a")).await;
    assert_eq!(error.expect_err("no such container").kind(), ErrorKind::NotFound);
    let wrong_key = lab.driver_with_key("d3Jvbmc=");
    let error = run(&wrong_key, &lab.read("a")).await.expect_err("a wrong key");
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn a_throttle_storm_is_waited_out_in_the_region_that_throttles() {
    let lab = Lab::start().await;
    let driver = lab.driver_with(unraced());
    run(&driver, &lab.create_item("a")).await.expect("made");
    let storm = FaultRule::status(429, 3200).retry_after(Duration::from_millis(10)).in_region(WEST).times(3);
    lab.running.faults().add(storm).expect("a rule");
    let read = run(&driver, &lab.read("a")).await.expect("read in the end");
    assert_eq!(regions(&read), [WEST; 4]);
    assert_eq!(read.diagnostics().totals().throttled, 3);
    // One that does not end is the caller's.
    let storm = FaultRule::status(429, 3200).retry_after(Duration::from_millis(1)).in_region(WEST);
    lab.running.faults().add(storm).expect("a rule");
    let error = run(&driver, &lab.read("a")).await.expect_err("throttled");
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert!(error.retry_after().is_some());
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_undecided_and_was_done_once() {
    let lab = Lab::start().await;
    let driver = lab.driver();
    run(&driver, &lab.create_item("warm")).await.expect("made");
    let rule = FaultRule::connection(ConnectionEffect::CloseAfter).on(Asked::Create).times(1);
    lab.running.faults().add(rule).expect("a rule");
    let error = run(&driver, &lab.create_item("a")).await.expect_err("nobody knows");
    assert_eq!(error.kind(), ErrorKind::Undecided, "{error}");
    assert_eq!(body(&run(&driver, &lab.read("a")).await.expect("it was done"))["value"], 1);
}
