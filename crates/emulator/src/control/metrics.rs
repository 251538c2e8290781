//! `/metrics`: all counters and gauges, in the Prometheus text format.
//!
//! Labels are regions, operations, statuses, and the partitions of containers that exist; each of them is
//! bounded.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};

use super::exposition::{Exposition, MetricType};
use super::requests::parse_container_path;
use super::routes::Route;
use super::{Control, ControlRequest, ControlResult};
use crate::request_log::{
    LatencyHistogram, OTHER, OTHER_STATUS, PartitionCounts, PartitionKey, RequestCounts,
};
use engine::regions::Topology;

pub(super) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/metrics",
    about: "counters and latencies, in the text format of Prometheus",
    handle: metrics,
}];

/// Partitions whose sizes are included.
const PARTITIONS_MAX: usize = 2_000;

fn metrics(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    let mut text = Exposition::default();
    let topology = control.account.regions.current();
    drop_deleted_containers(control);
    let counts = control.request_log.counts();
    operations(&mut text, &counts, &topology);
    partitions(&mut text, &counts, &topology);
    contents(&mut text, control, &topology);
    account(&mut text, control, &topology);
    cut_connections(&mut text, control);
    let mut response = Response::new(Bytes::from(text.finish()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Drops the counts of deleted containers, which would accumulate otherwise.
pub(super) fn drop_deleted_containers(control: &Control) {
    let snapshot = control.account.catalog.snapshot();
    control.request_log.retain_containers(|path| {
        parse_container_path(path)
            .is_some_and(|(database, container)| snapshot.container(database, container).is_ok())
    });
}

fn operations(text: &mut Exposition, counts: &RequestCounts, topology: &Topology) {
    let name = "perihelion_requests_total";
    text.family(
        name,
        MetricType::Counter,
        "Requests; status 0 are those whose connection was closed instead of an answer, 499 those whose \
         connection ended before it.",
    );
    for (key, counted) in &counts.operations {
        for ((status, sub_status), count) in &counted.statuses {
            let label = |number: String| if *status == OTHER_STATUS { OTHER.to_owned() } else { number };
            let (status, sub_status) = (label(status.to_string()), label(sub_status.to_string()));
            let labels = [
                ("region", topology.region(key.region).name.as_str()),
                ("operation", key.operation),
                ("status", &status),
                ("sub_status", &sub_status),
            ];
            text.sample(name, &labels, *count as f64);
        }
    }
    let name = "perihelion_request_units_total";
    text.family(name, MetricType::Counter, "Request units that answers stated.");
    for (key, counted) in &counts.operations {
        let region = topology.region(key.region).name.as_str();
        text.sample(name, &[("region", region), ("operation", key.operation)], counted.charge);
    }
    let name = "perihelion_request_duration_seconds";
    text.family(name, MetricType::Histogram, "Time from a whole request to its answer.");
    for (key, counted) in &counts.operations {
        let region = topology.region(key.region).name.as_str();
        histogram(text, name, &[("region", region), ("operation", key.operation)], &counted.latency);
    }
}

/// The connections that faults cut off.
fn cut_connections(text: &mut Exposition, control: &Control) {
    let name = "perihelion_fault_connections_total";
    text.family(name, MetricType::Counter, "Connections that a fault rule refused, reset or swallowed.");
    for ((rule, region), count) in control.faults.cut_connections() {
        text.sample(name, &[("rule", &rule), ("region", &region)], count as f64);
    }
}

fn histogram(text: &mut Exposition, name: &str, labels: &[(&str, &str)], latency: &LatencyHistogram) {
    let bucket = format!("{name}_bucket");
    for (bound, count) in latency.cumulative() {
        let bound = bound.as_secs_f64().to_string();
        text.sample(&bucket, &[labels, &[("le", &bound)]].concat(), count as f64);
    }
    text.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), latency.count() as f64);
    text.sample(&format!("{name}_sum"), labels, latency.sum().as_secs_f64());
    text.sample(&format!("{name}_count"), labels, latency.count() as f64);
}

fn partitions(text: &mut Exposition, counts: &RequestCounts, topology: &Topology) {
    let mut each = |name: &str, help: &str, value: &dyn Fn(&PartitionCounts) -> f64| {
        text.family(name, MetricType::Counter, help);
        for (key, counted) in &counts.partitions {
            with_labels(key, topology, |labels| text.sample(name, labels, value(counted)));
        }
    };
    each("perihelion_partition_requests_total", "Requests a partition answered.", &|counted| {
        counted.latency.count() as f64
    });
    each("perihelion_partition_throttled_total", "Requests a partition answered with 429.", &|counted| {
        counted.throttled as f64
    });
    each(
        "perihelion_partition_request_units_total",
        "Request units a partition's answers stated.",
        &|counted| counted.charge,
    );
    let name = "perihelion_partition_request_duration_seconds";
    text.family(name, MetricType::Summary, "Time from a whole request to a partition's answer.");
    for (key, counted) in &counts.partitions {
        with_labels(key, topology, |labels| {
            text.sample(&format!("{name}_sum"), labels, counted.latency.sum().as_secs_f64());
            text.sample(&format!("{name}_count"), labels, counted.latency.count() as f64);
        });
    }
}

fn with_labels(key: &PartitionKey, topology: &Topology, work: impl FnOnce(&[(&str, &str)])) {
    let (database, container) = parse_container_path(&key.container).unwrap_or((OTHER, OTHER));
    let range = if &*key.container == OTHER { OTHER.to_owned() } else { key.range.to_string() };
    let region = topology.region(key.region).name.as_str();
    work(&[("region", region), ("database", database), ("container", container), ("range", &range)]);
}

/// The sizes and LSNs of the partitions.
fn contents(text: &mut Exposition, control: &Control, topology: &Topology) {
    let snapshot = control.account.catalog.snapshot();
    let mut partitions = Vec::new();
    let mut total = 0;
    for database in snapshot.databases_after(None) {
        for container in database.containers_after(None) {
            for partition in container.store.partitions().iter() {
                total += 1;
                if partitions.len() < PARTITIONS_MAX {
                    let range = partition.identity.id.to_string();
                    partitions.push((
                        database.id.clone(),
                        container.id.clone(),
                        range,
                        std::sync::Arc::clone(partition),
                    ));
                }
            }
        }
    }
    for (name, help, value) in [
        (
            "perihelion_partition_items",
            "Items in a partition, in the region that writes.",
            (|partition| partition.latest_head().len() as f64) as fn(&engine::store::Partition) -> f64,
        ),
        ("perihelion_partition_bytes", "Bytes of these items.", |partition| {
            partition.latest_head().bytes() as f64
        }),
    ] {
        text.family(name, MetricType::Gauge, help);
        for (database, container, range, partition) in &partitions {
            let labels = [("database", database.as_str()), ("container", container), ("range", range)];
            text.sample(name, &labels, value(partition));
        }
    }
    let name = "perihelion_partition_lsn";
    text.family(name, MetricType::Gauge, "How far a region is with a partition.");
    let uptime = control.clock.uptime();
    for (database, container, range, partition) in &partitions {
        for (region, lsn) in super::topology::lsns(partition, topology, uptime) {
            let labels = [
                ("region", region),
                ("database", database),
                ("container", container),
                ("range", range.as_str()),
            ];
            text.sample(name, &labels, lsn as f64);
        }
    }
    let name = "perihelion_partitions";
    text.family(name, MetricType::Gauge, "Physical partitions there are, shown above or not.");
    text.sample(name, &[], f64::from(total));
}

fn account(text: &mut Exposition, control: &Control, topology: &Topology) {
    for (name, help, value) in [
        (
            "perihelion_region_writes",
            "1 where items can be written.",
            (|topology, id| topology.takes_item_writes(id))
                as fn(&Topology, engine::regions::RegionId) -> bool,
        ),
        ("perihelion_region_paused", "1 where nothing new arrives.", |topology, id| {
            topology.region(id).paused_at.is_some()
        }),
    ] {
        text.family(name, MetricType::Gauge, help);
        for (id, region) in topology.regions() {
            text.sample(name, &[("region", &region.name)], f64::from(u8::from(value(topology, id))));
        }
    }
    let times = control.clock.read();
    text.family("perihelion_uptime_seconds", MetricType::Gauge, "How long it has been running.");
    text.sample("perihelion_uptime_seconds", &[], control.clock.uptime().as_secs_f64());
    text.family("perihelion_clock_seconds", MetricType::Gauge, "The account's time, in seconds since 1970.");
    text.sample("perihelion_clock_seconds", &[], times.account.milliseconds() as f64 / 1_000.0);
    text.family("perihelion_build_info", MetricType::Gauge, "1, labelled with the version.");
    text.sample("perihelion_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
}
