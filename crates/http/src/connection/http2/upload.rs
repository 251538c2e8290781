//! Sending the body of an HTTP/2 request, as far as the peer's flow-control window allows.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};

use crate::call::StepError;
use crate::error::ErrorKind;
use crate::request_body::RequestBody;
use crate::trace::Step;

/// The most that `h2` gets to buffer while the window is closed. A longer chunk waits here, where it counts as unsent.
const BUFFERED_BYTES_MAX: usize = 64 * 1024;

/// A request body that is being sent.
pub(super) enum Upload {
    /// All of it was passed to `h2`.
    Complete,
    /// The peer accepts no more of it, or it failed. The response decides the outcome.
    Stopped,
    Sending {
        stream: SendStream<Bytes>,
        /// A chunk that waits for capacity of the flow-control window.
        chunk: Option<Bytes>,
        body: RequestBody,
    },
}

impl Upload {
    pub(super) fn start(mut stream: SendStream<Bytes>, mut body: RequestBody) -> Self {
        let chunk = body.take_bytes();
        if let Some(chunk) = chunk.as_ref().filter(|chunk| chunk.len() > BUFFERED_BYTES_MAX) {
            stream.reserve_capacity(chunk.len());
        }
        Upload::Sending { stream, chunk, body }
    }

    pub(super) fn is_complete(&self) -> bool {
        matches!(self, Upload::Complete)
    }

    /// Sends as much as the window allows, and sets `progressed` if that is more than nothing. Ready when the upload
    /// has ended.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        progressed: &mut bool,
    ) -> Poll<Result<(), StepError>> {
        let Upload::Sending { stream, chunk, body } = self else { return Poll::Ready(Ok(())) };
        // Each round sends bytes, takes the next chunk, or waits for one of the two; it ends with the body.
        let sent = loop {
            // A short last chunk needs no capacity: h2 buffers it until the window opens.
            if let Some(last) = chunk.take_if(|last| body.is_finished() && last.len() <= BUFFERED_BYTES_MAX) {
                break stream.send_data(last, true);
            }
            let Some(waiting) = chunk else {
                match ready!(body.poll_chunk(cx)) {
                    Some(Ok(next)) => {
                        stream.reserve_capacity(next.len());
                        *chunk = Some(next);
                        continue;
                    }
                    Some(Err(error)) => {
                        stream.send_reset(Reason::CANCEL);
                        *self = Upload::Stopped;
                        let step_error = StepError::new(ErrorKind::RequestBody, Step::Send);
                        return Poll::Ready(Err(step_error.with_source(error)));
                    }
                    None => break stream.send_data(Bytes::new(), true),
                }
            };
            let capacity = stream.capacity().min(waiting.len());
            if capacity == 0 && !waiting.is_empty() {
                match ready!(stream.poll_capacity(cx)) {
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => break Err(error),
                    None => {
                        *self = Upload::Stopped;
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            let now = waiting.split_to(capacity);
            *progressed = true;
            if waiting.is_empty() {
                *chunk = None;
            }
            if let Err(error) = stream.send_data(now, false) {
                break Err(error);
            }
        };
        // An error is one of the stream: h2 reports it with the response as well.
        *self = if sent.is_ok() { Upload::Complete } else { Upload::Stopped };
        Poll::Ready(Ok(()))
    }
}
