//! Regions that give no response: from the first attempt without one to the conclusion that the region is silent.
//!
//! In: attempts that ended without a response, and when the region last responded to anything. Out: whether the
//! region counts as unavailable, and who asks it. One slow response is no outage: at least two attempts must have met
//! silence, and it must have lasted for [`SILENT_FOR`]. Pure.

use std::time::{Duration, Instant};

use super::breaker::SILENT_FOR;
use crate::clock::after;

/// Attempts without a response that are needed before a region counts as silent.
const ATTEMPTS_MIN: u32 = 2;

/// How long a region has been silent, and who is probing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    /// When the first attempt without a response started.
    since: Instant,
    /// Attempts, and probes, that got no response since then.
    attempts: u32,
    /// When the probe in progress ends.
    probe_ends: Option<Instant>,
}

/// What an attempt that suspects its region does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeRole {
    /// It sends the probe.
    Send,
    /// Another attempt has sent one: it waits for that until this moment.
    WaitUntil(Instant),
}

impl Silence {
    fn starting(started: Instant) -> Silence {
        Silence { since: started, attempts: 0, probe_ends: None }
    }

    /// The silence that goes on, or a new one if the region has responded since it began.
    fn continued(known: Option<Silence>, started: Instant, last_response: Option<Instant>) -> Silence {
        match known {
            Some(silence) if last_response.is_none_or(|response| response < silence.since) => silence,
            Some(_) | None => Silence::starting(started),
        }
    }

    /// The silence after another attempt, which started at `started`, ended without a response. If the region has
    /// responded to something after that, the attempt was slow, which says nothing about a silence that began later.
    pub(super) fn after_attempt(
        known: Option<Silence>,
        started: Instant,
        last_response: Option<Instant>,
    ) -> Option<Silence> {
        if last_response.is_some_and(|response| response >= started) {
            return known.filter(|silence| last_response.is_none_or(|response| response < silence.since));
        }
        let silence = Silence::continued(known, started, last_response);
        let since = silence.since.min(started);
        Some(Silence { since, attempts: silence.attempts.saturating_add(1), ..silence })
    }

    /// Whether the region counts as unavailable.
    pub(super) fn is_outage(&self, now: Instant) -> bool {
        self.attempts >= ATTEMPTS_MIN && now.saturating_duration_since(self.since) >= SILENT_FOR
    }

    /// Lets one of the attempts that wait for a region probe it, for `time`.
    pub(super) fn probing(
        known: Option<Silence>,
        started: Instant,
        last_response: Option<Instant>,
        now: Instant,
        time: Duration,
    ) -> (Silence, ProbeRole) {
        let silence = Silence::continued(known, started, last_response);
        match silence.probe_ends {
            Some(ends) if ends > now => (silence, ProbeRole::WaitUntil(ends)),
            Some(_) | None => (Silence { probe_ends: Some(after(now, time)), ..silence }, ProbeRole::Send),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const MS: Duration = Duration::from_millis(1);

    /// The silence after attempts from the first to the second time, of which none got a response.
    fn silence(start: Instant, attempts: &[(u32, u32)]) -> (Option<Silence>, Instant) {
        let (mut silence, mut now) = (None, start);
        for (from, to) in attempts {
            silence = Silence::after_attempt(silence, start + *from * MS, None);
            now = start + *to * MS;
        }
        (silence, now)
    }

    #[test]
    fn two_attempts_and_a_second_without_a_response_are_an_outage() {
        let start = Clock::machine().now();
        for (attempts, is_outage) in [
            (&[(0, 200)][..], false),
            (&[(0, 10_000)], false),
            (&[(0, 200), (0, 200), (10, 210)], false),
            (&[(0, 200), (800, 1000)], true),
            // The second one started first and was waited for longer.
            (&[(800, 900), (0, 1000)], true),
        ] {
            let (silence, now) = silence(start, attempts);
            assert_eq!(silence.is_some_and(|silence| silence.is_outage(now)), is_outage, "{attempts:?}");
        }
    }

    #[test]
    fn a_response_ends_the_silence() {
        let start = Clock::machine().now();
        let (before, _) = silence(start, &[(0, 200), (100, 900)]);
        let response = Some(start + 500 * MS);
        assert_eq!(Silence::after_attempt(before, start + 400 * MS, response), None, "it was only slow");
        let next = Silence::after_attempt(before, start + 900 * MS, response).expect("a new silence");
        assert!(!next.is_outage(start + 1500 * MS));
        let slow = Silence::after_attempt(Some(next), start + 400 * MS, response);
        assert_eq!(
            slow,
            Some(next),
            "an attempt that began before the response does not end a later silence"
        );
        let next = Silence::after_attempt(Some(next), start + 1900 * MS, response).expect("it goes on");
        assert!(next.is_outage(start + 2000 * MS));
    }

    #[test]
    fn one_attempt_at_a_time_probes_the_region() {
        let start = Clock::machine().now();
        let now = start + 1000 * MS;
        let (silence, role) = Silence::probing(None, start, None, now, 1000 * MS);
        assert_eq!(role, ProbeRole::Send);
        let (silence, role) = Silence::probing(Some(silence), start, None, now + 10 * MS, 1000 * MS);
        assert_eq!(role, ProbeRole::WaitUntil(now + 1000 * MS));
        let (_, role) = Silence::probing(Some(silence), start, None, now + 1000 * MS, 1000 * MS);
        assert_eq!(role, ProbeRole::Send, "the first probe has ended, or its sender is gone");
        let (_, role) = Silence::probing(Some(silence), now + MS, Some(now), now + 2 * MS, 1000 * MS);
        assert_eq!(role, ProbeRole::Send, "that was another silence");
    }
}
