//! A runtime on a container of its own, for tests of whole orchestrations.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{OrchestrationStatus, Runtime, RuntimeOptions};
use duroxide::{Client, ErrorDetails, Event, OrchestrationRegistry};
use perihelion_durable::CosmosProvider;

use crate::factory;

/// How long an orchestration of a test may take.
const WAIT_TIMEOUT: Duration = Duration::from_secs(30);

/// A runtime, its provider and a client of it.
pub(crate) struct Running {
    pub(crate) provider: Arc<CosmosProvider>,
    pub(crate) client: Client,
    runtime: Arc<Runtime>,
}

/// Options with short polls of the runtime.
pub(crate) fn runtime_options() -> RuntimeOptions {
    RuntimeOptions { dispatcher_min_poll_interval: Duration::from_millis(10), ..RuntimeOptions::default() }
}

impl Running {
    pub(crate) async fn start(
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
    ) -> Running {
        Running::with_options(activities, orchestrations, runtime_options()).await
    }

    pub(crate) async fn with_options(
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Running {
        let provider = factory::create_provider().await;
        Running::on(provider, activities, orchestrations, options).await
    }

    /// A runtime on a provider that exists.
    pub(crate) async fn on(
        provider: Arc<CosmosProvider>,
        activities: ActivityRegistry,
        orchestrations: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Running {
        let runtime =
            Runtime::start_with_options(provider.clone(), activities, orchestrations, options).await;
        Running { client: Client::new(provider.clone()), provider, runtime }
    }

    /// Starts an orchestration and returns its output.
    pub(crate) async fn output(&self, instance: &str, orchestration: &str, input: &str) -> String {
        self.client.start_orchestration(instance, orchestration, input).await.expect("started");
        self.wait(instance).await
    }

    /// Starts an orchestration that fails, and returns its error.
    pub(crate) async fn failure(&self, instance: &str, orchestration: &str, input: &str) -> ErrorDetails {
        self.client.start_orchestration(instance, orchestration, input).await.expect("started");
        self.wait_for_failure(instance).await
    }

    /// The output of an orchestration that completes.
    pub(crate) async fn wait(&self, instance: &str) -> String {
        output_of(&self.client, instance, WAIT_TIMEOUT).await
    }

    /// The error of an orchestration that fails.
    pub(crate) async fn wait_for_failure(&self, instance: &str) -> ErrorDetails {
        match self.client.wait_for_orchestration(instance, WAIT_TIMEOUT).await {
            Ok(OrchestrationStatus::Failed { details, .. }) => details,
            other => panic!("{instance} should fail: {other:?}"),
        }
    }

    /// The events of an execution.
    pub(crate) async fn history(&self, instance: &str, execution: u64) -> Vec<Event> {
        self.client.read_execution_history(instance, execution).await.expect("a history")
    }

    /// Waits until the history of an instance satisfies a condition.
    pub(crate) async fn wait_for_event(&self, instance: &str, is_there: impl Fn(&Event) -> bool) {
        use duroxide::providers::Provider;
        let found = async {
            loop {
                let events = self.provider.read(instance).await.unwrap_or_default();
                if events.iter().any(&is_there) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, found).await.expect("the event");
    }

    /// Ends the runtime in an orderly way.
    pub(crate) async fn stop(self) {
        self.runtime.shutdown(Some(200)).await;
        self.provider.close().await;
    }
}

/// The output of an orchestration that completes within a time.
pub(crate) async fn output_of(client: &Client, instance: &str, patience: Duration) -> String {
    match client.wait_for_orchestration(instance, patience).await {
        Ok(OrchestrationStatus::Completed { output, .. }) => output,
        other => panic!("{instance} should complete: {other:?}"),
    }
}
