//! Recorded histories against the code that recorded them, and against code that was changed since.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::{Provider, ProviderAdmin};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Either2, Event, EventKind, OrchestrationContext, OrchestrationRegistry, RetryPolicy,
};
use perihelion_durable::operator::Operator;
use perihelion_durable::replay::{ReplayCheck, ReplayError, ReplayReport, history_from_json};

use crate::factory;
use crate::running::{Running, runtime_options};

/// Activities that count how often they run.
fn activities(runs: &Arc<AtomicUsize>) -> ActivityRegistry {
    let (greet_runs, refuse_runs) = (Arc::clone(runs), Arc::clone(runs));
    ActivityRegistry::builder()
        .register("Greet", move |_: ActivityContext, name: String| {
            greet_runs.fetch_add(1, Ordering::Relaxed);
            async move { Ok(format!("Hello, {name}!")) }
        })
        .register("Refuse", move |_: ActivityContext, reason: String| {
            refuse_runs.fetch_add(1, Ordering::Relaxed);
            async move { Err::<String, _>(reason) }
        })
        .register("Sleep", |context: ActivityContext, _: String| async move {
            context.cancelled().await;
            Ok(String::new())
        })
        .build()
}

/// One orchestration of each kind of step.
fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Sequence", |context: OrchestrationContext, name: String| async move {
            context.set_custom_status("greeting");
            let first = context.schedule_activity("Greet", name).await?;
            context.schedule_timer(Duration::from_millis(20)).await;
            context.set_kv_value("greeting", &first);
            context.schedule_activity("Greet", first).await
        })
        .register("FanOut", |context: OrchestrationContext, _: String| async move {
            let greetings: Vec<_> =
                (0..5).map(|n| context.schedule_activity("Greet", n.to_string())).collect();
            let greetings = context.join(greetings).await;
            let now = context.utc_now().await?;
            let _ = (now, context.new_guid().await?);
            context.schedule_orchestration("Leaf", "detached-leaf", "d");
            Ok(greetings.len().to_string())
        })
        .register("Race", |context: OrchestrationContext, _: String| async move {
            let sleep = context.schedule_activity("Sleep", "");
            let timer = context.schedule_timer(Duration::from_millis(20));
            let winner = match context.select2(sleep, timer).await {
                Either2::First(_) => "activity",
                Either2::Second(()) => "timer",
            };
            let event = context.schedule_wait("Go").await;
            let child = context.schedule_sub_orchestration("Leaf", "c").await?;
            Ok(format!("{winner} {event} {child}"))
        })
        .register("Leaf", |_: OrchestrationContext, input: String| async move { Ok(format!("leaf {input}")) })
        .register("Failing", |context: OrchestrationContext, _: String| async move {
            let policy = RetryPolicy::new(2);
            context.schedule_activity_with_retry("Refuse", "no", policy).await
        })
        .register("Counting", |context: OrchestrationContext, count: String| async move {
            let count: u32 = count.parse().map_err(|_| "no number")?;
            context.schedule_activity("Greet", count.to_string()).await?;
            if count < 2 {
                return context.continue_as_new((count + 1).to_string()).await;
            }
            Ok(count.to_string())
        })
        .register("Waiting", |context: OrchestrationContext, _: String| async move {
            Ok(context.schedule_wait("Never").await)
        })
        .build()
}

/// A registry whose `Sequence` somebody has changed.
fn changed<F, Fut>(code: F) -> OrchestrationRegistry
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    OrchestrationRegistry::builder().register("Sequence", code).build()
}

fn check(registry: &OrchestrationRegistry, history: &[Event]) -> ReplayReport {
    ReplayCheck::new(registry).run(history).expect("a history that can be run")
}

/// The number of the first event that differs, what the history has, and what the code does.
fn difference(registry: &OrchestrationRegistry, history: &[Event]) -> (u64, String, String) {
    let report = check(registry, history);
    let difference = report.difference.expect("a difference");
    let text = |kind: Option<EventKind>| kind.map_or("nothing".to_owned(), |kind| format!("{kind:?}"));
    (difference.event_id, text(difference.recorded), text(difference.produced))
}

#[tokio::test]
async fn recorded_histories_fit_the_code_that_recorded_them() {
    let runs = Arc::new(AtomicUsize::new(0));
    let provider = factory::create_provider().await;
    let running = Running::on(provider, activities(&runs), orchestrations(), runtime_options()).await;
    assert_eq!(running.output("sequence", "Sequence", "Ada").await, "Hello, Hello, Ada!!");
    assert_eq!(running.output("fan-out", "FanOut", "").await, "5");
    running.client.start_orchestration("race", "Race", "").await.expect("started");
    running.wait_for_event("race", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    let waiting = running.history("race", 1).await;
    running.client.raise_event("race", "Go", "go").await.expect("raised");
    assert_eq!(running.wait("race").await, "timer go leaf c");
    running.failure("failing", "Failing", "").await;
    assert_eq!(running.output("counting", "Counting", "0").await, "2");
    running.client.start_orchestration("cancelled", "Waiting", "").await.expect("started");
    running
        .wait_for_event("cancelled", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. }))
        .await;
    running.client.cancel_instance("cancelled", "enough").await.expect("cancelled");
    running.wait_for_failure("cancelled").await;

    let ran = runs.load(Ordering::Relaxed);
    let registry = orchestrations();
    assert_eq!(check(&registry, &waiting).difference, None, "an instance that still waits");
    for (instance, execution) in [
        ("sequence", 1),
        ("fan-out", 1),
        ("race", 1),
        ("failing", 1),
        ("counting", 1),
        ("counting", 2),
        ("counting", 3),
        ("cancelled", 1),
    ] {
        let history =
            running.provider.read_history_with_execution_id(instance, execution).await.expect("a history");
        let report = check(&registry, &history);
        assert_eq!(report.difference, None, "{instance} {execution}: {history:#?}");
        assert!(report.turns >= 2 && report.events >= 2, "{instance}: {report:?}");
    }
    assert_eq!(runs.load(Ordering::Relaxed), ran, "no activity runs during a check");

    let history = running.history("race", 1).await;
    let (name, version) = ("Race".to_owned(), "1.0.0".to_owned());
    let others = changed(|_, name| async move { Ok(name) });
    assert_eq!(ReplayCheck::new(&others).run(&history), Err(ReplayError::NotRegistered { name, version }));
    running.stop().await;
}

#[tokio::test]
async fn the_first_event_that_differs_is_reported() {
    let runs = Arc::default();
    let running = Running::start(activities(&runs), orchestrations()).await;
    running.output("sequence", "Sequence", "Ada").await;
    let operator = Operator::open(&factory::client(), "tests", running.provider.container().id()).await;
    let stored = operator.expect("an operator").history("sequence", None).await.expect("a history");
    let history: Vec<Event> = stored.events().cloned().collect();
    running.stop().await;

    let other_input = changed(|context, name: String| async move {
        context.set_custom_status("another text is no difference");
        context.schedule_activity("Greet", name.to_uppercase()).await
    });
    let (event, recorded, produced) = difference(&other_input, &history);
    assert_eq!(event, 3);
    assert!(recorded.contains("Ada") && produced.contains("ADA"), "{recorded} {produced}");

    let no_timer = changed(|context, name: String| async move {
        context.set_custom_status("greeting");
        let first = context.schedule_activity("Greet", name).await?;
        context.set_kv_value("greeting", &first);
        context.schedule_activity("Greet", first).await
    });
    let (event, recorded, produced) = difference(&no_timer, &history);
    assert_eq!(event, 5);
    assert!(
        recorded.starts_with("TimerCreated") && produced.starts_with("KeyValueSet"),
        "{recorded} {produced}"
    );

    let ends_early = changed(|context, name: String| async move {
        context.set_custom_status("greeting");
        let first = context.schedule_activity("Greet", name).await?;
        context.schedule_timer(Duration::from_secs(3600)).await;
        Ok(first)
    });
    let (event, recorded, produced) = difference(&ends_early, &history);
    assert_eq!(event, 7);
    assert!(
        recorded.starts_with("KeyValueSet") && produced.starts_with("OrchestrationCompleted"),
        "{produced}"
    );

    let goes_on = changed(|context, name: String| async move {
        context.set_custom_status("greeting");
        let first = context.schedule_activity("Greet", name).await?;
        context.schedule_timer(Duration::from_millis(20)).await;
        context.set_kv_value("greeting", &first);
        let second = context.schedule_activity("Greet", first).await?;
        context.schedule_activity("Greet", second).await
    });
    let (event, recorded, produced) = difference(&goes_on, &history);
    assert_eq!(event, 10);
    assert!(recorded.starts_with("OrchestrationCompleted"), "{recorded}");
    assert!(produced.starts_with("ActivityScheduled"), "{produced}");

    let other_result = changed(|context, name: String| async move {
        context.set_custom_status("greeting");
        let first = context.schedule_activity("Greet", name).await?;
        context.schedule_timer(Duration::from_millis(20)).await;
        context.set_kv_value("greeting", &first);
        context.schedule_activity("Greet", first).await.map(|greeting| greeting.to_lowercase())
    });
    let report = check(&other_result, &history);
    let text = report.difference.expect("a difference").to_string();
    assert_eq!(
        text,
        "event 10 differs: the history has OrchestrationCompleted { output: \"Hello, Hello, Ada!!\" }, the code produces \
         OrchestrationCompleted { output: \"hello, hello, ada!!\" }"
    );

    // An instance that has not ended: the code does more than it did.
    let (event, recorded, _) = difference(
        &changed(|context, name: String| async move {
            context.set_custom_status("greeting");
            let greetings =
                [context.schedule_activity("Greet", name), context.schedule_activity("Greet", "Bob")];
            Ok(context.join(greetings.into()).await.len().to_string())
        }),
        &history[..3],
    );
    assert_eq!((event, recorded.as_str()), (4, "nothing"));

    let panics = changed(|_, _| async move { panic!("not implemented") });
    let (event, _, produced) = difference(&panics, &history);
    assert_eq!(event, 2);
    assert!(produced.contains("not implemented"), "{produced}");
}

#[tokio::test]
async fn histories_are_read_from_json() {
    let runs = Arc::default();
    let running = Running::start(activities(&runs), orchestrations()).await;
    running.output("sequence", "Sequence", "Ada").await;
    let history = running.provider.read("sequence").await.expect("a history");
    running.stop().await;
    let array = serde_json::to_string_pretty(&history).expect("JSON");
    let lines: Vec<String> =
        history.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
    for text in [array, lines.join("\n")] {
        let read = history_from_json(&text).expect("a history");
        assert_eq!(read, history);
        assert_eq!(check(&orchestrations(), &read).difference, None);
    }

    let registry = orchestrations();
    let check = ReplayCheck::new(&registry);
    assert_eq!(check.run(&[]), Err(ReplayError::Empty));
    assert_eq!(check.run(&history[1..]), Err(ReplayError::NotFromTheStart { event_id: 2 }));
    for text in [format!("[{},{{\"no\":1}}]", lines[0]), format!("{}\n{{\"no\":1}}", lines[0])] {
        let error = history_from_json(&text).expect_err("no event");
        assert!(matches!(error, ReplayError::Unreadable { number: 2, .. }), "{error}");
    }
}
