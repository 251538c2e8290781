//! `peri partition`: lists, splits, merges and fails over partitions.

use std::time::Duration;

use control_client::escape;
use emulator::clock::HumanDuration;
use serde_json::{Value, json};

use crate::arguments::{ContainerPath, Partition, PartitionAction};
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::Table;

/// How often the state of a split or merge is read.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a split or merge may take, after its hold.
const CHANGE_MAX: Duration = Duration::from_secs(60);

/// Runs the command and shows its result.
pub(crate) fn run(partition: &Partition) -> Result<(), CommandError> {
    let port = ControlPort::of(&partition.control)?;
    match &partition.action {
        PartitionAction::List { container } => {
            let query = match container {
                None => String::new(),
                Some(ContainerPath { database, container }) => {
                    format!("?database={}&container={}", escape(database), escape(container))
                }
            };
            let response = port.get(&format!("/partitions{query}"))?;
            port.show(&response, |response| table(&response["partitions"]).to_string());
        }
        PartitionAction::Split { container, range, at, hold } => {
            let path = format!("{}/{range}/split", partitions_of(container));
            let body = json!({ "epk": at, "lockDurationMs": hold.map(milliseconds) });
            run_operation(&port, &path, &body, hold.map_or(Duration::ZERO, |hold| hold.0))?;
        }
        PartitionAction::Merge { container, ranges } => {
            let path = format!("{}/merge", partitions_of(container));
            run_operation(&port, &path, &json!({ "partitionIds": ranges }), Duration::ZERO)?;
        }
        PartitionAction::Failover { container, range, region } => {
            let path = format!("{}/{range}/failover", partitions_of(container));
            let response = port.post(&path, &json!({ "region": region }))?;
            port.show(&response, |response| {
                format!("range {} is written in {}", text(&response["range"]), text(&response["writeRegion"]))
            });
        }
    }
    Ok(())
}

/// Starts a split or merge, waits for it and shows its result. The server executes it, also if this process ends.
fn run_operation(port: &ControlPort, path: &str, body: &Value, hold: Duration) -> Result<(), CommandError> {
    let mut operation = port.post(path, body)?;
    let id = text(&operation["operationId"]);
    let polls = (hold + CHANGE_MAX).as_millis().div_ceil(POLL_INTERVAL.as_millis());
    // The number of polls bounds the wait, also if the server never finishes the operation.
    for _ in 0..polls {
        match operation["phase"].as_str() {
            Some("Succeeded") => {
                port.show(&operation, replaced);
                return Ok(());
            }
            Some("Failed") => return Err(CommandError::rejected(&text(&operation["error"]))),
            _ => {
                std::thread::sleep(POLL_INTERVAL);
                operation = port.get(&format!("/operations/{}", escape(&id)))?;
            }
        }
    }
    Err(CommandError::other(format!("operation {id} has not finished yet"))
        .hint("`peri partition list` shows the partitions when it has"))
}

fn milliseconds(span: HumanDuration) -> u64 {
    u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)
}

fn partitions_of(path: &ContainerPath) -> String {
    let (database, container) = (escape(&path.database), escape(&path.container));
    format!("/databases/{database}/containers/{container}/partitions")
}

/// The old and the new ranges: `0 → 1, 2`.
fn replaced(response: &Value) -> String {
    let ids = |value: &Value| list(value).iter().map(text).collect::<Vec<_>>().join(", ");
    format!("{} → {}", ids(&response["retired"]), ids(&response["ranges"]))
}

/// A table with a row for each partition.
fn table(partitions: &Value) -> Table {
    let mut table = Table::new(&[
        "CONTAINER",
        "RANGE",
        "FROM",
        "ITEMS",
        "BYTES",
        "REQUESTS",
        "RU",
        "429",
        "LSN",
        "PARENTS",
    ]);
    for partition in list(partitions) {
        table.row(vec![
            format!("{}/{}", text(&partition["database"]), text(&partition["container"])),
            text(&partition["range"]),
            start(&partition["minInclusive"]),
            text(&partition["items"]),
            text(&partition["bytes"]),
            format!("{:.0}", in_all_regions(&partition["regions"], "requests")),
            format!("{:.2}", in_all_regions(&partition["regions"], "requestUnits")),
            format!("{:.0}", in_all_regions(&partition["regions"], "throttled")),
            lsn(&partition["lsn"]),
            list(&partition["parents"]).iter().map(text).collect::<Vec<_>>().join(", "),
        ]);
    }
    table
}

/// The sum of a counter over all regions.
fn in_all_regions(regions: &Value, member: &str) -> f64 {
    let all = regions.as_object().into_iter().flatten();
    // Summing nothing would make a negative zero.
    all.filter_map(|(_, served)| served[member].as_f64()).fold(0.0, |sum, one| sum + one)
}

/// The beginning of an effective partition key, long enough to tell ranges apart.
fn start(epk: &Value) -> String {
    const LENGTH: usize = 12;
    let text = text(epk);
    match text.char_indices().nth(LENGTH) {
        _ if text.is_empty() => "the beginning".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The LSN of a partition: one value if it is the same in all regions, otherwise one for each.
fn lsn(by_region: &Value) -> String {
    let Some(by_region) = by_region.as_object() else { return String::new() };
    let mut all = by_region.values();
    match all.next() {
        None => String::new(),
        Some(first) if all.all(|other| other == first) => text(first),
        Some(_) => {
            let each = by_region.iter().map(|(name, lsn)| format!("{} in {name}", text(lsn)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_shown_with_their_size_and_usage() {
        let partitions = json!([
            { "database": "d", "container": "c", "range": 1, "minInclusive": "", "items": 3, "bytes": 300,
              "lsn": { "West US": 7, "East US": 7 }, "parents": [0],
              "regions": { "West US": { "requests": 5, "requestUnits": 12.5, "throttled": 1 },
                           "East US": { "requests": 2, "requestUnits": 2.0, "throttled": 0 } } },
            { "database": "d", "container": "c", "range": 2, "minInclusive": "1FFFFFFFFFFFFFFFFFFF",
              "items": 14, "bytes": 1400, "lsn": { "East US": 8, "West US": 9 }, "parents": [0] },
        ]);
        let expected = "\
CONTAINER  RANGE  FROM           ITEMS  BYTES  REQUESTS     RU  429  LSN                         PARENTS
d/c            1  the beginning      3    300         7  14.50    1  7                                 0
d/c            2  1FFFFFFFFFFF…     14   1400         0   0.00    0  8 in East US, 9 in West US        0";
        assert_eq!(table(&partitions).to_string(), expected);
    }

    #[test]
    fn what_replaced_what_is_one_line() {
        assert_eq!(replaced(&json!({ "retired": [0], "ranges": [1, 2] })), "0 → 1, 2");
    }
}
