//! Responses that clients have not read yet, counted by connection and for the whole server.
//!
//! A client that does not read leaves its response in memory: one on each HTTP/1.1 connection, and one on each stream
//! of an HTTP/2 connection, whose socket is not even blocked meanwhile. So each response is counted from the moment it is ready until its last byte is written ([`ResponseData`]). A connection that lets
//! one wait for too long is closed (`timeout_policy`), and where all of them together exceed the limit, the
//! connection with the oldest unread response is closed at once, before another request is handled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Responses up to this size are not counted: the number of connections and streams bounds them.
const COUNTED_BYTES_MIN: usize = 1024;

/// The bytes of all unread responses of one server.
#[derive(Debug, Default)]
pub(crate) struct UnreadTotal {
    bytes: AtomicUsize,
    decreased: Notify,
}

impl UnreadTotal {
    /// The bytes of all unread responses.
    pub(crate) fn bytes(&self) -> usize {
        // Relaxed: a limit that is exceeded by what other threads add right now is still kept closely.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until some bytes were read, or their connection was closed.
    pub(crate) async fn wait_for_decrease(&self, since: usize) {
        loop {
            let decreased = self.decreased.notified();
            if self.bytes() < since {
                return;
            }
            decreased.await;
        }
    }
}

/// The unread responses of one connection.
#[derive(Debug)]
pub(crate) struct UnreadResponses {
    total: Arc<UnreadTotal>,
    coarse_time_ms: Arc<AtomicU64>,
    /// By number, which grows: the first is the oldest.
    responses: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    by_number: BTreeMap<u64, WaitingResponse>,
}

#[derive(Clone, Copy, Debug)]
struct WaitingResponse {
    ready_ms: u64,
    /// When the client last took a part of it.
    progress_ms: u64,
}

impl UnreadResponses {
    pub(crate) fn new(total: Arc<UnreadTotal>, coarse_time_ms: Arc<AtomicU64>) -> UnreadResponses {
        UnreadResponses { total, coarse_time_ms, responses: Mutex::default() }
    }

    /// The unread responses of the whole server.
    pub(crate) fn total(&self) -> &UnreadTotal {
        &self.total
    }

    /// Counts a response until the returned data is dropped.
    pub(crate) fn count(self: &Arc<Self>, bytes: Bytes) -> ResponseData {
        if bytes.len() < COUNTED_BYTES_MIN {
            return ResponseData::uncounted(bytes);
        }
        let now_ms = self.now_ms();
        let mut waiting = self.responses.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.by_number.insert(number, WaitingResponse { ready_ms: now_ms, progress_ms: now_ms });
        drop(waiting);
        self.total.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let count = UnreadCount { of: Arc::clone(self), number, bytes: bytes.len() };
        ResponseData { bytes, count: Some(Box::new(count)) }
    }

    /// When the oldest unread response was ready.
    pub(crate) fn oldest_ready_ms(&self) -> Option<u64> {
        self.responses.lock().by_number.first_key_value().map(|(_, response)| response.ready_ms)
    }

    /// Since when the client has taken nothing of one of its responses: the longest of them.
    pub(crate) fn stalled_since_ms(&self) -> Option<u64> {
        self.responses.lock().by_number.values().map(|response| response.progress_ms).min()
    }

    fn now_ms(&self) -> u64 {
        self.coarse_time_ms.load(Ordering::Relaxed)
    }
}

/// The body of a response, counted as unread until it is dropped.
#[derive(Debug)]
pub(crate) struct ResponseData {
    bytes: Bytes,
    count: Option<Box<UnreadCount>>,
}

/// The entry of one response among the unread ones.
#[derive(Debug)]
struct UnreadCount {
    of: Arc<UnreadResponses>,
    number: u64,
    bytes: usize,
}

impl ResponseData {
    /// Data that is not counted.
    pub(crate) fn uncounted(bytes: Bytes) -> ResponseData {
        ResponseData { bytes, count: None }
    }

    #[cfg(test)]
    pub(crate) fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Buf for ResponseData {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(unread) = &self.count {
            let now_ms = unread.of.now_ms();
            if let Some(response) = unread.of.responses.lock().by_number.get_mut(&unread.number) {
                response.progress_ms = now_ms;
            }
        }
    }
}

impl Drop for UnreadCount {
    fn drop(&mut self) {
        self.of.responses.lock().by_number.remove(&self.number);
        self.of.total.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.of.total.decreased.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_unread_until_its_data_is_dropped() {
        let (total, clock) = (Arc::new(UnreadTotal::default()), Arc::new(AtomicU64::new(5)));
        let unread = Arc::new(UnreadResponses::new(Arc::clone(&total), Arc::clone(&clock)));
        let first = unread.count(Bytes::from(vec![0; 5_000]));
        clock.store(7, Ordering::Relaxed);
        let mut second = unread.count(Bytes::from(vec![0; 3_000]));
        assert_eq!(
            (total.bytes(), unread.oldest_ready_ms(), unread.stalled_since_ms()),
            (8_000, Some(5), Some(5))
        );
        drop(first);
        clock.store(9, Ordering::Relaxed);
        second.advance(1);
        assert_eq!(
            (total.bytes(), unread.oldest_ready_ms(), unread.stalled_since_ms()),
            (3_000, Some(7), Some(9))
        );
        drop(second);
        assert_eq!((total.bytes(), unread.oldest_ready_ms(), unread.stalled_since_ms()), (0, None, None));
        assert!(unread.count(Bytes::from_static(b"short")).count.is_none());
    }
}
