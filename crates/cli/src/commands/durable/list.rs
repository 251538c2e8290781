//! `peri durable list`: lists instances.

use durable::operator::{InstanceSelector, InstanceSummary};

use super::format::{counted, cut, now, time};
use crate::arguments::DurableList;
use crate::exit::CommandError;
use crate::output::{self, Table};

const COLUMNS: [&str; 7] = ["INSTANCE", "ORCHESTRATION", "STATUS", "EVENTS", "CREATED", "CHANGED", "NOTE"];
/// The most characters of a note.
const NOTE_MAX: usize = 80;

/// Lists instances, the newest first.
pub(super) async fn run(list: &DurableList) -> Result<(), CommandError> {
    let operator = super::open(&list.options).await?;
    let selector = InstanceSelector { limit: Some(list.limit), ..list.selection.selector(now()) };
    let instances = operator.list(&selector).await.map_err(|error| super::failed(&error))?;
    if list.options.json {
        for instance in &instances {
            output::json(&serde_json::to_value(instance).unwrap_or_default());
        }
    } else if !instances.is_empty() {
        output::data(&table(&instances).to_string());
    }
    let more = if instances.len() == list.limit { " (--limit shows more)" } else { "" };
    let (_, charge) = operator.usage();
    output::message(&format!("{}{more}, {charge:.2} RU", counted(instances.len() as u64, "instance")));
    Ok(())
}

/// A table of instances.
pub(super) fn table(instances: &[InstanceSummary]) -> Table {
    let mut table = Table::new(&COLUMNS);
    for instance in instances {
        table.row(vec![
            instance.instance_id.clone(),
            instance.orchestration_name.clone(),
            status(instance),
            instance.history_events.to_string(),
            time(instance.created_at),
            time(instance.updated_at),
            note(instance),
        ]);
    }
    table
}

/// The status, with the number of the execution if there was more than one.
fn status(instance: &InstanceSummary) -> String {
    match instance.current_execution_id {
        0 | 1 => instance.status.clone(),
        execution => format!("{} #{execution}", instance.status),
    }
}

/// Why the instance failed, or what it says about its progress.
fn note(instance: &InstanceSummary) -> String {
    let error = instance.output.as_deref().filter(|_| instance.status == "Failed");
    cut(error.or(instance.custom_status.as_deref()).unwrap_or_default(), NOTE_MAX)
}
