//! The account: its name, key, regions and resources, and what an operator may do to it.

pub mod auto_split;
pub mod events;
pub mod operations;
pub mod partitions;
mod regions;
pub mod snapshots;
mod throughput_source;

use std::num::NonZeroU32;
use std::sync::Arc;

use protocol::authorization::AccountKey;

use crate::catalog::Catalog;
use crate::charge::RequestUnitMode;
use crate::disk::{DataDir, DataDirHealth, Disk, OpenError};
use crate::regions::{RegionSource, Regions, Topology};
use crate::store::RestoreContext;
use auto_split::PendingOffers;
use events::{EventKind, EventLog};
use snapshots::AccountSnapshots;

pub use throughput_source::{ContainerUsage, ThroughputSource, TokenBucketsRef, usage};

/// An account, whatever the number of its regions: what all request handlers share.
#[derive(Debug)]
pub struct Account {
    /// The account's name. Never `localhost`: one SDK ignores the regions of an account with that name.
    pub name: String,
    /// The key that clients sign their requests with.
    pub key: AccountKey,
    /// The regions of the account: which of them write, and what a read may miss.
    pub regions: Arc<Regions>,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub partitions: Option<NonZeroU32>,
    /// Bytes a physical partition holds before it is split.
    pub partition_bytes_max: u64,
    /// Whether request units are counted, and whether they run out.
    pub request_units: RequestUnitMode,
    /// Databases, containers, users, permissions, offers.
    pub catalog: Catalog,
    /// The offers whose throughput still needs partitions to be split.
    pub pending_offers: PendingOffers,
    /// What was done to the account, and what that caused.
    pub events: Arc<EventLog>,
    /// Named snapshots of the account, which can be restored.
    pub snapshots: AccountSnapshots,
    /// The data directory, if the account has one.
    pub disk: Option<Arc<Disk>>,
}

/// What a new account is made of.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// The key that clients sign their requests with.
    pub key: AccountKey,
    /// The regions of the account: which of them write, and what a read may miss.
    pub topology: Topology,
    /// Which regions an account has that is opened from a data directory.
    pub region_source: RegionSource,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub partitions: Option<NonZeroU32>,
    /// Bytes a physical partition holds before it is split.
    pub partition_bytes_max: u64,
    /// Whether request units are counted, and whether they run out.
    pub request_units: RequestUnitMode,
    /// A draw that resource ids start from, so that a client which outlives one process does not
    /// mistake the resources of the next for those it knew.
    pub seed: u32,
}

impl Account {
    /// A new account without resources, in memory alone.
    pub fn new(settings: AccountSettings) -> Account {
        let AccountSettings { key, topology, partitions, partition_bytes_max, request_units, seed, .. } =
            settings;
        let regions = Arc::new(Regions::new(topology));
        let (name, catalog) = ("perihelion".to_owned(), Catalog::new(seed));
        let (growth, snapshots) = (PendingOffers::default(), AccountSnapshots::default());
        Account {
            name,
            key,
            regions,
            partitions,
            partition_bytes_max,
            request_units,
            catalog,
            pending_offers: growth,
            events: Arc::default(),
            snapshots,
            disk: None,
        }
    }

    /// Opens the account in a data directory, or creates an empty one there. Takes as long as reading it, so
    /// it belongs on a blocking thread.
    pub fn open(settings: AccountSettings, data: &DataDir) -> Result<Account, OpenError> {
        let AccountSettings { seed, topology, region_source, .. } = &settings;
        let (disk, opened) = Disk::open(data, &topology.stored(), *region_source)?;
        let (disk, seed) = (Arc::new(disk), *seed);
        let mut settings = settings;
        if let Some(stored) = opened.regions() {
            if settings.region_source.prefers(stored.names.len()) {
                let restored = settings.topology.with_regions(&stored.names);
                settings.topology = restored.map_err(|error| OpenError::damaged(&data.path, error))?;
            }
            settings.topology.restore_settings(&stored);
        }
        let mut account = Account::new(settings);
        let context = RestoreContext {
            regions: Arc::clone(&account.regions),
            disk: Arc::clone(&disk),
            bytes_max: account.partition_bytes_max,
        };
        account.catalog = Catalog::restored(&context, opened, seed)?;
        let keep = account.regions.persist_to(&disk);
        keep.map_err(|error| OpenError::Io {
            action: "write to",
            path: data.path.clone(),
            source: std::io::Error::other(error.to_string()),
        })?;
        account.record_recovery(&disk);
        account.disk = Some(disk);
        Ok(account)
    }

    /// Records what was read from a data directory.
    fn record_recovery(&self, disk: &Disk) {
        let snapshot = self.catalog.snapshot();
        let items: u64 = snapshot.containers().map(|container| container.store.usage().items).sum();
        let DataDirHealth { path, truncated_tail, .. } = disk.health();
        let cut = truncated_tail.map(|cut| format!("; {cut}")).unwrap_or_default();
        let containers = snapshot.containers().count();
        let message = format!("read {containers} containers with {items} items from {}{cut}", path.display());
        self.events.record(EventKind::Recovery, None, message);
    }

    /// Builds the indexes of an account that was opened: queries and feeds wait for them, writes and point
    /// reads do not. Cost grows with the items, so it belongs on a blocking thread.
    pub fn make_indexes(&self) {
        self.catalog.make_indexes();
    }

    /// The number of the account's regions.
    pub fn region_count(&self) -> usize {
        self.regions.current().region_count()
    }
}
