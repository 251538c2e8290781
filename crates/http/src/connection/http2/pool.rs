//! The HTTP/2 connections of one host, and the queue of requests that wait for a stream.
//!
//! The queue is first in, first out: a stream that becomes free goes to the request that has waited longest, and no
//! later one overtakes it. Without that, a caller whose request has just completed would take its own stream again and
//! again, and the others would time out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::{Http2, StreamPermit};
use crate::sync::ignore_poison;
use crate::trace::Reuse;

/// The HTTP/2 connections of one host, which all its requests share.
#[derive(Debug)]
pub(crate) struct Http2Pool {
    state: Mutex<State>,
    connections_max: usize,
    /// The length of the queue, which a request that frees its stream reads without the lock.
    ///
    /// SeqCst: a waiter is counted before the pool looks for free streams, and the count is read after a stream was
    /// freed. In one total order at least one of the two sees the other.
    waiter_count: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    connections: Vec<Arc<Http2>>,
    waiters: VecDeque<oneshot::Sender<Grant>>,
    /// Whether a connection is being opened. Only one is at a time: its streams may be all that is needed.
    connecting: bool,
    deferred_drops: DeferredDrops,
}

/// Values to be dropped after the lock was released: dropping one of them may take the lock again.
#[derive(Debug, Default)]
struct DeferredDrops {
    /// Grants to waiters that were dropped meanwhile.
    grants: Vec<Grant>,
    /// Closed connections. Requests that still use one keep it alive.
    closed: Vec<Arc<Http2>>,
}

/// What a request gets from the pool.
#[derive(Debug)]
pub(crate) enum Grant {
    /// A stream of an open connection.
    Stream(StreamPermit),
    /// The permit to open a connection, because no stream is free.
    Connect(ConnectPermit),
    /// Nothing, because the host negotiated HTTP/1.1.
    UseHttp1,
}

/// The state of an acquisition: granted at once, or queued.
#[derive(Debug)]
pub(crate) enum Acquire {
    Granted(Grant),
    Queued(oneshot::Receiver<Grant>),
}

/// The permit to open a connection. Dropping it passes the permit to the next waiter.
#[derive(Debug)]
pub(crate) struct ConnectPermit(Arc<Http2Pool>);

impl Http2Pool {
    /// Creates a pool without connections that never has more than `connections_max`.
    pub(crate) fn new(connections_max: usize) -> Arc<Self> {
        Arc::new(Http2Pool { state: Mutex::default(), connections_max, waiter_count: AtomicUsize::new(0) })
    }

    /// Acquires a stream, or the permit to open a connection, or a position in the queue for either.
    pub(crate) fn acquire(self: &Arc<Self>) -> Acquire {
        self.with_state(|state| {
            if state.waiters.is_empty()
                && let Some(grant) = self.try_grant(state)
            {
                return Acquire::Granted(grant);
            }
            let (sender, receiver) = oneshot::channel();
            state.waiters.push_back(sender);
            self.grant_to_waiters(state);
            Acquire::Queued(receiver)
        })
    }

    /// Adds a connection, whose free streams go to the waiters.
    pub(crate) fn add(self: &Arc<Self>, connection: Arc<Http2>) {
        self.with_state(|state| {
            state.connections.push(connection);
            self.grant_to_waiters(state);
        });
    }

    /// Grants free streams to waiters. Must be called whenever a stream may have become free.
    pub(super) fn serve_waiters(self: &Arc<Self>) {
        if self.waiter_count.load(Ordering::SeqCst) > 0 {
            self.with_state(|state| self.grant_to_waiters(state));
        }
    }

    /// Takes closed connections out of the pool, and grants their place to waiters.
    pub(super) fn remove_closed(self: &Arc<Self>) {
        self.with_state(|state| {
            state.remove_closed();
            self.grant_to_waiters(state);
        });
    }

    /// The permit to open a connection for a request that had not asked for a stream, if there is room for one.
    pub(crate) fn try_connect(self: &Arc<Self>) -> Option<ConnectPermit> {
        self.with_state(|state| self.try_grant_connect(state))
    }

    /// Empties the queue, because the host turned out to speak HTTP/1.1.
    pub(crate) fn send_waiters_to_http1(&self) {
        let waiters = self.with_state(|state| {
            self.waiter_count.store(0, Ordering::SeqCst);
            std::mem::take(&mut state.waiters)
        });
        for waiter in waiters {
            // Fails for a waiter that was dropped, which needs nothing any more.
            let _ = waiter.send(Grant::UseHttp1);
        }
    }

    /// Closes the connections that no request uses, and returns their number.
    pub(crate) fn clear(&self) -> usize {
        let idle: Vec<_> =
            self.with_state(|state| state.connections.extract_if(.., |http2| http2.is_idle()).collect());
        idle.len()
    }

    fn grant_to_waiters(self: &Arc<Self>, state: &mut State) {
        // Each round removes a waiter or returns.
        loop {
            while state.waiters.front().is_some_and(oneshot::Sender::is_closed) {
                state.waiters.pop_front();
            }
            self.waiter_count.store(state.waiters.len(), Ordering::SeqCst);
            if state.waiters.is_empty() {
                return;
            }
            let Some(grant) = self.try_grant(state) else { return };
            if let Some(first) = state.waiters.pop_front() {
                state.deferred_drops.grants.extend(first.send(grant).err());
            }
        }
    }

    /// Grants a stream, or the permit to open a connection, if either is available.
    fn try_grant(self: &Arc<Self>, state: &mut State) -> Option<Grant> {
        if let Some(permit) = state.connections.iter().find_map(|http2| http2.try_acquire(Reuse::Reused)) {
            return Some(Grant::Stream(permit));
        }
        self.try_grant_connect(state).map(Grant::Connect)
    }

    fn try_grant_connect(self: &Arc<Self>, state: &mut State) -> Option<ConnectPermit> {
        state.remove_closed();
        if state.connecting || state.connections.len() >= self.connections_max {
            return None;
        }
        state.connecting = true;
        Some(ConnectPermit(Arc::clone(self)))
    }

    /// Runs `change` under the lock, and then drops what it deferred.
    fn with_state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = ignore_poison(self.state.lock());
        let result = change(&mut state);
        let deferred_drops = std::mem::take(&mut state.deferred_drops);
        drop(state);
        drop(deferred_drops);
        result
    }
}

impl State {
    fn remove_closed(&mut self) {
        self.deferred_drops.closed.extend(self.connections.extract_if(.., |http2| http2.is_closed()));
    }
}

impl Drop for ConnectPermit {
    fn drop(&mut self) {
        self.0.with_state(|state| {
            state.connecting = false;
            self.0.grant_to_waiters(state);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_connect(grant: &Grant) -> bool {
        matches!(grant, Grant::Connect(_))
    }

    fn granted(acquire: Acquire) -> Grant {
        match acquire {
            Acquire::Granted(grant) => grant,
            Acquire::Queued(_) => panic!("nothing is granted before it"),
        }
    }

    fn queued(acquire: Acquire) -> oneshot::Receiver<Grant> {
        match acquire {
            Acquire::Queued(receiver) => receiver,
            Acquire::Granted(grant) => panic!("it should be queued, but got {grant:?}"),
        }
    }

    #[test]
    fn the_first_request_connects_and_the_others_are_queued() {
        let pool = Http2Pool::new(1);
        let first = granted(pool.acquire());
        assert!(is_connect(&first));
        let mut second = queued(pool.acquire());
        let mut third = queued(pool.acquire());
        // It opened no connection, so the permit goes to the next in the queue.
        drop(first);
        assert!(is_connect(&second.try_recv().expect("it has the permit, and drops it here")));
        assert!(is_connect(&third.try_recv().expect("it has the permit")));
    }

    #[test]
    fn a_permit_for_a_dropped_waiter_goes_to_the_next() {
        let pool = Http2Pool::new(1);
        let first = granted(pool.acquire());
        let second = queued(pool.acquire());
        let mut third = queued(pool.acquire());
        let fourth = queued(pool.acquire());
        drop(second);
        drop(first);
        assert!(is_connect(&third.try_recv().expect("it has the permit")));
        // The fourth has the permit by now, and is dropped without taking it.
        drop(fourth);
        assert!(is_connect(&granted(pool.acquire())));
        assert_eq!(pool.waiter_count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn waiters_are_sent_to_http1_where_http2_is_not_spoken() {
        let pool = Http2Pool::new(1);
        let first = granted(pool.acquire());
        let mut waiters: Vec<_> = (0..3).map(|_| queued(pool.acquire())).collect();
        pool.send_waiters_to_http1();
        for waiter in &mut waiters {
            assert!(matches!(waiter.try_recv(), Ok(Grant::UseHttp1)));
        }
        drop(first);
    }
}
