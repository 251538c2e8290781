//! How many shards an endpoint should have, and how far requests are spread over them. Pure.
//!
//! In: what was seen on the shards, and how many requests came in the last intervals. Out: a [`ScalePlan`] of
//! what to remove and how many to add, and the size of the active set.

#![warn(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use super::config::{LoadSpread, ShardingConfig};
use super::health::{self, EvictionReason, Health, Observation};

/// What is to be done to the shards of one endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScalePlan {
    /// Shards that get no new requests from now on, and why. What they carry is finished.
    pub evict: Vec<(u64, EvictionReason)>,
    /// How many new ones there should be.
    pub add: u32,
}

#[cfg(test)]
impl ScalePlan {
    /// Whether nothing is to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.evict.is_empty() && self.add == 0
    }
}

/// Decides over all shards of an endpoint, oldest first.
///
/// Cost: linear in the shards, and quadratic in those that fail.
pub(super) fn plan(
    all: &[Observation],
    config: &ShardingConfig,
    now: Duration,
    processor: Option<f64>,
) -> ScalePlan {
    let mut evict = Vec::new();
    let mut idle = Vec::new();
    for shard in all {
        match health::check(shard, all, config, now, processor) {
            Health::Unhealthy(reason) => evict.push((shard.shard, reason)),
            Health::Idle => idle.push(shard.shard),
            Health::Healthy => {}
        }
    }
    let unhealthy = evict.len();
    let wanted = wanted_by_load(total_in_flight(all), config) as usize;
    let keep_at_least = wanted.max(config.min_clients_per_endpoint as usize);
    let mut remaining = all.len() - unhealthy;
    // The newest go first: the oldest are the active set.
    while remaining > keep_at_least
        && let Some(shard) = idle.pop()
    {
        evict.push((shard, EvictionReason::IdleTimeout));
        remaining -= 1;
    }
    // A shard that failed had work, so another takes its place; should that prove too many, it will idle.
    let mut target = keep_at_least.max(remaining + unhealthy);
    if remaining > 0 && unhealthy == 0 && all.iter().all(|shard| is_failing(shard, config)) {
        // No connection works. A new one may take another path, and if it succeeds, shows up the others.
        target = target.max(remaining + 1);
    }
    let target = target.min(config.max_clients_per_endpoint as usize);
    ScalePlan { evict, add: u32::try_from(target.saturating_sub(remaining)).unwrap_or(u32::MAX) }
}

/// How many shards it takes for `in_flight` requests to stay below the scale-up threshold.
pub(super) fn wanted_by_load(in_flight: u32, config: &ShardingConfig) -> u32 {
    let comfortable = f64::from(config.max_streams_per_client) * config.scale_up_threshold_ratio;
    let wanted = (f64::from(in_flight) / comfortable).ceil();
    // A float becomes the nearest whole number there is; the configuration cannot make it negative.
    (wanted as u32).clamp(config.min_clients_per_endpoint, config.max_clients_per_endpoint)
}

fn total_in_flight(all: &[Observation]) -> u32 {
    all.iter().fold(0, |total, shard| total.saturating_add(shard.in_flight))
}

fn is_failing(shard: &Observation, config: &ShardingConfig) -> bool {
    shard.consecutive_failures >= config.consecutive_failure_threshold
}

/// How many intervals the variation of the traffic is taken from.
const INTERVALS_MAX: usize = 8;
/// With fewer intervals the ratio stays.
const INTERVALS_MIN: usize = 4;
/// Traffic whose deviation is this share of its mean is what the configured ratio is meant for.
const USUAL_VARIATION: f64 = 0.5;
/// Which part of the way to its goal the ratio goes in one interval: one odd interval does not decide.
const STEP: f64 = 0.25;

/// The size of the active set over time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AdaptiveSpread {
    /// Requests in each of the last intervals, oldest first.
    counts: [u64; INTERVALS_MAX],
    intervals: usize,
    ratio: f64,
}

impl AdaptiveSpread {
    /// Starts at the configured ratio.
    pub(super) fn new(config: &ShardingConfig) -> AdaptiveSpread {
        AdaptiveSpread { counts: [0; INTERVALS_MAX], intervals: 0, ratio: config.load_spread_ratio }
    }

    /// The share of the shards that is active.
    pub(super) fn ratio(&self) -> f64 {
        self.ratio
    }

    /// The ratio in thousandths, as selection takes it.
    pub(super) fn per_mille(&self) -> u32 {
        ((self.ratio * 1000.0).round() as u32).clamp(1, 1000)
    }

    /// Takes in an interval with `requests` and moves towards what the traffic asks for.
    #[must_use]
    pub(super) fn after(&self, requests: u64, config: &ShardingConfig) -> AdaptiveSpread {
        let mut counts = self.counts;
        counts.rotate_left(1);
        counts[INTERVALS_MAX - 1] = requests;
        let intervals = (self.intervals + 1).min(INTERVALS_MAX);
        let configured = config.load_spread_ratio;
        let ratio = match config.load_spread {
            LoadSpread::Fixed => configured,
            LoadSpread::Adaptive if intervals < INTERVALS_MIN => self.ratio,
            LoadSpread::Adaptive => {
                let goal = variation(&counts[INTERVALS_MAX - intervals..])
                    .map_or(configured, |variation| spread_for(variation, configured));
                self.ratio + (goal - self.ratio) * STEP
            }
        };
        AdaptiveSpread { counts, intervals, ratio }
    }
}

/// The standard deviation as a share of the mean; `None` without any traffic.
fn variation(counts: &[u64]) -> Option<f64> {
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / n;
    if mean == 0.0 {
        return None;
    }
    let variance = counts.iter().map(|count| (*count as f64 - mean).powi(2)).sum::<f64>() / n;
    Some(variance.sqrt() / mean)
}

/// Steady traffic needs half of the configured share; traffic as uneven as its own mean needs all shards,
/// ready for the next burst.
fn spread_for(variation: f64, configured: f64) -> f64 {
    let steadiest = configured / 2.0;
    if variation <= USUAL_VARIATION {
        steadiest + (configured - steadiest) * (variation / USUAL_VARIATION)
    } else {
        let beyond = ((variation - USUAL_VARIATION) / (1.0 - USUAL_VARIATION)).min(1.0);
        configured + (1.0 - configured) * beyond
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(1_000);

    fn config() -> ShardingConfig {
        ShardingConfig { max_clients_per_endpoint: 8, ..ShardingConfig::default() }
    }

    fn ago(seconds: u64) -> Duration {
        NOW - Duration::from_secs(seconds)
    }

    fn busy(shard: u64, in_flight: u32) -> Observation {
        let last_success = Some(ago(0));
        Observation { shard, in_flight, last_success, last_request: ago(0), ..Observation::default() }
    }

    fn idle(shard: u64) -> Observation {
        Observation { last_success: Some(ago(100)), last_request: ago(100), ..busy(shard, 0) }
    }

    fn failing(shard: u64) -> Observation {
        let last_success = Some(ago(5));
        Observation { last_success, consecutive_failures: 5, ..busy(shard, 0) }
    }

    fn decide(all: &[Observation]) -> ScalePlan {
        plan(all, &config(), NOW, None)
    }

    #[test]
    fn load_above_three_quarters_calls_for_another_shard_ahead_of_need() {
        for (loads, add) in [
            (vec![12], 0),
            (vec![13], 1),
            (vec![12, 12], 0),
            (vec![16, 9], 1),
            (vec![16, 16, 16], 1),
            (vec![20, 20], 2),
            (vec![16; 8], 0),
        ] {
            let all: Vec<_> = (0..).zip(&loads).map(|(id, load)| busy(id, *load)).collect();
            assert_eq!(decide(&all), ScalePlan { evict: vec![], add }, "{loads:?}");
        }
    }

    #[test]
    fn idle_shards_go_newest_first_down_to_the_minimum() {
        let all = [busy(1, 1), idle(2), idle(3), idle(4)];
        let gone = [4, 3, 2].map(|id| (id, EvictionReason::IdleTimeout)).to_vec();
        assert_eq!(decide(&all), ScalePlan { evict: gone, add: 0 });
        assert!(decide(&[idle(1)]).is_empty(), "one stays, to be quick when work comes");
    }

    #[test]
    fn an_idle_shard_that_would_be_missed_at_once_stays() {
        // Two full shards and one in reserve: without it the next look would make it again.
        assert!(decide(&[busy(1, 16), busy(2, 16), idle(3)]).is_empty());
        assert_eq!(decide(&[busy(1, 12), busy(2, 12), idle(3)]).evict, [(3, EvictionReason::IdleTimeout)]);
    }

    #[test]
    fn an_unhealthy_shard_is_replaced() {
        let reason = EvictionReason::ConsecutiveFailuresWithHealthyPeers;
        assert_eq!(decide(&[failing(1), busy(2, 3)]), ScalePlan { evict: vec![(1, reason)], add: 1 });
    }

    #[test]
    fn when_every_shard_fails_a_new_one_is_tried_up_to_the_maximum() {
        assert_eq!(decide(&[failing(1)]), ScalePlan { evict: vec![], add: 1 });
        let some: Vec<_> = (0..7).map(failing).collect();
        assert_eq!(decide(&some).add, 1);
        let most: Vec<_> = (0..8).map(failing).collect();
        assert!(decide(&most).is_empty(), "no more than allowed, and the service is to blame");
    }

    #[test]
    fn an_endpoint_without_shards_gets_its_minimum() {
        let config = ShardingConfig { min_clients_per_endpoint: 3, ..config() };
        assert_eq!(plan(&[], &config, NOW, None), ScalePlan { evict: vec![], add: 3 });
        assert_eq!(plan(&[busy(1, 0)], &config, NOW, None).add, 2);
    }

    /// The ratio after so many intervals of this traffic.
    fn ratio_after(traffic: impl Iterator<Item = u64>) -> f64 {
        let config = config();
        traffic.fold(AdaptiveSpread::new(&config), |spread, requests| spread.after(requests, &config)).ratio()
    }

    #[test]
    fn steady_traffic_gathers_and_bursts_spread() {
        assert_eq!(ratio_after([].into_iter()), 0.5, "it starts as configured");
        assert_eq!(ratio_after([100, 900, 0].into_iter()), 0.5, "three intervals say nothing");
        let steady = ratio_after([1_000, 1_010, 990].into_iter().cycle().take(40));
        assert!((0.25..0.3).contains(&steady), "{steady}");
        let bursts = ratio_after([0, 0, 0, 4_000].into_iter().cycle().take(40));
        assert!((0.95..=1.0).contains(&bursts), "{bursts}");
        let quiet = ratio_after([0, 4_000].into_iter().cycle().take(8).chain([0; 60]));
        assert!((quiet - 0.5).abs() < 0.01, "without traffic it goes back: {quiet}");
    }

    #[test]
    fn one_odd_interval_moves_the_ratio_a_part_of_the_way() {
        let config = config();
        let steady = (0..20).fold(AdaptiveSpread::new(&config), |spread, _| spread.after(1_000, &config));
        let after = steady.after(100_000, &config);
        assert!(
            after.ratio() > steady.ratio() && after.ratio() < 0.5,
            "{} → {}",
            steady.ratio(),
            after.ratio()
        );
    }

    #[test]
    fn a_fixed_spread_is_what_was_configured() {
        let config = ShardingConfig { load_spread: LoadSpread::Fixed, load_spread_ratio: 0.8, ..config() };
        let spread =
            [0, 9_000, 0, 9_000, 0].iter().fold(AdaptiveSpread::new(&config), |s, n| s.after(*n, &config));
        assert_eq!(spread.per_mille(), 800);
    }

    fn observations() -> impl Strategy<Value = Vec<Observation>> {
        let shard = (0_u32..40, prop::option::of(0_u64..200), 0_u64..200, 0_u32..8, 0_u64..200).prop_map(
            |(in_flight, success, request, consecutive_failures, busy)| Observation {
                in_flight,
                last_success: success.map(ago),
                last_request: ago(request),
                consecutive_failures,
                busy_since: ago(busy),
                ..Observation::default()
            },
        );
        prop::collection::vec(shard, 0..12)
    }

    proptest! {
        #[test]
        fn a_plan_keeps_within_the_limits(mut all in observations(), min in 1_u32..4, max in 4_u32..10) {
            for (id, shard) in (0..).zip(&mut all) {
                shard.shard = id;
            }
            let limits =
                ShardingConfig { min_clients_per_endpoint: min, max_clients_per_endpoint: max, ..config() };
            let plan = plan(&all, &limits, NOW, None);
            let mut ids: Vec<_> = plan.evict.iter().map(|(id, _)| *id).collect();
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), plan.evict.len(), "no shard is evicted twice");
            prop_assert!(ids.iter().all(|id| (*id as usize) < all.len()));
            let remaining = all.len() - ids.len();
            prop_assert!(remaining + plan.add as usize >= min as usize);
            prop_assert!(plan.add == 0 || remaining + plan.add as usize <= max as usize);
        }

        #[test]
        fn the_active_share_stays_a_share(traffic in prop::collection::vec(0_u64..1_000_000, 0..50)) {
            let config = config();
            let mut spread = AdaptiveSpread::new(&config);
            for requests in traffic {
                spread = spread.after(requests, &config);
                prop_assert!(spread.ratio() > 0.0 && spread.ratio() <= 1.0);
            }
        }
    }
}
