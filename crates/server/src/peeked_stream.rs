//! Byte streams below hyper: one that returns the bytes read for protocol detection once more, and one that
//! records the connection's activity.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::connection_activity::ConnectionActivity;
use crate::protocol_detection::{Protocol, detect};

/// Buffer for the first read; longer than the bytes that protocol detection needs.
const FIRST_READ_BYTES: usize = 4 * 1024;

/// A stream whose first bytes were read for protocol detection and are read once more.
pub(crate) struct PeekedStream<S> {
    inner: S,
    peeked: BytesMut,
}

impl<S: AsyncRead + Unpin> PeekedStream<S> {
    /// Reads until the protocol is known. An end of stream counts as HTTP/1.1, which closes cleanly.
    pub(crate) async fn detect_protocol(mut inner: S) -> io::Result<(Protocol, PeekedStream<S>)> {
        let mut peeked = BytesMut::with_capacity(FIRST_READ_BYTES);
        loop {
            let read = inner.read_buf(&mut peeked).await?;
            match detect(&peeked) {
                Protocol::Undetermined if read > 0 => {}
                Protocol::Undetermined => return Ok((Protocol::Http1, PeekedStream { inner, peeked })),
                known => return Ok((known, PeekedStream { inner, peeked })),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PeekedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.peeked.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, out);
        }
        let length = self.peeked.len().min(out.remaining());
        out.put_slice(&self.peeked[..length]);
        self.peeked.advance(length);
        if self.peeked.is_empty() {
            self.peeked = BytesMut::new(); // gives the buffer back; it is not needed again
        }
        Poll::Ready(Ok(()))
    }
}

/// A stream that records reads and blocked writes in the connection's activity.
pub(crate) struct MonitoredStream<S> {
    inner: S,
    activity: Arc<ConnectionActivity>,
}

impl<S> MonitoredStream<S> {
    pub(crate) fn new(inner: S, activity: Arc<ConnectionActivity>) -> MonitoredStream<S> {
        MonitoredStream { inner, activity }
    }

    fn record_write(&self, progress: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match progress {
            Poll::Pending => self.activity.write_blocked(),
            Poll::Ready(_) => self.activity.write_progressed(),
        }
        progress
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, out))?;
        if out.filled().len() > before {
            self.activity.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write(cx, data);
        self.record_write(progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write_vectored(cx, data);
        self.record_write(progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PeekedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
