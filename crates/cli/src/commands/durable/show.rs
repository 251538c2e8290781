//! `peri durable show`: everything about one instance.

use durable::operator::{InstanceDetails, Timeline};

use super::format::{bytes, counted, cut, duration, now, time, timestamp};
use super::{list, timeline, why};
use crate::arguments::DurableShow;
use crate::exit::CommandError;
use crate::output::{self, Table};

/// The longest output in the table; `--json` has all of it.
const OUTPUT_MAX: usize = 1_000;

/// Shows an instance, and its timeline if asked for.
pub(super) async fn run(show: &DurableShow) -> Result<(), CommandError> {
    let operator = super::open(&show.options).await?;
    let details = operator.details(&show.instance).await.map_err(|error| super::failed(&error))?;
    let mut drawn = None;
    if show.timeline {
        let history = operator.history(&show.instance, show.execution).await;
        let history = history.map_err(|error| super::failed(&error))?;
        if let Some(problem) = &history.problem {
            output::message(&format!("warning: the timeline has gaps: {problem}"));
        }
        drawn = Some((history.execution_id, Timeline::new(history.events())));
    }
    if show.options.json {
        let mut value = serde_json::to_value(&details).unwrap_or_default();
        if let Some((_, timeline)) = &drawn {
            value["timeline"] = serde_json::to_value(timeline).unwrap_or_default();
        }
        output::json(&value);
        return Ok(());
    }
    output::data(&text(&details));
    if let Some((execution, timeline)) = &drawn {
        let now = u64::try_from(now().milliseconds()).unwrap_or_default();
        output::data(&format!(
            "\nexecution {execution}\n{}",
            timeline::draw(timeline, now, output::terminal_width())
        ));
    }
    Ok(())
}

fn text(details: &InstanceDetails) -> String {
    let mut parts = vec![properties(details).rows()];
    if details.executions.len() > 1 {
        let mut table = Table::new(&["EXECUTION", "STATUS", "STARTED", "DURATION", "EVENTS"]);
        for execution in &details.executions {
            let took = execution.completed_at.map(|end| end.saturating_sub(execution.started_at));
            table.row(vec![
                execution.execution_id.to_string(),
                execution.status.clone(),
                time(execution.started_at),
                took.map(duration).unwrap_or_default(),
                execution.events.to_string(),
            ]);
        }
        parts.push(table.to_string());
    }
    if !details.children.is_empty() {
        parts.push(format!("sub-orchestrations\n{}", list::table(&details.children)));
    }
    parts.extend(why::waiting(&details.messages, &details.activities, &details.quarantined));
    parts.join("\n\n")
}

fn properties(details: &InstanceDetails) -> Table {
    let summary = &details.summary;
    let mut table = Table::new(&["", ""]);
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.row(vec![name.to_owned(), value]);
        }
    };
    let version = summary.orchestration_version.as_ref().map(|version| format!(" {version}"));
    row("instance", summary.instance_id.clone());
    row("orchestration", format!("{}{}", summary.orchestration_name, version.unwrap_or_default()));
    row("status", summary.status.clone());
    let output = details.output.as_deref().unwrap_or_default();
    row(if summary.status == "Failed" { "error" } else { "output" }, cut(output, OUTPUT_MAX));
    if let Some(status) = &summary.custom_status {
        row("custom status", format!("{status} (set {})", times(details.custom_status_version)));
    }
    row("parent", summary.parent_instance_id.clone().unwrap_or_default());
    row("created", timestamp(summary.created_at));
    row("changed", timestamp(summary.updated_at));
    if let Some(completed) = summary.completed_at {
        let took = duration(completed.saturating_sub(summary.created_at));
        row("ended", format!("{}, after {took}", timestamp(completed)));
    }
    row("execution", summary.current_execution_id.to_string());
    row("turns", details.turns.to_string());
    let size = bytes(summary.history_bytes);
    row("history", format!("{}, {size}", counted(summary.history_events, "event")));
    row(
        "key-values",
        match details.key_values {
            Some(values) => format!("{}, {}", counted(values.keys, "key"), bytes(values.bytes)),
            None if summary.history_events == 0 => String::new(),
            None => "cannot be read".to_owned(),
        },
    );
    row("duroxide", details.duroxide_version.clone().unwrap_or_default());
    let waiting = |count: u64| if count == 0 { "none".to_owned() } else { count.to_string() };
    row("messages", waiting(details.message_count));
    row("activities", waiting(details.activity_count));
    if details.carried_messages > 0 {
        row("carried over", counted(details.carried_messages, "queue message"));
    }
    table
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}
