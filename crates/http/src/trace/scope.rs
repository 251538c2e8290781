//! The scope of a trace: a thread-local value that is set only while its future is polled, as tokio's task-locals are.
//!
//! It is moved in and out by value, so observing costs two moves of a few hundred bytes per poll and no allocation
//! (`docs/decisions/006`).

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;

use super::{Protocol, RequestTrace};

/// Options for the requests that are sent within a scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestOptions {
    /// When the call must be complete, response body included.
    pub deadline: Option<Instant>,
    /// The only protocol to use; with `None` the client and the server negotiate one.
    pub protocol: Option<Protocol>,
}

/// Runs `future` in a scope of its own, and returns the trace of its last request together with its output.
///
/// Scopes nest: a request is reported to the innermost one only. Dropping the future drops the trace; a caller that needs
/// it pins the future and calls [`current_trace`](Observe::current_trace) first.
///
/// The trace ends with the future. If the response body is read later, the end of the body
/// ([`RequestTrace::complete`]) is missing; read the body within the future to have it.
pub fn observe<F: Future>(future: F) -> Observe<F> {
    Observe {
        scope: Some(Scope {
            options: RequestOptions::default(),
            trace: RequestTrace::default(),
            current_request: 0,
        }),
        future,
    }
}

pin_project! {
    /// A future that runs in a scope of its own; see [`observe`].
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
    /// Sets the deadline, at which the client fails with an error that names the step it had reached.
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        if let Some(scope) = &mut self.scope {
            scope.options.deadline = Some(deadline);
        }
        self
    }

    /// Sets the only protocol to use.
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        if let Some(scope) = &mut self.scope {
            scope.options.protocol = Some(protocol);
        }
        self
    }

    /// The trace that was reported so far, for a caller that is about to drop the future.
    pub fn current_trace(&self) -> RequestTrace {
        self.scope.as_ref().map(|scope| scope.trace).unwrap_or_default()
    }
}

impl<F: Future> Future for Observe<F> {
    type Output = (RequestTrace, F::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let entered = Entered::enter(this.scope);
        let polled = this.future.poll(cx);
        drop(entered);
        polled.map(|output| (this.scope.as_ref().map(|scope| scope.trace).unwrap_or_default(), output))
    }
}

/// The options of the surrounding scope; the default outside of a scope.
pub fn request_options() -> RequestOptions {
    with_scope(|scope| scope.options).unwrap_or_default()
}

/// Starts the trace of a request in the surrounding scope, where it replaces the trace of an earlier request.
///
/// Outside of a scope it is cheap, and the reporter does nothing.
pub fn start_trace() -> TraceReporter {
    TraceReporter(
        with_scope(|scope| {
            // Numbers are unique in the process, so that a body that is read in another scope than that of its request
            // does not overwrite another trace. Relaxed: they only have to differ.
            static NEXT: AtomicU64 = AtomicU64::new(1);
            scope.current_request = NEXT.fetch_add(1, Ordering::Relaxed);
            scope.trace = RequestTrace::started();
            scope.current_request
        })
        .unwrap_or(0),
    )
}

/// Reports the trace of one request to the scope in which it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceReporter(u64);

impl TraceReporter {
    /// Stores a copy of `trace` in the scope. Does nothing outside of the scope in which the request was started, or
    /// after another request was started there.
    pub fn report(self, trace: &RequestTrace) {
        if self.0 == 0 {
            return;
        }
        with_scope(|scope| {
            if scope.current_request == self.0 {
                scope.trace = *trace;
            }
        });
    }

    /// Whether the request was started within a scope.
    pub fn is_observed(self) -> bool {
        self.0 != 0
    }
}

#[derive(Debug)]
struct Scope {
    options: RequestOptions,
    trace: RequestTrace,
    /// The number of the request that may report; 0 before the first.
    current_request: u64,
}

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

fn with_scope<T>(f: impl FnOnce(&mut Scope) -> T) -> Option<T> {
    CURRENT.try_with(|current| current.borrow_mut().as_mut().map(f)).ok().flatten()
}

/// Makes a scope the current one of the thread until it is dropped, also by a panic.
struct Entered<'a> {
    /// The slot of the scope, which holds the outer scope meanwhile.
    saved: &'a mut Option<Scope>,
}

impl<'a> Entered<'a> {
    fn enter(saved: &'a mut Option<Scope>) -> Self {
        swap_current(saved);
        Entered { saved }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap_current(self.saved);
    }
}

fn swap_current(saved: &mut Option<Scope>) {
    // Fails only while the thread is being destroyed, when no request is reported any more.
    let _ = CURRENT.try_with(|current| std::mem::swap(&mut *current.borrow_mut(), saved));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Reuse, Sent};
    use futures::executor::block_on;
    use std::task::Waker;
    use std::time::Duration;

    /// Reports as a client does, with a trace that `attempts` identifies.
    async fn execute(attempts: u8) -> RequestOptions {
        let options = request_options();
        let reporter = start_trace();
        let mut trace = RequestTrace::started();
        trace.attempts = attempts;
        reporter.report(&trace);
        yield_once().await;
        trace.sent = Sent::Sent;
        trace.reuse = Some(Reuse::Reused);
        reporter.report(&trace);
        options
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
    fn the_trace_is_returned_with_the_output() {
        let (trace, _) = block_on(observe(execute(1)));
        assert_eq!((trace.attempts, trace.sent, trace.reuse), (1, Sent::Sent, Some(Reuse::Reused)));
    }

    #[test]
    fn options_are_passed_through_wrappers() {
        let deadline = crate::clock::now() + Duration::from_secs(3);
        let wrapped = Box::pin(async { Box::pin(execute(1)).await });
        let (_, options) = block_on(observe(wrapped).with_deadline(deadline).with_protocol(Protocol::Http2));
        assert_eq!(options, RequestOptions { deadline: Some(deadline), protocol: Some(Protocol::Http2) });
    }

    #[test]
    fn outside_of_a_scope_options_are_default_and_reports_do_nothing() {
        assert_eq!(request_options(), RequestOptions::default());
        assert!(!start_trace().is_observed());
        block_on(execute(1));
    }

    #[test]
    fn a_scope_without_a_report_has_the_default_trace() {
        let (trace, ()) = block_on(observe(async {}));
        assert_eq!(trace, RequestTrace::default());
        assert!(!trace.safe_to_repeat());
    }

    #[test]
    fn the_last_request_of_a_scope_is_its_trace() {
        let (trace, _) = block_on(observe(async {
            execute(1).await;
            execute(2).await;
        }));
        assert_eq!(trace.attempts, 2);
    }

    #[test]
    fn reports_of_a_replaced_request_are_ignored() {
        let (trace, ()) = block_on(observe(async {
            let first = start_trace();
            let second = start_trace();
            let mut trace = RequestTrace::started();
            trace.attempts = 2;
            second.report(&trace);
            trace.attempts = 1;
            first.report(&trace);
        }));
        assert_eq!(trace.attempts, 2);
    }

    #[test]
    fn reports_from_another_scope_are_ignored() {
        let (_, foreign) = block_on(observe(async { start_trace() }));
        let (trace, ()) = block_on(observe(async {
            start_trace();
            foreign.report(&RequestTrace { attempts: 9, ..RequestTrace::started() });
        }));
        assert_eq!(trace.attempts, 0);
    }

    #[test]
    fn scopes_nest_and_interleave() {
        let mut outer = Box::pin(observe(async {
            execute(1).await;
            observe(execute(2)).await.0
        }));
        let mut other = Box::pin(observe(execute(3)));
        // Polled alternately on one thread, neither sees the other's trace.
        assert!(poll_once(outer.as_mut()).is_pending());
        assert!(poll_once(other.as_mut()).is_pending());
        assert_eq!((outer.current_trace().attempts, other.current_trace().attempts), (1, 3));
        assert!(poll_once(outer.as_mut()).is_pending(), "the inner one yields as well");
        let Poll::Ready((theirs, _)) = poll_once(other.as_mut()) else { panic!("one yield only") };
        let Poll::Ready((ours, inner)) = poll_once(outer.as_mut()) else { panic!("two yields only") };
        assert_eq!((ours.attempts, inner.attempts, theirs.attempts), (1, 2, 3));
    }

    #[test]
    fn the_current_trace_is_available_before_a_future_is_dropped() {
        let mut observed = Box::pin(observe(execute(4)));
        assert_eq!(observed.current_trace(), RequestTrace::default());
        assert!(poll_once(observed.as_mut()).is_pending());
        assert_eq!(observed.current_trace().sent, Sent::NotSent);
    }

    #[test]
    fn a_panic_leaves_the_scope() {
        let panics = std::panic::AssertUnwindSafe(|| {
            block_on(observe(async {
                start_trace();
                panic!("on purpose");
            }))
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(!start_trace().is_observed());
    }
}
