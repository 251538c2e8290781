//! A set of regions of an account, and the regions that an operation used. Pure.

use perihelion::Diagnostics;
use perihelion::driver::Region;

/// A set of regions, by their number in the account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionSet(u64);

impl RegionSet {
    /// Adds the region with this number. The accounts of scenarios have at most 64 regions.
    pub fn insert(&mut self, number: usize) {
        self.0 |= u32::try_from(number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or(0);
    }

    /// Whether the two sets have a region in common.
    pub fn intersects(self, other: RegionSet) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<usize> for RegionSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> RegionSet {
        let mut set = RegionSet::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

/// The regions that the attempts of one operation were sent to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionsUsed {
    /// The region of the first attempt.
    pub first: RegionSet,
    /// The regions of all attempts, those that were abandoned included.
    pub all: RegionSet,
}

impl RegionsUsed {
    /// Regions with these numbers, the first attempt first.
    pub fn of(numbers: &[usize]) -> RegionsUsed {
        RegionsUsed {
            first: numbers.iter().copied().take(1).collect(),
            all: numbers.iter().copied().collect(),
        }
    }

    /// Adds the attempts of one request of the operation; `regions` are those of the account.
    pub(crate) fn add(&mut self, diagnostics: &Diagnostics, regions: &[Region]) {
        for attempt in diagnostics.attempts() {
            let Some(number) = regions.iter().position(|region| region == attempt.endpoint.region()) else {
                continue;
            };
            if self.all == RegionSet::default() {
                self.first.insert(number);
            }
            self.all.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_regions_that_were_added() {
        let set: RegionSet = [0, 63, 64, usize::MAX].into_iter().collect();
        let only = |number: usize| [number].into_iter().collect::<RegionSet>();
        assert!(set.intersects(only(0)) && set.intersects(only(63)) && !set.intersects(only(1)));
        assert!(!RegionSet::default().intersects(set));
        let used = RegionsUsed::of(&[1, 0]);
        assert!(
            used.first.intersects(only(1)) && !used.first.intersects(only(0)) && used.all.intersects(only(0))
        );
    }
}
