//! Which regions an account is started with.

use engine::regions::RegionSource;

/// The name of an only region, as in the official emulator.
const ONLY_REGION: &str = "South Central US";
/// Names of real regions, for accounts that say how many regions they have and not which.
const REGION_NAMES: [&str; 16] = [
    "West US",
    "East US",
    "North Europe",
    "South Central US",
    "West Europe",
    "Southeast Asia",
    "Japan East",
    "Australia East",
    "UK South",
    "Canada Central",
    "Brazil South",
    "Central India",
    "Central US",
    "East Asia",
    "France Central",
    "Korea Central",
];

/// The regions that an account is started with. The first one is the write region, unless a data directory says
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RegionSelection {
    /// Those of the data directory; one region if there is none.
    #[default]
    Stored,
    /// This many, with the names of real regions or, if it has as many, those of the data directory.
    Count(usize),
    /// These, by the names that clients see.
    Named(Vec<String>),
}

impl RegionSelection {
    /// The names of a new account's regions.
    pub(crate) fn names(&self) -> Vec<String> {
        let real = |count: usize| {
            if count == 1 {
                return vec![ONLY_REGION.to_owned()];
            }
            let further = (REGION_NAMES.len()..count).map(|number| format!("Region {}", number + 1));
            REGION_NAMES.iter().take(count).map(|name| (*name).to_owned()).chain(further).collect()
        };
        match self {
            RegionSelection::Stored => real(1),
            RegionSelection::Count(count) => real(*count),
            RegionSelection::Named(names) => names.clone(),
        }
    }

    /// When the regions of a data directory are used instead.
    pub(crate) fn source(&self) -> RegionSource {
        match self {
            RegionSelection::Stored => RegionSource::Stored,
            RegionSelection::Count(count) => RegionSource::StoredIfCount(*count),
            RegionSelection::Named(_) => RegionSource::Configured,
        }
    }
}

impl From<Vec<String>> for RegionSelection {
    fn from(names: Vec<String>) -> RegionSelection {
        RegionSelection::Named(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_takes_real_names_and_one_is_named_as_in_the_official_emulator() {
        assert_eq!(RegionSelection::Stored.names(), ["South Central US"]);
        assert_eq!(RegionSelection::Count(1).names(), ["South Central US"]);
        assert_eq!(RegionSelection::Count(2).names(), ["West US", "East US"]);
        assert_eq!(RegionSelection::Count(17).names().len(), 17, "too many is for the topology to refuse");
        assert_eq!(RegionSelection::from(vec!["Mars".to_owned()]).names(), ["Mars"]);
    }
}
