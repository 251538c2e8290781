//! What is kept of the account's regions, and which accounts can go on with what.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::OpenError;

/// The regions of an account, by name, and what was set between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct KeptRegions {
    /// In the order of their numbers.
    pub(crate) names: Vec<String>,
    pub(crate) multi_write: bool,
    /// In failover order: the first one writes.
    pub(crate) order: Vec<String>,
    /// The lag that the account was started with.
    pub(crate) lag: String,
    /// Lags that were set since: from, to, how long.
    pub(crate) lags: Vec<(String, String, String)>,
    /// Regions that nothing new reaches.
    pub(crate) paused: Vec<String>,
    /// How often its writes have moved.
    pub(crate) moves: u64,
}

impl KeptRegions {
    /// How many sequences of commits each partition has.
    pub(super) fn lines(&self) -> u8 {
        // An account has 16 regions at the most.
        if self.multi_write { self.names.len() as u8 } else { 1 }
    }

    /// Refuses an account in `wanted` regions that cannot go on with what is in the directory: where all
    /// write, each has a sequence of its own.
    pub(super) fn check(&self, wanted: &KeptRegions, path: &Path) -> Result<(), OpenError> {
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

    fn regions(names: &[&str], multi_write: bool) -> KeptRegions {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        KeptRegions { names, multi_write, ..KeptRegions::default() }
    }

    #[test]
    fn only_where_all_regions_write_do_they_have_to_be_the_same() {
        let (one, two) = (&["West US"][..], &["West US", "East US"][..]);
        for (kept, wanted, fits) in [
            (regions(one, false), regions(two, false), true),
            (regions(two, false), regions(one, false), true),
            (regions(two, true), regions(two, true), true),
            (regions(two, true), regions(&["East US", "West US"], true), false),
            (regions(two, true), regions(two, false), false),
            (regions(two, false), regions(two, true), false),
        ] {
            let checked = kept.check(&wanted, Path::new("data"));
            assert_eq!(checked.is_ok(), fits, "{kept:?} as {wanted:?}");
            if let Err(error) = checked {
                assert!(
                    error.to_string().contains(if kept.multi_write {
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
