//! Activities that only some workers execute.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::TagFilter;
use duroxide::runtime::RuntimeOptions;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Either2, OrchestrationContext, OrchestrationRegistry};
use perihelion_durable::CosmosProvider;

use crate::factory;
use crate::running::{Running, runtime_options};

/// An activity that says which worker executes it.
fn activities(worker: &'static str) -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Who", move |ctx: ActivityContext, _: String| async move {
            Ok(format!("{worker}/{}", ctx.tag().unwrap_or("none")))
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Mixed", |ctx: OrchestrationContext, _: String| async move {
            let plain = ctx.schedule_activity("Who", "").await?;
            let tagged = ctx.schedule_activity("Who", "").with_tag("gpu").await?;
            Ok(format!("{plain} {tagged}"))
        })
        .register("GivesUp", |ctx: OrchestrationContext, _: String| async move {
            let tagged = ctx.schedule_activity("Who", "").with_tag("nobody");
            let timer = ctx.schedule_timer(Duration::from_millis(200));
            match ctx.select2(tagged, timer).await {
                Either2::First(result) => result,
                Either2::Second(()) => Ok("no worker".to_owned()),
            }
        })
        .build()
}

fn options(tags: TagFilter) -> RuntimeOptions {
    RuntimeOptions { worker_tag_filter: tags, ..runtime_options() }
}

#[tokio::test]
async fn one_runtime_takes_plain_and_tagged_activities_and_a_timer_ends_the_wait_for_others() {
    let tags = options(TagFilter::default_and(["gpu"]));
    let running = Running::with_options(activities("one"), orchestrations(), tags).await;
    assert_eq!(running.output("mixed", "Mixed", "").await, "one/none one/gpu");
    assert_eq!(running.output("gives-up", "GivesUp", "").await, "no worker");
    running.stop().await;
}

#[tokio::test]
async fn two_runtimes_share_the_work_by_tags() {
    // On one provider, and each on its own.
    for shared in [true, false] {
        let names = factory::options().poll_intervals(Duration::from_millis(20), Duration::from_millis(100));
        let provider = async || {
            Arc::new(CosmosProvider::new(&factory::client(), names.clone()).await.expect("a provider"))
        };
        let first = provider().await;
        let second = if shared { Arc::clone(&first) } else { provider().await };
        let plain =
            Running::on(first, activities("cpu"), orchestrations(), options(TagFilter::default_only()));
        let tagged =
            Running::on(second, activities("gpu"), orchestrations(), options(TagFilter::tags(["gpu"])));
        let (plain, tagged) = (plain.await, tagged.await);
        assert_eq!(plain.output("mixed", "Mixed", "").await, "cpu/none gpu/gpu", "shared: {shared}");
        plain.stop().await;
        tagged.stop().await;
    }
}
