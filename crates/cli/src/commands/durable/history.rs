//! `peri durable history`: the events of an execution.

use durable::operator::HistoryEntry;
use serde_json::Value;

use super::format::{cut, timestamp};
use crate::arguments::DurableHistory;
use crate::control::text;
use crate::exit::CommandError;
use crate::output::{self, Table};

/// The longest value of a property in the table.
const VALUE_MAX: usize = 60;
/// The properties that have columns of their own, or that are the same for all events.
const COMMON: [&str; 7] = [
    "event_id",
    "source_event_id",
    "instance_id",
    "execution_id",
    "timestamp_ms",
    "duroxide_version",
    "type",
];

/// Shows the events, the oldest first.
pub(super) async fn run(arguments: &DurableHistory) -> Result<(), CommandError> {
    let operator = super::open(&arguments.options).await?;
    let history = operator.history(&arguments.instance, arguments.execution).await;
    let history = history.map_err(|error| super::failed(&error))?;
    if arguments.options.json {
        history.entries.iter().for_each(|entry| output::json_text(&entry.json));
    } else if !history.entries.is_empty() {
        output::data(&table(&history.entries).to_string());
    }
    match history.problem {
        Some(problem) => Err(CommandError::other(format!("the history is damaged: {problem}"))
            .hint("`peri durable why` says what that means for the instance")),
        None => Ok(()),
    }
}

fn table(entries: &[HistoryEntry]) -> Table {
    let mut table = Table::new(&["EVENT", "TIME", "WHAT HAPPENED", "OF", "DETAILS"]);
    for entry in entries {
        let event: Value = serde_json::from_str(&entry.json).unwrap_or_default();
        let unreadable = if entry.event.is_none() { " (unreadable)" } else { "" };
        table.row(vec![
            text(&event["event_id"]),
            timestamp(event["timestamp_ms"].as_u64().unwrap_or_default()),
            format!("{}{unreadable}", text(&event["type"])),
            text(&event["source_event_id"]),
            details(&event),
        ]);
    }
    table
}

/// The properties that only this kind of event has, in one line.
fn details(event: &Value) -> String {
    let members = event.as_object().into_iter().flatten();
    let own = members.filter(|(name, value)| !COMMON.contains(&name.as_str()) && !value.is_null());
    own.map(|(name, value)| format!("{name}={}", cut(&text(value), VALUE_MAX))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_events_are_shown_as_they_are() {
        let entry = |event: Value| {
            let mut entry = String::new();
            entry.push_str(&event.to_string());
            details(&serde_json::from_str(&entry).unwrap())
        };
        assert_eq!(entry(json!({"event_id": 1, "type": "New", "a": "b\nc", "n": null})), "a=b\\nc");
        assert_eq!(entry(json!([1])), "");
    }
}
