//! A byte stream that remembers what was read to recognise its protocol and notes its progress.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::sniff::{Spoken, spoken};
use crate::watch::Watch;

/// Room for the first read; more than any first packet that must be told apart.
const FIRST_READ_BYTES: usize = 4 * 1024;

/// `inner`, with the bytes that were read ahead put back in front.
pub(crate) struct Replayed<S> {
    inner: S,
    ahead: BytesMut,
}

impl<S: AsyncRead + Unpin> Replayed<S> {
    /// Reads until the protocol is known. An end of stream counts as HTTP/1.1, which closes politely.
    pub(crate) async fn recognise(mut inner: S) -> io::Result<(Spoken, Replayed<S>)> {
        let mut ahead = BytesMut::with_capacity(FIRST_READ_BYTES);
        loop {
            let read = inner.read_buf(&mut ahead).await?;
            match spoken(&ahead) {
                Spoken::NeedMore if read > 0 => {}
                Spoken::NeedMore => return Ok((Spoken::Http1, Replayed { inner, ahead })),
                known => return Ok((known, Replayed { inner, ahead })),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Replayed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, out);
        }
        let length = self.ahead.len().min(out.remaining());
        out.put_slice(&self.ahead[..length]);
        self.ahead.advance(length);
        if self.ahead.is_empty() {
            self.ahead = BytesMut::new(); // gives the buffer back; it is not needed again
        }
        Poll::Ready(Ok(()))
    }
}

/// `inner`, with its progress noted for the server's sweep.
pub(crate) struct Noted<S> {
    inner: S,
    watch: Arc<Watch>,
}

impl<S> Noted<S> {
    pub(crate) fn new(inner: S, watch: Arc<Watch>) -> Noted<S> {
        Noted { inner, watch }
    }

    fn wrote(&self, progress: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match progress {
            Poll::Pending => self.watch.write_blocked(),
            Poll::Ready(_) => self.watch.write_progressed(),
        }
        progress
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, out))?;
        if out.filled().len() > before {
            self.watch.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write(cx, data);
        self.wrote(progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.inner).poll_write_vectored(cx, data);
        self.wrote(progress)
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Replayed<S> {
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
