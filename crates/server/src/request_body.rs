//! Reads request bodies in full, with limits on their bytes and their time.
//!
//! A body that arrived together with its head (nearly all of them) is returned without a copy and without
//! a timer. A long one is read only if its sender is known, and what arrives of it is taken from a budget that all
//! connections share: an announcement costs nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};

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
    /// The sender may not send a long body.
    Refused,
}

/// Reads request bodies within the limits of one server.
#[derive(Debug)]
pub(crate) struct BodyReader {
    memory: Semaphore,
    /// Who holds it may read one body beyond the memory. So one body always makes progress, where all of them would
    /// wait for each other otherwise.
    beyond_memory: Mutex<()>,
    body_bytes_max: usize,
    timeout: Duration,
}

/// The memory that one body has taken of the shared one.
#[derive(Debug, Default)]
struct BodyMemory<'a> {
    permit: Option<SemaphorePermit<'a>>,
    /// The bytes that the permits stand for.
    bytes: usize,
    beyond: Option<MutexGuard<'a, ()>>,
}

impl BodyReader {
    pub(crate) fn new(limits: &Limits) -> BodyReader {
        BodyReader {
            memory: Semaphore::new(permits_for(limits.body_bytes_in_memory_max) as usize),
            beyond_memory: Mutex::new(()),
            body_bytes_max: limits.body_bytes_max,
            timeout: limits.body_timeout,
        }
    }

    /// Reads the whole body. Before a long one is read, `is_refused` decides whether it is.
    pub(crate) async fn read<B>(
        &self,
        body: B,
        is_refused: impl FnOnce() -> bool,
    ) -> Result<Bytes, BodyReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        if body.size_hint().lower() > self.body_bytes_max as u64 {
            return Err(BodyReadError::TooLarge);
        }
        let mut reading = pin!(self.read_frames(body, is_refused));
        let first_poll = poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await;
        match first_poll {
            Poll::Ready(result) => result,
            Poll::Pending => {
                tokio::time::timeout(self.timeout, reading).await.unwrap_or(Err(BodyReadError::TimedOut))
            }
        }
    }

    async fn read_frames<B>(
        &self,
        mut body: B,
        is_refused: impl FnOnce() -> bool,
    ) -> Result<Bytes, BodyReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let mut is_refused = Some(is_refused);
        let mut refuse_if_long = |bytes: usize| {
            bytes > SMALL_BODY_BYTES_MAX && is_refused.take().is_some_and(|is_refused| is_refused())
        };
        if refuse_if_long(announced) {
            return Err(BodyReadError::Refused);
        }
        let mut memory = BodyMemory::default();
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            // Trailers are dropped: no handler reads them.
            let Ok(data) = frame.map_err(|_| BodyReadError::Disconnected)?.into_data() else { continue };
            let length = whole.len().max(first.len()) + data.len();
            if length > self.body_bytes_max {
                return Err(BodyReadError::TooLarge);
            }
            if refuse_if_long(length) {
                return Err(BodyReadError::Refused);
            }
            self.take_memory(&mut memory, length).await;
            if first.is_empty() && whole.is_empty() {
                first = data;
                continue;
            }
            if whole.capacity() < length {
                whole.reserve_exact(next_capacity(whole.capacity(), length, announced) - whole.len());
            }
            if whole.is_empty() {
                whole.extend_from_slice(&first);
                first = Bytes::new();
            }
            whole.extend_from_slice(&data);
        }
        // Once complete, the body belongs to its handler and no longer counts here.
        drop(memory);
        if whole.is_empty() {
            return Ok(first);
        }
        // Handlers may keep the body for as long as an item lives, and should keep no more than that.
        whole.shrink_to_fit();
        Ok(whole.into())
    }

    /// Takes memory for `length` bytes of a body, of which a part may have been taken before.
    async fn take_memory<'a>(&'a self, memory: &mut BodyMemory<'a>, length: usize) {
        if length <= SMALL_BODY_BYTES_MAX || length <= memory.bytes || memory.beyond.is_some() {
            return;
        }
        let permits = permits_for(length - memory.bytes);
        tokio::select! {
            biased;
            permit = self.memory.acquire_many(permits) => {
                let permit = permit.expect("the memory for bodies is never closed");
                memory.bytes += permits as usize * PERMIT_BYTES;
                match &mut memory.permit {
                    Some(taken) => taken.merge(permit),
                    None => memory.permit = Some(permit),
                }
            }
            beyond = self.beyond_memory.lock() => memory.beyond = Some(beyond),
        }
    }
}

/// The capacity of a buffer for a body of which `length` bytes have arrived: a short body in one step, a long one in
/// steps that grow with what has arrived, and end with what was announced.
fn next_capacity(capacity: usize, length: usize, announced: usize) -> usize {
    let grown = (2 * capacity).max(SMALL_BODY_BYTES_MAX).max(length);
    // A chunked body announces nothing.
    if announced >= length { grown.min(announced) } else { grown }
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

    /// Reads a body whose sender is known.
    async fn read<B>(reader: &BodyReader, body: B) -> Result<Bytes, BodyReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        reader.read(body, || false).await
    }

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
        let whole = read(&reader(1024), Full::new(sent.clone())).await.unwrap();
        assert_eq!(whole.as_ptr(), sent.as_ptr());
        assert_eq!(read(&reader(1024), Full::new(Bytes::new())).await, Ok(Bytes::new()));
    }

    #[tokio::test]
    async fn frames_are_joined_in_order() {
        let (sender, body) = chunked();
        for piece in ["a", "", "bc", "d"] {
            sender.send(Bytes::from_static(piece.as_bytes())).unwrap();
        }
        drop(sender);
        assert_eq!(read(&reader(1024), body).await.unwrap(), "abcd");
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused_by_its_announced_or_actual_length() {
        let large = Full::new(Bytes::from(vec![b'x'; 11]));
        assert_eq!(read(&reader(10), large).await, Err(BodyReadError::TooLarge));
        let (sender, body) = chunked();
        sender.send(Bytes::from(vec![b'x'; 6])).unwrap();
        sender.send(Bytes::from(vec![b'x'; 6])).unwrap();
        assert_eq!(read(&reader(10), body).await, Err(BodyReadError::TooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_half_way_times_out() {
        let (sender, body) = chunked();
        sender.send(Bytes::from_static(b"half")).unwrap();
        assert_eq!(read(&reader(1024), body).await, Err(BodyReadError::TimedOut));
        drop(sender);
    }

    #[tokio::test]
    async fn bodies_that_arrive_take_memory_and_announced_ones_do_not() {
        let reader = reader(128 * 1024);
        let long = || Full::new(Bytes::from(vec![b'x'; 100 * 1024]));
        // More than there is memory for, and nothing of it has arrived.
        let mut announced = Vec::new();
        for _ in 0..16 {
            let (sender, body) = chunked();
            announced.push((sender, Box::pin(reader.read(body, || false))));
        }
        for (_, reading) in &mut announced {
            assert!(poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await.is_pending());
        }
        assert_eq!(read(&reader, long()).await.unwrap().len(), 100 * 1024);

        // Two that have arrived in part take the memory, and what one body may take beyond it.
        for (sender, reading) in &mut announced[..2] {
            sender.send(Bytes::from(vec![b'1'; 100 * 1024])).unwrap();
            assert!(poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await.is_pending(), "more may come");
        }
        let mut third = pin!(reader.read(long(), || false));
        let poll = poll_fn(|cx| Poll::Ready(third.as_mut().poll(cx))).await;
        assert!(poll.is_pending(), "the memory is taken");
        assert_eq!(read(&reader, Full::new(Bytes::from_static(b"small"))).await.unwrap(), "small");
        let (sender, reading) = announced.remove(1);
        drop(sender);
        assert_eq!(reading.await.unwrap().len(), 100 * 1024);
        assert_eq!(third.await.unwrap().len(), 100 * 1024);
    }

    #[test]
    fn a_buffer_grows_with_what_arrives_up_to_what_was_announced() {
        for (capacity, length, announced, expected) in [
            (0, 10, 100, 100),
            (0, 10, 16_000_000, SMALL_BODY_BYTES_MAX),
            (SMALL_BODY_BYTES_MAX, 70_000, 16_000_000, 2 * SMALL_BODY_BYTES_MAX),
            (1_000_000, 1_000_001, 1_500_000, 1_500_000),
            (1_000_000, 1_000_001, 0, 2_000_000),
            (0, 70_000, 0, 70_000),
        ] {
            assert_eq!(
                next_capacity(capacity, length, announced),
                expected,
                "{capacity} {length} {announced}"
            );
        }
    }

    #[tokio::test]
    async fn a_long_body_of_an_unknown_sender_is_not_read() {
        let reader = reader(1024 * 1024);
        let long = Full::new(Bytes::from(vec![b'x'; 100 * 1024]));
        assert_eq!(reader.read(long, || true).await, Err(BodyReadError::Refused));
        let (sender, body) = chunked();
        sender.send(Bytes::from(vec![b'x'; 60 * 1024])).unwrap();
        sender.send(Bytes::from(vec![b'x'; 60 * 1024])).unwrap();
        assert_eq!(reader.read(body, || true).await, Err(BodyReadError::Refused));
        let short = Full::new(Bytes::from_static(b"short"));
        assert_eq!(reader.read(short, || true).await.unwrap(), "short", "its handler decides");
    }
}
