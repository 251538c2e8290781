//! The scope that a record travels in: set on the thread while its future is polled, and only then.
//!
//! It moves in by value and out by value, so that observing costs two moves of a few hundred bytes per poll
//! and no allocation (`docs/decisions/006`).

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;

use super::{Exchange, Protocol};

/// What a caller wants of the exchanges in a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// When the call must be over, response body included.
    pub deadline: Option<Instant>,
    /// The only protocol allowed; without one the client and the peer agree on one.
    pub protocol: Option<Protocol>,
}

/// Runs `future` in a scope of its own, and gives the record of its last exchange along with its output.
///
/// Scopes nest: what runs in an inner scope is reported there and not to the outer one. A future that is
/// dropped takes its record with it; who wants to know nevertheless pins the scope and asks
/// [`so_far`](Observe::so_far) before.
///
/// The record ends where the future ends. If that is before the response's body was read, the body's end
/// ([`Exchange::complete`]) is not in it; read the body inside to have it.
pub fn observe<F: Future>(future: F) -> Observe<F> {
    Observe {
        scope: Some(Scope { wanted: Wanted::default(), record: Exchange::default(), current: 0 }),
        future,
    }
}

pin_project! {
    /// A future in a scope; see [`observe`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Observe<F> {
        // Taken only while `future` is polled.
        scope: Option<Scope>,
        #[pin]
        future: F,
    }
}

impl<F> Observe<F> {
    /// Lets the client give up at `deadline`, with an error that says how far it had come.
    pub fn until(mut self, deadline: Instant) -> Self {
        if let Some(scope) = &mut self.scope {
            scope.wanted.deadline = Some(deadline);
        }
        self
    }

    /// Allows only this protocol.
    pub fn over(mut self, protocol: Protocol) -> Self {
        if let Some(scope) = &mut self.scope {
            scope.wanted.protocol = Some(protocol);
        }
        self
    }

    /// What was reported up to now: for those who are about to drop it.
    pub fn so_far(&self) -> Exchange {
        self.scope.as_ref().map(|scope| scope.record).unwrap_or_default()
    }
}

impl<F: Future> Future for Observe<F> {
    type Output = (Exchange, F::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let entered = Entered::enter(this.scope);
        let polled = this.future.poll(cx);
        drop(entered);
        polled.map(|output| (this.scope.as_ref().map(|scope| scope.record).unwrap_or_default(), output))
    }
}

/// What the scope around the running future wants; nothing outside of one.
pub fn wanted() -> Wanted {
    with_scope(|scope| scope.wanted).unwrap_or_default()
}

/// Begins an exchange in the scope around the running future: its record replaces the one before.
///
/// Cheap outside of a scope, where the reporter reports to nobody.
pub fn begin() -> Reporter {
    Reporter(
        with_scope(|scope| {
            // Numbers are drawn for the whole process, so that a body that is read in another scope than
            // its own does not write into a stranger's record.
            static NEXT: AtomicU64 = AtomicU64::new(1);
            scope.current = NEXT.fetch_add(1, Ordering::Relaxed);
            scope.record = Exchange::begun();
            scope.current
        })
        .unwrap_or(0),
    )
}

/// The way to one exchange's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter(u64);

impl Reporter {
    /// Says how things are now. Does nothing unless called from within the scope in which the exchange was
    /// begun, and while no later one was begun there.
    pub fn report(self, record: &Exchange) {
        if self.0 == 0 {
            return;
        }
        with_scope(|scope| {
            if scope.current == self.0 {
                scope.record = *record;
            }
        });
    }

    /// Whether anybody listened when the exchange began.
    pub fn is_observed(self) -> bool {
        self.0 != 0
    }
}

#[derive(Debug)]
struct Scope {
    wanted: Wanted,
    record: Exchange,
    /// The exchange that may report; 0 before the first.
    current: u64,
}

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

fn with_scope<T>(f: impl FnOnce(&mut Scope) -> T) -> Option<T> {
    CURRENT.try_with(|current| current.borrow_mut().as_mut().map(f)).ok().flatten()
}

/// A scope that is the thread's current one until this is dropped, be it by a panic.
struct Entered<'a> {
    /// Holds the outer scope in the meantime.
    home: &'a mut Option<Scope>,
}

impl<'a> Entered<'a> {
    fn enter(home: &'a mut Option<Scope>) -> Self {
        swap_current(home);
        Entered { home }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap_current(self.home);
    }
}

fn swap_current(home: &mut Option<Scope>) {
    // Fails only while the thread is torn down, when there is nobody left to report.
    let _ = CURRENT.try_with(|current| std::mem::swap(&mut *current.borrow_mut(), home));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Reuse, Sent};
    use futures::executor::block_on;
    use std::task::Waker;
    use std::time::Duration;

    /// Does what a client does, with `attempts` recognisable in the record.
    async fn execute(attempts: u8) -> Wanted {
        let wanted = wanted();
        let reporter = begin();
        let mut record = Exchange::begun();
        record.attempts = attempts;
        reporter.report(&record);
        yield_once().await;
        record.sent = Sent::Sent;
        record.reuse = Some(Reuse::Reused);
        reporter.report(&record);
        wanted
    }

    async fn yield_once() {
        let mut yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_record_comes_out_with_the_answer() {
        let (record, _) = block_on(observe(execute(1)));
        assert_eq!((record.attempts, record.sent, record.reuse), (1, Sent::Sent, Some(Reuse::Reused)));
    }

    #[test]
    fn wishes_go_in_and_reach_through_wrappers() {
        let deadline = crate::clock::now() + Duration::from_secs(3);
        let wrapped = Box::pin(async { Box::pin(execute(1)).await });
        let (_, wanted) = block_on(observe(wrapped).until(deadline).over(Protocol::Http2));
        assert_eq!(wanted, Wanted { deadline: Some(deadline), protocol: Some(Protocol::Http2) });
    }

    #[test]
    fn nothing_is_wanted_and_nobody_listens_outside_of_a_scope() {
        assert_eq!(wanted(), Wanted::default());
        assert!(!begin().is_observed());
        block_on(execute(1));
    }

    #[test]
    fn a_scope_nobody_reported_into_knows_nothing() {
        let (record, ()) = block_on(observe(async {}));
        assert_eq!(record, Exchange::default());
        assert!(!record.safe_to_repeat());
    }

    #[test]
    fn the_last_exchange_of_a_scope_is_its_record() {
        let (record, _) = block_on(observe(async {
            execute(1).await;
            execute(2).await;
        }));
        assert_eq!(record.attempts, 2);
    }

    #[test]
    fn an_exchange_that_was_replaced_is_not_heard_any_more() {
        let (record, ()) = block_on(observe(async {
            let first = begin();
            let second = begin();
            let mut told = Exchange::begun();
            told.attempts = 2;
            second.report(&told);
            told.attempts = 1;
            first.report(&told);
        }));
        assert_eq!(record.attempts, 2);
    }

    #[test]
    fn a_reporter_of_another_scope_is_not_heard() {
        let (_, stranger) = block_on(observe(async { begin() }));
        let (record, ()) = block_on(observe(async {
            begin();
            stranger.report(&Exchange { attempts: 9, ..Exchange::begun() });
        }));
        assert_eq!(record.attempts, 0);
    }

    #[test]
    fn scopes_nest_and_interleave() {
        let mut outer = Box::pin(observe(async {
            execute(1).await;
            observe(execute(2)).await.0
        }));
        let mut other = Box::pin(observe(execute(3)));
        // Polled in turns on one thread, neither sees the other's.
        assert!(poll_once(outer.as_mut()).is_pending());
        assert!(poll_once(other.as_mut()).is_pending());
        assert_eq!((outer.so_far().attempts, other.so_far().attempts), (1, 3));
        assert!(poll_once(outer.as_mut()).is_pending(), "the inner one yields as well");
        let Poll::Ready((theirs, _)) = poll_once(other.as_mut()) else { panic!("one yield only") };
        let Poll::Ready((ours, inner)) = poll_once(outer.as_mut()) else { panic!("two yields only") };
        assert_eq!((ours.attempts, inner.attempts, theirs.attempts), (1, 2, 3));
    }

    #[test]
    fn what_was_reported_can_be_asked_for_before_a_future_is_dropped() {
        let mut observed = Box::pin(observe(execute(4)));
        assert_eq!(observed.so_far(), Exchange::default());
        assert!(poll_once(observed.as_mut()).is_pending());
        assert_eq!(observed.so_far().sent, Sent::NotSent);
    }

    #[test]
    fn a_panic_leaves_no_scope_behind() {
        let panics = std::panic::AssertUnwindSafe(|| {
            block_on(observe(async {
                begin();
                panic!("as wanted");
            }))
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!begin().is_observed());
    }
}
