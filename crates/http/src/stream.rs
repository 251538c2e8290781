//! The byte stream below a connection: a TCP socket, with TLS or without, that counts what is read and written.
//!
//! The counts decide whether a failed request had been sent ([`SendProgress::sent`]).

use std::io::{self, Read};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(feature = "__tls")]
use tokio_rustls::client::TlsStream;

use crate::clock;
use crate::trace::{ConnectionId, Protocol, RequestTrace, Reuse, Sent};

/// Number and addresses of a connection, which do not change while it is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionInfo {
    id: ConnectionId,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    /// When the connection takes no more requests; never if `None`.
    pub(crate) retire_at: Option<Instant>,
}

/// The time for which a connection is used: `max_age`, or up to a fifth less, so that connections that were opened
/// together are not replaced together. `random` is between 0 and 1.
pub(crate) fn age_limit(max_age: Duration, random: f64) -> Duration {
    max_age - max_age.mul_f64(random.clamp(0.0, 1.0) / 5.0)
}

impl ConnectionInfo {
    /// Describes the connection on `socket`, which gets the next free number.
    pub(crate) fn new(socket: &Socket) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: the numbers only have to differ.
        let number = NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed));
        ConnectionInfo {
            // A process does not open 2^64 connections, so the counter never wraps to zero.
            id: ConnectionId::new(number.unwrap_or(NonZeroU64::MAX)),
            // An address that the system does not return is missing from the trace; nothing else needs it.
            local: socket.tcp().local_addr().ok(),
            remote: socket.tcp().peer_addr().ok(),
            retire_at: None,
        }
    }

    /// Whether the connection takes no more requests at `now` because of its age.
    pub(crate) fn is_retired(&self, now: Instant) -> bool {
        self.retire_at.is_some_and(|retire_at| retire_at <= now)
    }

    /// Writes the connection into the trace of a request that is sent over it.
    pub(crate) fn write_to(&self, protocol: Protocol, reuse: Reuse, trace: &mut RequestTrace) {
        trace.connection = Some(self.id);
        trace.protocol = Some(protocol);
        trace.reuse = Some(reuse);
        trace.local = self.local;
        trace.remote = self.remote;
    }
}

/// Bytes and flushes of one socket. The socket counts them, the requests on the connection read them.
///
/// A request compares the counts with those at its start. The task that polls the socket is the only writer. It
/// stores with Release, in the order: bytes, time of the flush, number of flushes. Readers load with Acquire, so
/// that a reader that sees a flush also sees the bytes and the time that belong to it. Where no other value depends
/// on a count, it is Relaxed.
#[derive(Debug)]
pub(crate) struct IoCounters {
    since: Instant,
    received: AtomicU64,
    written: AtomicU64,
    flushes: AtomicU64,
    /// The value of `written` at the last flush.
    written_at_flush: AtomicU64,
    /// The time of the last flush that had something to flush, in nanoseconds after `since`.
    flushed_after: AtomicU64,
    /// Whether the next read must ask the operating system.
    probe: AtomicBool,
    /// HTTP/1.1 only: one more than the number of flushes that complete the current request, or 0 while its end
    /// has not been written.
    request_end: AtomicU64,
    /// Whether a write to the socket is in progress. SeqCst, with `writes_stopped`: see [`stop_writes`](Self::stop_writes).
    writing: AtomicBool,
    /// Whether the socket accepts no more bytes.
    writes_stopped: AtomicBool,
}

impl IoCounters {
    pub(crate) fn new(since: Instant) -> Self {
        IoCounters {
            since,
            received: AtomicU64::new(0),
            written: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            written_at_flush: AtomicU64::new(0),
            flushed_after: AtomicU64::new(0),
            probe: AtomicBool::new(false),
            request_end: AtomicU64::new(0),
            writing: AtomicBool::new(false),
            writes_stopped: AtomicBool::new(false),
        }
    }

    /// The number of bytes received so far.
    pub(crate) fn received(&self) -> u64 {
        // Relaxed: callers only look for a change.
        self.received.load(Ordering::Relaxed)
    }

    /// When everything written was last flushed.
    pub(crate) fn flushed_at(&self) -> Instant {
        self.since + Duration::from_nanos(self.flushed_after.load(Ordering::Acquire))
    }

    fn count_flush(&self) {
        let written = self.written();
        // Relaxed: only this task reads and writes it.
        if written != self.written_at_flush.swap(written, Ordering::Relaxed) {
            let after = clock::now().saturating_duration_since(self.since).as_nanos();
            self.flushed_after.store(after as u64, Ordering::Release);
        }
        self.flushes.fetch_add(1, Ordering::Release);
    }

    /// The number of bytes that the socket has accepted so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The number of completed flushes.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    /// Makes every later write to the socket fail, and returns whether none is in progress: then the number of
    /// written bytes is final. For connections that are lost anyway.
    ///
    /// A write first says that it is in progress and then looks whether writes are stopped; this does the two in the
    /// opposite order. In one total order (SeqCst) at least one of them sees the other.
    pub(crate) fn stop_writes(&self) -> bool {
        self.writes_stopped.store(true, Ordering::SeqCst);
        !self.writing.load(Ordering::SeqCst)
    }

    /// Runs one write to the socket and counts its bytes, unless writes are stopped.
    fn write(&self, write: impl FnOnce() -> Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.writing.store(true, Ordering::SeqCst);
        let written = match self.writes_stopped.load(Ordering::SeqCst) {
            true => Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the connection was lost"))),
            false => write(),
        };
        if let Poll::Ready(Ok(bytes)) = written {
            self.written.fetch_add(bytes as u64, Ordering::Release);
        }
        self.writing.store(false, Ordering::SeqCst);
        written
    }

    /// Marks the start of a request on a connection that sends one request at a time.
    pub(crate) fn start_request(&self) {
        self.request_end.store(0, Ordering::Release);
    }

    /// Marks that the end of that request is about to be written: the next flush completes it.
    pub(crate) fn end_request(&self) {
        self.request_end.store(self.flushes() + 2, Ordering::Release);
    }

    /// The number of flushes that completes that request; `None` while its end has not been written.
    pub(crate) fn request_end_flush(&self) -> Option<u64> {
        self.request_end.load(Ordering::Acquire).checked_sub(1)
    }

    /// Makes the next read ask the operating system, even if the runtime reports nothing to read.
    pub(crate) fn probe(&self) {
        // Relaxed: the same task reads the flag, in the poll that follows.
        self.probe.store(true, Ordering::Relaxed);
    }
}

/// How much of one request the socket has accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendProgress {
    written_before: u64,
    /// The number of flushes that completes the request; `None` while its end has not been written.
    flushes_until_sent: Option<u64>,
}

impl SendProgress {
    /// Starts with a request that is about to be passed to the connection.
    pub(crate) fn start(io: &IoCounters) -> Self {
        SendProgress { written_before: io.written(), flushes_until_sent: None }
    }

    /// Notes that the end of the request was passed on, and that so many flushes complete it.
    pub(crate) fn set_end(&mut self, flushes: Option<u64>) {
        self.flushes_until_sent = flushes;
    }

    /// Whether the end of the request was passed on.
    pub(crate) fn has_end(&self) -> bool {
        self.flushes_until_sent.is_some()
    }

    /// Whether the request has been sent by now.
    pub(crate) fn sent(&self, io: &IoCounters) -> Sent {
        if io.written() == self.written_before {
            return Sent::NotSent;
        }
        match self.flushes_until_sent {
            Some(flushes) if io.flushes() >= flushes => Sent::Sent,
            _ => Sent::MaybeSent,
        }
    }
}

/// A TCP socket that counts what it reads and writes.
#[derive(Debug)]
pub(crate) struct Socket {
    tcp: TcpStream,
    io: Arc<IoCounters>,
}

impl Socket {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Socket { tcp, io: Arc::new(IoCounters::new(clock::now())) }
    }

    pub(crate) fn io(&self) -> &Arc<IoCounters> {
        &self.io
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Reads from the operating system directly: the runtime may not have polled the socket yet.
    fn read_now(&self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let read = (&*SockRef::from(&self.tcp)).read(buf.initialize_unfilled())?;
        buf.advance(read);
        Ok(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // The load alone is cheaper than the swap, and the flag is rarely set.
        if self.io.probe.load(Ordering::Relaxed) && self.io.probe.swap(false, Ordering::Relaxed) {
            match self.read_now(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        self.io.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Socket { tcp, io } = self.get_mut();
        io.write(|| Pin::new(tcp).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Socket { tcp, io } = self.get_mut();
        io.write(|| Pin::new(tcp).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tcp).poll_flush(cx))?;
        self.io.count_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// What a connection to a host runs on: a socket, or a tunnel through a proxy that is reached over TLS.
#[derive(Debug)]
pub(crate) enum BaseStream {
    Tcp(Socket),
    #[cfg(feature = "__tls")]
    TlsToProxy(Box<TlsStream<Socket>>),
}

/// A connection to a host, with TLS or without.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(BaseStream),
    #[cfg(feature = "__tls")]
    Tls(Box<TlsStream<BaseStream>>),
}

impl BaseStream {
    fn io(&self) -> &Arc<IoCounters> {
        match self {
            BaseStream::Tcp(socket) => socket.io(),
            #[cfg(feature = "__tls")]
            BaseStream::TlsToProxy(tls) => tls.get_ref().0.io(),
        }
    }
}

impl Stream {
    pub(crate) fn io(&self) -> &Arc<IoCounters> {
        match self {
            Stream::Plain(base) => base.io(),
            #[cfg(feature = "__tls")]
            Stream::Tls(tls) => tls.get_ref().0.io(),
        }
    }
}

/// Reads and writes through whichever of its two cases a stream is.
macro_rules! delegate_io {
    ($stream:ty, $plain:path, $tls:path) => {
        impl AsyncRead for $stream {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $plain(plain) => Pin::new(plain).poll_read(cx, buf),
                    #[cfg(feature = "__tls")]
                    $tls(tls) => Pin::new(tls).poll_read(cx, buf),
                }
            }
        }

        impl AsyncWrite for $stream {
            fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $plain(plain) => Pin::new(plain).poll_write(cx, buf),
                    #[cfg(feature = "__tls")]
                    $tls(tls) => Pin::new(tls).poll_write(cx, buf),
                }
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                match self.get_mut() {
                    $plain(plain) => Pin::new(plain).poll_write_vectored(cx, bufs),
                    #[cfg(feature = "__tls")]
                    $tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
                }
            }

            fn is_write_vectored(&self) -> bool {
                match self {
                    $plain(plain) => plain.is_write_vectored(),
                    #[cfg(feature = "__tls")]
                    $tls(tls) => tls.is_write_vectored(),
                }
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $plain(plain) => Pin::new(plain).poll_flush(cx),
                    #[cfg(feature = "__tls")]
                    $tls(tls) => Pin::new(tls).poll_flush(cx),
                }
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                match self.get_mut() {
                    $plain(plain) => Pin::new(plain).poll_shutdown(cx),
                    #[cfg(feature = "__tls")]
                    $tls(tls) => Pin::new(tls).poll_shutdown(cx),
                }
            }
        }
    };
}

delegate_io!(BaseStream, BaseStream::Tcp, BaseStream::TlsToProxy);
delegate_io!(Stream, Stream::Plain, Stream::Tls);

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[test]
    fn bytes_and_flushes_decide_whether_a_request_was_sent() {
        let io = IoCounters::new(clock::now());
        io.written.store(100, Ordering::Release);
        let mut progress = SendProgress::start(&io);
        assert_eq!(progress.sent(&io), Sent::NotSent);
        progress.set_end(Some(io.flushes() + 1));
        io.flushes.fetch_add(1, Ordering::Release);
        assert_eq!(
            progress.sent(&io),
            Sent::NotSent,
            "nothing was written, so the flush had nothing to send"
        );

        let mut progress = SendProgress::start(&io);
        io.written.fetch_add(1, Ordering::Release);
        assert_eq!(progress.sent(&io), Sent::MaybeSent, "the end has not been written");
        progress.set_end(Some(io.flushes() + 1));
        assert_eq!(progress.sent(&io), Sent::MaybeSent, "the end may still be in a buffer");
        io.flushes.fetch_add(1, Ordering::Release);
        assert_eq!(progress.sent(&io), Sent::Sent);
    }

    #[tokio::test]
    async fn after_writes_are_stopped_the_socket_accepts_no_byte() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let tcp = TcpStream::connect(listener.local_addr().expect("it is bound")).await.expect("it listens");
        let mut socket = Socket::new(tcp);
        socket.write_all(b"before").await.expect("it is open");
        assert!(socket.io().stop_writes(), "no write is in progress");
        let error = socket.write_all(b"after").await.expect_err("writes are stopped");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(socket.io().written(), 6);
    }

    #[test]
    fn the_number_of_bytes_is_not_final_while_a_write_is_in_progress() {
        let io = IoCounters::new(clock::now());
        let written = io.write(|| {
            assert!(!io.stop_writes(), "this write may still be counted");
            Poll::Ready(Ok(3))
        });
        assert!(matches!(written, Poll::Ready(Ok(3))));
        assert!(io.stop_writes());
        assert_eq!(io.written(), 3);
    }

    #[test]
    fn a_connection_is_used_for_its_age_or_up_to_a_fifth_less() {
        let limit = |random| age_limit(Duration::from_secs(100), random);
        assert_eq!(limit(0.0), Duration::from_secs(100));
        assert_eq!(limit(0.5), Duration::from_secs(90));
        assert_eq!(limit(1.0), Duration::from_secs(80));
        assert_eq!(age_limit(Duration::MAX, 0.0), Duration::MAX);
    }
}
