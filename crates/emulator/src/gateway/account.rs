//! The account itself: its name, key, regions and resources.

use std::num::NonZeroU32;
use std::sync::Arc;

use protocol::authorization::Key;

use crate::catalog::Catalog;
use crate::charge::RequestUnits;
use crate::disk::{DataDir, Disk, OpenError};
use crate::faults::AccountFaults;
use crate::growth::Growth;
use crate::regions::{Regions, Topology};
use crate::sight::Sight;
use crate::snapshots::Snapshots;
use crate::store::Place;

/// Everything the handlers of one account share. One per emulator, whatever the number of regions.
#[derive(Debug)]
pub struct Account {
    /// First part of the account's name. Never `localhost`: one SDK ignores the regions of an
    /// account with that name.
    pub(crate) name: String,
    /// What clients sign with.
    pub(crate) key: Key,
    /// Where the account is, who writes, and what a read may miss.
    pub(crate) regions: Arc<Regions>,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub(crate) partitions: Option<NonZeroU32>,
    /// Bytes a physical partition holds before it is split.
    pub(crate) partition_bytes_max: u64,
    /// What becomes of the request units that operations cost.
    pub(crate) request_units: RequestUnits,
    /// Databases, containers, users, permissions, offers.
    pub(crate) catalog: Catalog,
    /// Which offers are not yet carried out.
    pub(crate) growth: Growth,
    /// Copies of all that, to come back to.
    pub(crate) snapshots: Snapshots,
    /// What goes wrong on purpose.
    pub(crate) faults: Arc<AccountFaults>,
    /// What was asked of it, and how that went.
    pub(crate) sight: Sight,
    /// Where it is kept, if anywhere.
    pub(crate) disk: Option<Arc<Disk>>,
}

/// What an account is made of.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// What clients sign with.
    pub key: Key,
    /// Where the account is, who writes, and what a read may miss.
    pub topology: Topology,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub partitions: Option<NonZeroU32>,
    /// Bytes a physical partition holds before it is split.
    pub partition_bytes_max: u64,
    /// What becomes of the request units that operations cost.
    pub request_units: RequestUnits,
    /// A draw that resource ids start from, so that a client which outlives one process does not
    /// mistake the resources of the next for those it knew.
    pub seed: u32,
}

impl Account {
    /// An account with nothing in it.
    pub fn new(settings: AccountSettings) -> Account {
        let AccountSettings { key, topology, partitions, partition_bytes_max, request_units, seed } =
            settings;
        let regions = Arc::new(Regions::new(topology));
        let (name, catalog) = ("perihelion".to_owned(), Catalog::new(seed));
        let (growth, snapshots) = (Growth::default(), Snapshots::default());
        let faults = Arc::new(AccountFaults::new(Arc::clone(&regions), seed.into()));
        Account {
            name,
            key,
            regions,
            partitions,
            partition_bytes_max,
            request_units,
            catalog,
            growth,
            snapshots,
            faults,
            sight: Sight::default(),
            disk: None,
        }
    }

    /// The account that is kept in a directory, or an empty one to be kept there. Takes as long as
    /// reading it, so it belongs on a thread that has the time.
    pub fn open(settings: AccountSettings, data: &DataDir) -> Result<Account, OpenError> {
        let AccountSettings { seed, topology, .. } = &settings;
        let (disk, opened) = Disk::open(data, &topology.kept())?;
        let (disk, seed) = (Arc::new(disk), *seed);
        let mut settings = settings;
        if let Some(kept) = opened.regions() {
            settings.topology.go_on(&kept);
        }
        let mut account = Account::new(settings);
        let place = Place {
            regions: Arc::clone(&account.regions),
            disk: Arc::clone(&disk),
            bytes_max: account.partition_bytes_max,
        };
        account.catalog = Catalog::restored(&place, opened, seed)?;
        let keep = account.regions.keep_on(&disk);
        keep.map_err(|error| OpenError::Refused {
            action: "write to",
            path: data.path.clone(),
            source: std::io::Error::other(error.to_string()),
        })?;
        account.disk = Some(disk);
        Ok(account)
    }

    /// Makes the indexes of an account that was opened: queries and feeds wait for them, writes and point
    /// reads do not. Takes as long as that, so it belongs on a thread that has the time.
    pub fn make_indexes(&self) {
        self.catalog.make_indexes();
    }

    /// How many regions it is in.
    pub fn region_count(&self) -> usize {
        self.regions.current().len()
    }
}
