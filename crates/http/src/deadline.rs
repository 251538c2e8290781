//! Deadlines: arithmetic on optional ones, and a timer that one connection reuses for all its requests.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::coop;
use tokio::time::Sleep;

use crate::clock;

/// The earlier of two deadlines; `None` means no deadline.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The deadline `time` after `now`; no deadline if the clock cannot represent it.
pub(crate) fn after(now: Instant, time: Option<Duration>) -> Option<Instant> {
    now.checked_add(time?)
}

/// The error of an operation that did not complete before its deadline.
#[derive(Debug)]
pub(crate) struct DeadlineElapsed;

/// Runs `future` until `deadline`, as `tokio::time::timeout_at` does.
pub(crate) async fn timeout_at<F: Future>(
    deadline: Option<Instant>,
    future: F,
) -> Result<F::Output, DeadlineElapsed> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future).await.map_err(|_| DeadlineElapsed),
        None => Ok(future.await),
    }
}

/// A timer that is reused for one deadline after another, and rarely reset.
///
/// The deadline of the next request is mostly later than that of the last one. So the timer keeps its earlier
/// deadline, and is reset only when it fires too early. A request then changes no timer of the runtime at all; a
/// timer per request would cost an insertion and a removal.
#[derive(Debug, Default)]
pub(crate) struct DeadlineTimer(Option<Pin<Box<Sleep>>>);

impl DeadlineTimer {
    /// Ready once `deadline` has passed; the task of `cx` is woken then.
    pub(crate) fn poll_until(
        &mut self,
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<DeadlineElapsed> {
        let Some(deadline) = deadline.map(tokio::time::Instant::from_std) else { return Poll::Pending };
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        // The timer may have fired for an earlier deadline. The loop ends: either this deadline has passed, or the
        // timer is reset to it and the next poll is pending, except when the deadline passes in between.
        while sleep.as_mut().poll(cx).is_ready() {
            if deadline.into_std() <= clock::now() {
                return Poll::Ready(DeadlineElapsed);
            }
            sleep.as_mut().reset(deadline);
        }
        // A peer that never stops sending uses up the cooperative budget of the task, and then tokio reports no
        // timer as ready. The clock has to be read instead.
        if !coop::has_budget_remaining() && deadline.into_std() <= clock::now() {
            return Poll::Ready(DeadlineElapsed);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn the_earlier_deadline_wins() {
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
    async fn the_timer_fires_at_each_deadline_whether_later_or_earlier_than_the_last() {
        let mut timer = DeadlineTimer::default();
        let start = clock::now();
        // The first deadline is set and never awaited.
        let first = poll_fn(|cx| Poll::Ready(timer.poll_until(Some(start + Duration::from_secs(10)), cx)));
        assert!(first.await.is_pending());
        for seconds in [5, 20, 21, 60] {
            let deadline = start + Duration::from_secs(seconds);
            poll_fn(|cx| timer.poll_until(Some(deadline), cx)).await;
            let late = clock::now().duration_since(deadline);
            assert!(late < Duration::from_millis(5), "{seconds} s: late by {late:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_fires_for_a_task_without_cooperative_budget() {
        let (mut timer, deadline) = (DeadlineTimer::default(), clock::now() + Duration::from_secs(1));
        let first = poll_fn(|cx| Poll::Ready(timer.poll_until(Some(deadline), cx)));
        assert!(first.await.is_pending());
        tokio::time::advance(Duration::from_secs(2)).await;
        let fired = poll_fn(|cx| {
            while let Poll::Ready(budget) = coop::poll_proceed(cx) {
                budget.made_progress();
            }
            Poll::Ready(timer.poll_until(Some(deadline), cx))
        });
        assert!(fired.await.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn it_never_fires_without_a_deadline() {
        let mut timer = DeadlineTimer::default();
        let fired = timeout_at(
            Some(clock::now() + Duration::from_secs(3600)),
            poll_fn(|cx| timer.poll_until(None, cx)),
        );
        assert!(fired.await.is_err());
    }
}
