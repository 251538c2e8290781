//! Step 7: connections that break, seen from the operation.

use emulator::faults::{ConnectionEffect, FaultRule, OperationKind as Op};
use futures::future::join_all;

use crate::secure::{Secure, read};
use crate::test_account::{TestAccount, run};

#[tokio::test]
async fn requests_whose_connection_breaks_are_sent_over_another() {
    let test_account = TestAccount::start().await;
    let secure = Secure::new(&test_account).await;
    run(&secure.driver, &test_account.create_item("a")).await.expect("made");
    let operation = test_account.read("a");
    read(&secure.driver, &operation).await.expect("read");
    // Each takes up to fifteen others with it.
    let breaks = FaultRule::connection(ConnectionEffect::CloseBefore).on(Op::Read).times(3);
    test_account.running.faults().add(breaks).expect("a rule");
    for response in join_all((0..48).map(|_| read(&secure.driver, &operation))).await {
        response.expect("a response");
    }
    assert_eq!(secure.driver.in_flight(), 0);
}
