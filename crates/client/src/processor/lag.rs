//! Estimates how many changes a processor has not handled yet, by reading the feed without owning a lease.

use std::time::{Duration, SystemTime};

use driver::change_feed::{ChangeFeedMode, ChangeRequest, ChangeSource, ServiceChanges};
use driver::query::PageError;
use futures::stream;
use futures::{StreamExt, TryStreamExt};

use super::change_metadata::lsn_and_time;
use super::lease::{Lease, RangePosition, is_blocked_by_split};
use crate::{FeedRange, Result};

/// An estimate of how many changes a processor has not handled yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lag {
    /// The lag of each feed range, in the order of their EPK ranges.
    pub ranges: Vec<RangeLag>,
}

/// An estimate of how many changes of a feed range are not handled yet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RangeLag {
    /// The feed range that was estimated.
    pub range: FeedRange,
    /// The instance that owns the lease of the range.
    pub owner: Option<String>,
    /// The number of writes to its partition since the first change that was not handled. This is an upper bound of
    /// the number of changes: in the latest version mode several writes of one item are one change, and writes to the
    /// same partition outside of the range count as well.
    pub changes: u64,
    /// When the first change that was not handled was made, to the second.
    pub oldest: Option<SystemTime>,
}

impl Lag {
    /// The sum of the changes of all ranges.
    pub fn total(&self) -> u64 {
        self.ranges.iter().map(|range| range.changes).sum()
    }

    /// When the oldest change that was not handled was made.
    pub fn oldest(&self) -> Option<SystemTime> {
        self.ranges.iter().filter_map(|range| range.oldest).min()
    }
}

/// How many partitions are read at a time.
const PARALLEL_MAX: usize = 8;

/// Reads the first change after the position of each lease.
pub(super) async fn estimate(source: &ServiceChanges, mode: ChangeFeedMode, leases: &[Lease]) -> Result<Lag> {
    let positions = leases.iter().filter(|lease| !is_blocked_by_split(lease, leases)).flat_map(|lease| {
        let whole = || vec![RangePosition::new(lease.range(), lease.position.clone())];
        let parts = if lease.is_splitting() { lease.parts.clone() } else { whole() };
        parts.into_iter().map(|part| (part, lease.owner.clone()))
    });
    let positions: Vec<_> = positions.collect();
    let ranges: Vec<Vec<RangeLag>> = stream::iter(positions)
        .map(|(position, owner)| range_lag(source, mode, position, owner))
        .buffered(PARALLEL_MAX)
        .try_collect()
        .await?;
    Ok(Lag { ranges: ranges.into_iter().flatten().collect() })
}

async fn range_lag(
    source: &ServiceChanges,
    mode: ChangeFeedMode,
    position: RangePosition,
    owner: Option<String>,
) -> Result<Vec<RangeLag>> {
    let since = position.position.since();
    let mut waiting = vec![position.range()];
    let mut lags = Vec::new();
    while let Some(range) = waiting.pop() {
        let one = std::num::NonZeroU32::new(1);
        let request = ChangeRequest { range: range.clone(), mode, since: since.clone(), items_max: one };
        match source.changes(request).await {
            Ok(page) => {
                let first = page.items()?.first().map(|change| lsn_and_time(change));
                let (changes, oldest) = match first {
                    None => (0, None),
                    Some((lsn, time)) => (pending_changes(page.lsn, lsn), time),
                };
                let oldest = oldest.map(|time| SystemTime::UNIX_EPOCH + Duration::from_secs(time));
                lags.push(RangeLag { range, owner: owner.clone(), changes, oldest });
            }
            Err(PageError::Failed(error)) => return Err(error),
            Err(PageError::Gone) => {
                let parts = source.divide(range.clone(), true).await?;
                if parts == [range] {
                    let message = "a partition is gone and no other partition has its range yet: try again";
                    return Err(crate::Error::new(crate::ErrorKind::Unavailable, message));
                }
                waiting.extend(parts.into_iter().rev());
            }
        }
    }
    Ok(lags)
}

/// The number of writes from `first` to `last`; one if either is unknown.
fn pending_changes(last: Option<u64>, first: Option<u64>) -> u64 {
    last.zip(first).map_or(1, |(last, first)| (last + 1).saturating_sub(first).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_changes_are_counted_from_the_first_change_to_the_last_write() {
        for (last, first, expected) in [
            (Some(10), Some(10), 1),
            (Some(10), Some(8), 3),
            // A region that lags behind the one that was read before, or a response without an LSN.
            (Some(7), Some(8), 1),
            (None, Some(8), 1),
            (Some(10), None, 1),
        ] {
            assert_eq!(pending_changes(last, first), expected);
        }
    }
}
