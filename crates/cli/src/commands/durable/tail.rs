//! `peri durable tail`: shows what happens to instances.

use std::time::Duration;

use durable::operator::{InstanceChange, InstanceSelector};
use tokio::runtime::Runtime;

use super::format::{cut, timestamp};
use crate::arguments::DurableTail;
use crate::commands::requests::clock_time;
use crate::exit::CommandError;
use crate::output::{self, Table};

/// The shortest time between two polls.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
const COLUMNS: [&str; 5] = ["TIME", "WHAT", "INSTANCE", "ORCHESTRATION", "DETAILS"];
/// The widths of the columns: later cells are not known yet.
const WIDTHS: [u16; 5] = [12, 11, 24, 16, 0];
/// The longest details in the table.
const DETAILS_MAX: usize = 200;

/// Shows changes as they happen. Ends with a signal, or when nobody reads the output any more.
pub(super) fn run(tail: &DurableTail, runtime: &Runtime) -> Result<(), CommandError> {
    let selector = InstanceSelector {
        name_prefix: tail.name.clone(),
        id_prefix: tail.id.clone(),
        ..InstanceSelector::default()
    };
    let (operator, mut follower) = runtime.block_on(async {
        let operator = super::open(&tail.options).await?;
        let follower = operator.follow(&selector).await.map_err(|error| super::failed(&error))?;
        Ok::<_, CommandError>((operator, follower))
    })?;
    if !tail.options.json {
        output::data(&Table::with_widths(&COLUMNS, &WIDTHS).to_string());
    }
    while output::wait_while_read(tail.interval.0.max(INTERVAL_MIN)) {
        let changes = runtime.block_on(operator.next_changes(&mut follower));
        let changes = changes.map_err(|error| super::failed(&error))?;
        for change in changes.iter().filter(|change| !tail.failures || change.kind.is_failure()) {
            match tail.options.json {
                true => output::json(&serde_json::to_value(change).unwrap_or_default()),
                false => output::data(&line(change)),
            }
        }
    }
    Ok(())
}

/// One change as a line of the table.
fn line(change: &InstanceChange) -> String {
    let mut table = Table::with_widths(&COLUMNS, &WIDTHS);
    table.row(vec![
        clock_time(&timestamp(change.at)),
        change.kind.name().to_owned(),
        change.instance_id.clone(),
        change.orchestration_name.clone(),
        cut(&change.detail, DETAILS_MAX),
    ]);
    table.rows()
}
