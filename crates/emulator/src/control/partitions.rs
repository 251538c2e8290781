//! Partitions: which there are, and splitting and merging them.
//!
//! Costs of a split or merge grow with the items of the partitions concerned.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ask::Nothing;
use super::requests::named_container;
use super::table::Route;
use super::topology::{ShownPartition, chosen, shown_partition};
use super::{Answer, Ask, Control, Problem};
use crate::handlers;
use crate::partitions::{LayoutError, PartitionsError};
use crate::regions::Topology;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/partitions",
        about: "every physical partition, with its request units, 429s and latency; ?database=, ?container=",
        handle: list,
    },
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/{range}/split",
        about: r#"split a range in two, in the middle or at {"epk":"1F…"}"#,
        handle: split,
    },
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/{range}/lock",
        about: "tell those who ask for a range by its id to wait (410/1007), as before a split",
        handle: lock,
    },
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/{range}/unlock",
        about: "let them in again",
        handle: unlock,
    },
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/merge",
        about: r#"merge neighbours {"ranges":[1,2]}"#,
        handle: merge,
    },
];

/// One partition and where it belongs.
#[derive(Debug, Serialize)]
struct Listed {
    database: String,
    container: String,
    #[serde(flatten)]
    partition: ShownPartition,
    /// What it did, by region.
    regions: BTreeMap<String, Served>,
}

/// What a partition did in one region.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    requests: u64,
    /// Answered 429.
    throttled: u64,
    request_units: f64,
    mean_ms: Option<f64>,
    /// Half of the requests took no longer than this.
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// Request units in the last whole second.
    last_second: f64,
    /// The same as a share of the throughput, 0 to 1.
    utilisation: f64,
}

fn list(control: &Control, ask: &Ask) -> Answer {
    ask.only(&["database", "container"])?;
    let topology = control.account.regions.current();
    let uptime = control.clock.uptime();
    let mut served = served(control, &topology, uptime);
    let mut listed = Vec::new();
    for (database, containers) in chosen(control, ask)? {
        for entry in containers {
            listed.extend(entry.store.partitions().iter().map(|partition| {
                Listed {
                    regions: served
                        .remove(&(database.id.to_string(), entry.id.to_string(), partition.identity.id))
                        .unwrap_or_default(),
                    database: database.id.to_string(),
                    container: entry.id.to_string(),
                    partition: shown_partition(partition, &topology, uptime),
                }
            }));
        }
    }
    super::json(&json!({ "partitions": listed }))
}

/// By database, container and range; then by region.
type ServedByRange = HashMap<(String, String, u32), BTreeMap<String, Served>>;

/// What every partition did, as far as it was counted.
fn served(control: &Control, topology: &Topology, uptime: Duration) -> ServedByRange {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    let mut all = ServedByRange::new();
    let region = |id| topology.region(id).name.clone();
    for (key, counted) in control.account.sight.counts().partitions {
        let Some((database, container)) = named_container(&key.container) else { continue };
        let by_region = all.entry((database.to_owned(), container.to_owned(), key.range)).or_default();
        let (latency, requests) = (counted.latency, counted.latency.count());
        by_region.insert(
            region(key.region),
            Served {
                requests,
                throttled: counted.throttled,
                request_units: counted.charge,
                mean_ms: (requests > 0).then(|| milliseconds(latency.sum()) / requests as f64),
                p50_ms: latency.quantile(0.5).map(milliseconds),
                p99_ms: latency.quantile(0.99).map(milliseconds),
                ..Served::default()
            },
        );
    }
    for usage in handlers::usage(&control.account, uptime) {
        for (range, id, spent) in usage.partitions {
            let key = (usage.database.clone(), usage.container.clone(), range);
            let served = all.entry(key).or_default().entry(region(id)).or_default();
            served.last_second = spent.last_second;
            served.utilisation = spent.normalized_utilisation;
        }
    }
    all
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Split {
    #[serde(default)]
    epk: Option<String>,
}

fn split(control: &Control, ask: &Ask) -> Answer {
    let Split { epk } = ask.body()?;
    let range = range(ask)?;
    let uptime = control.clock.uptime();
    let children =
        control.account.split_partition(ask.segment(0), ask.segment(1), range, epk.as_deref(), uptime)?;
    super::json(&json!({ "retired": [range], "ranges": children }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Merge {
    ranges: Vec<u32>,
}

fn merge(control: &Control, ask: &Ask) -> Answer {
    let Merge { ranges } = ask.body()?;
    let uptime = control.clock.uptime();
    let merged = control.account.merge_partitions(ask.segment(0), ask.segment(1), &ranges, uptime)?;
    super::json(&json!({ "retired": ranges, "ranges": [merged] }))
}

fn lock(control: &Control, ask: &Ask) -> Answer {
    set_locked(control, ask, true)
}

fn unlock(control: &Control, ask: &Ask) -> Answer {
    set_locked(control, ask, false)
}

fn set_locked(control: &Control, ask: &Ask, locked: bool) -> Answer {
    let Nothing {} = ask.body()?;
    let range = range(ask)?;
    control.account.set_splitting(ask.segment(0), ask.segment(1), range, locked)?;
    super::json(&json!({ "range": range, "splitting": locked }))
}

fn range(ask: &Ask) -> Result<u32, Problem> {
    let text = ask.segment(2);
    let expected = || format!("expected the id of a partition key range, a number, found '{text}'");
    text.parse().map_err(|_| Problem::bad_request(expected()))
}

impl From<PartitionsError> for Problem {
    fn from(error: PartitionsError) -> Problem {
        let message = error.to_string();
        match error {
            PartitionsError::NoContainer { .. } | PartitionsError::Layout(LayoutError::Unknown(_)) => {
                Problem::not_found(message)
            }
            PartitionsError::Layout(LayoutError::Indivisible(_)) => Problem::conflict(message),
            _ => Problem::bad_request(message),
        }
    }
}
