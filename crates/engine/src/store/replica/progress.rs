//! The progress of a replica: what session tokens state and require.

use std::sync::Arc;

use protocol::lsn::Lsn;

use crate::regions::RegionId;

/// The commits a replica has: its own LSN and, where several regions write, how many of each region's
/// commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The LSN of the replica's last commit.
    pub lsn: Lsn,
    /// The commits of each region that it has applied.
    pub versions: VersionVector,
}

/// A version vector: how many commits of each region have been applied. Empty where one region writes: there
/// the LSN says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionVector(Option<Arc<[u64]>>);

impl VersionVector {
    /// No commits of this many regions.
    pub(in crate::store) fn none_of(regions: usize) -> VersionVector {
        VersionVector(Some(vec![0; regions].into()))
    }

    /// This number of commits of each region.
    pub(in crate::store) fn of_regions(commits: Vec<u64>) -> VersionVector {
        VersionVector(Some(commits.into()).filter(|commits: &Arc<[u64]>| !commits.is_empty()))
    }

    /// This vector for this many regions, with no commits of those that it does not have yet.
    pub(in crate::store) fn extended(&self, regions: usize) -> VersionVector {
        let mut commits: Vec<u64> = self.regions().map(|(_, commits)| commits).collect();
        commits.resize(regions.max(commits.len()), 0);
        VersionVector(Some(commits.into()))
    }

    /// The larger of two, region by region.
    pub(in crate::store) fn joined(self, other: VersionVector) -> VersionVector {
        match (self.0, other.0) {
            (Some(one), Some(two)) => {
                VersionVector(Some(one.iter().zip(&*two).map(|(a, b)| *a.max(b)).collect()))
            }
            (one, two) => VersionVector(one.or(two)),
        }
    }

    /// The regions by their numbers in session tokens, which count from one, and their commits.
    pub fn regions(&self) -> impl Iterator<Item = (u32, u64)> {
        (1..).zip(self.0.iter().flat_map(|progress| progress.iter().copied()))
    }

    /// How many of one region's commits have been applied.
    pub(in crate::store) fn of(&self, region: RegionId) -> u64 {
        self.0.as_ref().and_then(|progress| progress.get(region.index())).copied().unwrap_or(0)
    }

    /// This vector with at least this many commits of one region.
    pub(in crate::store) fn with(&self, region: RegionId, commits: u64) -> VersionVector {
        let Some(progress) = &self.0 else { return VersionVector(None) };
        let mut progress = progress.to_vec();
        if let Some(place) = progress.get_mut(region.index()) {
            *place = commits.max(*place);
        }
        VersionVector(Some(progress.into()))
    }
}
