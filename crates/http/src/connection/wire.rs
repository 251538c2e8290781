//! The bottom of a connection: a socket that remembers what was handed to it.

use std::io::{self, Read};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::clock;
use crate::exchange::Sent;

/// What was handed to a socket. The socket writes it, the exchanges on the connection read it.
///
/// The counters are hints to nobody but this connection's own exchanges, each of which compares them with
/// what it saw when it began; no other memory is published by them.
#[derive(Debug)]
pub(crate) struct Wire {
    since: Instant,
    received: AtomicU64,
    written: AtomicU64,
    flushes: AtomicU64,
    /// What had been written when it was last flushed, and when that was, in nanoseconds after `since`.
    flushed: AtomicU64,
    flushed_after: AtomicU64,
    probe: AtomicBool,
    /// Where requests take turns: 1 + the flushes that will have been completed when the current one has
    /// left; 0 while there is more of it to come.
    request_end: AtomicU64,
}

impl Wire {
    pub(crate) fn new(since: Instant) -> Self {
        Wire {
            since,
            received: AtomicU64::new(0),
            written: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            flushed_after: AtomicU64::new(0),
            probe: AtomicBool::new(false),
            request_end: AtomicU64::new(0),
        }
    }

    /// Bytes that came in so far.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// When everything that had been written was last flushed.
    pub(crate) fn flushed_at(&self) -> Instant {
        self.since + Duration::from_nanos(self.flushed_after.load(Ordering::Acquire))
    }

    fn note_flush(&self) {
        let written = self.written();
        if written != self.flushed.swap(written, Ordering::Relaxed) {
            let after = clock::now().saturating_duration_since(self.since).as_nanos();
            self.flushed_after.store(after as u64, Ordering::Release);
        }
        self.flushes.fetch_add(1, Ordering::Release);
    }

    /// Bytes taken by the socket so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// How often everything above had been written out.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    /// A request begins on a connection that carries one at a time.
    pub(crate) fn request_begins(&self) {
        self.request_end.store(0, Ordering::Release);
    }

    /// The end of that request is about to be written: with the next flush all of it has left.
    pub(crate) fn request_ends(&self) {
        self.request_end.store(self.flushes() + 2, Ordering::Release);
    }

    /// The number of flushes after which that request has left; none while there is more to come.
    pub(crate) fn request_end(&self) -> Option<u64> {
        self.request_end.load(Ordering::Acquire).checked_sub(1)
    }

    /// Lets the next read ask the system, whether or not the runtime has heard of anything to read.
    pub(crate) fn probe(&self) {
        self.probe.store(true, Ordering::Relaxed);
    }
}

/// How much of one request was handed to the socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    written_before: u64,
    /// The number of flushes after which all of it has left; none while there is more to come.
    flushes_until_sent: Option<u64>,
}

impl Progress {
    /// A request about to be handed to the connection.
    pub(crate) fn begin(wire: &Wire) -> Self {
        Progress { written_before: wire.written(), flushes_until_sent: None }
    }

    /// The end of the request was handed over; it has left when so many flushes were completed.
    pub(crate) fn ended(&mut self, flushes: Option<u64>) {
        self.flushes_until_sent = flushes;
    }

    /// Whether the end of the request was handed over.
    pub(crate) fn has_ended(&self) -> bool {
        self.flushes_until_sent.is_some()
    }

    /// How much has left by now.
    pub(crate) fn sent(&self, wire: &Wire) -> Sent {
        if wire.written() == self.written_before {
            return Sent::NotSent;
        }
        match self.flushes_until_sent {
            Some(flushes) if wire.flushes() >= flushes => Sent::Sent,
            _ => Sent::MaybeSent,
        }
    }
}

/// A socket that tells its [`Wire`] what it takes.
#[derive(Debug)]
pub(crate) struct Socket {
    tcp: TcpStream,
    wire: Arc<Wire>,
}

impl Socket {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Socket { tcp, wire: Arc::new(Wire::new(clock::now())) }
    }

    pub(crate) fn wire(&self) -> &Arc<Wire> {
        &self.wire
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Reads what the system has, without the runtime, which may not have heard of it yet.
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
        if self.wire.probe.load(Ordering::Relaxed) && self.wire.probe.swap(false, Ordering::Relaxed) {
            match self.read_now(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        self.wire.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.tcp).poll_write(cx, buf))?;
        self.wire.written.fetch_add(written as u64, Ordering::Release);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs))?;
        self.wire.written.fetch_add(written as u64, Ordering::Release);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.tcp).poll_flush(cx))?;
        self.wire.note_flush();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// A socket, bare or under TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

impl Stream {
    pub(crate) fn wire(&self) -> &Arc<Wire> {
        match self {
            Stream::Plain(socket) => socket.wire(),
            Stream::Tls(tls) => tls.get_ref().0.wire(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(socket) => socket.is_write_vectored(),
            Stream::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_told_by_bytes_and_flushes() {
        let wire = Wire::new(clock::now());
        wire.written.store(100, Ordering::Release);
        let mut progress = Progress::begin(&wire);
        assert_eq!(progress.sent(&wire), Sent::NotSent);
        progress.ended(Some(wire.flushes() + 1));
        wire.flushes.fetch_add(1, Ordering::Release);
        assert_eq!(progress.sent(&wire), Sent::NotSent, "nothing was written, so nothing was flushed either");

        let mut progress = Progress::begin(&wire);
        wire.written.fetch_add(1, Ordering::Release);
        assert_eq!(progress.sent(&wire), Sent::MaybeSent, "there is more to come");
        progress.ended(Some(wire.flushes() + 1));
        assert_eq!(progress.sent(&wire), Sent::MaybeSent, "it may still be in a buffer");
        wire.flushes.fetch_add(1, Ordering::Release);
        assert_eq!(progress.sent(&wire), Sent::Sent);
    }
}
