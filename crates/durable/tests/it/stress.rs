//! duroxide's stress tests of providers, for a few seconds. `PERI_DURABLE_LONG` makes them as long as duroxide has them.

use std::sync::Arc;

use async_trait::async_trait;
use duroxide::provider_stress_tests::large_payload::{
    LargePayloadConfig, run_large_payload_test_with_config,
};
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test_with_config,
};
use duroxide::provider_stress_tests::{StressTestConfig, StressTestResult};
use duroxide::providers::Provider;

use crate::factory;

struct Containers;

#[async_trait]
impl ProviderStressFactory for Containers {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        factory::create_provider().await
    }
}

fn check(result: &StressTestResult) {
    assert!(result.launched > 0, "{result:?}");
    assert_eq!((result.completed, result.failed), (result.launched, 0), "{result:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_orchestrations() {
    for dispatchers in [2, 4] {
        let config = StressTestConfig {
            max_concurrent: 10,
            duration_secs: if factory::is_long() { 10 } else { 2 },
            orch_concurrency: dispatchers,
            worker_concurrency: dispatchers,
            ..StressTestConfig::default()
        };
        let result = run_parallel_orchestrations_test_with_config(&Containers, config).await;
        check(&result.expect("the test runs"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_payloads() {
    let mut config = LargePayloadConfig::default();
    config.base.max_concurrent = if factory::is_long() { 5 } else { 2 };
    config.base.duration_secs = if factory::is_long() { 10 } else { 1 };
    let result = run_large_payload_test_with_config(&Containers, config).await;
    check(&result.expect("the test runs"));
}
