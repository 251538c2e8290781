//! The bytes of one connection, right above the kernel.
//!
//! Passes them on, unless the server was told to be silent: then nothing is read and nothing is
//! written, whatever layer asks. Closes as it was told to, too: with a reset instead of a goodbye
//! when the region went down. What is written may have to take its turn: see `gather`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::gather::Gather;
use crate::watch::Watch;

/// One connection's bytes.
pub(crate) struct Wire {
    stream: TcpStream,
    watch: Arc<Watch>,
    gather: Gather,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, watch: Arc<Watch>) -> Wire {
        Wire { stream, watch, gather: Gather::default() }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.watch.is_to_reset() {
            // If even that fails, the connection closes the ordinary way.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.watch.poll_audible(cx));
        Pin::new(&mut self.stream).poll_read(cx, out)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.watch.poll_audible(cx));
        ready!(self.gather.poll_write_turn(cx));
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.watch.poll_audible(cx));
        ready!(self.gather.poll_write_turn(cx));
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.watch.poll_audible(cx));
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
