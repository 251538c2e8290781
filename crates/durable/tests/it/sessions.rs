//! Sessions: which worker executes the activities of one, how many at a time, and what outlives an execution.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duroxide::runtime::RuntimeOptions;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};
use perihelion_durable::CosmosProvider;

use crate::factory;
use crate::running::{Running, runtime_options};

/// What workers have done: which worker had which session, and how many activities ran at once.
#[derive(Default)]
struct Log {
    /// The workers that executed activities of each session.
    workers: HashMap<String, HashSet<String>>,
    running: HashMap<String, usize>,
    /// The largest number of activities at once, for each session and for all.
    peaks: HashMap<String, usize>,
}

impl Log {
    fn change(&mut self, session: &str, by: isize) {
        for key in [session, "all"] {
            let running = self.running.entry(key.to_owned()).or_default();
            *running = running.saturating_add_signed(by);
            let peak = self.peaks.entry(key.to_owned()).or_default();
            *peak = (*peak).max(*running);
        }
    }
}

type SharedLog = Arc<Mutex<Log>>;

/// An activity that takes 60 ms and says which session it ran in.
fn activities(log: &SharedLog, worker: &'static str) -> ActivityRegistry {
    let log = Arc::clone(log);
    ActivityRegistry::builder()
        .register("Work", move |ctx: ActivityContext, input: String| {
            let log = Arc::clone(&log);
            async move {
                let session = ctx.session_id().unwrap_or("none").to_owned();
                {
                    let mut log = log.lock().expect("no panic");
                    log.change(&session, 1);
                    log.workers.entry(session.clone()).or_default().insert(worker.to_owned());
                }
                tokio::time::sleep(Duration::from_millis(60)).await;
                log.lock().expect("no panic").change(&session, -1);
                Ok(format!("{input}@{session}"))
            }
        })
        .build()
}

/// Runs activities at once; the input lists them as `input@session`.
fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("All", |ctx: OrchestrationContext, calls: String| async move {
            let calls = calls.split(' ').map(|call| match call.split_once('@') {
                Some((input, session)) => ctx.schedule_activity_on_session("Work", input, session),
                None => ctx.schedule_activity("Work", call),
            });
            let results: Result<Vec<String>, String> = ctx.join(calls.collect()).await.into_iter().collect();
            Ok(results?.join(" "))
        })
        .register("Typed", |ctx: OrchestrationContext, _: String| async move {
            let result: Result<u32, String> =
                ctx.schedule_activity_on_session_typed("Count", &vec![1, 2, 3], "t").await;
            Ok(result?.to_string())
        })
        .register("Continues", |ctx: OrchestrationContext, round: String| async move {
            let result = ctx.schedule_activity_on_session("Work", &round, "long").await?;
            if round == "3" {
                Ok(result)
            } else {
                ctx.continue_as_new((round.parse::<u32>().unwrap_or(3) + 1).to_string()).await
            }
        })
        .register("Upgrades", |ctx: OrchestrationContext, _: String| async move {
            let first = ctx.schedule_activity_on_session("Work", "v1", "kept").await?;
            ctx.continue_as_new_versioned("2.0.0", first).await
        })
        .register_versioned("Upgrades", "2.0.0", |ctx: OrchestrationContext, first: String| async move {
            let second = ctx.schedule_activity_on_session("Work", "v2", "kept").await?;
            Ok(format!("{first} {second}"))
        })
        .build()
}

fn options(node: Option<&str>) -> RuntimeOptions {
    RuntimeOptions { worker_concurrency: 4, worker_node_id: node.map(str::to_owned), ..runtime_options() }
}

async fn start(options: RuntimeOptions) -> (Running, SharedLog) {
    let log = SharedLog::default();
    let running = Running::with_options(activities(&log, "w"), orchestrations(), options).await;
    (running, log)
}

fn peak(log: &SharedLog, session: &str) -> usize {
    log.lock().expect("no panic").peaks.get(session).copied().unwrap_or_default()
}

#[tokio::test]
async fn activities_of_sessions_and_others_mix() {
    let (running, _log) = start(options(Some("node"))).await;
    let calls = "a@s1 b c@s2 d@s1 e";
    assert_eq!(running.output("mixed", "All", calls).await, "a@s1 b@none c@s2 d@s1 e@none");
    running.stop().await;
    // A worker without a name of its own takes sessions too.
    let (running, _log) = start(options(None)).await;
    assert_eq!(running.output("ephemeral", "All", calls).await, "a@s1 b@none c@s2 d@s1 e@none");
    running.stop().await;
}

#[tokio::test]
async fn an_activity_of_a_session_takes_and_returns_values_of_types() {
    let activities = ActivityRegistry::builder()
        .register_typed("Count", |_: ActivityContext, items: Vec<u32>| async move { Ok(items.len() as u32) })
        .build();
    let running = Running::with_options(activities, orchestrations(), options(Some("node"))).await;
    assert_eq!(running.output("typed", "Typed", "").await, "3");
    running.stop().await;
}

#[tokio::test]
async fn all_workers_of_a_named_node_serve_one_session_and_those_without_a_name_one_at_a_time() {
    let calls = "a@s b@s c@s d@s";
    let (running, log) = start(options(Some("node"))).await;
    running.output("named", "All", calls).await;
    assert!(peak(&log, "s") > 1, "several workers at once");
    running.stop().await;
    let (running, log) = start(options(None)).await;
    running.output("unnamed", "All", calls).await;
    assert_eq!(peak(&log, "s"), 1, "one worker has the session");
    running.stop().await;
}

#[tokio::test]
async fn fan_outs_over_sessions_complete() {
    let (running, log) = start(options(Some("node"))).await;
    let calls: Vec<String> =
        (0..12).map(|n| if n % 4 == 3 { n.to_string() } else { format!("{n}@s{}", n % 4) }).collect();
    let expected: Vec<String> = calls
        .iter()
        .map(|call| if call.contains('@') { call.clone() } else { format!("{call}@none") })
        .collect();
    assert_eq!(running.output("fan-out", "All", &calls.join(" ")).await, expected.join(" "));
    assert_eq!(log.lock().expect("no panic").workers.len(), 4);
    running.stop().await;
}

#[tokio::test]
async fn a_session_outlives_executions_and_versions() {
    let (running, _log) = start(options(Some("node"))).await;
    assert_eq!(running.output("long", "Continues", "0").await, "3@long");
    running.client.start_orchestration_versioned("upgrade", "Upgrades", "1.0.0", "").await.expect("started");
    assert_eq!(running.wait("upgrade").await, "v1@kept v2@kept");
    running.stop().await;
}

#[tokio::test]
async fn a_runtime_takes_no_more_sessions_than_it_may() {
    let limited = RuntimeOptions { max_sessions_per_runtime: 1, ..options(Some("node")) };
    let (running, log) = start(limited.clone()).await;
    running.output("two", "All", "a@s1 b@s2").await;
    assert_eq!(peak(&log, "all"), 1, "the second session waits for the first");
    running.stop().await;
    let (running, log) = start(limited).await;
    running.output("same", "All", "a@s1 b@s1 c@s1 d").await;
    assert!(peak(&log, "s1") > 1, "one session is one, however many activities it has");
    running.stop().await;
}

/// Two runtimes on providers of their own, that have one container.
async fn two_nodes(first: RuntimeOptions, second: RuntimeOptions) -> (Running, Running, SharedLog) {
    let log = SharedLog::default();
    let names = factory::options().poll_intervals(Duration::from_millis(20), Duration::from_millis(100));
    let mut nodes = Vec::new();
    for (worker, options) in [("a", first), ("b", second)] {
        let provider = CosmosProvider::new(&factory::client(), names.clone()).await.expect("a provider");
        nodes
            .push(Running::on(Arc::new(provider), activities(&log, worker), orchestrations(), options).await);
    }
    let second = nodes.pop().expect("two");
    (nodes.pop().expect("two"), second, log)
}

#[tokio::test]
async fn each_session_stays_with_one_of_two_nodes() {
    let (a, b, log) = two_nodes(options(Some("node-a")), options(Some("node-b"))).await;
    let calls = (0..16).map(|n| format!("{n}@s{}", n % 4)).collect::<Vec<_>>().join(" ");
    a.client.start_orchestration("first", "All", &calls).await.expect("started");
    assert_eq!(b.output("second", "All", &calls).await, calls);
    assert_eq!(a.wait("first").await, calls);
    for (session, workers) in &log.lock().expect("no panic").workers {
        assert_eq!(workers.len(), 1, "{session} was served by {workers:?}");
    }
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn nodes_of_different_sizes_share_the_sessions() {
    let small = RuntimeOptions {
        worker_concurrency: 1,
        max_sessions_per_runtime: 1,
        session_lock_timeout: Duration::from_secs(2),
        ..options(Some("small"))
    };
    let (a, b, log) = two_nodes(small, options(Some("large"))).await;
    let calls = (0..9).map(|n| format!("{n}@s{}", n % 3)).collect::<Vec<_>>().join(" ");
    assert_eq!(a.output("shared", "All", &calls).await, calls);
    for (session, workers) in &log.lock().expect("no panic").workers {
        assert_eq!(workers.len(), 1, "{session} was served by {workers:?}");
    }
    a.stop().await;
    b.stop().await;
}
