//! What the record of a shard says about its connection. Pure.
//!
//! In: what was seen on each shard of one endpoint, the time, and how busy this process is. Out: a
//! [`Health`] per shard. The checks are made in order and the first that applies decides.

#![warn(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use super::config::ShardingConfig;

/// What was seen on one shard. Times are since the shard list began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The id of the shard.
    pub shard: u64,
    /// Requests it carries now.
    pub in_flight: u32,
    /// When it was made.
    pub created_at: Duration,
    /// The last response of any status.
    pub last_success: Option<Duration>,
    /// When the last request began or ended.
    pub last_request: Duration,
    /// Since when there has been a request in flight all the time; meaningless when there is none.
    pub busy_since: Duration,
    /// Requests without a response since the last one with.
    pub consecutive_failures: u32,
    /// Requests given up by their callers since the last response: they prove nothing one by one.
    pub abandoned: u32,
    /// When the first of those began; meaningless when there is none.
    pub abandoned_since: Duration,
}

impl Observation {
    /// The last sign that the connection works: a response, or that it is new.
    fn last_good(&self) -> Duration {
        self.last_success.unwrap_or(self.created_at)
    }

    /// Since when requests have waited for the first response.
    fn waiting_since(&self) -> Duration {
        self.last_good().max(self.busy_since)
    }
}

/// The state of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// The shard stays in use.
    Healthy,
    /// It is to be replaced.
    Unhealthy(EvictionReason),
    /// Nothing was asked of it for a while; it may go unless it is one of the minimum.
    Idle,
}

/// Why a shard is taken out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum EvictionReason {
    /// Requests wait, and nothing has come back for too long.
    ReadHang,
    /// It fails again and again while another connection to the same endpoint works.
    ConsecutiveFailuresWithHealthyPeers,
    /// Nothing was asked of it for a while.
    IdleTimeout,
}

/// The health of one shard among `all` shards of its endpoint; `processor` is the share of the machine this
/// process uses, if known.
///
/// Cost: linear in the shards, and only for one that fails.
pub(super) fn check(
    shard: &Observation,
    all: &[Observation],
    config: &ShardingConfig,
    now: Duration,
    processor: Option<f64>,
) -> Health {
    let since = |then: Duration| now.saturating_sub(then);
    if shard.last_success.is_some_and(|success| since(success) < config.recent_success_window) {
        return Health::Healthy;
    }
    // A process that cannot keep up with itself reads its responses late. Replacing connections would only
    // add handshakes to its load.
    let overloaded = processor.is_some_and(|share| share >= config.eviction_cpu_limit);
    if !overloaded {
        if hangs(shard, config, now) {
            return Health::Unhealthy(EvictionReason::ReadHang);
        }
        let fails = shard.consecutive_failures >= config.consecutive_failure_threshold
            && since(shard.last_good()) > config.eviction_grace_period;
        if fails && all.iter().any(|peer| does_better(peer, shard)) {
            return Health::Unhealthy(EvictionReason::ConsecutiveFailuresWithHealthyPeers);
        }
    }
    if shard.in_flight == 0 && since(shard.last_request) > config.idle_client_timeout {
        return Health::Idle;
    }
    Health::Healthy
}

/// Whether requests go in and nothing comes out: one that waits for too long, or many that were given up
/// one after the other (a caller that races two regions gives up long before a connection is known to be
/// dead). Many that were given up at once are one caller's change of mind.
fn hangs(shard: &Observation, config: &ShardingConfig, now: Duration) -> bool {
    let waits = shard.in_flight > 0 && now.saturating_sub(shard.waiting_since()) > config.read_hang_threshold;
    let given_up = shard.abandoned >= config.consecutive_failure_threshold
        && shard.last_request.saturating_sub(shard.abandoned_since) > config.read_hang_threshold;
    waits || given_up
}

/// Whether `peer` shows that the endpoint works and only the connection of `shard` fails.
fn does_better(peer: &Observation, shard: &Observation) -> bool {
    peer.shard != shard.shard
        && peer.consecutive_failures < shard.consecutive_failures
        && peer.last_success > shard.last_success
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A shard whose last response came at `last_success` and had its last request then.
    fn shard(id: u64, last_success: u64) -> Observation {
        Observation {
            shard: id,
            last_success: Some(s(last_success)),
            last_request: s(last_success),
            ..Observation::default()
        }
    }

    #[track_caller]
    fn assert_health(shard: Observation, peers: &[Observation], now: u64, expected: Health, why: &str) {
        let mut all = vec![shard];
        all.extend_from_slice(peers);
        assert_eq!(check(&shard, &all, &ShardingConfig::default(), s(now), None), expected, "{why}");
    }

    #[test]
    fn a_recent_success_ends_every_doubt() {
        let mut busy = shard(1, 100);
        busy.in_flight = 5;
        busy.consecutive_failures = 9;
        assert_health(busy, &[shard(2, 101)], 100, Health::Healthy, "it just answered");
    }

    #[test]
    fn a_shard_whose_requests_get_no_response_hangs() {
        let hang = Health::Unhealthy(EvictionReason::ReadHang);
        let mut waits = shard(1, 100);
        waits.in_flight = 3;
        waits.busy_since = s(90);
        assert_health(waits, &[], 110, Health::Healthy, "ten seconds are allowed");
        assert_health(waits, &[], 111, hang, "eleven are not, with or without peers");

        // What was idle for an hour and has just been asked is not hanging since an hour.
        let mut woken = waits;
        woken.busy_since = s(3_700);
        assert_health(woken, &[], 3_701, Health::Healthy, "asked a second ago");
        assert_health(woken, &[], 3_711, hang, "asked eleven seconds ago");

        let mut never = Observation { shard: 1, in_flight: 1, created_at: s(200), ..Observation::default() };
        never.busy_since = s(200);
        assert_health(never, &[], 205, Health::Healthy, "a new connection may take its time");
        assert_health(never, &[], 211, hang, "but not for ever");
    }

    #[test]
    fn repeatedly_abandoned_requests_without_a_response_are_a_hang() {
        let mut given_up = shard(1, 100);
        given_up.last_request = s(120);
        given_up.abandoned_since = s(109);
        given_up.abandoned = 4;
        assert_health(given_up, &[], 120, Health::Healthy, "four callers may have changed their minds");
        given_up.abandoned = 5;
        assert_health(given_up, &[], 120, Health::Unhealthy(EvictionReason::ReadHang), "five say something");
        given_up.abandoned_since = s(110);
        assert_health(given_up, &[], 150, Health::Healthy, "not within the time one answer may take");
    }

    #[test]
    fn failures_in_a_row_evict_only_where_a_peer_does_better() {
        let evict = Health::Unhealthy(EvictionReason::ConsecutiveFailuresWithHealthyPeers);
        let failing = |failures| Observation { consecutive_failures: failures, ..shard(1, 100) };
        let also_failing = Observation { consecutive_failures: 6, ..shard(2, 103) };
        let stale = shard(2, 99);
        let cases = [
            (failing(5), vec![shard(2, 103)], 103, evict, "a peer answers"),
            (failing(4), vec![shard(2, 103)], 103, Health::Healthy, "below the threshold"),
            (failing(5), vec![shard(2, 102)], 102, Health::Healthy, "within the grace period"),
            (failing(5), vec![], 110, Health::Healthy, "alone: the service, not the connection"),
            (failing(5), vec![also_failing], 110, Health::Healthy, "all fail: the service"),
            (failing(5), vec![stale], 110, Health::Healthy, "the peer has not answered since either"),
            (failing(7), vec![also_failing], 110, evict, "the peer fails less and answered later"),
        ];
        for (shard, peers, now, expected, why) in cases {
            assert_health(shard, &peers, now, expected, why);
        }
    }

    #[test]
    fn a_shard_that_never_worked_is_judged_from_when_it_was_made() {
        let evict = Health::Unhealthy(EvictionReason::ConsecutiveFailuresWithHealthyPeers);
        let broken = Observation {
            shard: 1,
            created_at: s(100),
            last_request: s(101),
            consecutive_failures: 5,
            ..Observation::default()
        };
        assert_health(broken, &[shard(2, 102)], 102, Health::Healthy, "two seconds of grace");
        assert_health(broken, &[shard(2, 102)], 103, evict, "then it goes");
    }

    #[test]
    fn a_shard_without_requests_for_a_minute_is_idle() {
        assert_health(shard(1, 100), &[], 160, Health::Healthy, "a minute");
        assert_health(shard(1, 100), &[], 161, Health::Idle, "more than a minute");
        let working = Observation { in_flight: 1, busy_since: s(155), ..shard(1, 100) };
        assert_health(working, &[], 161, Health::Healthy, "it has work");
    }

    #[test]
    fn a_process_that_is_out_of_processor_blames_itself_first() {
        let config = ShardingConfig::default();
        let hanging = Observation { in_flight: 1, ..shard(1, 100) };
        let failing = Observation { consecutive_failures: 5, ..shard(1, 100) };
        let idle = shard(1, 100);
        let health = |shard: Observation, now, processor| {
            check(
                &shard,
                &[shard, Observation { shard: 2, ..super::tests::shard(2, 120) }],
                &config,
                s(now),
                processor,
            )
        };
        for (processor, evicts) in [(None, true), (Some(0.89), true), (Some(0.9), false), (Some(1.0), false)]
        {
            assert_eq!(health(hanging, 120, processor) != Health::Healthy, evicts, "{processor:?}");
            assert_eq!(health(failing, 120, processor) != Health::Healthy, evicts, "{processor:?}");
            assert_eq!(health(idle, 170, processor), Health::Idle, "closing what is idle is always right");
        }
    }

    fn observation() -> impl Strategy<Value = Observation> {
        let times = (0_u64..200, prop::option::of(0_u64..200), 0_u64..200, 0_u64..200);
        ((0_u64..4), (0_u32..3), times, (0_u32..8), (0_u32..8)).prop_map(
            |(shard, in_flight, (created, success, request, busy), consecutive_failures, abandoned)| {
                Observation {
                    shard,
                    in_flight,
                    created_at: s(created),
                    last_success: success.map(s),
                    last_request: s(request),
                    busy_since: s(busy),
                    consecutive_failures,
                    abandoned,
                    ..Observation::default()
                }
            },
        )
    }

    proptest! {
        #[test]
        fn one_shard_stays_when_all_fail(
            mut all in prop::collection::vec(observation(), 1..6),
            now in 0_u64..400,
        ) {
            // Hangs are about one connection alone; here everything gets answered, if with failures.
            for (id, shard) in (0..).zip(&mut all) {
                (shard.shard, shard.in_flight, shard.abandoned) = (id, 0, 0);
            }
            let config = ShardingConfig::default();
            let evicted = all.iter()
                .filter(|shard| matches!(check(shard, &all, &config, s(now), None), Health::Unhealthy(_)))
                .count();
            prop_assert!(evicted < all.len(), "the best of them has no better peer");
        }
    }
}
