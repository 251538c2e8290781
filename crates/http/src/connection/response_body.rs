//! The body of a response, complete or still being received.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use super::{http1, http2};
use crate::error::{Error, ErrorKind};
use crate::trace::{RequestTrace, Step};

/// The body of a response, with the trace of its request.
///
/// It may have been received completely already, or is received while it is read. Dropped before its end, it closes
/// an HTTP/1.1 connection and resets an HTTP/2 stream; read to its end, it frees the connection for the next request.
pub struct ResponseBody {
    state: State,
    trace: RequestTrace,
}

enum State {
    /// The bytes that have not been read yet.
    Complete(Bytes),
    Http1(Box<http1::Http1Body>),
    Http2(Box<http2::Http2Body>),
}

impl ResponseBody {
    pub(crate) fn complete(bytes: Bytes, trace: RequestTrace) -> Self {
        ResponseBody { state: State::Complete(bytes), trace }
    }

    pub(crate) fn http1(body: http1::Http1Body) -> Self {
        let trace = body.call.trace;
        ResponseBody { state: State::Http1(Box::new(body)), trace }
    }

    pub(crate) fn http2(body: http2::Http2Body) -> Self {
        let trace = body.call.trace;
        ResponseBody { state: State::Http2(Box::new(body)), trace }
    }

    /// The trace of the request so far.
    pub fn trace(&self) -> &RequestTrace {
        match &self.state {
            State::Complete(_) => &self.trace,
            State::Http1(body) => &body.call.trace,
            State::Http2(body) => &body.call.trace,
        }
    }

    /// Waits for the next chunk; `None` after the last one.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Reads the rest of the body; fails if it is longer than `at_most` bytes.
    ///
    /// A body of one chunk is not copied.
    pub async fn bytes(mut self, at_most: usize) -> Result<Bytes, Error> {
        let Some(first) = self.chunk().await.transpose()? else { return Ok(Bytes::new()) };
        if first.len() > at_most || self.size_hint().lower() > (at_most - first.len()) as u64 {
            return Err(self.too_long(at_most));
        }
        let Some(second) = self.chunk().await.transpose()? else { return Ok(first) };
        let expected = self.size_hint().lower().min(at_most as u64) as usize;
        let mut all = BytesMut::with_capacity(first.len() + second.len() + expected);
        all.extend_from_slice(&first);
        let mut next = second;
        loop {
            if next.len() > at_most - all.len() {
                return Err(self.too_long(at_most));
            }
            all.extend_from_slice(&next);
            match self.chunk().await.transpose()? {
                Some(chunk) => next = chunk,
                None => return Ok(all.freeze()),
            }
        }
    }

    /// Takes the body if it has been received completely.
    pub(crate) fn take_complete(&mut self) -> Option<Bytes> {
        match &mut self.state {
            State::Complete(bytes) => Some(std::mem::take(bytes)),
            State::Http1(_) | State::Http2(_) => None,
        }
    }

    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        match &mut self.state {
            State::Complete(bytes) if bytes.is_empty() => Poll::Ready(None),
            State::Complete(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes)))),
            State::Http1(body) => body.poll_chunk(cx),
            State::Http2(body) => body.poll_chunk(cx),
        }
    }

    fn too_long(&self, at_most: usize) -> Error {
        let mut trace = *self.trace();
        trace.failed_step = Some(Step::Body);
        Error::new(ErrorKind::Malformed, "response", trace).with_source(format!(
            "the body is longer than {at_most} bytes: raise the limit, or read it chunk by chunk"
        ))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Complete(bytes) => bytes.is_empty(),
            State::Http1(body) => body.is_finished(),
            State::Http2(body) => body.is_finished(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            State::Http1(body) => body.size_hint(),
            State::Http2(body) => body.size_hint(),
        }
    }
}

impl futures::Stream for ResponseBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_chunk(cx)
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("trace", self.trace()).finish_non_exhaustive()
    }
}
