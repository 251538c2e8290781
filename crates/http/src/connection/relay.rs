//! A waker of a connection's own, which wakes whoever holds the connection, and only when that is of use.
//!
//! Whoever polls an HTTP/1.1 connection is also the one who answers it, so most of what hyper wakes during a
//! poll is the very task that is running. The runtime would take note and poll that task once more, for
//! nothing, perhaps on another thread. The relay keeps such calls to itself, and tells the one who polls, who
//! then polls again if it has not done so since.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Nobody polls: wake the holder.
const RESTING: u8 = 0;
/// The holder polls.
const POLLING: u8 = 1;
/// The holder polls, and was called in the meantime.
const CALLED: u8 = 2;

#[derive(Debug, Default)]
struct State {
    holder: AtomicWaker,
    phase: AtomicU8,
}

/// What wakes the holder of a connection.
#[derive(Debug)]
pub(super) struct Relay {
    state: Arc<State>,
    waker: Waker,
}

impl Relay {
    pub(super) fn new() -> Self {
        let state = Arc::<State>::default();
        Relay { waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Polls on behalf of the task of `cx`, which is woken when there is news afterwards. What becomes ready
    /// because of the poll itself is polled for at once, but only once: whoever calls during that poll as well
    /// may be the runtime, which wants others to have their turn.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.state.holder.register(cx.waker());
        for _ in 0..2 {
            self.state.phase.store(POLLING, Ordering::SeqCst);
            let polled = poll(&mut Context::from_waker(&self.waker));
            let called = self.state.phase.swap(RESTING, Ordering::SeqCst) == CALLED;
            if polled.is_ready() {
                // Nobody waits any more. Whoever takes the answer calls the connection in doing so, and
                // would wake the task that is running.
                drop(self.state.holder.take());
                return polled;
            }
            if !called {
                return polled;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Polls on behalf of nobody: what happens afterwards wakes no task.
    pub(super) fn poll_alone<T>(&self, poll: impl FnOnce(&mut Context<'_>) -> T) -> T {
        drop(self.state.holder.take());
        poll(&mut Context::from_waker(&self.waker))
    }
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self.phase.compare_exchange(POLLING, CALLED, Ordering::SeqCst, Ordering::SeqCst);
        // Already noted, or it is for the holder to wake up.
        if noted == Err(RESTING) {
            self.holder.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn who_has_its_answer_is_not_woken_by_taking_it() {
        let count = Arc::<Count>::default();
        let (waker, relay) = (Waker::from(Arc::clone(&count)), Relay::new());
        let answer = relay.poll(&Context::from_waker(&waker), |cx| Poll::Ready(cx.waker().clone()));
        let Poll::Ready(connection) = answer else { panic!("it is ready") };
        connection.wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn calls_during_a_poll_lead_to_one_more_and_later_ones_to_the_holder() {
        // How often the poll itself calls, how often it is polled then, and how often the task is woken.
        for (calls, polls_expected, woken_expected) in [(0, 1, 0), (1, 2, 0), (2, 2, 1), (9, 2, 1)] {
            let count = Arc::<Count>::default();
            let waker = Waker::from(Arc::clone(&count));
            let relay = Relay::new();
            let (mut polls, mut kept) = (0, None);
            let polled: Poll<()> = relay.poll(&Context::from_waker(&waker), |cx| {
                polls += 1;
                if polls <= calls {
                    cx.waker().wake_by_ref();
                }
                kept = Some(cx.waker().clone());
                Poll::Pending
            });
            assert!(polled.is_pending());
            assert_eq!(polls, polls_expected, "{calls} calls");
            assert_eq!(count.0.load(Ordering::SeqCst), woken_expected, "{calls} calls");
            let kept = kept.expect("it was polled");
            kept.wake_by_ref();
            assert_eq!(count.0.load(Ordering::SeqCst), woken_expected + 1, "nobody polls any more");
            relay.poll_alone(|_| ());
            kept.wake();
            assert_eq!(count.0.load(Ordering::SeqCst), woken_expected + 1, "nobody holds it any more");
        }
    }
}
