//! `/topology`: the account with its regions, databases, containers and partitions.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use protocol::account::ConsistencyLevel;
use serde::Serialize;

use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use crate::faults::RegionHealth;
use engine::catalog::{ContainerEntry, DatabaseEntry};
use engine::regions::{RegionId, Topology};
use engine::store::{Partition, SplitMark};

pub(super) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/topology",
    about: "regions, databases, containers, partitions; ?database=, ?container=",
    handle: show,
}];

/// The whole account, as the control port shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TopologyView {
    account: String,
    /// The account's own endpoint, which belongs to no region if there are several.
    endpoint: String,
    consistency: &'static str,
    multi_write: bool,
    regions: Vec<RegionView>,
    databases: Vec<DatabaseView>,
}

/// One region, in failover order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegionView {
    name: String,
    endpoint: String,
    writes: bool,
    /// Whether replication to it is paused.
    paused: bool,
    /// Whether it was removed from the account.
    removed: bool,
    /// The replication lag from each other region.
    lag_from: BTreeMap<String, String>,
    /// The fault of the region, and the state of its port.
    #[serde(flatten)]
    health: Option<RegionHealth>,
}

#[derive(Debug, Serialize)]
struct DatabaseView {
    id: String,
    containers: Vec<ContainerView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerView {
    id: String,
    partition_key: Vec<String>,
    items: u64,
    bytes: u64,
    partitions: Vec<PartitionView>,
}

/// One physical partition, as the control port shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartitionView {
    /// The id of its partition key range.
    pub(super) range: u32,
    min_inclusive: String,
    max_exclusive: String,
    parents: Vec<u32>,
    /// Whether it is being split or merged, or locked as before a split.
    splitting: bool,
    /// The write region of the partition, where it differs from the account's.
    #[serde(skip_serializing_if = "Option::is_none")]
    write_region: Option<String>,
    items: usize,
    bytes: u64,
    /// The LSN in each region.
    lsn: BTreeMap<String, u64>,
}

fn show(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&["database", "container"])?;
    let topology = control.account.regions.current();
    let uptime = control.clock.uptime();
    let databases =
        selected_containers(control, request)?.into_iter().map(|(database, containers)| DatabaseView {
            id: database.id.to_string(),
            containers: containers.iter().map(|entry| container_view(entry, &topology, uptime)).collect(),
        });
    super::json(&TopologyView {
        account: control.account.name.clone(),
        endpoint: control.account_endpoint(),
        consistency: topology.consistency.name(),
        multi_write: topology.is_multi_write(),
        databases: databases.collect(),
        regions: regions(control),
    })
}

/// A database and the selected ones of its containers.
type SelectedContainers = (std::sync::Arc<DatabaseEntry>, Vec<std::sync::Arc<ContainerEntry>>);

/// The databases and containers that `?database=` and `?container=` select.
pub(super) fn selected_containers(
    control: &Control,
    request: &ControlRequest,
) -> Result<Vec<SelectedContainers>, ControlError> {
    let (wanted_database, wanted_container) = (request.parameter("database"), request.parameter("container"));
    let snapshot = control.account.catalog.snapshot();
    let mut chosen = Vec::new();
    for database in snapshot.databases_after(None) {
        if wanted_database.is_some_and(|wanted| database.id != wanted) {
            continue;
        }
        let containers = database.containers_after(None);
        let containers = containers.filter(|entry| wanted_container.is_none_or(|wanted| entry.id == wanted));
        chosen.push((std::sync::Arc::clone(database), containers.cloned().collect::<Vec<_>>()));
    }
    if let (Some(wanted), true) = (wanted_database, chosen.is_empty()) {
        return Err(ControlError::not_found(format!("there is no database '{wanted}'")));
    }
    if let (Some(wanted), true) = (wanted_container, chosen.iter().all(|(_, found)| found.is_empty())) {
        return Err(ControlError::not_found(format!("there is no container '{wanted}'")));
    }
    Ok(chosen)
}

/// The regions, in failover order, then those that were removed.
pub(super) fn regions(control: &Control) -> Vec<RegionView> {
    let topology = control.account.regions.current();
    let mut health = control.faults.regions();
    let mut view = |id: &RegionId| {
        let region = topology.region(*id);
        let others = topology.regions().filter(|(other, _)| other != id);
        RegionView {
            name: region.name.clone(),
            endpoint: control.advertised_hosts.region_url("http", &region.name, region.port),
            writes: topology.takes_item_writes(*id),
            paused: region.paused_at.is_some(),
            removed: !topology.is_listed(*id),
            health: health.remove(&region.name),
            lag_from: others
                .map(|(other, from)| (from.name.clone(), topology.lag(other, *id).to_string()))
                .collect(),
        }
    };
    let removed: Vec<RegionId> =
        topology.regions().map(|(id, _)| id).filter(|id| !topology.is_listed(*id)).collect();
    topology.failover_order().iter().chain(&removed).map(&mut view).collect()
}

fn container_view(entry: &ContainerEntry, topology: &Topology, uptime: Duration) -> ContainerView {
    let usage = entry.store.usage();
    let partitions = entry.store.partitions();
    ContainerView {
        id: entry.id.to_string(),
        partition_key: entry.properties.partition_key.paths.iter().map(ToString::to_string).collect(),
        items: usage.items,
        bytes: usage.bytes,
        partitions: partitions.iter().map(|partition| partition_view(partition, topology, uptime)).collect(),
    }
}

pub(super) fn partition_view(partition: &Partition, topology: &Topology, uptime: Duration) -> PartitionView {
    let newest = partition.latest_head();
    let lsn = lsns(partition, topology, uptime).map(|(region, lsn)| (region.to_owned(), lsn));
    PartitionView {
        range: partition.identity.id,
        min_inclusive: partition.range.min.to_string(),
        max_exclusive: partition.range.max.to_string(),
        parents: partition.parents.clone(),
        splitting: partition.has_split_mark(SplitMark::Announced, uptime),
        write_region: partition.write_region().map(|region| topology.region(region).name.clone()),
        items: newest.len(),
        bytes: newest.bytes(),
        lsn: lsn.collect(),
    }
}

/// The LSN of a partition in each region.
pub(super) fn lsns<'a>(
    partition: &Partition,
    topology: &'a Topology,
    uptime: Duration,
) -> impl Iterator<Item = (&'a str, u64)> {
    topology.regions().map(move |(id, region)| {
        let read_context = topology.read_context(id, ConsistencyLevel::Eventual, uptime);
        (region.name.as_str(), partition.head(read_context).lsn.0)
    })
}
