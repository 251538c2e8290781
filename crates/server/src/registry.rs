//! All open connections of one server: who is there, who has to go, and what all of them are told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

use crate::judge::{Verdict, may_make_room, verdict};
use crate::limits::Limits;
use crate::watch::{LATEST, Order, Watch};

/// All open connections of one server.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    time: Arc<AtomicU64>,
    silent: Arc<AtomicBool>,
    open: Mutex<Open>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    watches: HashMap<u64, Arc<Watch>>,
    /// What every connection is told, newcomers included.
    order: Option<Order>,
}

impl Registry {
    /// Adds a connection; it leaves when the registration is dropped.
    pub(crate) fn register(self: &Arc<Registry>) -> Registration {
        let mut open = self.lock();
        let id = open.next;
        open.next += 1;
        let order = open.order.unwrap_or(Order::Serve);
        let watch = Arc::new(Watch::new(Arc::clone(&self.time), Arc::clone(&self.silent), order));
        open.watches.insert(id, Arc::clone(&watch));
        Registration { registry: Arc::clone(self), id, watch }
    }

    /// Moves coarse time to `now` and tells overstaying connections to close. Cost grows with the
    /// number of open connections; called a few times per shortest deadline.
    pub(crate) fn sweep(&self, now: Duration, limits: &Limits) {
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(LATEST);
        self.time.store(now_ms, Ordering::Relaxed);
        if self.is_silent() {
            // Nobody can be blamed for what they do not hear.
            return;
        }
        for watch in self.lock().watches.values() {
            match verdict(&watch.notes(), now_ms, limits) {
                Verdict::Keep => {}
                Verdict::Cut(reason) => {
                    tracing::debug!(reason, "closing a connection");
                    watch.cut();
                }
                Verdict::Retire => watch.retire(),
            }
        }
    }

    /// Closes connections nobody will miss, because the server is full.
    pub(crate) fn make_room(&self, limits: &Limits) {
        let now_ms = self.time.load(Ordering::Relaxed);
        for watch in self.lock().watches.values() {
            if may_make_room(&watch.notes(), now_ms, limits) {
                watch.retire();
            }
        }
    }

    /// Tells every connection, present and future.
    pub(crate) fn give_all(&self, order: Order) {
        let mut open = self.lock();
        open.order = open.order.max(Some(order));
        for watch in open.watches.values() {
            watch.give(order);
        }
    }

    /// Ends every connection that is open now with a reset. Newcomers are served.
    pub(crate) fn reset_present(&self) {
        for watch in self.lock().watches.values() {
            watch.cut_with_a_reset();
        }
    }

    /// Stops all connections in their tracks, or lets them go on.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Release);
        if !silent {
            self.lock().watches.values().for_each(|watch| watch.unmute());
        }
    }

    /// Whether all connections are stopped in their tracks.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.lock().watches.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().expect("nothing panics while the registry is locked")
    }
}

/// A connection's place in the registry.
pub(crate) struct Registration {
    registry: Arc<Registry>,
    id: u64,
    pub(crate) watch: Arc<Watch>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut open = self.registry.lock();
        open.watches.remove(&self.id);
        if open.watches.is_empty() {
            self.registry.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn newcomers_hear_an_order_given_to_all_and_the_last_one_out_is_noticed() {
        let registry = Arc::new(Registry::default());
        let early = registry.register();
        registry.give_all(Order::Drain);
        let late = registry.register();
        assert_eq!(early.watch.order_after(Order::Serve).await, Order::Drain);
        assert_eq!(late.watch.order(), Order::Drain);
        let mut empty = std::pin::pin!(registry.empty());
        assert!(futures_poll(empty.as_mut()).is_pending());
        drop((early, late));
        empty.await;
    }

    #[test]
    fn a_dropped_request_is_over() {
        let registry = Arc::new(Registry::default());
        let registration = registry.register();
        registration.watch.received();
        assert_eq!(registration.watch.notes().head_since_ms, Some(0));
        let request = registration.watch.begin_request();
        assert_eq!(registration.watch.notes().in_flight, 1);
        assert_eq!(registration.watch.notes().head_since_ms, None);
        drop(request);
        let notes = registration.watch.notes();
        assert!(notes.served_any && notes.in_flight == 0, "{notes:?}");
    }

    #[test]
    fn a_silent_connection_goes_on_when_the_silence_ends() {
        let registry = Arc::new(Registry::default());
        let early = registry.register();
        let (waker, woken) = flag();
        let mut cx = Context::from_waker(&waker);
        assert!(early.watch.poll_audible(&mut cx).is_ready());
        registry.set_silent(true);
        assert!(early.watch.poll_audible(&mut cx).is_pending());
        assert!(
            registry.register().watch.poll_audible(&mut cx).is_pending(),
            "newcomers are not heard either"
        );
        assert!(!woken.load(Ordering::Relaxed));
        registry.sweep(Duration::from_secs(9_999), &Limits::default());
        assert_eq!(early.watch.order(), Order::Serve, "silence is not the client's fault");
        registry.set_silent(false);
        assert!(woken.load(Ordering::Relaxed) && early.watch.poll_audible(&mut cx).is_ready());
    }

    #[test]
    fn a_reset_is_for_those_who_are_there() {
        let registry = Arc::new(Registry::default());
        let early = registry.register();
        registry.reset_present();
        let late = registry.register();
        assert_eq!((early.watch.order(), early.watch.is_to_reset()), (Order::Abort, true));
        assert_eq!((late.watch.order(), late.watch.is_to_reset()), (Order::Serve, false));
    }

    /// A waker, and whether it was woken.
    fn flag() -> (Waker, Arc<AtomicBool>) {
        struct Flag(Arc<AtomicBool>);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Flag>) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let woken = Arc::new(AtomicBool::new(false));
        (Waker::from(Arc::new(Flag(Arc::clone(&woken)))), woken)
    }

    fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }
}
