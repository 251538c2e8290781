//! What is to become of a connection, by what it is doing and since when.
//!
//! Pure. In: what a [`Watch`](crate::watch::Watch) said, the time, the limits. Out: whether to keep it.

use std::time::Duration;

use crate::limits::Limits;

/// What a watch said at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notes {
    pub(crate) in_flight: u32,
    pub(crate) quiet_since_ms: u64,
    pub(crate) head_since_ms: Option<u64>,
    pub(crate) write_blocked_since_ms: Option<u64>,
    pub(crate) draining_since_ms: Option<u64>,
    pub(crate) served_any: bool,
    pub(crate) multiplexed: bool,
}

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// The client is too slow; nothing can be said to it.
    Cut(&'static str),
    /// The connection is merely unused.
    Retire,
}

/// Decides about one connection. Reads nothing but its arguments.
pub(crate) fn verdict(notes: &Notes, now_ms: u64, limits: &Limits) -> Verdict {
    let over = |since: u64, limit: Duration| u128::from(now_ms.saturating_sub(since)) > limit.as_millis();
    if notes.write_blocked_since_ms.is_some_and(|since| over(since, limits.write_timeout)) {
        return Verdict::Cut("the client does not take its answer");
    }
    if notes.in_flight > 0 {
        return Verdict::Keep;
    }
    // An HTTP/2 client that grants no window for its answers blocks them without blocking the socket.
    if notes.draining_since_ms.is_some_and(|since| over(since, limits.write_timeout)) {
        return Verdict::Cut("the client does not let go");
    }
    if !notes.multiplexed {
        if notes.head_since_ms.is_some_and(|since| over(since, limits.head_timeout)) {
            return Verdict::Cut("a request stopped half way");
        }
        if !notes.served_any && over(notes.quiet_since_ms, limits.head_timeout) {
            return Verdict::Cut("no request arrived");
        }
    }
    if over(notes.quiet_since_ms, limits.idle_timeout) { Verdict::Retire } else { Verdict::Keep }
}

/// Whether a connection may be closed to let another one in. Reads nothing but its arguments.
pub(crate) fn may_make_room(notes: &Notes, now_ms: u64, limits: &Limits) -> bool {
    let quiet_ms = now_ms.saturating_sub(notes.quiet_since_ms);
    let patience = if notes.served_any { limits.idle_when_full } else { limits.silent_when_full };
    notes.in_flight == 0 && u128::from(quiet_ms) > patience.as_millis()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Notes = Notes {
        in_flight: 0,
        quiet_since_ms: 0,
        head_since_ms: None,
        write_blocked_since_ms: None,
        draining_since_ms: None,
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
    fn a_connection_is_judged_by_what_it_is_doing() {
        let silent = Verdict::Cut("no request arrived");
        let half = Verdict::Cut("a request stopped half way");
        let stuck = Verdict::Cut("the client does not take its answer");
        let held = Verdict::Cut("the client does not let go");
        let served = Notes { served_any: true, ..FRESH };
        let cases = [
            ("new", FRESH, 100, Verdict::Keep),
            ("silent", FRESH, 101, silent),
            ("idle", served, 1_000, Verdict::Keep),
            ("idle too long", served, 1_001, Verdict::Retire),
            ("half a head", Notes { head_since_ms: Some(900), ..served }, 1_001, half),
            ("a young head", Notes { head_since_ms: Some(901), ..served }, 999, Verdict::Keep),
            ("busy for long", Notes { in_flight: 1, ..served }, 9_999, Verdict::Keep),
            ("not reading", Notes { in_flight: 1, write_blocked_since_ms: Some(0), ..served }, 201, stuck),
            ("closing", Notes { draining_since_ms: Some(0), ..served }, 200, Verdict::Keep),
            ("not closing", Notes { draining_since_ms: Some(0), ..served }, 201, held),
            (
                "busy closing",
                Notes { in_flight: 1, draining_since_ms: Some(0), ..served },
                999,
                Verdict::Keep,
            ),
            ("pings only", Notes { multiplexed: true, head_since_ms: Some(0), ..FRESH }, 999, Verdict::Keep),
            ("pings only, long", Notes { multiplexed: true, ..FRESH }, 1_001, Verdict::Retire),
        ];
        for (case, notes, now_ms, expected) in cases {
            assert_eq!(verdict(&notes, now_ms, &limits()), expected, "{case}");
        }
    }

    #[test]
    fn room_is_made_by_the_silent_first_and_never_by_the_busy() {
        let served = Notes { served_any: true, ..FRESH };
        let busy = Notes { in_flight: 1, ..FRESH };
        let cases = [
            (FRESH, 1_000, false),
            (FRESH, 1_001, true),
            (served, 30_000, false),
            (served, 30_001, true),
            (busy, 99_999, false),
        ];
        for (notes, now_ms, expected) in cases {
            assert_eq!(may_make_room(&notes, now_ms, &Limits::default()), expected, "{notes:?} at {now_ms}");
        }
    }
}
