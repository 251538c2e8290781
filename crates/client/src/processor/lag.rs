//! How far a processor is behind: asked of the feed itself, without owning a lease.

use std::time::{Duration, SystemTime};

use driver::change_feed::{ChangeFeedMode, ChangeRequest, ChangeSource, ServiceChanges};
use driver::query::PageError;
use futures::stream;
use futures::{StreamExt, TryStreamExt};

use super::lease::{Lease, Stretch, is_waiting};
use super::worker::stamp_of;
use crate::{FeedRange, Result};

/// How many changes are yet to be handled, about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Lag {
    /// By feed range, in the order of the ring.
    pub ranges: Vec<RangeLag>,
}

/// How many changes of a feed range are yet to be handled, about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RangeLag {
    /// The range.
    pub range: FeedRange,
    /// Who handles it.
    pub owner: Option<String>,
    /// Writes to its partition since the first change that was not handled. Several writes of one item are one
    /// change unless all versions are told, and writes next to the range count as well: there may be fewer
    /// changes, never more.
    pub changes: u64,
    /// When the first of them was made, to the second.
    pub oldest: Option<SystemTime>,
}

impl Lag {
    /// Of all ranges.
    pub fn total(&self) -> u64 {
        self.ranges.iter().map(|range| range.changes).sum()
    }

    /// When the oldest change was made that is yet to be handled.
    pub fn oldest(&self) -> Option<SystemTime> {
        self.ranges.iter().filter_map(|range| range.oldest).min()
    }
}

/// Partitions asked at a time.
const PARALLEL_MAX: usize = 8;

/// Asks for the first change behind each lease.
pub(super) async fn estimate(source: &ServiceChanges, mode: ChangeFeedMode, leases: &[Lease]) -> Result<Lag> {
    let asked = leases.iter().filter(|lease| !is_waiting(lease, leases)).flat_map(|lease| {
        let whole = || vec![Stretch::new(lease.range(), lease.position.clone())];
        let parts = if lease.is_divided() { lease.parts.clone() } else { whole() };
        parts.into_iter().map(|part| (part, lease.owner.clone()))
    });
    let asked: Vec<_> = asked.collect();
    let ranges: Vec<Vec<RangeLag>> = stream::iter(asked)
        .map(|(stretch, owner)| behind(source, mode, stretch, owner))
        .buffered(PARALLEL_MAX)
        .try_collect()
        .await?;
    Ok(Lag { ranges: ranges.into_iter().flatten().collect() })
}

async fn behind(
    source: &ServiceChanges,
    mode: ChangeFeedMode,
    stretch: Stretch,
    owner: Option<String>,
) -> Result<Vec<RangeLag>> {
    let since = stretch.position.since();
    let mut waiting = vec![stretch.range()];
    let mut lags = Vec::new();
    while let Some(range) = waiting.pop() {
        let one = std::num::NonZeroU32::new(1);
        let request = ChangeRequest { range: range.clone(), mode, since: since.clone(), items_max: one };
        match source.changes(request).await {
            Ok(page) => {
                let first = page.items()?.first().map(|change| stamp_of(change));
                let (changes, oldest) = match first {
                    None => (0, None),
                    Some((lsn, time)) => (outstanding(page.lsn, lsn), time),
                };
                let oldest = oldest.map(|time| SystemTime::UNIX_EPOCH + Duration::from_secs(time));
                lags.push(RangeLag { range, owner: owner.clone(), changes, oldest });
            }
            Err(PageError::Failed(error)) => return Err(error),
            Err(PageError::Gone) => {
                let parts = source.divide(range.clone(), true).await?;
                if parts == [range] {
                    let message = "a partition says that it is gone and nothing has taken its place";
                    return Err(crate::Error::new(crate::ErrorKind::Unavailable, message));
                }
                waiting.extend(parts.into_iter().rev());
            }
        }
    }
    Ok(lags)
}

/// The writes from `first` to `last`; one where nobody says which they are.
fn outstanding(last: Option<u64>, first: Option<u64>) -> u64 {
    last.zip(first).map_or(1, |(last, first)| (last + 1).saturating_sub(first).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_is_counted_from_the_first_change_to_the_last_write() {
        for (last, first, expected) in [
            (Some(10), Some(10), 1),
            (Some(10), Some(8), 3),
            // A region that is behind the one that answered before, or that does not say.
            (Some(7), Some(8), 1),
            (None, Some(8), 1),
            (Some(10), None, 1),
        ] {
            assert_eq!(outstanding(last, first), expected);
        }
    }

    #[test]
    fn changes_tell_their_number_and_time_in_both_modes() {
        for (change, expected) in [
            (r#"{"id":"1","_lsn":7,"_ts":3}"#, (Some(7), Some(3))),
            (r#"{"current":{},"metadata":{"lsn":8,"crts":4}}"#, (Some(8), Some(4))),
            (r#"{"id":"1","metadata":"of its own"}"#, (None, None)),
            ("[]", (None, None)),
        ] {
            assert_eq!(stamp_of(change.as_bytes()), expected, "{change}");
        }
    }
}
