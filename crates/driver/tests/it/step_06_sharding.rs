//! Step 6: HTTP/2 over TLS in shards. The emulator takes 20 streams per connection, as the service does.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emulator::faults::{FaultRule, OperationKind as Op};
use futures::future::join_all;
use perihelion_http::trace::{ConnectionId, Protocol, Reuse};

use crate::secure::{LONG, Secure, exchange, read};
use crate::test_account::{TestAccount, run};

#[tokio::test]
async fn sixty_four_requests_at_once_take_several_connections_and_dropping_them_leaves_nothing() {
    let test_account = TestAccount::start().await;
    let secure = Secure::new(&test_account).await;
    run(&secure.driver, &test_account.create_item("a")).await.expect("made");
    let operation = test_account.read("a");
    let first = read(&secure.driver, &operation).await.expect("read");
    assert_eq!(exchange(&first).protocol, Some(Protocol::Http2));

    test_account.running.faults().add(FaultRule::delay(LONG).on(Op::Read).named("hold")).expect("a rule");
    {
        let reads = join_all((0..64).map(|_| read(&secure.driver, &operation)));
        let all_held = test_account.running.faults().wait_for_delayed_requests(64);
        let held = futures::future::select(Box::pin(reads), Box::pin(all_held));
        match tokio::time::timeout(LONG, held).await.expect("64 requests reach the server") {
            futures::future::Either::Left((responses, _)) => panic!("none has a response yet: {responses:?}"),
            futures::future::Either::Right(((), _reads)) => {
                assert_eq!(secure.driver.in_flight(), 64);
                assert!(secure.shards(&first) >= 4, "sixteen on each, and twenty are not exceeded");
            }
        }
    }
    assert_eq!(secure.driver.in_flight(), 0, "dropped calls are not counted");
    let none_held = test_account.running.faults().wait_for_delayed_requests(0);
    tokio::time::timeout(LONG, none_held).await.expect("the server sees the cancelled requests");

    test_account.running.faults().clear().expect("cleared");
    let again = read(&secure.driver, &operation).await.expect("read");
    assert_eq!(exchange(&again).reuse, Some(Reuse::Reused), "a reset stream does not cost its connection");
}

#[tokio::test]
async fn the_requests_of_a_burst_share_connections() {
    let test_account = TestAccount::start().await;
    let secure = Secure::new(&test_account).await;
    run(&secure.driver, &test_account.create_item("a")).await.expect("made");
    let operation = test_account.read("a");
    let wait = Duration::from_millis(200);
    test_account.running.faults().add(FaultRule::delay(wait).on(Op::Read).named("slow")).expect("a rule");
    let responses = join_all((0..64).map(|_| read(&secure.driver, &operation))).await;
    let mut per_connection: BTreeMap<ConnectionId, usize> = BTreeMap::new();
    for response in responses {
        let response = response.expect("a response");
        let connection = exchange(&response).connection.expect("one");
        *per_connection.entry(connection).or_default() += 1;
    }
    assert!(per_connection.len() >= 4, "{per_connection:?}");
    assert_eq!(secure.driver.in_flight(), 0);
}

#[tokio::test]
async fn a_shard_is_connected_before_it_is_needed() {
    let test_account = TestAccount::start().await;
    let secure = Secure::new(&test_account).await;
    run(&secure.driver, &test_account.create_item("a")).await.expect("made");
    let operation = test_account.read("a");
    let first = read(&secure.driver, &operation).await.expect("read");
    assert_eq!(secure.shards(&first), 1);
    test_account.running.faults().add(FaultRule::delay(LONG).on(Op::Read).named("hold")).expect("a rule");
    // Thirteen of sixteen: nothing is full yet, but it will be.
    let mut reads = Box::pin(join_all((0..13).map(|_| read(&secure.driver, &operation))));
    let grown = async {
        while secure.shards(&first) < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        responses = &mut reads => panic!("none has a response yet: {responses:?}"),
        grown = tokio::time::timeout(LONG, grown) => grown.expect("a second shard"),
    }
    assert_eq!(secure.connected.load(Ordering::Relaxed), 1, "its connection was made first");
}
