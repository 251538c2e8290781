//! Write coalescing: lets busy connections of one worker thread write one after the other.
//!
//! A response that is written as soon as it is complete sends its worker thread into the kernel between any
//! two requests. That costs instruction cache on both sides, and a client without other work goes to sleep
//! before each response and has to be woken. So where several connections are busy, one that has something
//! to write first yields to the tasks that are ready, and then all of them write in a row. A connection that
//! is alone never yields.

use std::cell::Cell;
use std::task::{Context, Poll};

thread_local! {
    /// Counts the writes of all connections on this worker thread.
    static WRITES: Cell<u64> = const { Cell::new(0) };
}

/// Decides for one connection whether a write happens at once or after a yield.
#[derive(Debug, Default)]
pub(crate) struct WriteCoalescer {
    /// The value of `WRITES` at its last write.
    last_write: u64,
    /// Whether it has yielded for the write that is about to happen.
    yielded: bool,
}

impl WriteCoalescer {
    /// Ready when the connection may write. When pending, the task is woken again after the tasks that are
    /// ready now.
    pub(crate) fn poll_may_write(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::take(&mut self.yielded) {
            return Poll::Ready(());
        }
        let writes = WRITES.get().wrapping_add(1);
        WRITES.set(writes);
        // Another connection wrote since this one last did, so others may be about to write.
        self.yielded = writes.wrapping_sub(self.last_write) > 1;
        self.last_write = writes;
        if !self.yielded {
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

    /// Counts wake-ups of a task.
    #[derive(Default)]
    struct WakeCount(AtomicUsize);

    impl Wake for WakeCount {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes with the connections at `writers` and returns which of the writes had to yield. Each test has a
    /// thread of its own, and so its own write count.
    fn yielded(connections: &mut [WriteCoalescer], writers: &[usize]) -> Vec<bool> {
        let woken = Arc::new(WakeCount::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut write = |at: usize| {
            let yielded = connections[at].poll_may_write(&mut cx).is_pending();
            if yielded {
                assert!(
                    connections[at].poll_may_write(&mut cx).is_ready(),
                    "a connection yields once per write"
                );
            }
            yielded
        };
        let yielded: Vec<bool> = writers.iter().map(|at| write(*at)).collect();
        let expected = yielded.iter().filter(|yielded| **yielded).count();
        assert_eq!(woken.0.load(Ordering::Relaxed), expected, "a connection that yields is woken");
        yielded
    }

    #[test]
    fn a_connection_that_is_alone_never_yields() {
        assert_eq!(yielded(&mut [WriteCoalescer::default()], &[0; 5]), [false; 5]);
    }

    #[test]
    fn one_of_several_connections_yields_to_the_others() {
        let mut connections =
            [WriteCoalescer::default(), WriteCoalescer::default(), WriteCoalescer::default()];
        yielded(&mut connections, &[0, 1, 2]);
        assert_eq!(yielded(&mut connections, &[0, 1, 2, 0, 1, 2]), [true; 6]);
        assert_eq!(yielded(&mut connections, &[1, 1, 1]), [true, false, false], "until it is alone again");
    }
}
