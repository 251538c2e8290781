//! Instances stay with the version of their orchestration.

use duroxide::runtime::VersionPolicy;
use duroxide::{EventKind, OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn a_start_takes_the_latest_version_unless_it_names_one() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Tax", |_: OrchestrationContext, _: String| async move { Ok("v1".to_owned()) })
        .register_versioned("Tax", "2.0.0", |_: OrchestrationContext, _: String| async move {
            Ok("v2".to_owned())
        })
        .build();
    orchestrations.set_version_policy("Tax", VersionPolicy::Latest);
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("latest", "Tax", "").await, "v2");
    running.client.start_orchestration_versioned("exact", "Tax", "1.0.0", "").await.expect("started");
    assert_eq!(running.wait("exact").await, "v1");
    let info = running.client.get_instance_info("exact").await.expect("its description");
    assert_eq!((info.orchestration_name.as_str(), info.orchestration_version.as_str()), ("Tax", "1.0.0"));
    running.stop().await;
}

#[tokio::test]
async fn a_sub_orchestration_takes_the_version_it_names() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Child", |_: OrchestrationContext, _: String| async move { Ok("c1".to_owned()) })
        .register_versioned("Child", "2.0.0", |_: OrchestrationContext, _: String| async move {
            Ok("c2".to_owned())
        })
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            let version = Some("1.0.0".to_owned());
            let exact = ctx.schedule_sub_orchestration_versioned("Child", version, "").await?;
            let latest = ctx.schedule_sub_orchestration("Child", "").await?;
            Ok(format!("{exact} {latest}"))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("parent", "Parent", "").await, "c1 c2");
    running.stop().await;
}

#[tokio::test]
async fn a_long_running_instance_is_upgraded_as_it_continues() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Service", |ctx: OrchestrationContext, input: String| async move {
            ctx.continue_as_new(format!("{input} from v1")).await
        })
        .register_versioned("Service", "2.0.0", |_: OrchestrationContext, input: String| async move {
            Ok(format!("{input}, done by v2"))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running
        .client
        .start_orchestration_versioned("service", "Service", "1.0.0", "state")
        .await
        .expect("started");
    assert_eq!(running.wait("service").await, "state from v1, done by v2");
    let second = running.history("service", 2).await;
    assert!(
        matches!(&second[0].kind, EventKind::OrchestrationStarted { version, .. } if version == "2.0.0"),
        "{:?}",
        second[0]
    );
    running.stop().await;
}
