//! Several processes on one container, one of which is killed every few seconds.
//!
//! The processes are this test binary again. They keep a ledger in a container of its own, so that the test sees which
//! activities ran when, and whether one ran twice at once.

#![expect(clippy::disallowed_methods, reason = "processes are killed, and locks expire, in real time")]
#![expect(clippy::print_stdout, reason = "says which seed repeats the run, and what was measured")]

use std::collections::{BTreeMap, HashMap};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
use futures::{StreamExt, TryStreamExt};
use perihelion::{ContainerClient, ContainerProperties, CosmosClient, PartitionKeyDefinition, Patch, Query};
use perihelion_durable::{CosmosLeaseProvider, CosmosProvider, LeaseProvider};
use serde::{Deserialize, Serialize};

use super::evidence::{check_histories, check_nothing_left};
use super::process::{provider_options, runtime_options};
use crate::factory;
use crate::running::output_of;

/// The variable that makes the test binary a worker: the connection string and the names of the containers.
const WORKER: &str = "PERI_DURABLE_WORKER";
/// How long an orchestration may take, whatever is killed.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Locks of processes that are killed expire after this time.
const LOCK_TIME: Duration = Duration::from_secs(3);
/// The database of the tests.
const DATABASE: &str = "tests";

/// A run of an activity.
#[derive(Debug, Serialize, Deserialize)]
struct LedgerEntry {
    id: String,
    activity: String,
    process: u32,
    started: u64,
    ended: Option<u64>,
}

fn now_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// The activities of a worker, which note their runs.
fn activities(ledger: ContainerClient) -> ActivityRegistry {
    let process = std::process::id();
    ActivityRegistry::builder()
        .register("Square", move |ctx: ActivityContext, input: String| {
            let ledger = ledger.clone();
            async move {
                let entry = LedgerEntry {
                    id: format!("{process}-{:016x}", fastrand::u64(..)),
                    activity: format!("{}/{input}", ctx.instance_id()),
                    process,
                    started: now_millis(),
                    ended: None,
                };
                let key = entry.activity.as_str();
                ledger.upsert_item(key, &entry).await.map_err(|error| error.to_string())?;
                tokio::time::sleep(Duration::from_millis(5)).await;
                let ended = Patch::new().set("/ended", now_millis());
                ledger.patch_item(key, &entry.id, ended).await.map_err(|error| error.to_string())?;
                let number: u64 = input.parse().map_err(|_| "no number")?;
                Ok((number * number).to_string())
            }
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Sub", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Square", input).await
        })
        .register("Sums", |ctx: OrchestrationContext, _: String| async move {
            let calls = (1..=3).map(|number| ctx.schedule_activity("Square", number.to_string())).collect();
            let mut sum = 0;
            for result in ctx.join(calls).await {
                sum += result?.parse::<u64>().map_err(|_| "no number")?;
            }
            ctx.schedule_sub_orchestration("Sub", sum.to_string()).await
        })
        .build()
}

/// What each orchestration of the load returns: (1 + 4 + 9)².
const OUTPUT: &str = "196";
/// The activities of each, with that of its sub-orchestration.
const ACTIVITIES: usize = 4;

/// A worker, if the test binary was started as one; no test otherwise.
#[test]
fn worker_process() {
    let Ok(names) = std::env::var(WORKER) else { return };
    let mut names = names.split('|').map(str::to_owned);
    let mut name = || names.next().expect("three names");
    let (connection, container, ledger) = (name(), name(), name());
    // The end of the standard input says that the test has ended.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let client = CosmosClient::from_connection_string(&connection).expect("valid");
        let ledger = client.database(DATABASE).container(&ledger);
        let leases = |container: &ContainerClient| -> Arc<dyn LeaseProvider> {
            Arc::new(CosmosLeaseProvider::with_lease_time(container, Duration::from_secs(2)))
        };
        let options = provider_options().database(DATABASE).container(container);
        let provider = CosmosProvider::with_leases(&client, options, leases).await.expect("a provider");
        let _running = Runtime::start_with_options(
            Arc::new(provider),
            activities(ledger),
            orchestrations(),
            runtime_options(LOCK_TIME),
        )
        .await;
        std::future::pending::<()>().await;
    });
}

/// Worker processes, and when those that are no more were killed.
struct Workers {
    names: String,
    running: Vec<Child>,
    killed: HashMap<u32, u64>,
}

impl Workers {
    fn start(names: String, count: usize) -> Workers {
        let mut workers = Workers { names, running: Vec::new(), killed: HashMap::new() };
        for _ in 0..count {
            workers.add();
        }
        workers
    }

    fn add(&mut self) {
        let child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "crashes::killed_processes::worker_process", "--nocapture"])
            .env(WORKER, &self.names)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a worker");
        self.running.push(child);
    }

    /// Kills one with SIGKILL.
    fn kill(&mut self, which: usize) {
        let mut child = self.running.swap_remove(which);
        child.kill().expect("it was running");
        child.wait().expect("it ends");
        self.killed.insert(child.id(), now_millis());
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        while !self.running.is_empty() {
            self.kill(0);
        }
    }
}

/// Runs orchestrations on several processes, and kills one of them again and again.
async fn survive(processes: usize) {
    let (load_time, seed) = match factory::is_long() {
        true => (Duration::from_secs(60), fastrand::u64(..)),
        false => (Duration::from_secs(7), processes as u64),
    };
    let seed = std::env::var("PERI_SEED").map_or(seed, |seed| seed.parse().expect("PERI_SEED is a number"));
    println!("PERI_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);

    let name = format!("k-{:016x}", fastrand::u64(..));
    let options = provider_options().database(DATABASE).container(&name);
    let starter = Arc::new(CosmosProvider::new(&factory::client(), options).await.expect("a provider"));
    let ledger_name = format!("{name}-ledger");
    let key = PartitionKeyDefinition::hash("/activity").expect("a path");
    let database = factory::client().database(DATABASE);
    database.create_container(&ContainerProperties::new(&ledger_name, key)).await.expect("a ledger");

    let mut workers = Workers::start(format!("{}|{name}|{ledger_name}", factory::account()), processes);
    let client = Client::new(starter.clone());
    let started = Instant::now();
    let load = async {
        let numbers =
            futures::stream::iter(0..).take_while(|_| std::future::ready(started.elapsed() < load_time));
        let runs = numbers.map(|number| run_one(&client, number)).buffer_unordered(8);
        runs.collect::<Vec<Duration>>().await
    };
    let kills = async {
        loop {
            tokio::time::sleep(Duration::from_millis(rng.u64(1200..2400))).await;
            if started.elapsed() > load_time {
                std::future::pending::<()>().await;
            }
            workers.kill(rng.usize(..workers.running.len()));
            workers.add();
        }
    };
    let mut times = tokio::select! {
        times = load => times,
        () = kills => unreachable!("it only ends with the load"),
    };
    times.sort();
    let slowest = times.last().copied().unwrap_or_default();
    println!(
        "{processes} processes, {} killed: {} orchestrations, half within {:?}, all within {slowest:?}",
        workers.killed.len(),
        times.len(),
        times[times.len() / 2],
    );
    assert!(!workers.killed.is_empty() && times.len() > 10);

    check_nothing_left(starter.container()).await;
    for instance in client.list_all_instances().await.expect("instances") {
        check_histories(&client, &instance).await;
    }
    check_ledger(&database.container(&ledger_name), &workers.killed, times.len() * ACTIVITIES).await;
}

/// Runs one orchestration, and returns how long it took.
async fn run_one(client: &Client, number: usize) -> Duration {
    let started = Instant::now();
    let instance = format!("sums-{number}");
    client.start_orchestration(&instance, "Sums", "").await.expect("started");
    assert_eq!(output_of(client, &instance, WAIT_TIMEOUT).await, OUTPUT);
    started.elapsed()
}

/// Checks that all activities ran, and none twice at once.
async fn check_ledger(ledger: &ContainerClient, killed: &HashMap<u32, u64>, activities: usize) {
    let entries: Vec<LedgerEntry> =
        ledger.query_items(Query::new("SELECT * FROM c")).stream().try_collect().await.expect("the ledger");
    let mut runs: BTreeMap<&str, Vec<(u64, u64, u32)>> = BTreeMap::new();
    for entry in &entries {
        let ended = entry.ended.or_else(|| killed.get(&entry.process).copied()).unwrap_or(entry.started);
        runs.entry(&entry.activity).or_default().push((entry.started, ended, entry.process));
    }
    assert_eq!(runs.len(), activities, "activities that ran");
    for (activity, runs) in &mut runs {
        runs.sort_unstable();
        for pair in runs.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{activity} ran twice at once: {runs:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_of_which_one_is_killed_again_and_again() {
    survive(2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_of_which_one_is_killed_again_and_again() {
    survive(4).await;
}
