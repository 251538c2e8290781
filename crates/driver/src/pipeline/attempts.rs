//! What this operation has tried so far. Replaced, not changed, between attempts.

use std::time::Duration;

use crate::routing::Region;

/// What has been tried. Starts empty, which costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// Regions that were tried and left in this round.
    pub(crate) left: Vec<Region>,
    /// Whether the next attempt asks the region that has every write.
    pub(crate) from_hub: bool,
    /// Moves after an answer that spoke against the region or partition.
    pub(crate) failovers: u32,
    /// Tries after 404/1002.
    pub(crate) sessions: u32,
    /// Tries after a request that was not sent.
    pub(crate) connections: u32,
    /// Tries after 449.
    pub(crate) conflicts: u32,
    /// Tries with a map of containers or partitions that was read again.
    pub(crate) maps: u32,
    /// Tries after 403/3 and 403/1008.
    pub(crate) forbidden: u32,
    /// What was waited between those.
    pub(crate) forbidden_waited: Duration,
    /// How often all regions were tried.
    pub(crate) rounds: u32,
    /// Whether an earlier attempt may have done what was asked, without saying so.
    pub(crate) maybe_applied: bool,
}

impl Attempts {
    /// The attempts after `region` was left for another one.
    #[must_use]
    pub(crate) fn leave(&self, region: &Region) -> Attempts {
        let mut next = self.clone();
        next.from_hub = false;
        if !next.left.contains(region) {
            next.left.push(region.clone());
        }
        next
    }

    /// The attempts after all regions were tried: all may be tried again.
    #[must_use]
    pub(crate) fn next_round(&self) -> Attempts {
        Attempts { left: Vec::new(), from_hub: false, rounds: self.rounds + 1, ..self.clone() }
    }
}

/// How long to wait before try number `step`: doubling from `base` to `most`, of which half is left to chance.
/// `draw` is a value in `0.0..1.0`.
pub(crate) fn backoff(step: u32, base: Duration, most: Duration, draw: f64) -> Duration {
    let whole = base.saturating_mul(1u32.checked_shl(step).unwrap_or(u32::MAX)).min(most);
    whole.mul_f64(0.5 + draw.clamp(0.0, 1.0) * 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_half_of_each_is_chance() {
        let (base, most) = (Duration::from_millis(100), Duration::from_secs(1));
        for (step, least, longest) in
            [(0, 50, 100), (1, 100, 200), (3, 400, 800), (4, 500, 1000), (40, 500, 1000)]
        {
            assert_eq!(backoff(step, base, most, 0.0), Duration::from_millis(least), "{step}");
            assert_eq!(backoff(step, base, most, 1.0), Duration::from_millis(longest), "{step}");
        }
    }

    #[test]
    fn a_region_is_left_once_and_a_round_forgets() {
        let attempts = Attempts { from_hub: true, ..Attempts::default() };
        let left = attempts.leave(&Region::new("A")).leave(&Region::new("a"));
        assert_eq!(left.left.len(), 1);
        assert!(!left.from_hub);
        assert_eq!(left.next_round(), Attempts { rounds: 1, ..Attempts::default() });
    }
}
