//! Step 7: connections that break, seen from the operation.

use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Op};
use futures::future::join_all;

use crate::lab::{Lab, run};
use crate::secure::{Secure, read};

#[tokio::test]
async fn requests_whose_connection_breaks_are_answered_over_another() {
    let lab = Lab::start().await;
    let secure = Secure::new(&lab).await;
    run(&secure.driver, &lab.create_item("a")).await.expect("made");
    let operation = lab.read("a");
    read(&secure.driver, &operation).await.expect("read");
    // Each takes up to fifteen others with it.
    let breaks = FaultRule::connection(ConnectionEffect::CloseBefore).on(Op::Read).times(3);
    lab.running.faults().add(breaks).expect("a rule");
    for answer in join_all((0..48).map(|_| read(&secure.driver, &operation))).await {
        answer.expect("answered");
    }
    assert_eq!(secure.driver.in_flight(), 0);
}
