//! The task of a connection: moves its bytes, asks whether the peer is alive, and ends.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::PingPong;
use h2::client::Connection;

use super::super::wire::{Stream, Wire};
use super::Shared;

/// With so many streams, a write that waits for one round of the runtime is likely to be joined by others.
const BUSY_STREAMS: usize = 8;

/// When to ask whether the peer is alive, how long it has to answer, and how long it is kept for nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keepalive {
    pub(super) after: Duration,
    pub(super) answer: Duration,
    pub(super) idle: Duration,
}

/// Drives a connection to its end: its own, or that of the peer's patience or ours.
pub(super) async fn drive(
    mut connection: Connection<Stream, Bytes>,
    shared: Arc<Shared>,
    wire: Arc<Wire>,
    keepalive: Keepalive,
) {
    let closing = CloseOnDrop(shared);
    let shared = &*closing.0;
    let mut dead = pin!(watch(connection.ping_pong(), shared, &wire, keepalive));
    let mut stepped_back = false;
    poll_fn(|cx| {
        // While many ask, those who are ready to ask as well go first, and all of it is written at once.
        stepped_back = !stepped_back && shared.streams.load(Ordering::Relaxed) >= BUSY_STREAMS;
        if stepped_back {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let driven = Pin::new(&mut connection).poll(cx);
        shared.allow(connection.max_concurrent_send_streams());
        match driven {
            // An error is told to the streams that it concerns.
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => dead.as_mut().poll(cx),
        }
    })
    .await;
}

/// Says that a connection is closed, even if its driver is aborted.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ends when the peer does not answer any more, or nobody asks it anything any more.
async fn watch(pings: Option<PingPong>, shared: &Shared, wire: &Wire, keepalive: Keepalive) {
    let Some(mut pings) = pings else { return std::future::pending().await };
    let mut idle = Duration::ZERO;
    loop {
        let received = wire.received();
        tokio::time::sleep(keepalive.after).await;
        if wire.received() != received {
            idle = Duration::ZERO;
            continue;
        }
        if shared.streams.load(Ordering::Acquire) == 0 {
            idle += keepalive.after;
            if idle >= keepalive.idle {
                return;
            }
        }
        let ping = pings.ping(h2::Ping::opaque());
        if !matches!(tokio::time::timeout(keepalive.answer, ping).await, Ok(Ok(_))) {
            return;
        }
    }
}
