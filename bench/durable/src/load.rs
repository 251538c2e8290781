//! Orchestrations to be measured, and how many are kept in flight.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use driver_bench::clock;
use duroxide::providers::Provider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeOptions};
use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};
use futures::stream::{self, StreamExt};

use crate::timed::TimedTurns;

/// What an orchestration does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// So many activities at once.
    FanOut(usize),
    /// So many activities, one after the other.
    Sequence(usize),
}

impl Shape {
    pub(crate) fn activities(self) -> usize {
        match self {
            Shape::FanOut(count) | Shape::Sequence(count) => count,
        }
    }

    fn orchestration(self) -> &'static str {
        match self {
            Shape::FanOut(_) => "FanOut",
            Shape::Sequence(_) => "Sequence",
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::FanOut(count) => write!(f, "fan-out of {count}"),
            Shape::Sequence(count) => write!(f, "sequence of {count}"),
        }
    }
}

/// How orchestrations are run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    pub(crate) activity_ms: u64,
    pub(crate) dispatchers: usize,
    pub(crate) in_flight: usize,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) turn_p50_ms: f64,
    pub(crate) turn_p99_ms: f64,
    /// How long activities took in fact, on average.
    pub(crate) activity_ms: f64,
}

/// Keeps so many orchestrations in flight for so many seconds.
pub(crate) async fn for_a_while(
    provider: &Arc<dyn Provider>,
    plan: Plan,
    seconds: u64,
) -> Result<Measured, String> {
    let until = clock::now() + Duration::from_secs(seconds);
    measure(provider, plan, move |_| clock::now() < until).await
}

/// Runs so many orchestrations.
pub(crate) async fn so_many(provider: &Arc<dyn Provider>, plan: Plan, count: usize) -> Result<Measured, String> {
    measure(provider, plan, move |number| number < count).await
}

async fn measure(
    provider: &Arc<dyn Provider>,
    plan: Plan,
    go_on: impl Fn(usize) -> bool + Copy,
) -> Result<Measured, String> {
    let timed = Arc::new(TimedTurns::new(Arc::clone(provider)));
    let provider: Arc<dyn Provider> = Arc::<TimedTurns>::clone(&timed);
    let activities = Arc::new(Activities::default());
    let runtime = start(&provider, plan, &activities).await;
    let began = clock::now();
    let results: Vec<Result<f64, String>> = stream::iter(0..)
        .take_while(|number| std::future::ready(go_on(*number)))
        .map(|number| run_one(Arc::clone(&provider), plan, number))
        .buffer_unordered(plan.in_flight)
        .collect()
        .await;
    let took = began.elapsed().as_secs_f64();
    runtime.shutdown(None).await;
    let mut times = results.into_iter().collect::<Result<Vec<f64>, String>>()?;
    times.sort_by(f64::total_cmp);
    let turns = timed.turns_ms();
    Ok(Measured {
        per_second: times.len() as f64 / took,
        p50_ms: at(&times, 0.5),
        p99_ms: at(&times, 0.99),
        turn_p50_ms: at(&turns, 0.5),
        turn_p99_ms: at(&turns, 0.99),
        activity_ms: activities.mean_ms(),
    })
}

/// The value that this share of all is below.
fn at(ascending: &[f64], share: f64) -> f64 {
    ascending.get((ascending.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// The activities that were executed.
#[derive(Debug, Default)]
struct Activities {
    count: AtomicUsize,
    micros: AtomicUsize,
}

impl Activities {
    fn mean_ms(&self) -> f64 {
        self.micros.load(Ordering::Relaxed) as f64 / 1000.0 / self.count.load(Ordering::Relaxed) as f64
    }
}

async fn run_one(provider: Arc<dyn Provider>, plan: Plan, number: usize) -> Result<f64, String> {
    let client = Client::new(provider);
    let instance = format!("i{number}");
    let began = clock::now();
    let count = plan.shape.activities().to_string();
    let started = client.start_orchestration(&instance, plan.shape.orchestration(), count).await;
    started.map_err(|error| format!("{error:?}"))?;
    match client.wait_for_orchestration(&instance, Duration::from_secs(120)).await {
        Ok(OrchestrationStatus::Completed { .. }) => Ok(began.elapsed().as_secs_f64() * 1000.0),
        other => Err(format!("{instance} ended with {other:?}")),
    }
}

/// Starts so many orchestrations before there is a runtime, and counts how many end per second then.
pub(crate) async fn with_backlog(provider: &Arc<dyn Provider>, depth: usize, seconds: u64) -> Result<f64, String> {
    let client = Client::new(Arc::clone(provider));
    let starts = stream::iter(0..depth).map(|number| {
        let client = client.clone();
        async move { client.start_orchestration(&format!("w{number}"), "Counted", "").await }
    });
    let mut starts = starts.buffer_unordered(32);
    while let Some(started) = starts.next().await {
        started.map_err(|error| format!("{error:?}"))?;
    }
    let plan = Plan { shape: Shape::FanOut(1), activity_ms: 0, dispatchers: 4, in_flight: 1 };
    let before = COUNTED.load(Ordering::Relaxed);
    let began = clock::now();
    let runtime = start(provider, plan, &Arc::default()).await;
    let limit = Duration::from_secs(seconds);
    while began.elapsed() < limit && COUNTED.load(Ordering::Relaxed) - before < depth {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rate = (COUNTED.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
    runtime.shutdown(Some(0)).await;
    Ok(rate)
}

/// Activities of the orchestrations that wait, so far.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

async fn start(provider: &Arc<dyn Provider>, plan: Plan, measured: &Arc<Activities>) -> Arc<Runtime> {
    let time = Duration::from_millis(plan.activity_ms);
    let measured = Arc::clone(measured);
    let activities = ActivityRegistry::builder()
        .register("Work", move |_: ActivityContext, input: String| {
            let measured = Arc::clone(&measured);
            async move {
                let began = clock::now();
                if !time.is_zero() {
                    tokio::time::sleep(time).await;
                }
                measured.count.fetch_add(1, Ordering::Relaxed);
                measured.micros.fetch_add(began.elapsed().as_micros() as usize, Ordering::Relaxed);
                Ok(input)
            }
        })
        .register("Count", |_: ActivityContext, input: String| async move {
            COUNTED.fetch_add(1, Ordering::Relaxed);
            Ok(input)
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("FanOut", |context: OrchestrationContext, count: String| async move {
            let count: usize = count.parse().unwrap_or(0);
            let all = (0..count).map(|number| context.schedule_activity("Work", number.to_string()));
            let results = context.join(all.collect::<Vec<_>>()).await;
            Ok(results.len().to_string())
        })
        .register("Sequence", |context: OrchestrationContext, count: String| async move {
            for number in 0..count.parse().unwrap_or(0) {
                context.schedule_activity("Work", format!("{number}")).await?;
            }
            Ok(count)
        })
        .register("Counted", |context: OrchestrationContext, _: String| async move {
            context.schedule_activity("Count", "").await
        })
        .build();
    let options = RuntimeOptions {
        orchestration_concurrency: plan.dispatchers,
        worker_concurrency: plan.dispatchers,
        ..RuntimeOptions::default()
    };
    Runtime::start_with_options(Arc::clone(provider), activities, orchestrations, options).await
}
