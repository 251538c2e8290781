//! The options of `peri fault` that say which requests a fault affects, how often, and for how long.

use emulator::clock::HumanDuration;
use emulator::faults::{OperationKind, ResourceKind};

use super::ContainerPath;

/// Which requests a fault affects, how often, and for how long.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RequestFilter {
    /// Id of the rule; a rule with the same id is replaced
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Only these operations: read, create, upsert, replace, patch, delete, batch, query, queryPlan, readFeed, changeFeed, write, metadata
    #[arg(long = "operation", value_name = "NAME", value_delimiter = ',')]
    pub(crate) operations: Vec<OperationKind>,

    /// Only these resources: account, database, container, item, partitionKeyRange, offer, user, permission, conflict
    #[arg(long = "resource", value_name = "NAME", value_delimiter = ',')]
    pub(crate) resources: Vec<ResourceKind>,

    /// Only in this database
    #[arg(long, value_name = "NAME", conflicts_with = "container")]
    pub(crate) database: Option<String>,

    /// Only in this container
    #[arg(long, value_name = "DATABASE/CONTAINER")]
    pub(crate) container: Option<ContainerPath>,

    /// Only this partition key: a string, or an array like '["a",1]'
    #[arg(long, value_name = "KEY")]
    pub(crate) partition_key: Option<String>,

    /// Only this physical partition, by its range id
    #[arg(long, value_name = "ID", conflicts_with = "partition_key")]
    pub(crate) range: Option<u32>,

    /// Only in these regions
    #[arg(long = "region", value_name = "NAME", value_delimiter = ',')]
    pub(crate) regions: Vec<String>,

    /// Only this share of the requests, chosen at random: 0.3
    #[arg(long, value_name = "0..1", conflicts_with = "every_nth")]
    pub(crate) share: Option<f64>,

    /// Only every n-th of the requests
    #[arg(long, value_name = "N")]
    pub(crate) every_nth: Option<u64>,

    /// Only this many of the requests, then the rule ends
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Begin after this time
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<HumanDuration>,

    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<HumanDuration>,
}
