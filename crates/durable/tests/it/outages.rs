//! Regions that go down, a write region that fails over, and throughput that does not suffice.

#![expect(clippy::disallowed_methods, reason = "processes are killed, and locks expire, in real time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};
use emulator::{Emulator, EmulatorConfig, RegionSelection, RequestUnitMode, RunningEmulator};
use perihelion::faults::{FaultRule, OperationKind};
use perihelion::{CosmosClient, Throughput};
use perihelion_durable::{CosmosProvider, ProviderOptions};

use crate::factory;
use crate::running::{Running, output_of, runtime_options};

/// How long all orchestrations of a test may take.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Next", |_: ActivityContext, input: String| async move {
            let number: u64 = input.parse().map_err(|_| "no number")?;
            Ok((number + 1).to_string())
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Sub", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Next", input).await
        })
        .register("Steps", |ctx: OrchestrationContext, pause: String| async move {
            let pause = Duration::from_millis(pause.parse().map_err(|_| "no number")?);
            let mut number = "0".to_owned();
            for _ in 0..2 {
                number = ctx.schedule_activity("Next", number).await?;
                ctx.schedule_timer(pause).await;
            }
            ctx.schedule_sub_orchestration("Sub", number).await
        })
        .build()
}

async fn start(
    config: impl FnOnce(&mut EmulatorConfig),
    options: ProviderOptions,
) -> (RunningEmulator, Running) {
    let mut settings = EmulatorConfig::default();
    config(&mut settings);
    let account = Emulator::start(settings).await.expect("the account starts");
    let client = CosmosClient::from_connection_string(&account.connection_string()).expect("valid");
    let provider = Arc::new(CosmosProvider::new(&client, options).await.expect("a provider"));
    let runtime_options = duroxide::runtime::RuntimeOptions { worker_concurrency: 8, ..runtime_options() };
    let running = Running::on(provider, activities(), orchestrations(), runtime_options).await;
    (account, running)
}

async fn start_all(running: &Running, count: usize, pause: &str) {
    for number in 0..count {
        let instance = format!("steps-{number}");
        running.client.start_orchestration(&instance, "Steps", pause).await.expect("started");
    }
}

async fn wait_for_all(running: &Running, count: usize) {
    for number in 0..count {
        assert_eq!(output_of(&running.client, &format!("steps-{number}"), WAIT_TIMEOUT).await, "3");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_goes_down_and_the_write_region_fails_over() {
    let count = if factory::is_long() { 1000 } else { 100 };
    let three_regions = |settings: &mut EmulatorConfig| settings.regions = RegionSelection::Count(3);
    let (account, running) = start(three_regions, factory::options()).await;
    let names: Vec<String> = account.regions().into_iter().map(|region| region.name).collect();
    let region = |at: usize| account.region(&names[at]).expect("a region");
    let outage = async {
        let pause = async || tokio::time::sleep(Duration::from_millis(700)).await;
        pause().await;
        // Nobody takes writes for a while: longer than the runtime itself would repeat a commit.
        region(0).down(Default::default()).expect("down");
        pause().await;
        pause().await;
        region(1).fail_over().expect("failed over");
        pause().await;
        region(0).up().expect("up");
        region(2).down(Default::default()).expect("down");
        pause().await;
        region(2).up().expect("up");
    };
    // Starts of orchestrations are refused while there is no write region, so these come first.
    start_all(&running, count, "400").await;
    tokio::join!(outage, wait_for_all(&running, count));
    running.stop().await;
    account.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_outage_ends_no_orchestration_and_no_activity() {
    let (account, running) = start(|_| {}, factory::options()).await;
    start_all(&running, 10, "50").await;
    // Every write fails for a second, again and again.
    for _ in 0..3 {
        let refuse = FaultRule::status(503, 0).on(OperationKind::Write).lasting(Duration::from_secs(1));
        account.faults().add(refuse).expect("a rule");
        tokio::time::sleep(Duration::from_millis(1200)).await;
    }
    wait_for_all(&running, 10).await;
    running.stop().await;
    account.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_little_throughput_slows_everything_down_and_loses_nothing() {
    let count = if factory::is_long() { 100 } else { 15 };
    let enforce = |settings: &mut EmulatorConfig| settings.request_units = RequestUnitMode::Enforce;
    let options = factory::options().throughput(Throughput::manual(400));
    let (account, running) = start(enforce, options).await;
    let started = Instant::now();
    start_all(&running, count, "10").await;
    wait_for_all(&running, count).await;
    let partitions = account.usage().into_iter().flat_map(|container| container.partitions);
    let throttled: u64 = partitions.map(|(_, _, usage)| usage.throttled).sum();
    println!("{count} orchestrations in {:?}, {throttled} requests throttled", started.elapsed());
    assert!(throttled > 0);
    running.stop().await;
    account.stop().await;
}
