//! How long writers wait while the range they write to splits.
//!
//! A measurement that needs an idle machine, so it is ignored by default:
//!
//! ```text
//! PERI_ITEMS=100000 cargo test -p perihelion-emulator --release --test it split_waits -- --ignored --nocapture
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use perihelion_emulator::clock::Clock;
use perihelion_emulator::engine::account::Account;
use perihelion_emulator::regions::{Lag, Region, RegionId, Topology};
use protocol::account::ConsistencyLevel;
use tokio::time::Instant;

use crate::client::TestAccount;

const DOCS: &str = "/dbs/d/colls/c/docs";
const REGIONS: u8 = 3;

fn items() -> usize {
    std::env::var("PERI_ITEMS").ok().and_then(|items| items.parse().ok()).unwrap_or(10_000)
}

/// Three regions that all write, with a container of one range.
async fn account() -> Arc<TestAccount> {
    let mut settings = TestAccount::settings();
    let regions = ["West US", "East US", "North Europe"].map(|name| Region::new(name, 0)).to_vec();
    let lag = "20ms".parse::<Lag>().unwrap();
    settings.topology = Topology::new(regions, true, ConsistencyLevel::Session, lag).unwrap();
    let account = TestAccount::over(Account::new(settings), Clock::system());
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    account.create_container("d", body).await;
    Arc::new(account)
}

async fn upsert(account: &TestAccount, region: u8, id: usize) {
    let key = format!(r#"["{}"]"#, id % 97);
    let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    let body = format!(r#"{{"id":"{id}","pk":"{}","fill":"{:100}","n":{id}}}"#, id % 97, "");
    let response = account.send_in(RegionId(region), Method::POST, DOCS, &headers, &body).await;
    // While ranges change places a request may have to be sent again.
    response.expect_status(&[200, 201, 410]);
}

/// Writes until `stop` is set, and returns the duration of each write.
async fn writes(account: Arc<TestAccount>, region: u8, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    let mut id = usize::from(region);
    while !stop.load(Ordering::Relaxed) {
        #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
        let began = Instant::now();
        upsert(&account, region, id).await;
        took.push(began.elapsed());
        id = (id + 7) % items();
        tokio::task::yield_now().await;
    }
    took.sort_unstable();
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "a measurement: see the top of the file"]
async fn writers_do_not_wait_for_the_copy_when_a_range_splits() {
    let account = account().await;
    for id in 0..items() {
        upsert(&account, (id % usize::from(REGIONS)) as u8, id).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..REGIONS)
        .map(|region| tokio::spawn(writes(Arc::clone(&account), region, Arc::clone(&stop))))
        .collect();
    let splitting = Arc::clone(&account);
    let split = tokio::task::spawn_blocking(move || {
        #[expect(clippy::disallowed_methods, reason = "measures how long the call took")]
        let began = Instant::now();
        splitting.hosted.account.split_partition("d", "c", 0, None, splitting.clock.uptime()).unwrap();
        began.elapsed()
    });
    let split = split.await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let mut longest = Duration::ZERO;
    for (region, writer) in writers.into_iter().enumerate() {
        let took = writer.await.unwrap();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        longest = longest.max(at(1.0));
        println!(
            "{} items, split in {split:?}: {} writes in region {region}, p50 {:?}, p99 {:?}, longest {:?}",
            items(),
            took.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    // Writers that waited for the copy would wait as long as the split takes.
    assert!(longest < split.max(Duration::from_millis(100)), "{longest:?} of {split:?}");
}
