//! A second attempt elsewhere when the first is slow.
//!
//! [`eligibility`] says whether, [`threshold`] says when, [`budget`] says how many, [`race()`] runs the two and
//! [`winner`] says which one counts. The loser is cancelled by being dropped.

pub(crate) mod budget;
pub(crate) mod eligibility;
pub(crate) mod threshold;
pub(crate) mod winner;

use crate::gateway::{GatewayOutcome, GatewayResult};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use self::budget::Permit;
use self::winner::Lane;
use crate::clock::Clock;

/// What became of both attempts.
#[derive(Debug)]
pub(crate) struct Race {
    /// The first attempt.
    pub(crate) first: Lane,
    /// The second, and when it began; unused when the first was fast enough.
    pub(crate) second: Lane,
    /// When the second began.
    pub(crate) second_started: Option<Instant>,
    /// The first was slow, and too many races were open to begin another.
    pub(crate) was_denied: bool,
}

impl Race {
    /// The first attempt alone.
    pub(crate) fn alone(result: GatewayResult) -> Race {
        Race { first: Lane::Done(result), second: Lane::Unused, second_started: None, was_denied: false }
    }
}

/// Runs `first`; if it has not ended after `threshold`, runs what `second` makes beside it, if it makes
/// anything. Ends with the first result that `is_final`, or with both.
pub(crate) async fn race<F, S>(
    clock: &Clock,
    threshold: Duration,
    first: impl Future<Output = GatewayResult>,
    second: F,
    is_final: impl Fn(&GatewayOutcome) -> bool,
) -> Race
where
    F: FnOnce() -> Option<(Permit, S)>,
    S: Future<Output = GatewayResult>,
{
    let mut first = pin!(first);
    // An answer that is there at once needs no timer.
    if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(first.as_mut().poll(context))).await {
        return Race::alone(result);
    }
    let first = match select(first, clock.sleep(threshold)).await {
        Either::Left((result, _timer)) => return Race::alone(result),
        Either::Right(((), first)) => first,
    };
    let Some((_permit, second)) = second() else {
        return Race { was_denied: true, ..Race::alone(first.await) };
    };
    let second_started = Some(clock.now());
    // On the heap, because it is rare and the size of the first.
    let second = Box::pin(second);
    let (first, second) = match select(first, second).await {
        Either::Left((result, second)) => {
            let second = if is_final(&result.outcome) { Lane::Abandoned } else { Lane::Done(second.await) };
            (Lane::Done(result), second)
        }
        Either::Right((result, first)) => {
            let first = if is_final(&result.outcome) { Lane::Abandoned } else { Lane::Done(first.await) };
            (first, Lane::Done(result))
        }
    };
    Race { first, second, second_started, was_denied: false }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::operation::ResponseHeaders;
    use bytes::Bytes;
    use futures::FutureExt;
    use futures::channel::oneshot;
    use protocol::status::Status;

    use super::budget::Budget;
    use super::*;
    use crate::clock::ManualTime;
    use crate::transport::TransportResponse;

    const THRESHOLD: Duration = Duration::from_millis(50);

    fn result(status: u16) -> GatewayResult {
        let answer = TransportResponse::new(Status(status), ResponseHeaders::default(), Bytes::new());
        GatewayResult { outcome: GatewayOutcome::Success(answer), last: None, earlier: Vec::new() }
    }

    fn status(lane: &Lane) -> Option<u16> {
        match &lane.result()?.outcome {
            GatewayOutcome::Success(answer) => Some(answer.status.0),
            _ => None,
        }
    }

    /// An attempt that ends when told to, and one that never began.
    fn attempt() -> (oneshot::Sender<GatewayResult>, impl Future<Output = GatewayResult>) {
        let (tell, told) = oneshot::channel();
        (tell, async move { told.await.expect("told") })
    }

    fn is_200(outcome: &GatewayOutcome) -> bool {
        matches!(outcome, GatewayOutcome::Success(answer) if answer.status == Status::OK)
    }

    #[test]
    fn a_fast_first_attempt_runs_alone_and_sets_no_timer() {
        let time = ManualTime::new();
        let second = || -> Option<(Permit, futures::future::Pending<GatewayResult>)> { panic!("not needed") };
        let clock = time.clock();
        let race =
            race(&clock, THRESHOLD, async { result(200) }, second, is_200).now_or_never().expect("at once");
        assert_eq!((status(&race.first), race.second_started), (Some(200), None));
        assert_eq!(time.sleepers(), 0);
    }

    #[test]
    fn the_second_begins_at_the_threshold_and_the_loser_is_dropped() {
        let time = ManualTime::new();
        let clock = time.clock();
        for second_wins in [false, true] {
            let budget = Budget::default();
            let ((tell_first, first), (tell_second, second)) = (attempt(), attempt());
            let begun = Cell::new(false);
            let start = || {
                begun.set(true);
                Some((budget.take(1).expect("free"), second))
            };
            let mut racing = Box::pin(race(&clock, THRESHOLD, first, start, is_200));
            assert!((&mut racing).now_or_never().is_none());
            time.advance(THRESHOLD - Duration::from_millis(1));
            assert!((&mut racing).now_or_never().is_none() && !begun.get());
            time.advance(Duration::from_millis(1));
            assert!((&mut racing).now_or_never().is_none() && begun.get());
            assert_eq!(budget.open(), 1);
            let (winner, loser) =
                if second_wins { (tell_second, tell_first) } else { (tell_first, tell_second) };
            winner.send(result(200)).expect("awaited");
            let race = racing.now_or_never().expect("over");
            let (won, lost) = if second_wins { (race.second, race.first) } else { (race.first, race.second) };
            assert!(matches!((status(&won), lost), (Some(200), Lane::Abandoned)));
            assert!(loser.is_canceled(), "the loser was dropped");
            assert_eq!(budget.open(), 0);
        }
    }

    #[test]
    fn a_result_that_decides_nothing_waits_for_the_other() {
        let time = ManualTime::new();
        let clock = time.clock();
        let budget = Budget::default();
        let ((tell_first, first), (tell_second, second)) = (attempt(), attempt());
        let start = || Some((budget.take(1).expect("free"), second));
        let mut racing = Box::pin(race(&clock, THRESHOLD, first, start, is_200));
        assert!((&mut racing).now_or_never().is_none());
        time.advance(THRESHOLD);
        assert!((&mut racing).now_or_never().is_none());
        tell_second.send(result(299)).expect("awaited");
        assert!((&mut racing).now_or_never().is_none());
        tell_first.send(result(298)).expect("awaited");
        let race = racing.now_or_never().expect("over");
        assert_eq!((status(&race.first), status(&race.second)), (Some(298), Some(299)));
    }

    #[test]
    fn without_a_permit_the_first_goes_on_alone() {
        let time = ManualTime::new();
        let clock = time.clock();
        let (tell, first) = attempt();
        let second = || None::<(Permit, futures::future::Pending<GatewayResult>)>;
        let mut racing = Box::pin(race(&clock, THRESHOLD, first, second, is_200));
        assert!((&mut racing).now_or_never().is_none());
        time.advance(THRESHOLD);
        assert!((&mut racing).now_or_never().is_none());
        tell.send(result(200)).expect("awaited");
        let race = racing.now_or_never().expect("over");
        assert!(race.was_denied && status(&race.first) == Some(200));
    }

    #[test]
    fn a_race_dropped_at_any_moment_leaves_nothing_behind() {
        for steps in 0..3 {
            let time = ManualTime::new();
            let clock = time.clock();
            let budget = Budget::default();
            let ((_first, first), (_second, second)) = (attempt(), attempt());
            let start = || Some((budget.take(1).expect("free"), second));
            let mut racing = Box::pin(race(&clock, THRESHOLD, first, start, is_200));
            for _ in 0..steps {
                assert!((&mut racing).now_or_never().is_none());
                time.advance(THRESHOLD);
            }
            drop(racing);
            assert_eq!((time.sleepers(), budget.open()), (0, 0), "after {steps} steps");
        }
    }
}
