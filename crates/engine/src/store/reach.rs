//! How far a copy of a partition is.

use std::sync::Arc;

use protocol::lsn::Lsn;

use crate::regions::RegionId;

/// What a copy has: its own LSN and, where several regions write, how much of each region's writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub lsn: Lsn,
    pub versions: VersionVector,
}

/// How many commits of each region have arrived. Nothing where one region writes: there the LSN says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionVector(Option<Arc<[u64]>>);

impl VersionVector {
    /// Nothing from so many regions.
    pub(super) fn none_of(regions: usize) -> VersionVector {
        VersionVector(Some(vec![0; regions].into()))
    }

    /// So many from each region.
    pub(super) fn of_regions(commits: Vec<u64>) -> VersionVector {
        VersionVector(Some(commits.into()).filter(|commits: &Arc<[u64]>| !commits.is_empty()))
    }

    /// The further of two, region by region.
    pub(super) fn joined(self, other: VersionVector) -> VersionVector {
        match (self.0, other.0) {
            (Some(one), Some(two)) => {
                VersionVector(Some(one.iter().zip(&*two).map(|(a, b)| *a.max(b)).collect()))
            }
            (one, two) => VersionVector(one.or(two)),
        }
    }

    /// Each region by its number in session tokens, which count from one, and what has arrived of it.
    pub fn regions(&self) -> impl Iterator<Item = (u32, u64)> {
        (1..).zip(self.0.iter().flat_map(|progress| progress.iter().copied()))
    }

    /// What has arrived of one region's commits.
    pub(super) fn of(&self, region: RegionId) -> u64 {
        self.0.as_ref().and_then(|progress| progress.get(region.index())).copied().unwrap_or(0)
    }

    /// The same, with this much of one region's commits.
    pub(super) fn with(&self, region: RegionId, commits: u64) -> VersionVector {
        let Some(progress) = &self.0 else { return VersionVector(None) };
        let mut progress = progress.to_vec();
        if let Some(place) = progress.get_mut(region.index()) {
            *place = commits.max(*place);
        }
        VersionVector(Some(progress.into()))
    }
}
