//! The body of a response, on its way in.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use crate::connection::{http1, http2};
use crate::error::{Error, ErrorKind};
use crate::exchange::Exchange;

/// The body of a response, and the record of the exchange it belongs to.
///
/// It may be here in full already, or arrive while it is read. Dropped before its end, it closes an HTTP/1.1
/// connection and resets an HTTP/2 stream; read to its end, the connection is free for the next request.
pub struct ResponseBody {
    state: State,
    record: Exchange,
}

enum State {
    /// All that is left of it.
    Complete(Bytes),
    Http1(Box<http1::Receiving>),
    Http2(Box<http2::Receiving>),
}

impl ResponseBody {
    pub(crate) fn complete(bytes: Bytes, record: Exchange) -> Self {
        ResponseBody { state: State::Complete(bytes), record }
    }

    pub(crate) fn http1(receiving: http1::Receiving) -> Self {
        let record = receiving.call.record;
        ResponseBody { state: State::Http1(Box::new(receiving)), record }
    }

    pub(crate) fn http2(receiving: http2::Receiving) -> Self {
        let record = receiving.call.record;
        ResponseBody { state: State::Http2(Box::new(receiving)), record }
    }

    /// What happened to the request so far.
    pub fn exchange(&self) -> &Exchange {
        match &self.state {
            State::Complete(_) => &self.record,
            State::Http1(receiving) => &receiving.call.record,
            State::Http2(receiving) => &receiving.call.record,
        }
    }

    /// The next piece; nothing after the last.
    pub async fn piece(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// All that is left of it, unless that is more than `at_most` bytes.
    ///
    /// A body that came in one piece is not copied.
    pub async fn bytes(mut self, at_most: usize) -> Result<Bytes, Error> {
        let Some(first) = self.piece().await.transpose()? else { return Ok(Bytes::new()) };
        if first.len() > at_most || self.size_hint().lower() > (at_most - first.len()) as u64 {
            return Err(self.too_long(at_most));
        }
        let Some(second) = self.piece().await.transpose()? else { return Ok(first) };
        let expected = self.size_hint().lower().min(at_most as u64) as usize;
        let mut all = BytesMut::with_capacity(first.len() + second.len() + expected);
        all.extend_from_slice(&first);
        let mut next = second;
        loop {
            if next.len() > at_most - all.len() {
                return Err(self.too_long(at_most));
            }
            all.extend_from_slice(&next);
            match self.piece().await.transpose()? {
                Some(piece) => next = piece,
                None => return Ok(all.freeze()),
            }
        }
    }

    /// The body if it is here in full.
    pub(crate) fn take_complete(&mut self) -> Option<Bytes> {
        match &mut self.state {
            State::Complete(bytes) => Some(std::mem::take(bytes)),
            State::Http1(_) | State::Http2(_) => None,
        }
    }

    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        match &mut self.state {
            State::Complete(bytes) if bytes.is_empty() => Poll::Ready(None),
            State::Complete(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            State::Http1(receiving) => receiving.poll_piece(cx),
            State::Http2(receiving) => receiving.poll_piece(cx),
        }
    }

    fn too_long(&self, at_most: usize) -> Error {
        let mut record = *self.exchange();
        record.failed = Some(crate::exchange::Step::Body);
        Error::new(ErrorKind::Malformed, "response", record)
            .because(format!("the body is longer than {at_most} bytes: allow more, or read it in pieces"))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Complete(bytes) => bytes.is_empty(),
            State::Http1(receiving) => receiving.is_over(),
            State::Http2(receiving) => receiving.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            State::Http1(receiving) => receiving.size_hint(),
            State::Http2(receiving) => receiving.size_hint(),
        }
    }
}

impl futures::Stream for ResponseBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_piece(cx)
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("exchange", self.exchange()).finish_non_exhaustive()
    }
}
