//! Reads request bodies in full, with limits on their bytes and their time.
//!
//! A body that arrived together with its head (nearly all of them) is returned without a copy and without
//! a timer. A large one first acquires memory from a budget that all connections share.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::Limits;

/// Bodies up to this size do not count against the shared memory: the number of connections bounds them,
/// and counting them would cost more than it saves.
const SMALL_BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of shared memory that one permit of the semaphore stands for.
const PERMIT_BYTES: usize = 1024;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReadError {
    /// The body is longer than the limit.
    TooLarge,
    /// The body was not complete in time.
    TimedOut,
    /// The client disconnected, or broke the framing.
    Disconnected,
}

/// Reads request bodies within the limits of one server.
#[derive(Debug)]
pub(crate) struct BodyReader {
    memory: Semaphore,
    memory_permits: u32,
    body_bytes_max: usize,
    timeout: Duration,
}

impl BodyReader {
    pub(crate) fn new(limits: &Limits) -> BodyReader {
        // One body of the largest size must always fit, or it would wait forever.
        let memory_bytes = limits.body_bytes_in_memory_max.max(limits.body_bytes_max);
        let permits = permits_for(memory_bytes);
        BodyReader {
            memory: Semaphore::new(permits as usize),
            memory_permits: permits,
            body_bytes_max: limits.body_bytes_max,
            timeout: limits.body_timeout,
        }
    }

    /// Reads the whole body.
    pub(crate) async fn read<B>(&self, body: B) -> Result<Bytes, BodyReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        if body.size_hint().lower() > self.body_bytes_max as u64 {
            return Err(BodyReadError::TooLarge);
        }
        let mut reading = pin!(self.read_frames(body));
        let first_poll = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
        match first_poll {
            Poll::Ready(result) => result,
            Poll::Pending => {
                tokio::time::timeout(self.timeout, reading).await.unwrap_or(Err(BodyReadError::TimedOut))
            }
        }
    }

    async fn read_frames<B>(&self, mut body: B) -> Result<Bytes, BodyReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let exact = body.size_hint().exact().is_some();
        let mut permit = self.acquire_memory(announced).await;
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            // Trailers are dropped: no handler reads them.
            let Ok(data) = frame.map_err(|_| BodyReadError::Disconnected)?.into_data() else { continue };
            let length = whole.len().max(first.len()) + data.len();
            if length > self.body_bytes_max {
                return Err(BodyReadError::TooLarge);
            }
            if permit.is_none() && length > SMALL_BODY_BYTES_MAX && !exact {
                // Its length is unknown, so it acquires the most it may need: acquiring a little more with
                // every frame could make all readers wait for each other.
                permit = self.acquire_memory(self.body_bytes_max).await;
            }
            if first.is_empty() && whole.is_empty() {
                first = data;
                continue;
            }
            if whole.is_empty() {
                whole.reserve(announced.max(length));
                whole.extend_from_slice(&first);
                first = Bytes::new();
            }
            whole.extend_from_slice(&data);
        }
        // Once complete, the body belongs to its handler and no longer counts here.
        drop(permit);
        Ok(if whole.is_empty() { first } else { whole.freeze() })
    }

    async fn acquire_memory(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        if bytes <= SMALL_BODY_BYTES_MAX {
            return None;
        }
        let permits = permits_for(bytes).min(self.memory_permits);
        Some(self.memory.acquire_many(permits).await.expect("the memory for bodies is never closed"))
    }
}

fn permits_for(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::Context;

    use http_body_util::Full;
    use hyper::body::Frame;
    use tokio::sync::mpsc;

    use super::*;

    fn reader(body_bytes_max: usize) -> BodyReader {
        BodyReader::new(&Limits {
            body_bytes_max,
            body_bytes_in_memory_max: body_bytes_max,
            body_timeout: Duration::from_secs(5),
            ..Limits::default()
        })
    }

    /// A body of unknown length, sent frame by frame.
    struct Chunked(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Chunked {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }

    fn chunked() -> (mpsc::UnboundedSender<Bytes>, Chunked) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (sender, Chunked(receiver))
    }

    #[tokio::test]
    async fn a_body_in_one_frame_is_returned_without_a_copy() {
        let sent = Bytes::from_static(b"{\"id\":\"1\"}");
        let read = reader(1024).read(Full::new(sent.clone())).await.unwrap();
        assert_eq!(read.as_ptr(), sent.as_ptr());
        assert_eq!(reader(1024).read(Full::new(Bytes::new())).await, Ok(Bytes::new()));
    }

    #[tokio::test]
    async fn frames_are_joined_in_order() {
        let (sender, body) = chunked();
        for piece in ["a", "", "bc", "d"] {
            sender.send(Bytes::from_static(piece.as_bytes())).unwrap();
        }
        drop(sender);
        assert_eq!(reader(1024).read(body).await.unwrap(), "abcd");
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_by_its_announced_or_actual_length() {
        let large = Full::new(Bytes::from(vec![b'x'; 11]));
        assert_eq!(reader(10).read(large).await, Err(BodyReadError::TooLarge));
        let (sender, body) = chunked();
        sender.send(Bytes::from(vec![b'x'; 6])).unwrap();
        sender.send(Bytes::from(vec![b'x'; 6])).unwrap();
        assert_eq!(reader(10).read(body).await, Err(BodyReadError::TooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_half_way_times_out() {
        let (sender, body) = chunked();
        sender.send(Bytes::from_static(b"half")).unwrap();
        assert_eq!(reader(1024).read(body).await, Err(BodyReadError::TimedOut));
        drop(sender);
    }

    #[tokio::test]
    async fn large_bodies_wait_for_memory_and_small_ones_do_not() {
        let reader = reader(128 * 1024);
        let (first, first_body) = chunked();
        first.send(Bytes::from(vec![b'1'; 100 * 1024])).unwrap();
        let mut first_read = pin!(reader.read(first_body));
        let poll = poll_fn(|cx| Poll::Ready(first_read.as_mut().poll(cx))).await;
        assert!(poll.is_pending(), "more may come");

        let second = Full::new(Bytes::from(vec![b'2'; 100 * 1024]));
        let mut second_read = pin!(reader.read(second));
        let poll = poll_fn(|cx| Poll::Ready(second_read.as_mut().poll(cx))).await;
        assert!(poll.is_pending(), "the memory is taken");
        assert_eq!(reader.read(Full::new(Bytes::from_static(b"small"))).await.unwrap(), "small");

        drop(first);
        assert_eq!(first_read.await.unwrap().len(), 100 * 1024);
        assert_eq!(second_read.await.unwrap().len(), 100 * 1024);
    }
}
