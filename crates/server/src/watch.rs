//! What a connection is doing, and since when.
//!
//! A connection notes what happens to it in its [`Watch`]: plain stores into atomics, no timer and no
//! clock read per request. The sweep of `registry` reads all watches a few times per deadline, asks
//! `judge` about each, and tells those that overstayed to close. Under pressure the same notes say which
//! connections nobody will miss.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use crate::judge::Notes;

/// "Not happening" in a field that holds a moment.
const NEVER: u64 = u64::MAX;
/// The last moment there is.
pub(crate) const LATEST: u64 = NEVER - 1;

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Order {
    /// Carry on.
    Serve = 0,
    /// Finish what is in flight, then close.
    Drain = 1,
    /// Close at once.
    Abort = 2,
}

/// One connection's notes about itself. Moments are milliseconds of the server's coarse time.
#[derive(Debug)]
pub(crate) struct Watch {
    time: Arc<AtomicU64>,
    opened_ms: u64,
    in_flight: AtomicU32,
    /// End of the last request.
    quiet_since_ms: AtomicU64,
    /// First byte of a request that has not been understood yet.
    head_since_ms: AtomicU64,
    /// First moment at which the client would not take more bytes.
    write_blocked_since_ms: AtomicU64,
    /// When it was first told to finish and close.
    draining_since_ms: AtomicU64,
    served_any: AtomicBool,
    /// HTTP/2: bytes arrive between requests too, so they do not announce a head.
    multiplexed: AtomicBool,
    order: AtomicU8,
    changed: Notify,
    /// Whether it ends with a reset.
    reset: AtomicBool,
    /// Whether the whole server is silent.
    silent: Arc<AtomicBool>,
    /// Who waits for the silence to end.
    muted: Mutex<Vec<Waker>>,
}

impl Watch {
    /// The notes of a connection that opens now, by `time`.
    pub(crate) fn new(time: Arc<AtomicU64>, silent: Arc<AtomicBool>, order: Order) -> Watch {
        Watch {
            opened_ms: time.load(Ordering::Relaxed),
            time,
            in_flight: AtomicU32::new(0),
            quiet_since_ms: AtomicU64::new(NEVER),
            head_since_ms: AtomicU64::new(NEVER),
            write_blocked_since_ms: AtomicU64::new(NEVER),
            draining_since_ms: AtomicU64::new(NEVER),
            served_any: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            order: AtomicU8::new(order as u8),
            changed: Notify::new(),
            reset: AtomicBool::new(false),
            silent,
            muted: Mutex::default(),
        }
    }

    /// A request begins; it ends when the guard is dropped, for whatever reason.
    pub(crate) fn begin_request(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.head_since_ms.store(NEVER, Ordering::Relaxed);
        InFlight(self)
    }

    /// The connection carries HTTP/2.
    pub(crate) fn is_multiplexed(&self) {
        self.multiplexed.store(true, Ordering::Relaxed);
    }

    /// Bytes came in.
    pub(crate) fn received(&self) {
        if self.in_flight.load(Ordering::Relaxed) == 0 && self.head_since_ms.load(Ordering::Relaxed) == NEVER
        {
            self.head_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// The client takes no more bytes for now.
    pub(crate) fn write_blocked(&self) {
        if self.write_blocked_since_ms.load(Ordering::Relaxed) == NEVER {
            self.write_blocked_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// The client took bytes.
    pub(crate) fn write_progressed(&self) {
        if self.write_blocked_since_ms.load(Ordering::Relaxed) != NEVER {
            self.write_blocked_since_ms.store(NEVER, Ordering::Relaxed);
        }
    }

    /// What the connection is to do now.
    pub(crate) fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Serve,
            1 => Order::Drain,
            _ => Order::Abort,
        }
    }

    /// Waits until the order changes from `known`.
    pub(crate) async fn order_after(&self, known: Order) -> Order {
        loop {
            let changed = self.changed.notified();
            let order = self.order();
            if order != known {
                return order;
            }
            changed.await;
        }
    }

    /// Closes at once, as soon as the connection looks up.
    pub(crate) fn cut(&self) {
        self.give(Order::Abort);
    }

    /// The same, with a reset.
    pub(crate) fn cut_with_a_reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
        self.cut();
    }

    /// Finishes what is in flight, and takes nothing more.
    pub(crate) fn retire(&self) {
        self.give(Order::Drain);
    }

    /// Whether the connection ends with a reset.
    pub(crate) fn is_to_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }

    /// Ready at once, unless the server is silent: then as soon as that ends.
    pub(crate) fn poll_audible(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.silent.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let mut muted = self.muted.lock().unwrap_or_else(PoisonError::into_inner);
        // Asked again under the lock, which whoever ends the silence takes afterwards.
        if !self.silent.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !muted.iter().any(|waker| waker.will_wake(cx.waker())) {
            muted.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Lets it go on.
    pub(crate) fn unmute(&self) {
        let muted = std::mem::take(&mut *self.muted.lock().unwrap_or_else(PoisonError::into_inner));
        muted.into_iter().for_each(Waker::wake);
    }

    /// Tells it what to do. Orders only ever get stronger.
    pub(crate) fn give(&self, order: Order) {
        if self.order.fetch_max(order as u8, Ordering::AcqRel) == Order::Serve as u8 {
            self.draining_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
        self.changed.notify_one();
    }

    fn now_ms(&self) -> u64 {
        self.time.load(Ordering::Relaxed)
    }

    /// What it says now.
    pub(crate) fn notes(&self) -> Notes {
        let moment = |field: &AtomicU64| match field.load(Ordering::Relaxed) {
            NEVER => None,
            at => Some(at),
        };
        Notes {
            in_flight: self.in_flight.load(Ordering::Relaxed),
            quiet_since_ms: moment(&self.quiet_since_ms).unwrap_or(self.opened_ms),
            head_since_ms: moment(&self.head_since_ms),
            write_blocked_since_ms: moment(&self.write_blocked_since_ms),
            draining_since_ms: moment(&self.draining_since_ms),
            served_any: self.served_any.load(Ordering::Relaxed),
            multiplexed: self.multiplexed.load(Ordering::Relaxed),
        }
    }
}

/// One request in flight.
pub(crate) struct InFlight<'a>(&'a Watch);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let watch = self.0;
        watch.served_any.store(true, Ordering::Relaxed);
        watch.quiet_since_ms.store(watch.now_ms(), Ordering::Relaxed);
        watch.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
