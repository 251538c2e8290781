//! The registry of a server's open connections: applies timeouts and sends commands to all of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::connection_activity::{ConnectionActivity, ConnectionCommand, LATEST};
use crate::limits::Limits;
use crate::timeout_policy::{TimeoutDecision, decide_timeout, may_evict};
use crate::unread_responses::UnreadTotal;

/// All open connections of one server.
#[derive(Debug, Default)]
pub(crate) struct ConnectionRegistry {
    coarse_time_ms: Arc<AtomicU64>,
    silent: Arc<AtomicBool>,
    unread_total: Arc<UnreadTotal>,
    /// Held by the request that closes connections with unread responses.
    pub(crate) unread_turn: tokio::sync::Mutex<()>,
    open: Mutex<OpenConnections>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next_id: u64,
    activities: HashMap<u64, Arc<ConnectionActivity>>,
    /// The command of every connection, also of those that open later.
    command: Option<ConnectionCommand>,
}

impl ConnectionRegistry {
    /// Adds a connection. It is removed when the registration is dropped.
    pub(crate) fn register(self: &Arc<ConnectionRegistry>) -> Registration {
        let mut open = self.lock();
        let id = open.next_id;
        open.next_id += 1;
        let command = open.command.unwrap_or(ConnectionCommand::Serve);
        let activity = Arc::new(ConnectionActivity::new(
            Arc::clone(&self.coarse_time_ms),
            Arc::clone(&self.silent),
            Arc::clone(&self.unread_total),
            command,
        ));
        open.activities.insert(id, Arc::clone(&activity));
        Registration { registry: Arc::clone(self), id, activity }
    }

    /// Advances coarse time to `now` and closes connections that exceeded a timeout. Cost grows with the
    /// number of open connections; called a few times per shortest timeout.
    pub(crate) fn sweep(&self, now: Duration, limits: &Limits) {
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(LATEST);
        // Relaxed: only the value matters, and no other data is published with it.
        self.coarse_time_ms.store(now_ms, Ordering::Relaxed);
        if self.is_silent() {
            // A client cannot make progress while the server is silent.
            return;
        }
        for activity in self.lock().activities.values() {
            match decide_timeout(&activity.snapshot(), now_ms, limits) {
                TimeoutDecision::Keep => {}
                TimeoutDecision::Abort(reason) => {
                    tracing::debug!(reason, "closing a connection");
                    activity.abort();
                }
                TimeoutDecision::Drain => activity.drain(),
            }
        }
    }

    /// Closes idle connections, because the server is full.
    pub(crate) fn evict_idle(&self, limits: &Limits) {
        let now_ms = self.coarse_time_ms.load(Ordering::Relaxed);
        for activity in self.lock().activities.values() {
            if may_evict(&activity.snapshot(), now_ms, limits) {
                activity.drain();
            }
        }
    }

    /// Closes the connection whose oldest unread response is older than those of all others, because the unread
    /// responses of all connections exceed their limit.
    pub(crate) fn close_oldest_unread(&self) {
        let open = self.lock();
        let unread =
            open.activities.values().filter(|activity| activity.command() != ConnectionCommand::Abort);
        let unread = unread.filter_map(|activity| Some((activity.unread.oldest_ready_ms()?, activity)));
        if let Some((_, activity)) = unread.min_by_key(|(ready_ms, _)| *ready_ms) {
            tracing::debug!("closing a connection that leaves its responses unread");
            activity.abort();
        }
    }

    /// Sends `command` to every connection, including those that open later.
    pub(crate) fn command_all(&self, command: ConnectionCommand) {
        let mut open = self.lock();
        open.command = open.command.max(Some(command));
        for activity in open.activities.values() {
            activity.send_command(command);
        }
    }

    /// Ends every connection that is open now with a TCP reset. Later connections are served.
    pub(crate) fn reset_open(&self) {
        for activity in self.lock().activities.values() {
            activity.abort_with_reset();
        }
    }

    /// Stops all reading and writing, or lets it continue.
    pub(crate) fn set_silent(&self, silent: bool) {
        // Release pairs with the Acquire under the lock in `poll_not_silenced`: a connection either sees
        // the end of the silence there, or has left its waker for the wake-up below.
        self.silent.store(silent, Ordering::Release);
        if !silent {
            self.lock().activities.values().for_each(|activity| activity.wake_silenced());
        }
    }

    /// Whether all reading and writing is stopped.
    pub(crate) fn is_silent(&self) -> bool {
        // Relaxed: a caller that sees the old value is woken again by `set_silent`.
        self.silent.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open.
    pub(crate) async fn wait_until_empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.lock().activities.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock()
    }
}

/// A connection's entry in the registry, removed on drop.
pub(crate) struct Registration {
    registry: Arc<ConnectionRegistry>,
    id: u64,
    pub(crate) activity: Arc<ConnectionActivity>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut open = self.registry.lock();
        open.activities.remove(&self.id);
        if open.activities.is_empty() {
            self.registry.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_command_to_all_reaches_later_connections_and_an_empty_registry_is_noticed() {
        let registry = Arc::new(ConnectionRegistry::default());
        let early = registry.register();
        registry.command_all(ConnectionCommand::Drain);
        let late = registry.register();
        assert_eq!(early.activity.command_after(ConnectionCommand::Serve).await, ConnectionCommand::Drain);
        assert_eq!(late.activity.command(), ConnectionCommand::Drain);
        let mut empty = std::pin::pin!(registry.wait_until_empty());
        assert!(futures_poll(empty.as_mut()).is_pending());
        drop((early, late));
        empty.await;
    }

    #[test]
    fn a_dropped_request_is_no_longer_in_flight() {
        let registry = Arc::new(ConnectionRegistry::default());
        let registration = registry.register();
        registration.activity.received();
        assert_eq!(registration.activity.snapshot().head_since_ms, Some(0));
        let request = registration.activity.begin_request();
        assert_eq!(registration.activity.snapshot().in_flight, 1);
        assert_eq!(registration.activity.snapshot().head_since_ms, None);
        drop(request);
        let snapshot = registration.activity.snapshot();
        assert!(snapshot.served_any && snapshot.in_flight == 0, "{snapshot:?}");
    }

    #[test]
    fn a_silent_connection_continues_when_the_silence_ends() {
        let registry = Arc::new(ConnectionRegistry::default());
        let early = registry.register();
        let (waker, woken) = flag();
        let mut cx = Context::from_waker(&waker);
        assert!(early.activity.poll_not_silenced(&mut cx).is_ready());
        registry.set_silent(true);
        assert!(early.activity.poll_not_silenced(&mut cx).is_pending());
        assert!(
            registry.register().activity.poll_not_silenced(&mut cx).is_pending(),
            "later connections are silent too"
        );
        assert!(!woken.load(Ordering::Relaxed));
        registry.sweep(Duration::from_secs(9_999), &Limits::default());
        assert_eq!(
            early.activity.command(),
            ConnectionCommand::Serve,
            "a silent server does not apply timeouts"
        );
        registry.set_silent(false);
        assert!(woken.load(Ordering::Relaxed) && early.activity.poll_not_silenced(&mut cx).is_ready());
    }

    #[test]
    fn a_reset_ends_the_open_connections_and_no_later_ones() {
        let registry = Arc::new(ConnectionRegistry::default());
        let early = registry.register();
        registry.reset_open();
        let late = registry.register();
        assert_eq!(
            (early.activity.command(), early.activity.ends_with_reset()),
            (ConnectionCommand::Abort, true)
        );
        assert_eq!(
            (late.activity.command(), late.activity.ends_with_reset()),
            (ConnectionCommand::Serve, false)
        );
    }

    /// Makes a waker and the flag that it sets when it is woken.
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
