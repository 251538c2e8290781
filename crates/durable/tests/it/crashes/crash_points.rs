//! A process ends between any two writes: another one goes on, and everything happens once.

#![expect(clippy::disallowed_methods, reason = "processes are killed, and locks expire, in real time")]
#![expect(clippy::print_stdout, reason = "says which seed repeats the run, and what was measured")]

use std::time::{Duration, Instant};

use duroxide::runtime::Runtime;
use duroxide::{Client, OrchestrationStatus};
use futures::StreamExt;
use perihelion_durable::CosmosProvider;

use super::evidence::{check_histories, check_nothing_left, leftovers};
use super::ledger::Ledger;
use super::process::{LastWrite, Process, provider, provider_options, runtime_options};
use super::workloads::{self, EVERYTHING, LARGE_TURN, SLOW, Workload};
use crate::factory;

const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a workload in a process that ends after so many writes, and lets a second one finish it. Returns whether the
/// first one ended before the work was done.
async fn crash_after(workload: Workload, lock_time: Duration, writes: u64, last: LastWrite) -> bool {
    let options = provider_options();
    let ledger = Ledger::default();
    let starter = CosmosProvider::new(&factory::client(), options.clone()).await.expect("a provider");
    let client = Client::new(std::sync::Arc::new(starter));
    client.start_orchestration("it", workload.orchestration, "").await.expect("started");

    let process = Process::start(&options, lock_time, &ledger, writes, last);
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let mut crashed = false;
    let mut checks = 0;
    while Instant::now() < deadline && !crashed {
        tokio::time::sleep(Duration::from_millis(2)).await;
        crashed = process.is_cut_off();
        checks += 1;
        if checks % 50 != 0 {
            continue;
        }
        let mut ended = true;
        for instance in instances(&workload) {
            let status = client.get_orchestration_status(&instance).await.expect("a status");
            ended &= matches!(status, OrchestrationStatus::Completed { .. });
        }
        if ended {
            break;
        }
    }
    process.kill();

    let second = provider(&factory::client(), &options).await;
    let runtime = Runtime::start_with_options(
        second.clone(),
        workloads::activities(&ledger),
        workloads::orchestrations(),
        runtime_options(lock_time),
    );
    let runtime = runtime.await;
    let context = format!("{} after {writes} writes, {last:?}", workload.orchestration);
    for (suffix, output) in std::iter::once(&("", workload.output)).chain(workload.started) {
        match client.wait_for_orchestration(&format!("it{suffix}"), WAIT_TIMEOUT).await {
            Ok(OrchestrationStatus::Completed { output: found, .. }) => {
                assert_eq!(found, *output, "{context}")
            }
            other => {
                panic!("{context}, it{suffix}: {other:?}, left: {:#?}", leftovers(second.container()).await)
            }
        }
    }
    for instance in client.list_all_instances().await.expect("instances") {
        check_histories(&client, &instance).await;
    }
    check_nothing_left(second.container()).await;
    ledger.check(workload.activities);
    runtime.shutdown(Some(100)).await;
    crashed
}

fn instances(workload: &Workload) -> Vec<String> {
    let started = workload.started.iter().map(|(suffix, _)| format!("it{suffix}"));
    std::iter::once("it".to_owned()).chain(started).collect()
}

/// Crashes after each of these numbers of writes, some at a time.
async fn crash_at(
    workload: Workload,
    lock_time: Duration,
    points: impl IntoIterator<Item = u64>,
    at_once: usize,
) -> usize {
    let runs = points.into_iter().flat_map(|point| {
        [LastWrite::Answered, LastWrite::Unanswered].map(|last| crash_after(workload, lock_time, point, last))
    });
    let crashed: Vec<bool> = futures::stream::iter(runs).buffer_unordered(at_once).collect().await;
    crashed.into_iter().filter(|crashed| *crashed).count()
}

/// Every n-th point, from one that a seed chooses: the seeds of all runs together see every point.
fn seeded(points: u64, stride: u64) -> impl Iterator<Item = u64> {
    let seed = match std::env::var("PERI_SEED") {
        Ok(seed) => seed.parse().expect("PERI_SEED is a number"),
        Err(_) => 1,
    };
    let stride = if factory::is_long() { 1 } else { stride };
    println!("crash points from seed {seed}, PERI_SEED=n chooses others");
    (1..=points).filter(move |point| point % stride == seed % stride)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_any_two_writes_of_turns_deliveries_and_leases() {
    let points: Vec<u64> = seeded(56, 3).collect();
    let crashed = crash_at(EVERYTHING, Duration::from_millis(1000), points.clone(), 10).await;
    assert!(crashed > points.len(), "only {crashed} of {} crashed", 2 * points.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_any_two_writes_of_a_large_turn() {
    let points: Vec<u64> = seeded(if factory::is_long() { 40 } else { 9 }, 3).collect();
    let crashed = crash_at(LARGE_TURN, Duration::from_millis(1500), points.clone(), 6).await;
    assert!(crashed >= points.len(), "only {crashed} of {} crashed", 2 * points.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_between_renewals_of_a_lock() {
    let points = if factory::is_long() { 40 } else { 16 };
    let crashed = crash_at(SLOW, Duration::from_secs(2), (4..=points).step_by(2), 16).await;
    assert!(crashed > 0, "none crashed");
}
