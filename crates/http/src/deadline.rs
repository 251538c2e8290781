//! Waiting with an end.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::coop;
use tokio::time::Sleep;

use crate::clock;

/// The earlier of two deadlines, where either may be missing.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// `now` and some time more; no deadline if that is beyond what a clock can show.
pub(crate) fn after(now: Instant, time: Option<Duration>) -> Option<Instant> {
    now.checked_add(time?)
}

/// The deadline passed.
#[derive(Debug)]
pub(crate) struct Passed;

/// What comes of `future` until `deadline`.
pub(crate) async fn within<F: Future>(deadline: Option<Instant>, future: F) -> Result<F::Output, Passed> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future).await.map_err(|_| Passed),
        None => Ok(future.await),
    }
}

/// A timer that serves one deadline after the other and is rarely set.
///
/// Deadlines mostly move away: the next request's is later than the last one's. So the timer stays where it
/// was set, and when it rings too early it is set again. A request then costs no change to the runtime's
/// timers at all, where one timer each would cost two.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Whether `deadline` has passed; wakes when it has.
    pub(crate) fn poll_until(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<Passed> {
        let Some(deadline) = deadline.map(tokio::time::Instant::from_std) else { return Poll::Pending };
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if deadline.into_std() <= clock::now() {
                return Poll::Ready(Passed);
            }
            sleep.as_mut().reset(deadline);
        }
        // A peer that never stops sending uses up what the task may do in one go, and then no timer rings.
        if !coop::has_budget_remaining() && deadline.into_std() <= clock::now() {
            return Poll::Ready(Passed);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn the_earlier_deadline_counts() {
        let now = clock::now();
        let later = now + Duration::from_secs(1);
        for (one, other, expected) in [
            (None, None, None),
            (Some(now), None, Some(now)),
            (None, Some(now), Some(now)),
            (Some(later), Some(now), Some(now)),
        ] {
            assert_eq!(earlier(one, other), expected);
        }
        assert_eq!(after(now, Some(Duration::MAX)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_at_each_deadline_whether_it_moved_away_or_closer() {
        let mut alarm = Alarm::default();
        let start = clock::now();
        // Nobody waits for the first.
        let first = poll_fn(|cx| Poll::Ready(alarm.poll_until(Some(start + Duration::from_secs(10)), cx)));
        assert!(first.await.is_pending());
        for seconds in [5, 20, 21, 60] {
            let deadline = start + Duration::from_secs(seconds);
            poll_fn(|cx| alarm.poll_until(Some(deadline), cx)).await;
            let late = clock::now().duration_since(deadline);
            assert!(late < Duration::from_millis(5), "{seconds} s: late by {late:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_for_a_task_that_has_used_up_its_turn() {
        let (mut alarm, deadline) = (Alarm::default(), clock::now() + Duration::from_secs(1));
        let first = poll_fn(|cx| Poll::Ready(alarm.poll_until(Some(deadline), cx)));
        assert!(first.await.is_pending());
        tokio::time::advance(Duration::from_secs(2)).await;
        let rang = poll_fn(|cx| {
            while let Poll::Ready(turn) = coop::poll_proceed(cx) {
                turn.made_progress();
            }
            Poll::Ready(alarm.poll_until(Some(deadline), cx))
        });
        assert!(rang.await.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_deadline_it_never_rings() {
        let mut alarm = Alarm::default();
        let rang =
            within(Some(clock::now() + Duration::from_secs(3600)), poll_fn(|cx| alarm.poll_until(None, cx)));
        assert!(rang.await.is_err());
    }
}
