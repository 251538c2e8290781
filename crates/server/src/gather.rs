//! When a connection may write: at once, or after its neighbours have got as far.
//!
//! An answer that is written as soon as it is there sends its worker into the kernel and back between any
//! two requests. Neither finds its instructions where it left them, and a client that has nothing else to
//! do falls asleep before each answer and has to be woken. So where several connections are busy, one that
//! has something to write lets those that are ready go first, and all of them write one after the other.
//! Whoever is alone never waits.

use std::cell::Cell;
use std::task::{Context, Poll};

thread_local! {
    /// Counts what the connections of this worker write.
    static TURN: Cell<u64> = const { Cell::new(0) };
}

/// One connection's place among those that write.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// Its last turn.
    last: u64,
    /// Whether it lets others go first.
    waits: bool,
}

impl Gather {
    /// Ready when it is time to write. If it is not, the caller's turn comes after those that are ready now.
    pub(crate) fn poll_write_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.waits) {
            return Poll::Ready(());
        }
        let turn = TURN.get().wrapping_add(1);
        TURN.set(turn);
        // Somebody else wrote since it last did, so somebody else may be about to.
        self.waits = turn.wrapping_sub(self.last) > 1;
        self.last = turn;
        if !self.waits {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    /// Counts how often a task is to be polled again.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes with each of `connections` in turn, and says who had to wait. A test has a thread of its own,
    /// and with it all turns.
    fn waits(connections: &mut [Gather], turns: &[usize]) -> Vec<bool> {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut write = |at: usize| {
            let waited = connections[at].poll_write_turn(&mut cx).is_pending();
            if waited {
                assert!(connections[at].poll_write_turn(&mut cx).is_ready(), "nobody waits twice");
            }
            waited
        };
        let waited: Vec<bool> = turns.iter().map(|at| write(*at)).collect();
        let expected = waited.iter().filter(|waited| **waited).count();
        assert_eq!(woken.0.load(Ordering::Relaxed), expected, "whoever waits is polled again");
        waited
    }

    #[test]
    fn whoever_is_alone_never_waits() {
        assert_eq!(waits(&mut [Gather::default()], &[0; 5]), [false; 5]);
    }

    #[test]
    fn one_of_several_lets_the_others_go_first() {
        let mut connections = [Gather::default(), Gather::default(), Gather::default()];
        waits(&mut connections, &[0, 1, 2]);
        assert_eq!(waits(&mut connections, &[0, 1, 2, 0, 1, 2]), [true; 6]);
        assert_eq!(waits(&mut connections, &[1, 1, 1]), [true, false, false], "until it is alone again");
    }
}
