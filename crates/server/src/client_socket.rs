//! The TCP socket of one client, below TLS and HTTP.
//!
//! While the server is silent, nothing is read and nothing is written. A connection that was told to reset
//! closes with RST instead of FIN. Writes of busy connections are grouped: see `write_coalescing`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::connection_activity::ConnectionActivity;
use crate::write_coalescing::WriteCoalescer;

/// The TCP socket of one client, with silence, resets and write coalescing.
pub(crate) struct ClientSocket {
    stream: TcpStream,
    activity: Arc<ConnectionActivity>,
    write_coalescer: WriteCoalescer,
}

impl ClientSocket {
    pub(crate) fn new(stream: TcpStream, activity: Arc<ConnectionActivity>) -> ClientSocket {
        ClientSocket { stream, activity, write_coalescer: WriteCoalescer::default() }
    }
}

impl Drop for ClientSocket {
    fn drop(&mut self) {
        if self.activity.ends_with_reset() {
            // If the option cannot be set, the connection closes with FIN.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.activity.poll_not_silenced(cx));
        Pin::new(&mut self.stream).poll_read(cx, out)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.activity.poll_not_silenced(cx));
        ready!(self.write_coalescer.poll_may_write(cx));
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.activity.poll_not_silenced(cx));
        ready!(self.write_coalescer.poll_may_write(cx));
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.activity.poll_not_silenced(cx));
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
