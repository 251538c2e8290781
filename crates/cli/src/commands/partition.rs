//! `peri partition`: list, split, merge, failover.

use std::time::Duration;

use emulator::clock::HumanDuration;
use serde_json::{Value, json};

use crate::arguments::{ContainerPath, Partition, PartitionAction};
use crate::control::{ControlPort, escaped, list, text};
use crate::exit::Failure;
use crate::output::Table;

/// How often a split that is held is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// No split or merge takes longer once its hold is over.
const CHANGE_MAX: Duration = Duration::from_secs(60);

/// Does what was asked and shows what came of it.
pub(crate) fn run(partition: &Partition) -> Result<(), Failure> {
    let port = ControlPort::of(&partition.control)?;
    match &partition.action {
        PartitionAction::List { container } => {
            let query = match container {
                None => String::new(),
                Some(ContainerPath { database, container }) => {
                    format!("?database={}&container={}", escaped(database), escaped(container))
                }
            };
            let answer = port.get(&format!("/partitions{query}"))?;
            port.show(&answer, |answer| table(&answer["partitions"]).to_string());
        }
        PartitionAction::Split { container, range, at, hold } => {
            let path = format!("{}/{range}/split", partitions_of(container));
            let body = json!({ "epk": at, "lockDurationMs": hold.map(milliseconds) });
            carry_out(&port, &path, &body, hold.map_or(Duration::ZERO, |hold| hold.0))?;
        }
        PartitionAction::Merge { container, ranges } => {
            let path = format!("{}/merge", partitions_of(container));
            carry_out(&port, &path, &json!({ "partitionIds": ranges }), Duration::ZERO)?;
        }
        PartitionAction::Failover { container, range, region } => {
            let path = format!("{}/{range}/failover", partitions_of(container));
            let answer = port.post(&path, &json!({ "region": region }))?;
            port.show(&answer, |answer| {
                format!("range {} is written in {}", text(&answer["range"]), text(&answer["writeRegion"]))
            });
        }
    }
    Ok(())
}

/// Begins a split or merge and shows what came of it. It is the server's: if this process ends, it goes on.
fn carry_out(port: &ControlPort, path: &str, body: &Value, hold: Duration) -> Result<(), Failure> {
    let mut operation = port.post(path, body)?;
    let id = text(&operation["operationId"]);
    let polls = (hold + CHANGE_MAX).as_millis().div_ceil(POLL_INTERVAL.as_millis());
    for _ in 0..polls {
        match operation["phase"].as_str() {
            Some("Succeeded") => {
                port.show(&operation, replaced);
                return Ok(());
            }
            Some("Failed") => return Err(Failure::refused(&text(&operation["error"]))),
            _ => {
                std::thread::sleep(POLL_INTERVAL);
                operation = port.get(&format!("/operations/{}", escaped(&id)))?;
            }
        }
    }
    Err(Failure::other(format!("operation {id} is not over yet"))
        .hint("`peri partition list` shows what came of it"))
}

fn milliseconds(span: HumanDuration) -> u64 {
    u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)
}

fn partitions_of(path: &ContainerPath) -> String {
    let (database, container) = (escaped(&path.database), escaped(&path.container));
    format!("/databases/{database}/containers/{container}/partitions")
}

/// `0 → 1, 2`.
fn replaced(answer: &Value) -> String {
    let ids = |value: &Value| list(value).iter().map(text).collect::<Vec<_>>().join(", ");
    format!("{} → {}", ids(&answer["retired"]), ids(&answer["ranges"]))
}

/// A row per partition.
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

/// What the regions counted, together.
fn in_all_regions(regions: &Value, member: &str) -> f64 {
    let all = regions.as_object().into_iter().flatten();
    // Summing nothing would make a negative zero.
    all.filter_map(|(_, served)| served[member].as_f64()).fold(0.0, |sum, one| sum + one)
}

/// Enough of a position to tell ranges apart.
fn start(position: &Value) -> String {
    const SHOWN: usize = 12;
    let text = text(position);
    match text.char_indices().nth(SHOWN) {
        _ if text.is_empty() => "the beginning".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// One figure where all regions are at the same, otherwise each with its region.
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
    fn partitions_are_shown_with_what_they_hold() {
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
