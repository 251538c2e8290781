//! Steady reads and writes while regions come and go: nothing that was acknowledged is lost, reads never fail,
//! and nothing outlives its deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emulator::faults::{ConnectionEffect, DownMode, FaultRule};
use perihelion_driver::{CosmosDriver, ErrorKind};

use crate::test_account::{EAST, NORTH, TestAccount, WEST, body, run, within};

const WORKERS: u64 = 6;
const DEADLINE: Duration = Duration::from_secs(20);

/// How many rounds all workers made, and a way to wait for more.
type Rounds = Arc<tokio::sync::watch::Sender<u64>>;

/// What one worker did: the last value that was acknowledged, and the highest that may have been written.
struct Written {
    acknowledged: u64,
    highest: u64,
}

/// Writes ever higher values to an item of its own and reads them back, until expected to stop.
async fn work(
    test_account: Arc<TestAccount>,
    driver: CosmosDriver,
    id: String,
    stop: Arc<AtomicBool>,
    done: Rounds,
) -> Written {
    let mut written = Written { acknowledged: 0, highest: 0 };
    while !stop.load(Ordering::Relaxed) {
        written.highest += 1;
        match driver.execute_operation(&test_account.upsert(&id, written.highest), &within(DEADLINE)).await {
            Ok(_) => written.acknowledged = written.highest,
            // A write may fail while its region is away; it must say so in these terms and in time.
            Err(error) => {
                let expected = [ErrorKind::Undecided, ErrorKind::Unavailable, ErrorKind::DeadlineExceeded];
                assert!(expected.contains(&error.kind()), "{error}");
                let took = error.diagnostics().expect("diagnostics").elapsed();
                assert!(took < DEADLINE + Duration::from_secs(2), "{error}");
            }
        }
        let read = driver.execute_operation(&test_account.read(&id), &within(DEADLINE)).await;
        let value = match read {
            Ok(response) => body(&response)["value"].as_u64().expect("a number"),
            // Nothing was ever acknowledged, so there may be nothing.
            Err(error) if error.kind() == ErrorKind::NotFound && written.acknowledged == 0 => 0,
            Err(error) => panic!("reads never fail: {error}"),
        };
        assert!(value >= written.acknowledged && value <= written.highest, "{value} of {}", written.highest);
        done.send_modify(|count| *count += 1);
    }
    written
}

/// Lets every worker make some rounds.
async fn rounds(done: &Rounds, count: u64) {
    let mut seen = done.subscribe();
    let goal = *seen.borrow() + count * WORKERS;
    let waiting = tokio::time::timeout(Duration::from_secs(60), seen.wait_for(|count| *count >= goal)).await;
    waiting.expect("work goes on").expect("the counter lives");
}

async fn survive(multi_write: bool) {
    let test_account =
        if multi_write { TestAccount::start_multi_write().await } else { TestAccount::start().await };
    let test_account = Arc::new(test_account);
    let driver = test_account.driver();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Rounds::new(tokio::sync::watch::Sender::new(0)));
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let id = format!("worker-{number}");
            let work =
                work(Arc::clone(&test_account), driver.clone(), id, Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(work)
        })
        .collect();
    let region = |name| test_account.running.region(name).expect("a region");
    rounds(&done, 5).await;
    // A region that only reads goes down and comes back.
    region(NORTH).down(DownMode::Refused).expect("down");
    rounds(&done, 5).await;
    region(NORTH).up().expect("up");
    // The one that is read from and written to rejects everything for a moment.
    region(WEST).down(DownMode::Unavailable).expect("down");
    rounds(&done, 3).await;
    region(WEST).up().expect("up");
    rounds(&done, 3).await;
    // Half of the connections to it are lost.
    let losing = FaultRule::connection(ConnectionEffect::CloseAfter).in_region(WEST).share(0.5);
    let losing = test_account.running.faults().add(losing).expect("a rule");
    rounds(&done, 5).await;
    test_account.running.faults().remove(&losing).expect("removed");
    // It is slow, and then gone, and another one takes the writes.
    region(WEST).slow(Duration::from_millis(300)).expect("slow");
    rounds(&done, 3).await;
    region(WEST).up().expect("up");
    if !multi_write {
        region(EAST).fail_over().expect("failed over");
    }
    region(WEST).down(DownMode::Refused).expect("down");
    rounds(&done, 5).await;
    region(WEST).up().expect("up");
    rounds(&done, 5).await;
    stop.store(true, Ordering::Relaxed);
    for (number, worker) in workers.into_iter().enumerate() {
        let written = worker.await.expect("the worker saw nothing wrong");
        let read =
            run(&test_account.driver(), &test_account.read(&format!("worker-{number}"))).await.expect("read");
        let value = body(&read)["value"].as_u64().expect("a number");
        assert!(value >= written.acknowledged, "acknowledged {} and found {value}", written.acknowledged);
    }
    assert_eq!((driver.open_hedges(), driver.in_flight()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_write_region_comes_and_goes() {
    survive(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_write_regions_come_and_go() {
    survive(true).await;
}
