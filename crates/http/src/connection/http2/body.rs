//! The response of an HTTP/2 request: its head, and a body that may still be received.

use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use http::{HeaderMap, Response, header};
use http_body::SizeHint;

use super::upload::Upload;
use super::{StreamPermit, step_error};
use crate::call::{Call, StepError};
use crate::clock;
use crate::connection::ResponseBody;
use crate::deadline;
use crate::error::{Error, ErrorKind};
use crate::settings::Settings;
use crate::trace::Step;

/// Makes the response from its head. If all of the body has arrived as well, its stream is freed now.
pub(super) fn receive(
    permit: StreamPermit,
    response: Response<RecvStream>,
    upload: Upload,
    call: &mut Call,
    settings: &Settings,
) -> Response<ResponseBody> {
    let (parts, mut stream) = response.into_parts();
    let remaining = content_length(&parts.headers);
    let now = clock::now();
    let mut buffered = None;
    if !stream.is_end_stream()
        && let Poll::Ready(chunk) = stream.poll_data(&mut Context::from_waker(Waker::noop()))
    {
        buffered = chunk.map(|chunk| release(&mut stream, chunk));
    }
    let body = match buffered {
        None | Some(Ok(_)) if stream.is_end_stream() && !matches!(upload, Upload::Sending { .. }) => {
            call.trace.complete = call.trace.first_byte;
            let bytes = buffered.and_then(Result::ok).unwrap_or_default();
            ResponseBody::complete(bytes, call.trace)
        }
        buffered => ResponseBody::http2(Http2Body {
            deadline: deadline::earlier(call.deadline(), deadline::after(now, settings.read_timeout)),
            read_timeout: settings.read_timeout,
            remaining,
            permit: Some(permit),
            stream,
            upload,
            buffered,
            call: *call,
        }),
    };
    call.report();
    Response::from_parts(parts, body)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns the flow-control window of a chunk to the peer, so that it can send as many bytes again.
fn release(stream: &mut RecvStream, chunk: Result<Bytes, h2::Error>) -> Result<Bytes, h2::Error> {
    let chunk = chunk?;
    // Fails only for a stream that has ended, which needs no window.
    let _ = stream.flow_control().release_capacity(chunk.len());
    Ok(chunk)
}

/// The body of a response that is still being received.
pub(crate) struct Http2Body {
    /// The permit of the stream, until the body ends.
    permit: Option<StreamPermit>,
    stream: RecvStream,
    /// The rest of the request's body, if the response began before it was sent.
    upload: Upload,
    /// A chunk that was taken from `stream` already.
    buffered: Option<Result<Bytes, h2::Error>>,
    /// Bytes that are still to come, if the response has a content length.
    remaining: Option<u64>,
    deadline: Option<Instant>,
    read_timeout: Option<Duration>,
    pub(crate) call: Call,
}

impl Http2Body {
    /// Polls for the next chunk; `None` after the last one or an error.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let Some(permit) = &mut self.permit else { return Poll::Ready(None) };
        let mut chunk = self.buffered.take();
        if chunk.is_none() {
            if let Poll::Ready(Err(error)) = self.upload.poll(cx, &mut false) {
                return self.fail(error);
            }
            chunk = match self.stream.poll_data(cx) {
                Poll::Ready(chunk) => chunk.map(|chunk| release(&mut self.stream, chunk)),
                Poll::Pending => {
                    ready!(permit.poll_until(self.deadline, cx));
                    return self.fail(StepError::timed_out(Step::Body));
                }
            };
        }
        let now = clock::now();
        match chunk {
            // A peer that never pauses must not get past the deadline.
            Some(Ok(_)) if self.call.is_expired(now) => self.fail(StepError::timed_out(Step::Body)),
            Some(Ok(chunk)) => {
                self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(chunk.len() as u64));
                self.deadline =
                    deadline::earlier(self.call.deadline(), deadline::after(now, self.read_timeout));
                if self.stream.is_end_stream() {
                    self.finish(now);
                }
                Poll::Ready(Some(Ok(chunk)))
            }
            Some(Err(error)) => {
                let mut error = step_error(error, Step::Body);
                // A peer that has begun to respond cannot say any more that it did nothing.
                if error.kind == ErrorKind::Refused {
                    error.kind = ErrorKind::Closed;
                }
                self.fail(error)
            }
            None => {
                self.finish(now);
                Poll::Ready(None)
            }
        }
    }

    /// The number of bytes that are still to be read, if the response has a content length.
    pub(crate) fn size_hint(&self) -> SizeHint {
        self.remaining.map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.permit.is_none()
    }

    fn finish(&mut self, now: Instant) {
        self.permit = None;
        self.upload = Upload::Stopped;
        self.call.trace.complete = Some(self.call.offset(now));
        self.call.report();
    }

    fn fail(&mut self, error: StepError) -> Poll<Option<Result<Bytes, Error>>> {
        let error = self.permit.take().map(|permit| {
            // `true`: the head of the response was received. If the peer has stopped responding since, the
            // keepalive finds out.
            permit.http2.shared.close_if_unusable(error.kind, true);
            self.call.fail(error, &permit.http2.endpoint.origin)
        });
        Poll::Ready(error.map(Err))
    }
}
