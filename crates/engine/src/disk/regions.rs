//! The stored regions of an account, and which accounts can continue with them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::OpenError;

/// Which regions an account has that is opened from a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionSource {
    /// Those it is configured with, whatever the directory has.
    Configured,
    /// Those of the directory, if there are any.
    Stored,
    /// Those of the directory, if there are as many.
    StoredIfCount(usize),
}

impl RegionSource {
    /// Whether this many stored regions are used instead of the configured ones.
    pub(crate) fn prefers(self, stored: usize) -> bool {
        match self {
            RegionSource::Configured => false,
            RegionSource::Stored => stored > 0,
            RegionSource::StoredIfCount(count) => stored == count,
        }
    }
}

/// The regions of an account by name, and their settings. The serde names are part of the format.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StoredRegions {
    /// The names in the order of the regions' numbers.
    pub(crate) names: Vec<String>,
    pub(crate) multi_write: bool,
    /// Whether all regions should write if there are several. What was asked for, which is not stored.
    #[serde(skip)]
    pub(crate) multi_write_requested: bool,
    /// The failover order: the first region writes.
    pub(crate) order: Vec<String>,
    /// The lag that the account was started with.
    pub(crate) lag: String,
    /// Lags that were set since: from, to, duration.
    pub(crate) lags: Vec<(String, String, String)>,
    /// Regions whose replication is paused.
    pub(crate) paused: Vec<String>,
    /// How often the account's writes have moved to another region.
    #[serde(rename = "moves")]
    pub(crate) failover_count: u64,
}

impl StoredRegions {
    /// How many version chains each partition has.
    pub(super) fn chains(&self) -> u8 {
        // An account has 16 regions at the most.
        if self.multi_write { self.names.len() as u8 } else { 1 }
    }

    /// These settings with the names that were stored, if they are preferred.
    pub(super) fn chosen(&self, stored: &StoredRegions, source: RegionSource) -> StoredRegions {
        let mut chosen = self.clone();
        if source.prefers(stored.names.len()) {
            chosen.names.clone_from(&stored.names);
            chosen.multi_write = self.multi_write_requested && chosen.names.len() > 1;
        }
        chosen
    }

    /// Fails if an account in `wanted` regions cannot continue with the directory: where all write, each
    /// region has a version chain of its own.
    pub(super) fn check(&self, wanted: &StoredRegions, path: &Path) -> Result<(), OpenError> {
        let same =
            self.multi_write == wanted.multi_write && (!self.multi_write || self.names == wanted.names);
        if same {
            return Ok(());
        }
        let (regions, multi_write) = (self.names.join(","), self.multi_write);
        Err(OpenError::OtherRegions { path: path.to_owned(), regions, multi_write })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(names: &[&str], multi_write: bool) -> StoredRegions {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        StoredRegions { names, multi_write, ..StoredRegions::default() }
    }

    #[test]
    fn regions_must_match_only_where_all_write() {
        let (one, two) = (&["West US"][..], &["West US", "East US"][..]);
        for (stored, wanted, fits) in [
            (regions(one, false), regions(two, false), true),
            (regions(two, false), regions(one, false), true),
            (regions(two, true), regions(two, true), true),
            (regions(two, true), regions(&["East US", "West US"], true), false),
            (regions(two, true), regions(two, false), false),
            (regions(two, false), regions(two, true), false),
        ] {
            let checked = stored.check(&wanted, Path::new("data"));
            assert_eq!(checked.is_ok(), fits, "{stored:?} as {wanted:?}");
            if let Err(error) = checked {
                assert!(
                    error.to_string().contains(if stored.multi_write {
                        "West US,East US"
                    } else {
                        "one region writes"
                    }),
                    "{error}"
                );
            }
        }
    }
}
