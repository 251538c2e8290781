//! The body of a request, handed to h2 as the peer has room for it.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};

use crate::call::Failure;
use crate::error::ErrorKind;
use crate::exchange::Step;
use crate::request::RequestBody;

/// What h2 is given to keep until there is room for it. More waits here, where it is known that it waits.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A body on its way out.
pub(super) enum Upload {
    /// All of it was handed over.
    Whole,
    /// The peer wanted no more of it. What it answers is what counts.
    Cut,
    Going {
        stream: SendStream<Bytes>,
        /// Waits for room.
        piece: Option<Bytes>,
        body: RequestBody,
    },
}

impl Upload {
    pub(super) fn begin(mut stream: SendStream<Bytes>, mut body: RequestBody) -> Self {
        let piece = body.take_bytes();
        if let Some(piece) = piece.as_ref().filter(|piece| piece.len() > KEPT_BYTES_MAX) {
            stream.reserve_capacity(piece.len());
        }
        Upload::Going { stream, piece, body }
    }

    pub(super) fn is_whole(&self) -> bool {
        matches!(self, Upload::Whole)
    }

    /// Hands over what there is and what there is room for. Ready when there is no more to do.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, moved: &mut bool) -> Poll<Result<(), Failure>> {
        let Upload::Going { stream, piece, body } = self else { return Poll::Ready(Ok(())) };
        let handed_over = loop {
            // A short end needs no room: h2 keeps it and sends it as the peer allows.
            if let Some(last) = piece.take_if(|last| body.is_over() && last.len() <= KEPT_BYTES_MAX) {
                break stream.send_data(last, true);
            }
            let Some(waiting) = piece else {
                match ready!(body.poll_piece(cx)) {
                    Some(Ok(next)) => {
                        stream.reserve_capacity(next.len());
                        *piece = Some(next);
                        continue;
                    }
                    Some(Err(error)) => {
                        stream.send_reset(Reason::CANCEL);
                        *self = Upload::Cut;
                        let failure = Failure::new(ErrorKind::RequestBody, Step::Send);
                        return Poll::Ready(Err(failure.because(error)));
                    }
                    None => break stream.send_data(Bytes::new(), true),
                }
            };
            let room = stream.capacity().min(waiting.len());
            if room == 0 && !waiting.is_empty() {
                match ready!(stream.poll_capacity(cx)) {
                    Some(Ok(_)) => continue,
                    Some(Err(error)) => break Err(error),
                    None => {
                        *self = Upload::Cut;
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            let now = waiting.split_to(room);
            *moved = true;
            if waiting.is_empty() {
                *piece = None;
            }
            if let Err(error) = stream.send_data(now, false) {
                break Err(error);
            }
        };
        // An error is the stream's, and told with the response.
        *self = if handed_over.is_ok() { Upload::Whole } else { Upload::Cut };
        Poll::Ready(Ok(()))
    }
}
