//! Instances that have ended are removed after a while, if that is asked for.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{OrchestrationContext, OrchestrationRegistry};
use perihelion_durable::CosmosProvider;

use crate::factory;
use crate::running::{Running, runtime_options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_is_removed_after_its_retention_and_one_that_runs_stays() {
    let options = factory::options()
        .retention(Duration::from_millis(300))
        .reconciler_interval(Duration::from_millis(50));
    let provider = Arc::new(CosmosProvider::new(&factory::client(), options).await.expect("a provider"));
    let orchestrations = OrchestrationRegistry::builder()
        .register("Short", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Long", |context: OrchestrationContext, _: String| async move {
            Ok(context.schedule_wait("Never").await)
        })
        .build();
    let activities = ActivityRegistry::builder().build();
    let running = Running::on(provider.clone(), activities, orchestrations, runtime_options()).await;
    running.client.start_orchestration("long", "Long", "").await.expect("started");
    assert_eq!(running.output("short", "Short", "done").await, "done");

    let admin = provider.as_management_capability().expect("administration");
    let removed = tokio::time::timeout(Duration::from_secs(20), async {
        while admin.list_instances().await.expect("listed") != ["long"] {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    removed.await.expect("the one that ended is removed, the other one stays");
    assert!(provider.read("short").await.expect("read").is_empty());
    running.stop().await;
}
