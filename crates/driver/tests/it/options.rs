//! Options, by what they change over sockets.

use perihelion_driver::transport::{HttpClientConfig, Transport, TransportFactory};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use emulator::faults::{FaultRule, OperationKind as Asked};
use emulator::regions::Lag;
use futures::future::join_all;
use futures::{StreamExt, stream};
use perihelion_driver::Region;
use perihelion_driver::bulk::{BulkOperation, BulkOptions};
use perihelion_driver::options::{
    CircuitBreakerOptions, ConsistencyOptions, DriverOptions, HedgingOptions, HedgingThreshold,
    OperationOptions, RegionOptions,
};
use perihelion_driver::{CosmosRuntime, ErrorKind};
use protocol::partition::PartitionKey;

use crate::test_account::{Clients, EAST, NORTH, TestAccount, WEST, item, regions, run, without_hedging};

fn of_regions(regions: RegionOptions) -> DriverOptions {
    DriverOptions::new().with_operation(OperationOptions::new().with_regions(regions))
}

#[tokio::test]
async fn runtime_options_apply_unless_a_driver_overrides_them() {
    let test_account = TestAccount::start().await;
    run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
    let runtime = CosmosRuntime::builder(Arc::new(Clients))
        .with_options(of_regions(RegionOptions::new().with_excluded([WEST])))
        .build()
        .expect("valid");
    let silent = runtime.driver(&test_account.account(), DriverOptions::new()).expect("valid");
    let none: [Region; 0] = [];
    let own = of_regions(RegionOptions::new().with_excluded(none));
    let own = runtime.driver(&test_account.account(), own).expect("valid");
    for (driver, region) in [(silent, EAST), (own, WEST)] {
        assert_eq!(regions(&run(&driver, &test_account.read("a")).await.expect("read")), [region]);
        let shown = format!("{driver:?}");
        assert!(shown.contains(region) && shown.len() < 200, "{shown}");
    }
}

/// Notes what clients are made with.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<HttpClientConfig>>);

impl TransportFactory for Noting {
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport> {
        self.0.lock().expect("no panic").push(config.clone());
        Clients.create(config)
    }
}

#[tokio::test]
async fn every_client_is_made_with_what_the_runtime_says() {
    let test_account = TestAccount::start().await;
    let factory = Arc::new(Noting::default());
    let mut config = HttpClientConfig::default();
    config.connect_timeout = Duration::from_millis(1234);
    let factory_of_runtime: Arc<dyn TransportFactory> = Arc::clone(&factory) as _;
    let runtime = CosmosRuntime::builder(factory_of_runtime).with_client(config).build().expect("valid");
    let driver = runtime.driver(&test_account.account(), DriverOptions::new()).expect("valid");
    run(&driver, &test_account.create_item("a")).await.expect("made");
    let made = factory.0.lock().expect("no panic");
    assert!(!made.is_empty());
    assert!(made.iter().all(|config| config.connect_timeout == Duration::from_millis(1234)), "{made:?}");
}

#[tokio::test]
async fn sessions_that_are_not_tracked_are_not_asked_for() {
    let test_account =
        TestAccount::start_with(|config| config.lag = "1h".parse::<Lag>().expect("a lag")).await;
    for (tracked, found) in [(true, true), (false, false)] {
        let consistency = ConsistencyOptions::new().with_track_sessions(tracked);
        let near = RegionOptions::new().with_preferred([NORTH]);
        let options = OperationOptions::new().with_regions(near).with_consistency(consistency);
        let driver = test_account.driver_with(without_hedging().with_operation(options));
        let id = format!("tracked {tracked}");
        run(&driver, &test_account.create_item(&id)).await.expect("made in West US");
        match run(&driver, &test_account.read(&id)).await {
            Ok(read) => assert!(found && regions(&read) == [NORTH, WEST], "{:?}", regions(&read)),
            Err(error) => assert!(!found && error.kind() == ErrorKind::NotFound, "{error}"),
        }
    }
}

#[tokio::test]
async fn a_breaker_opens_after_the_configured_failures() {
    let test_account = TestAccount::start().await;
    run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
    test_account
        .running
        .faults()
        .add(FaultRule::status(503, 0).on(Asked::Read).in_region(WEST))
        .expect("a rule");
    for threshold in [1, 3] {
        let failures = NonZeroU32::new(threshold).expect("not zero");
        let breaker = CircuitBreakerOptions::new()
            .with_failure_thresholds(failures, failures)
            .with_counter_reset_window(Duration::from_secs(600))
            .with_unavailability_probe_delay(Duration::from_secs(600));
        let driver = test_account.driver_with(without_hedging().with_circuit_breaker(breaker));
        let mut went_west = 0;
        for _ in 0..6 {
            went_west +=
                u32::from(regions(&run(&driver, &test_account.read("a")).await.expect("read"))[0] == WEST);
        }
        assert_eq!(went_west, threshold);
    }
}

#[tokio::test]
async fn no_more_second_attempts_run_at_a_time_than_may() {
    let test_account = TestAccount::start().await;
    run(&test_account.driver(), &test_account.create_item("a")).await.expect("made");
    let threshold = HedgingThreshold::after(Duration::from_millis(100)).expect("valid");
    let hedging = HedgingOptions::new().with_threshold(threshold).with_concurrent_max(NonZeroU32::MIN);
    let options = OperationOptions::new().with_hedging(hedging);
    let driver = test_account.driver_with(DriverOptions::new().with_operation(options));
    run(&driver, &test_account.read("a")).await.expect("everything is known");
    // Slow everywhere, so that a second attempt keeps its place until long after all wanted one.
    test_account
        .running
        .faults()
        .add(FaultRule::delay(Duration::from_secs(2)).on(Asked::Read))
        .expect("a rule");
    let reads =
        join_all((0..8).map(|_| async { run(&driver, &test_account.read("a")).await.expect("read") })).await;
    let hedges: u32 = reads.iter().map(|read| read.diagnostics().totals().hedges).sum();
    assert_eq!(hedges, 1);
}

#[tokio::test]
async fn an_operation_that_a_partition_rejects_for_too_long_fails() {
    let test_account = TestAccount::start().await;
    let driver = test_account.driver_with(without_hedging());
    driver.warm_up(std::slice::from_ref(&test_account.container), &Default::default()).await.expect("known");
    test_account.running.faults().add(FaultRule::status(429, 3200).on(Asked::Batch)).expect("a rule");
    let operation = BulkOperation::upsert(PartitionKey::single("a"), item("a", 1));
    let options = BulkOptions::new().with_retry_for(Duration::from_millis(300));
    let results: Vec<_> =
        driver.bulk(&test_account.container, stream::iter([Ok(operation)]), options).collect().await;
    let error = results[0].outcome.as_ref().expect_err("never taken");
    assert_eq!(error.kind(), ErrorKind::Throttled, "{error}");
    assert!(error.message().contains("times in"), "{error}");
}
