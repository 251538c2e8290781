//! The waker of an HTTP/1.1 connection, which no task of its own drives.
//!
//! The task that polls the connection also takes the response from it, so most wake-ups during a poll are for the
//! task that is running anyway. Passed on, each of them would make the runtime poll that task once more for nothing,
//! perhaps on another thread. A [`ConnectionWaker`] holds wake-ups back while the connection is polled, and polls it
//! a second time instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// The connection is not being polled: a wake-up goes to the task.
const NOT_POLLING: u8 = 0;
/// The connection is being polled, and was not woken since the poll began.
const POLLING: u8 = 1;
/// The connection is being polled, and was woken since the poll began.
const WOKEN: u8 = 2;

#[derive(Debug, Default)]
struct State {
    /// The task that waits for the connection, if one does.
    task: AtomicWaker,
    phase: AtomicU8,
}

/// Wakes the task that uses a connection, except while that task polls it.
#[derive(Debug)]
pub(super) struct ConnectionWaker {
    state: Arc<State>,
    waker: Waker,
}

impl ConnectionWaker {
    pub(super) fn new() -> Self {
        let state = Arc::<State>::default();
        ConnectionWaker { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Polls for the task of `cx`, which later wake-ups go to.
    ///
    /// A wake-up during the poll leads to one more poll at once. A wake-up during that one goes to the task: it may
    /// come from the runtime, which asks the task to yield.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.state.task.register(cx.waker());
        for _ in 0..2 {
            // SeqCst, here and in `wake_by_ref`: either the wake-up finds POLLING and leaves its mark before the
            // swap, or it comes after the swap and wakes the registered task. It is never lost in between.
            self.state.phase.store(POLLING, Ordering::SeqCst);
            let polled = poll(&mut Context::from_waker(&self.waker));
            let woken = self.state.phase.swap(NOT_POLLING, Ordering::SeqCst) == WOKEN;
            if polled.is_ready() {
                // Nothing waits any more. Taking the response wakes the connection, which must not wake the task
                // that is running.
                drop(self.state.task.take());
                return polled;
            }
            if !woken {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls for no task: later wake-ups wake nothing.
    pub(super) fn poll_without_task<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
        drop(self.state.task.take());
        poll(&mut Context::from_waker(&self.waker))
    }
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let marked = self.phase.compare_exchange(POLLING, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        // `Err(WOKEN)` means that the mark is set already, and the poll will see it.
        if marked == Err(NOT_POLLING) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_task_that_has_its_response_is_not_woken_by_taking_it() {
        let count = Arc::<WakeCount>::default();
        let (task, connection) = (Waker::from(Arc::clone(&count)), ConnectionWaker::new());
        let polled = connection.poll(&Context::from_waker(&task), |cx| Poll::Ready(cx.waker().clone()));
        let Poll::Ready(waker) = polled else { panic!("it is ready") };
        waker.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn wake_ups_during_a_poll_lead_to_one_more_poll_and_later_ones_wake_the_task() {
        // How often the poll wakes its own connection, how often it then runs, and how often the task is woken.
        for (wakes, polls_expected, woken_expected) in [(0, 1, 0), (1, 2, 0), (2, 2, 1), (9, 2, 1)] {
            let count = Arc::<WakeCount>::default();
            let task = Waker::from(Arc::clone(&count));
            let connection = ConnectionWaker::new();
            let (mut polls, mut kept) = (0, None);
            let polled: Poll<()> = connection.poll(&Context::from_waker(&task), |cx| {
                polls += 1;
                if polls <= wakes {
                    cx.waker().wake_by_ref();
                }
                kept = Some(cx.waker().clone());
                Poll::Pending
            });
            assert!(polled.is_pending());
            assert_eq!(polls, polls_expected, "{wakes} wake-ups");
            assert_eq!(count.0.load(Ordering::SeqCst), woken_expected, "{wakes} wake-ups");
            let kept = kept.expect("it was polled");
            kept.wake_by_ref();
            assert_eq!(count.0.load(Ordering::SeqCst), woken_expected + 1, "the poll is over");
            connection.poll_without_task(|_| ());
            kept.wake();
            assert_eq!(count.0.load(Ordering::SeqCst), woken_expected + 1, "no task waits any more");
        }
    }
}
