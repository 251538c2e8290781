//! How often an operation was retried, for which causes, and which regions it has tried.
//!
//! A [`RetryState`] is a value: each decision returns the state after the attempt, and the loop keeps it.

use std::time::Duration;

use crate::routing::Region;

/// Why an attempt was followed by another. Each cause has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryCause {
    /// A response that spoke against the region or partition: 503, 429/3092, 410, 500, 408, or none.
    Failover,
    /// 404/1002: the region has not replicated what the session has seen.
    SessionNotAvailable,
    /// The request could not be sent.
    NotSent,
    /// 449: a concurrent write was in progress.
    RetryWith,
    /// 410, 400/1024 and 404/1013: the cached container or partition ranges were out of date.
    StaleMetadata,
    /// 403/3 and 403/1008: the cached regions of the account were out of date.
    Forbidden,
    /// All regions were tried.
    AllRegionsTried,
}

impl RetryCause {
    const COUNT: usize = RetryCause::AllRegionsTried as usize + 1;
}

/// What an operation has tried so far. An empty state allocates nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RetryState {
    /// How often each cause was retried.
    counts: [u32; RetryCause::COUNT],
    /// Regions that were tried since all regions were last tried.
    pub(crate) regions_tried: Vec<Region>,
    /// Whether the next attempt goes to the hub region, which has every write.
    pub(crate) prefer_hub: bool,
    /// Time waited between retries for [`RetryCause::Forbidden`].
    pub(crate) forbidden_waited: Duration,
    /// Whether an earlier attempt may have been carried out without a response.
    pub(crate) maybe_applied: bool,
}

impl RetryState {
    /// How often the operation was retried for a cause.
    pub(crate) fn count(&self, cause: RetryCause) -> u32 {
        self.counts[cause as usize]
    }

    /// The state after one more retry for a cause.
    #[must_use]
    pub(crate) fn counted(&self, cause: RetryCause) -> RetryState {
        let mut next = self.clone();
        next.counts[cause as usize] += 1;
        next
    }

    /// The state after `region` was tried and another region is next.
    #[must_use]
    pub(crate) fn after_region(mut self, region: &Region) -> RetryState {
        self.prefer_hub = false;
        if !self.regions_tried.contains(region) {
            self.regions_tried.push(region.clone());
        }
        self
    }

    /// The state after all regions were tried: each may be tried again.
    #[must_use]
    pub(crate) fn after_all_regions(&self) -> RetryState {
        let next = self.counted(RetryCause::AllRegionsTried);
        RetryState { regions_tried: Vec::new(), prefer_hub: false, ..next }
    }

    /// The state after an attempt that may have been carried out, if `applied` is true.
    #[must_use]
    pub(crate) fn maybe_applied_if(mut self, applied: bool) -> RetryState {
        self.maybe_applied |= applied;
        self
    }
}

/// How long to wait before retry number `retry`, counted from 0: `base`, doubled with each retry up to `max`, of
/// which a random half is left out. `random` is a value in `0.0..1.0`.
pub(crate) fn backoff(retry: u32, base: Duration, max: Duration, random: f64) -> Duration {
    let longest = base.saturating_mul(1u32.checked_shl(retry).unwrap_or(u32::MAX)).min(max);
    longest.mul_f64(0.5 + random.clamp(0.0, 1.0) * 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_limit_and_half_of_it_is_random() {
        let (base, max) = (Duration::from_millis(100), Duration::from_secs(1));
        for (retry, least, longest) in
            [(0, 50, 100), (1, 100, 200), (3, 400, 800), (4, 500, 1000), (40, 500, 1000)]
        {
            assert_eq!(backoff(retry, base, max, 0.0), Duration::from_millis(least), "{retry}");
            assert_eq!(backoff(retry, base, max, 1.0), Duration::from_millis(longest), "{retry}");
        }
    }

    #[test]
    fn a_region_is_tried_once_until_all_regions_were_tried() {
        let state = RetryState { prefer_hub: true, ..RetryState::default() };
        let tried = state.after_region(&Region::new("A")).after_region(&Region::new("a"));
        assert_eq!(tried.regions_tried.len(), 1);
        assert!(!tried.prefer_hub);
        assert_eq!(tried.after_all_regions(), RetryState::default().counted(RetryCause::AllRegionsTried));
    }

    #[test]
    fn causes_are_counted_separately() {
        let state = RetryState::default().counted(RetryCause::NotSent).counted(RetryCause::NotSent);
        assert_eq!((state.count(RetryCause::NotSent), state.count(RetryCause::Failover)), (2, 0));
    }
}
