//! What to do when the service says 429: wait and repeat here, or pass it upwards. Pure.
//!
//! In: the response, what was waited so far, the limits and a random value. Out: a [`ThrottleDecision`].

use std::time::Duration;

use protocol::status::{Status, SubStatus};

use crate::transport::TransportResponse;

/// What was waited so far, within one attempt: each attempt of a race has its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThrottleState {
    /// Retries within this attempt.
    pub retries: u32,
    /// Time waited before them.
    pub waited: Duration,
}

/// How far repeating may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleLimits {
    /// The most retries within one attempt.
    pub retries_max: u32,
    /// Time waited, all together.
    pub wait_max: Duration,
}

/// What to do about an response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThrottleDecision {
    /// Wait, and send again.
    Retry {
        /// How long to wait first.
        delay: Duration,
        /// What was waited by then.
        state: ThrottleState,
    },
    /// It is for the operation to decide.
    Propagate,
}

/// The first wait where the service does not name one; each further one is twice as long.
const DELAY_FIRST: Duration = Duration::from_millis(10);
/// No such wait is longer.
const DELAY_MAX: Duration = Duration::from_secs(5);
/// A hint is exceeded by up to this share of it, so that those who were rejected together do not come back
/// together.
const HINT_SPREAD: f64 = 0.1;
/// Longer than anyone waits, and short enough to calculate with.
const HINT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether an response is about the rate of requests, which waiting helps against. 429/3092 is about the
/// machine behind it: another region may be better off, so it is passed upwards.
pub(super) fn is_throttled(status: Status, sub_status: SubStatus) -> bool {
    status == Status::TOO_MANY_REQUESTS && sub_status != SubStatus::SYSTEM_RESOURCE_UNAVAILABLE
}

/// Decides about a response, `time_left` before the operation's deadline; `random` is a value in `0.0..1.0`.
pub(super) fn decide(
    response: &TransportResponse,
    state: ThrottleState,
    limits: &ThrottleLimits,
    time_left: Duration,
    random: f64,
) -> ThrottleDecision {
    if !is_throttled(response.status, response.sub_status) || state.retries >= limits.retries_max {
        return ThrottleDecision::Propagate;
    }
    let delay = match hint(response) {
        Some(hint) => hint.mul_f64(1.0 + random * HINT_SPREAD),
        None => backoff(state.retries).mul_f64(0.5 + random * 0.5),
    };
    let waited = state.waited.saturating_add(delay);
    // A wait that ends after the deadline would only turn a clear response into a vague one, later.
    if waited > limits.wait_max || delay >= time_left {
        return ThrottleDecision::Propagate;
    }
    ThrottleDecision::Retry { delay, state: ThrottleState { retries: state.retries + 1, waited } }
}

/// How long the service asks to wait.
fn hint(response: &TransportResponse) -> Option<Duration> {
    let text = response.headers.get(protocol::headers::RETRY_AFTER_MS)?;
    // The service writes whole numbers, and so does everyone in its place; a fraction is harmless.
    let milliseconds: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok().map(|hint| hint.min(HINT_MAX))
}

fn backoff(retries: u32) -> Duration {
    DELAY_FIRST.saturating_mul(2_u32.saturating_pow(retries)).min(DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use azure_core::http::headers::Headers;
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    const LIMITS: ThrottleLimits = ThrottleLimits { retries_max: 9, wait_max: Duration::from_secs(30) };
    const HOUR: Duration = Duration::from_secs(3600);

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn response(status: u16, sub_status: u32, hint: Option<&str>) -> TransportResponse {
        let mut headers = Headers::new();
        headers.insert("x-ms-substatus", sub_status.to_string());
        if let Some(hint) = hint {
            headers.insert("x-ms-retry-after-ms", hint.to_owned());
        }
        TransportResponse::new(Status(status), headers.into(), Bytes::new())
    }

    fn state(retries: u32, waited: Duration) -> ThrottleState {
        ThrottleState { retries, waited }
    }

    #[test]
    fn the_hint_of_the_service_is_what_is_waited() {
        let throttled = response(429, 3200, Some("250"));
        let expected = ThrottleDecision::Retry { delay: ms(250), state: state(1, ms(250)) };
        assert_eq!(decide(&throttled, ThrottleState::default(), &LIMITS, HOUR, 0.0), expected);
        let later = ThrottleDecision::Retry { delay: ms(275), state: state(3, ms(375)) };
        assert_eq!(decide(&throttled, state(2, ms(100)), &LIMITS, HOUR, 1.0), later);
    }

    #[test]
    fn without_a_hint_the_waits_double() {
        for (retries, least, most) in [(0, 5, 10), (1, 10, 20), (4, 80, 160), (8, 1280, 2560)] {
            for hint in [None, Some(""), Some("soon"), Some("-5"), Some("NaN")] {
                let throttled = response(429, 3200, hint);
                for (random, delay) in [(0.0, ms(least)), (1.0, ms(most))] {
                    let ThrottleDecision::Retry { delay: got, .. } =
                        decide(&throttled, state(retries, ms(0)), &LIMITS, HOUR, random)
                    else {
                        panic!("retried: {retries} {hint:?}")
                    };
                    assert_eq!(got, delay, "{retries} {hint:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_passed_upwards() {
        let cases = [
            (response(429, 3092, Some("1")), state(0, ms(0)), HOUR, "another region may be better off"),
            (response(503, 0, Some("1")), state(0, ms(0)), HOUR, "not throttling"),
            (response(200, 0, None), state(0, ms(0)), HOUR, "not an error"),
            (response(429, 3200, Some("1")), state(9, ms(9)), HOUR, "nine repeats are the limit"),
            (response(429, 3200, Some("2000")), state(3, ms(28_001)), HOUR, "thirty seconds are the limit"),
            (response(429, 3200, Some("500")), state(0, ms(0)), ms(500), "the deadline comes first"),
            (response(429, 3200, Some("99999999999999999")), state(0, ms(0)), HOUR, "no such wait"),
        ];
        for (response, state, time_left, why) in cases {
            assert_eq!(
                decide(&response, state, &LIMITS, time_left, 0.0),
                ThrottleDecision::Propagate,
                "{why}"
            );
        }
    }

    proptest! {
        #[test]
        fn repeating_ends_within_both_limits(
            hints in prop::collection::vec(prop::option::of(0_u32..20_000), 40),
            random in 0.0_f64..1.0,
        ) {
            let mut current = ThrottleState::default();
            for hint in hints {
                let response = response(429, 3200, hint.map(|hint| hint.to_string()).as_deref());
                match decide(&response, current, &LIMITS, HOUR, random) {
                    ThrottleDecision::Retry { delay, state } => {
                        prop_assert_eq!(state.retries, current.retries + 1);
                        prop_assert_eq!(state.waited, current.waited + delay);
                        prop_assert!(hint.is_none_or(|hint| delay >= ms(hint.into())), "no sooner than asked");
                        current = state;
                    }
                    ThrottleDecision::Propagate => break,
                }
            }
            prop_assert!(current.retries <= LIMITS.retries_max && current.waited <= LIMITS.wait_max);
        }
    }
}
