//! Which requests a fault strikes, how often, and for how long.

use emulator::clock::HumanDuration;
use emulator::faults::{OperationKind, ResourceKind};

use super::ContainerPath;

/// What `peri fault …` takes besides what happens.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Struck {
    /// What to call it; a rule with the same id is replaced
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,

    /// Only these: read, create, upsert, replace, patch, delete, batch, query, queryPlan, readFeed, changeFeed, write, metadata
    #[arg(long = "operation", value_name = "NAME", value_delimiter = ',')]
    pub(crate) operations: Vec<OperationKind>,

    /// Only about these: account, database, container, item, partitionKeyRange, offer, user, permission, conflict
    #[arg(long = "resource", value_name = "NAME", value_delimiter = ',')]
    pub(crate) resources: Vec<ResourceKind>,

    /// Only in this database
    #[arg(long, value_name = "NAME", conflicts_with = "container")]
    pub(crate) database: Option<String>,

    /// Only in this container
    #[arg(long, value_name = "DATABASE/CONTAINER")]
    pub(crate) container: Option<ContainerPath>,

    /// Only this partition key: a word, or an array like '["a",1]'
    #[arg(long, value_name = "KEY")]
    pub(crate) partition_key: Option<String>,

    /// Only this physical partition, by its range id
    #[arg(long, value_name = "ID", conflicts_with = "partition_key")]
    pub(crate) range: Option<u32>,

    /// Only in these regions
    #[arg(long = "region", value_name = "NAME", value_delimiter = ',')]
    pub(crate) regions: Vec<String>,

    /// A share of them, by chance: 0.3
    #[arg(long, value_name = "0..1", conflicts_with = "every_nth")]
    pub(crate) share: Option<f64>,

    /// Every n-th of them
    #[arg(long, value_name = "N")]
    pub(crate) every_nth: Option<u64>,

    /// This many of them, then no more
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Not before this time has passed
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<HumanDuration>,

    /// For this time, then no more
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<HumanDuration>,
}
