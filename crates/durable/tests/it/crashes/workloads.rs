//! Orchestrations that make every kind of request that a process can be killed between.

use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};

use super::ledger::Ledger;

/// Activities that a large turn schedules: more than a batch takes.
const LARGE: usize = 110;

/// An orchestration to run, and what comes of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) orchestration: &'static str,
    pub(crate) output: &'static str,
    /// The instances that it starts, by what follows its own id; with their outputs.
    pub(crate) started: &'static [(&'static str, &'static str)],
    /// The number of different activities.
    pub(crate) activities: usize,
}

/// Activities, a sub-orchestration, a timer, a detached orchestration, values, and a second execution.
pub(crate) const EVERYTHING: Workload = Workload {
    orchestration: "Everything",
    output: "14 196 392",
    started: &[("-note-0", "noted 14"), ("-note-1", "noted 196")],
    activities: 3 + 1 + 1 + 3 + 1 + 1,
};

/// A turn that takes several batches, with messages to other instances among them.
pub(crate) const LARGE_TURN: Workload = Workload {
    orchestration: "Large",
    output: "5995 noted 7",
    started: &[("-note", "noted 7")],
    activities: LARGE + 2,
};

/// An activity that outlives the first renewals of its lock.
pub(crate) const SLOW: Workload =
    Workload { orchestration: "Slow", output: "49", started: &[], activities: 1 };

/// The activities of all workloads.
pub(crate) fn activities(ledger: &Ledger) -> ActivityRegistry {
    let (squares, notes, slow) = (ledger.clone(), ledger.clone(), ledger.clone());
    ActivityRegistry::builder()
        .register("Square", move |ctx: ActivityContext, input: String| {
            let run = squares.begin(&key(&ctx, &input));
            async move {
                tokio::time::sleep(Duration::from_millis(2)).await;
                let number: u64 = input.parse().map_err(|_| "no number")?;
                drop(run);
                Ok((number * number).to_string())
            }
        })
        .register("Note", move |ctx: ActivityContext, input: String| {
            let run = notes.begin(&key(&ctx, &input));
            async move {
                drop(run);
                Ok(format!("noted {input}"))
            }
        })
        .register("SlowSquare", move |ctx: ActivityContext, input: String| {
            let run = slow.begin(&key(&ctx, &input));
            async move {
                tokio::time::sleep(Duration::from_millis(2300)).await;
                drop(run);
                let number: u64 = input.parse().map_err(|_| "no number")?;
                Ok((number * number).to_string())
            }
        })
        .build()
}

fn key(ctx: &ActivityContext, input: &str) -> String {
    format!("{}/{}/{}/{input}", ctx.instance_id(), ctx.execution_id(), ctx.activity_name())
}

/// The orchestrations of all workloads.
pub(crate) fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Everything", everything)
        .register("Large", large)
        .register("Slow", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("SlowSquare", "7").await
        })
        .register("Sub", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Square", input).await
        })
        .register("NoteDown", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Note", input).await
        })
        .build()
}

async fn squares(ctx: &OrchestrationContext, numbers: impl Iterator<Item = usize>) -> Result<u64, String> {
    let calls = numbers.map(|number| ctx.schedule_activity("Square", number.to_string())).collect();
    let mut sum = 0;
    for result in ctx.join(calls).await {
        sum += result?.parse::<u64>().map_err(|_| "no number")?;
    }
    Ok(sum)
}

async fn everything(ctx: OrchestrationContext, before: String) -> Result<String, String> {
    let execution = u64::from(!before.is_empty());
    let sum = squares(&ctx, 1..=3).await?;
    let squared = ctx.schedule_sub_orchestration("Sub", sum.to_string()).await?;
    ctx.schedule_timer(Duration::from_millis(20)).await;
    let note = if execution == 0 { sum.to_string() } else { squared.clone() };
    ctx.schedule_orchestration("NoteDown", format!("{}-note-{execution}", ctx.instance_id()), note);
    // What is scheduled in the turn that continues as new is lost: duroxide starts nothing that this turn no longer needs.
    ctx.schedule_timer(Duration::from_millis(5)).await;
    let total = ctx.get_kv_value_typed::<u64>("total")?.unwrap_or_default()
        + squared.parse::<u64>().map_err(|_| "no number")?;
    ctx.set_kv_value_typed("total", &total);
    if execution == 0 { ctx.continue_as_new("again").await } else { Ok(format!("{sum} {squared} {total}")) }
}

async fn large(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_orchestration("NoteDown", format!("{}-note", ctx.instance_id()), "7");
    let noted = ctx.schedule_activity("Note", "7");
    let calls = (0..LARGE).map(|number| ctx.schedule_activity("Square", number.to_string())).collect();
    let (results, noted) = ctx.join2(ctx.join(calls), noted).await;
    // The sum of the numbers, from their squares.
    let mut sum = 0;
    for result in results {
        sum += result?.parse::<u64>().map_err(|_| "no number")?.isqrt();
    }
    Ok(format!("{sum} {}", noted?))
}
