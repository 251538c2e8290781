//! The recorded activity of one connection: requests in flight, incomplete heads, blocked writes.
//!
//! A connection records what happens to it in its [`ConnectionActivity`]: plain stores into atomics, with no
//! timer and no clock reading per request. `connection_registry` reads all of them a few times per timeout
//! and lets `timeout_policy` decide which connections to close. When the server is full, the same records
//! say which connections are idle.
//!
//! Times and counts are stored with relaxed ordering: each field stands alone, and the sweep tolerates
//! a value that is one sweep old.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::timeout_policy::ActivitySnapshot;
use crate::unread_responses::{UnreadResponses, UnreadTotal};

/// Stands for "not happening" in a field that holds a time.
const NEVER: u64 = u64::MAX;
/// The latest time that can be recorded.
pub(crate) const LATEST: u64 = NEVER - 1;

/// What a connection has to do. Later variants are stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum ConnectionCommand {
    /// Serve requests as usual.
    Serve = 0,
    /// Finish the requests in flight, then close.
    Drain = 1,
    /// Close without finishing anything.
    Abort = 2,
}

/// What one connection is doing. Times are milliseconds of the server's coarse time.
#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    coarse_time_ms: Arc<AtomicU64>,
    opened_ms: u64,
    in_flight: AtomicU32,
    /// When the last request ended.
    idle_since_ms: AtomicU64,
    /// When the first byte of an incomplete request head arrived.
    head_since_ms: AtomicU64,
    /// When the client stopped accepting bytes.
    write_blocked_since_ms: AtomicU64,
    /// When the connection was first told to drain or abort.
    draining_since_ms: AtomicU64,
    served_any: AtomicBool,
    /// HTTP/2: bytes arrive between requests too, so they do not announce a head.
    multiplexed: AtomicBool,
    /// Responses that the client has not read, of an HTTP/2 connection.
    pub(crate) unread: Arc<UnreadResponses>,
    command: AtomicU8,
    changed: Notify,
    /// Whether the connection ends with a TCP reset.
    reset: AtomicBool,
    /// Whether the whole server is silent.
    silent: Arc<AtomicBool>,
    /// The tasks that wait for the silence to end.
    silenced_wakers: Mutex<Vec<Waker>>,
}

impl ConnectionActivity {
    /// The activity of a connection that opens now, by `coarse_time_ms`.
    pub(crate) fn new(
        coarse_time_ms: Arc<AtomicU64>,
        silent: Arc<AtomicBool>,
        unread_total: Arc<UnreadTotal>,
        command: ConnectionCommand,
    ) -> ConnectionActivity {
        let unread = Arc::new(UnreadResponses::new(unread_total, Arc::clone(&coarse_time_ms)));
        ConnectionActivity {
            opened_ms: coarse_time_ms.load(Ordering::Relaxed),
            coarse_time_ms,
            in_flight: AtomicU32::new(0),
            idle_since_ms: AtomicU64::new(NEVER),
            head_since_ms: AtomicU64::new(NEVER),
            write_blocked_since_ms: AtomicU64::new(NEVER),
            draining_since_ms: AtomicU64::new(NEVER),
            served_any: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            unread,
            command: AtomicU8::new(command as u8),
            changed: Notify::new(),
            reset: AtomicBool::new(false),
            silent,
            silenced_wakers: Mutex::default(),
        }
    }

    /// Records that a request begins. It ends when the guard is dropped, for whatever reason.
    pub(crate) fn begin_request(&self) -> InFlight<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.head_since_ms.store(NEVER, Ordering::Relaxed);
        InFlight(self)
    }

    /// Records that the connection carries HTTP/2.
    pub(crate) fn set_multiplexed(&self) {
        self.multiplexed.store(true, Ordering::Relaxed);
    }

    /// Records that bytes arrived.
    pub(crate) fn received(&self) {
        if self.in_flight.load(Ordering::Relaxed) == 0 && self.head_since_ms.load(Ordering::Relaxed) == NEVER
        {
            self.head_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// Records that the client accepts no more bytes for now.
    pub(crate) fn write_blocked(&self) {
        if self.write_blocked_since_ms.load(Ordering::Relaxed) == NEVER {
            self.write_blocked_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// Records that the client accepted bytes.
    pub(crate) fn write_progressed(&self) {
        if self.write_blocked_since_ms.load(Ordering::Relaxed) != NEVER {
            self.write_blocked_since_ms.store(NEVER, Ordering::Relaxed);
        }
    }

    /// The command that is in force now.
    pub(crate) fn command(&self) -> ConnectionCommand {
        // Acquire pairs with `send_command`: a connection that sees Abort also sees `reset`.
        match self.command.load(Ordering::Acquire) {
            0 => ConnectionCommand::Serve,
            1 => ConnectionCommand::Drain,
            _ => ConnectionCommand::Abort,
        }
    }

    /// Waits until the command differs from `known`.
    pub(crate) async fn command_after(&self, known: ConnectionCommand) -> ConnectionCommand {
        loop {
            // Registered before the command is read, so that no change in between is missed.
            let changed = self.changed.notified();
            let command = self.command();
            if command != known {
                return command;
            }
            changed.await;
        }
    }

    /// Closes the connection without finishing its requests.
    pub(crate) fn abort(&self) {
        self.send_command(ConnectionCommand::Abort);
    }

    /// Closes the connection with a TCP reset.
    pub(crate) fn abort_with_reset(&self) {
        // Relaxed: the AcqRel of the command that follows publishes it.
        self.reset.store(true, Ordering::Relaxed);
        self.abort();
    }

    /// Lets the requests in flight finish and accepts no more.
    pub(crate) fn drain(&self) {
        self.send_command(ConnectionCommand::Drain);
    }

    /// Whether the connection ends with a reset.
    pub(crate) fn ends_with_reset(&self) -> bool {
        self.reset.load(Ordering::Relaxed)
    }

    /// Ready unless the server is silent; then ready as soon as the silence ends.
    pub(crate) fn poll_not_silenced(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Relaxed: the check below, under the lock, decides.
        if !self.silent.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let mut wakers = self.silenced_wakers.lock();
        // Checked again under the lock: `wake_silenced` takes it after the flag was cleared, so either the
        // cleared flag is seen here or the waker is found there.
        if !self.silent.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Wakes the tasks that wait for the silence to end.
    pub(crate) fn wake_silenced(&self) {
        let wakers = std::mem::take(&mut *self.silenced_wakers.lock());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Gives the connection a command. A weaker command than the one in force has no effect.
    pub(crate) fn send_command(&self, command: ConnectionCommand) {
        // AcqRel: Release publishes `reset`, Acquire orders the check against earlier commands.
        if self.command.fetch_max(command as u8, Ordering::AcqRel) == ConnectionCommand::Serve as u8 {
            self.draining_since_ms.store(self.now_ms(), Ordering::Relaxed);
        }
        self.changed.notify_one();
    }

    fn now_ms(&self) -> u64 {
        self.coarse_time_ms.load(Ordering::Relaxed)
    }

    /// A copy of the recorded activity, for the timeout policy.
    pub(crate) fn snapshot(&self) -> ActivitySnapshot {
        let time = |field: &AtomicU64| match field.load(Ordering::Relaxed) {
            NEVER => None,
            at => Some(at),
        };
        ActivitySnapshot {
            in_flight: self.in_flight.load(Ordering::Relaxed),
            idle_since_ms: time(&self.idle_since_ms).unwrap_or(self.opened_ms),
            head_since_ms: time(&self.head_since_ms),
            write_blocked_since_ms: time(&self.write_blocked_since_ms),
            draining_since_ms: time(&self.draining_since_ms),
            unread_since_ms: self.unread.stalled_since_ms(),
            served_any: self.served_any.load(Ordering::Relaxed),
            multiplexed: self.multiplexed.load(Ordering::Relaxed),
        }
    }
}

/// A request in flight; dropping it records that the request has ended.
pub(crate) struct InFlight<'a>(&'a ConnectionActivity);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let activity = self.0;
        activity.served_any.store(true, Ordering::Relaxed);
        activity.idle_since_ms.store(activity.now_ms(), Ordering::Relaxed);
        activity.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
