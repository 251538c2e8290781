//! The timeout policy: whether a connection is kept, drained or aborted.
//!
//! Pure. Input: a snapshot of a [`ConnectionActivity`](crate::connection_activity::ConnectionActivity), the
//! time and the limits. Output: a [`TimeoutDecision`].
#![warn(clippy::wildcard_enum_match_arm, reason = "a new case must be decided on")]

use std::time::Duration;

use crate::limits::Limits;

/// What a connection was doing at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActivitySnapshot {
    pub(crate) in_flight: u32,
    pub(crate) idle_since_ms: u64,
    pub(crate) head_since_ms: Option<u64>,
    pub(crate) write_blocked_since_ms: Option<u64>,
    pub(crate) draining_since_ms: Option<u64>,
    pub(crate) unread_since_ms: Option<u64>,
    pub(crate) served_any: bool,
    pub(crate) multiplexed: bool,
}

/// What the policy decides about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutDecision {
    Keep,
    /// The client is too slow: close without a response. The text is for the log.
    Abort(&'static str),
    /// The connection has been idle for too long: close it gracefully.
    Drain,
}

/// Applies the timeouts to one connection. Reads nothing but its arguments.
pub(crate) fn decide_timeout(snapshot: &ActivitySnapshot, now_ms: u64, limits: &Limits) -> TimeoutDecision {
    let over = |since: u64, limit: Duration| u128::from(now_ms.saturating_sub(since)) > limit.as_millis();
    if snapshot.write_blocked_since_ms.is_some_and(|since| over(since, limits.write_timeout)) {
        return TimeoutDecision::Abort("the client does not read its response");
    }
    // An HTTP/2 client that grants no window blocks its responses without blocking the socket.
    if snapshot.unread_since_ms.is_some_and(|since| over(since, limits.write_timeout)) {
        return TimeoutDecision::Abort("the client leaves a response unread");
    }
    if snapshot.in_flight > 0 {
        return TimeoutDecision::Keep;
    }
    if snapshot.draining_since_ms.is_some_and(|since| over(since, limits.write_timeout)) {
        return TimeoutDecision::Abort("the client does not close");
    }
    if !snapshot.multiplexed {
        if snapshot.head_since_ms.is_some_and(|since| over(since, limits.head_timeout)) {
            return TimeoutDecision::Abort("a request head is incomplete");
        }
        if !snapshot.served_any && over(snapshot.idle_since_ms, limits.head_timeout) {
            return TimeoutDecision::Abort("no request arrived");
        }
    }
    if over(snapshot.idle_since_ms, limits.idle_timeout) {
        TimeoutDecision::Drain
    } else {
        TimeoutDecision::Keep
    }
}

/// Whether a connection may be evicted for a new one. Reads nothing but its arguments.
pub(crate) fn may_evict(snapshot: &ActivitySnapshot, now_ms: u64, limits: &Limits) -> bool {
    let idle_ms = now_ms.saturating_sub(snapshot.idle_since_ms);
    let limit = if snapshot.served_any { limits.idle_when_full } else { limits.silent_when_full };
    snapshot.in_flight == 0 && u128::from(idle_ms) > limit.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: ActivitySnapshot = ActivitySnapshot {
        in_flight: 0,
        idle_since_ms: 0,
        head_since_ms: None,
        write_blocked_since_ms: None,
        draining_since_ms: None,
        unread_since_ms: None,
        served_any: false,
        multiplexed: false,
    };

    fn limits() -> Limits {
        Limits {
            head_timeout: Duration::from_millis(100),
            write_timeout: Duration::from_millis(200),
            idle_timeout: Duration::from_millis(1_000),
            ..Limits::default()
        }
    }

    #[test]
    fn each_activity_has_its_own_timeout() {
        let silent = TimeoutDecision::Abort("no request arrived");
        let half = TimeoutDecision::Abort("a request head is incomplete");
        let stuck = TimeoutDecision::Abort("the client does not read its response");
        let unread = TimeoutDecision::Abort("the client leaves a response unread");
        let held = TimeoutDecision::Abort("the client does not close");
        let served = ActivitySnapshot { served_any: true, ..FRESH };
        let cases = [
            ("new", FRESH, 100, TimeoutDecision::Keep),
            ("silent", FRESH, 101, silent),
            ("idle", served, 1_000, TimeoutDecision::Keep),
            ("idle too long", served, 1_001, TimeoutDecision::Drain),
            ("half a head", ActivitySnapshot { head_since_ms: Some(900), ..served }, 1_001, half),
            (
                "a young head",
                ActivitySnapshot { head_since_ms: Some(901), ..served },
                999,
                TimeoutDecision::Keep,
            ),
            ("busy for long", ActivitySnapshot { in_flight: 1, ..served }, 9_999, TimeoutDecision::Keep),
            (
                "not reading",
                ActivitySnapshot { in_flight: 1, write_blocked_since_ms: Some(0), ..served },
                201,
                stuck,
            ),
            (
                "no window",
                ActivitySnapshot { in_flight: 1, unread_since_ms: Some(0), multiplexed: true, ..served },
                201,
                unread,
            ),
            (
                "closing",
                ActivitySnapshot { draining_since_ms: Some(0), ..served },
                200,
                TimeoutDecision::Keep,
            ),
            ("not closing", ActivitySnapshot { draining_since_ms: Some(0), ..served }, 201, held),
            (
                "busy closing",
                ActivitySnapshot { in_flight: 1, draining_since_ms: Some(0), ..served },
                999,
                TimeoutDecision::Keep,
            ),
            (
                "pings only",
                ActivitySnapshot { multiplexed: true, head_since_ms: Some(0), ..FRESH },
                999,
                TimeoutDecision::Keep,
            ),
            (
                "pings only, long",
                ActivitySnapshot { multiplexed: true, ..FRESH },
                1_001,
                TimeoutDecision::Drain,
            ),
        ];
        for (case, snapshot, now_ms, expected) in cases {
            assert_eq!(decide_timeout(&snapshot, now_ms, &limits()), expected, "{case}");
        }
    }

    #[test]
    fn silent_connections_are_evicted_first_and_busy_ones_never() {
        let served = ActivitySnapshot { served_any: true, ..FRESH };
        let busy = ActivitySnapshot { in_flight: 1, ..FRESH };
        let cases = [
            (FRESH, 1_000, false),
            (FRESH, 1_001, true),
            (served, 30_000, false),
            (served, 30_001, true),
            (busy, 99_999, false),
        ];
        for (snapshot, now_ms, expected) in cases {
            assert_eq!(
                may_evict(&snapshot, now_ms, &Limits::default()),
                expected,
                "{snapshot:?} at {now_ms}"
            );
        }
    }
}
