//! `/partitions`: lists the physical partitions, locks them, and fails them over.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::operations::range;
use super::request::EmptyBody;
use super::requests::parse_container_path;
use super::routes::Route;
use super::topology::{PartitionView, partition_view, selected_containers};
use super::{Control, ControlError, ControlRequest, ControlResult};
use ::clock::HumanDuration;
use engine::account::partitions::{LayoutError, PartitionError};
use engine::regions::Topology;
use engine::store::SplitMark;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/partitions",
        about: "every physical partition, with its request units, 429s and latency; ?database=, ?container=",
        handle: list,
    },
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/{range}/lock",
        about: "tell those who ask for a range by its id to wait (410/1007), as before a split, for a minute or {\"for\"}",
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
        path: "/databases/{database}/containers/{container}/partitions/{range}/failover",
        about: r#"move the writes of one range to {"region":"East US"}; the account was started with --partition-failover"#,
        handle: fail_over,
    },
];

/// One partition with its database and container.
#[derive(Debug, Serialize)]
struct PartitionEntry {
    database: String,
    container: String,
    #[serde(flatten)]
    partition: PartitionView,
    /// Its activity, by region.
    regions: BTreeMap<String, PartitionActivity>,
}

/// The activity of a partition in one region.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PartitionActivity {
    requests: u64,
    /// Requests with the status 429.
    throttled: u64,
    request_units: f64,
    mean_ms: Option<f64>,
    /// The median latency in milliseconds.
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// Request units used in the last whole second.
    last_second: f64,
    /// The last second's request units as a share of the throughput, 0 to 1.
    utilisation: f64,
}

fn list(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&["database", "container"])?;
    let topology = control.account.regions.current();
    let uptime = control.clock.uptime();
    let mut activity = activity_by_range(control, &topology, uptime);
    let mut entries = Vec::new();
    for (database, containers) in selected_containers(control, request)? {
        for entry in containers {
            entries.extend(entry.store.partitions().iter().map(|partition| {
                PartitionEntry {
                    regions: activity
                        .remove(&(database.id.to_string(), entry.id.to_string(), partition.identity.id))
                        .unwrap_or_default(),
                    database: database.id.to_string(),
                    container: entry.id.to_string(),
                    partition: partition_view(partition, &topology, uptime),
                }
            }));
        }
    }
    super::json(&json!({ "partitions": entries }))
}

/// Activity by database, container and range, then by region.
type ActivityByRange = HashMap<(String, String, u32), BTreeMap<String, PartitionActivity>>;

/// The activity of every partition, from the request log and the usage counters.
fn activity_by_range(control: &Control, topology: &Topology, uptime: Duration) -> ActivityByRange {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1_000.0;
    let mut all = ActivityByRange::new();
    let region = |id| topology.region(id).name.clone();
    for (key, counted) in control.request_log.counts().partitions {
        let Some((database, container)) = parse_container_path(&key.container) else { continue };
        let by_region = all.entry((database.to_owned(), container.to_owned(), key.range)).or_default();
        let (latency, requests) = (counted.latency, counted.latency.count());
        by_region.insert(
            region(key.region),
            PartitionActivity {
                requests,
                throttled: counted.throttled,
                request_units: counted.charge,
                mean_ms: (requests > 0).then(|| milliseconds(latency.sum()) / requests as f64),
                p50_ms: latency.quantile(0.5).map(milliseconds),
                p99_ms: latency.quantile(0.99).map(milliseconds),
                ..PartitionActivity::default()
            },
        );
    }
    for container in engine::account::usage(&control.account, uptime) {
        for (range, id, usage) in container.partitions {
            let key = (container.database.clone(), container.container.clone(), range);
            let activity = all.entry(key).or_default().entry(region(id)).or_default();
            activity.last_second = usage.last_second;
            activity.utilisation = usage.normalized_utilisation;
        }
    }
    all
}

/// How long a partition is locked when the request sets no duration.
const LOCK_DEFAULT: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    #[serde(rename = "for", default)]
    duration: Option<HumanDuration>,
}

fn lock(control: &Control, request: &ControlRequest) -> ControlResult {
    let Lock { duration } = request.body()?;
    let duration = duration.map_or(LOCK_DEFAULT, |span| span.0);
    set_lock(control, request, control.clock.uptime().saturating_add(duration))
}

fn unlock(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    set_lock(control, request, Duration::ZERO)
}

fn set_lock(control: &Control, request: &ControlRequest, until: Duration) -> ControlResult {
    let range = range(request)?;
    let (database, container) = (request.segment(0), request.segment(1));
    control.account.set_split_mark(database, container, range, SplitMark::Locked, until)?;
    super::json(&json!({ "range": range, "splitting": !until.is_zero() }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailOver {
    region: String,
}

fn fail_over(control: &Control, request: &ControlRequest) -> ControlResult {
    let FailOver { region } = request.body()?;
    let range = range(request)?;
    control.account.fail_over_partition(request.segment(0), request.segment(1), range, &region)?;
    super::json(&json!({ "range": range, "writeRegion": region }))
}

impl From<PartitionError> for ControlError {
    fn from(error: PartitionError) -> ControlError {
        let message = error.to_string();
        match error {
            PartitionError::Topology(error) => error.into(),
            PartitionError::NoContainer { .. } | PartitionError::Layout(LayoutError::UnknownRange(_)) => {
                ControlError::not_found(message)
            }
            PartitionError::Layout(LayoutError::Indivisible(_)) => ControlError::conflict(message),
            _ => ControlError::bad_request(message),
        }
    }
}
