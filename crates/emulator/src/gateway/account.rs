//! The account itself: its name, key, regions and resources.

use std::num::NonZeroU32;

use protocol::account::ConsistencyLevel;
use protocol::authorization::Key;

use crate::catalog::Catalog;

/// Everything the handlers of one account share. One per emulator, whatever the number of regions.
#[derive(Debug)]
pub struct Account {
    /// First part of the account's name. Never `localhost`: one SDK ignores the regions of an
    /// account with that name.
    pub(crate) name: String,
    /// What clients sign with.
    pub(crate) key: Key,
    /// What a read may miss unless it asks for less.
    pub(crate) consistency: ConsistencyLevel,
    /// Where the account is, write region first.
    pub(crate) regions: Vec<Region>,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub(crate) partitions: Option<NonZeroU32>,
    /// Databases, containers, users, permissions, offers.
    pub(crate) catalog: Catalog,
}

/// What an account is made of.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// What clients sign with.
    pub key: Key,
    /// Where the account is, write region first; at least one.
    pub regions: Vec<Region>,
    /// Physical partitions of every new container; decided by its throughput when absent.
    pub partitions: Option<NonZeroU32>,
    /// What a read may miss unless it asks for less.
    pub consistency: ConsistencyLevel,
    /// A draw that resource ids start from, so that a client which outlives one process does not
    /// mistake the resources of the next for those it knew.
    pub seed: u32,
}

/// One region of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The display name, `West US`.
    pub name: String,
    /// The port its gateway listens on.
    pub port: u16,
}

impl Account {
    /// An account with nothing in it.
    pub fn new(settings: AccountSettings) -> Account {
        let AccountSettings { key, regions, partitions, consistency, seed } = settings;
        let catalog = Catalog::new(seed);
        Account { name: "perihelion".to_owned(), key, consistency, regions, partitions, catalog }
    }
}
