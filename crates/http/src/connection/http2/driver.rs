//! The task of an HTTP/2 connection: reads and writes its frames, pings an idle peer, and closes what is not used.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::PingPong;
use h2::client::Connection;

use super::Shared;
use crate::stream::{IoCounters, Stream};

/// From this number of streams on, a write that waits for one scheduler round is likely to be joined by others.
const BUSY_STREAMS: usize = 8;

/// The shortest time between two looks at a silent connection.
const ROUND_MIN: Duration = Duration::from_millis(1);

/// When a connection is pinged, and when it is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    /// The peer is pinged after it sent nothing for this long; never if `None`.
    pub(super) interval: Option<Duration>,
    /// The connection is closed if the peer does not acknowledge a ping for this long.
    pub(super) timeout: Duration,
    /// The connection is closed after it had no streams for this long.
    pub(super) idle_timeout: Duration,
}

/// Drives a connection until one end closes it, the peer stops responding, or it was idle for too long. From
/// `retire_at` on it takes no new requests.
pub(super) async fn drive(
    mut connection: Connection<Stream, Bytes>,
    shared: Arc<Shared>,
    io: Arc<IoCounters>,
    keepalive: Keepalive,
    retire_at: Option<Instant>,
) {
    let closing = CloseOnDrop(shared);
    let shared = &*closing.0;
    let mut expired = pin!(keep_alive(connection.ping_pong(), shared, &io, keepalive));
    let (mut yielded, mut flushes) = (false, 0);
    let mut retirement = retire_at.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
    poll_fn(|cx| {
        // Write coalescing: with many streams, every second poll yields first. Requests that are ready to send run
        // first, and all of them are written with one system call. Relaxed: an old number only delays or repeats a yield.
        yielded = !yielded && shared.streams.load(Ordering::Relaxed) >= BUSY_STREAMS;
        if yielded {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let driven = Pin::new(&mut connection).poll(cx);
        shared.set_streams_max(connection.max_concurrent_send_streams());
        if io.flushes() != flushes {
            flushes = io.flushes();
            shared.free_cancelled();
        }
        if retirement.as_mut().is_some_and(|at| at.as_mut().poll(cx).is_ready()) {
            retirement = None;
            shared.close();
        }
        match driven {
            // h2 passes an error of the connection to each of its streams, which report it.
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => expired.as_mut().poll(cx),
        }
    })
    .await;
}

/// Marks a connection as closed when its driver ends, also when it is aborted.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Pings a silent peer. Returns when the peer does not respond any more, or when the connection was idle for too long.
async fn keep_alive(pings: Option<PingPong>, shared: &Shared, io: &IoCounters, keepalive: Keepalive) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    let mut idle = Duration::ZERO;
    // Without pings a round only looks whether the connection was idle. At least a moment, so that no round is free.
    let round = keepalive.interval.unwrap_or(keepalive.idle_timeout).max(ROUND_MIN);
    // One round per interval; `drive` drops this future when the connection ends.
    loop {
        let received = io.received();
        tokio::time::sleep(round).await;
        if io.received() != received {
            idle = Duration::ZERO;
            continue;
        }
        // Acquire: pairs with the decrement of a request that has just ended.
        if shared.streams.load(Ordering::Acquire) == 0 {
            idle += round;
            if idle >= keepalive.idle_timeout {
                return;
            }
        }
        if keepalive.interval.is_none() {
            continue;
        }
        let ping = pings.ping(h2::Ping::opaque());
        if !matches!(tokio::time::timeout(keepalive.timeout, ping).await, Ok(Ok(_))) {
            return;
        }
    }
}
