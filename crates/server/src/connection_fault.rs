//! Connection faults: failures of the connection that a handler asks for along with its response.
//!
//! Input: a response with a [`ConnectionFault`] in its extensions. Output: the body that hyper sends. Only
//! fault injection uses them.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use crate::unread_responses::ResponseData;

/// How long a stalled response keeps its connection open if the client does not close it.
pub const STALL_MAX: Duration = Duration::from_secs(300);

/// A failure of the connection, requested in the extensions of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionFault {
    /// The connection closes; the response is never sent.
    Close,
    /// The head and half of the body are sent, and then nothing until [`STALL_MAX`] has passed or the
    /// client closes. Of a response without a body nothing is sent.
    Stall,
    /// The response is sent and the connection accepts no more requests: GOAWAY in HTTP/2, `connection:
    /// close` in HTTP/1.1.
    GoAway,
}

/// The body of a response, as hyper sends it.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    /// The complete body, or none once it has been sent.
    Complete(Option<ResponseData>),
    /// The first half, and then nothing.
    Stalled(Box<StalledBody>),
}

/// A body that stops after its first half.
#[derive(Debug)]
pub(crate) struct StalledBody {
    first_half: Option<Bytes>,
    /// Bytes that the head announced and that have not been sent.
    bytes_remaining: u64,
    stall_timer: Pin<Box<Sleep>>,
}

/// The response was stopped on purpose, by fault injection.
#[derive(Debug, thiserror::Error)]
#[error("the response stalled half way, as an injected fault demands")]
pub(crate) struct ResponseStalled;

impl ResponseBody {
    pub(crate) fn complete(body: ResponseData) -> ResponseBody {
        ResponseBody::Complete(Some(body).filter(|body| body.has_remaining()))
    }

    pub(crate) fn stalled(body: &Bytes) -> ResponseBody {
        let first_half = body.slice(..body.len() / 2);
        let stall_timer = Box::pin(tokio::time::sleep(STALL_MAX));
        ResponseBody::Stalled(Box::new(StalledBody {
            first_half: Some(first_half),
            bytes_remaining: body.len() as u64,
            stall_timer,
        }))
    }
}

impl Body for ResponseBody {
    type Data = ResponseData;
    type Error = ResponseStalled;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<ResponseData>, ResponseStalled>>> {
        match &mut *self {
            ResponseBody::Complete(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            ResponseBody::Stalled(stalled) => match stalled.first_half.take() {
                Some(half) if !half.is_empty() => {
                    stalled.bytes_remaining -= half.len() as u64;
                    Poll::Ready(Some(Ok(Frame::data(ResponseData::uncounted(half)))))
                }
                _ => stalled.stall_timer.as_mut().poll(cx).map(|()| Some(Err(ResponseStalled))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, ResponseBody::Complete(None))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            ResponseBody::Complete(body) => body.as_ref().map_or(0, |body| body.remaining() as u64),
            ResponseBody::Stalled(stalled) => stalled.bytes_remaining,
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_complete_body_is_sent_without_a_copy() {
        let sent = Bytes::from_static(b"{\"id\":\"1\"}");
        let mut body = ResponseBody::complete(ResponseData::uncounted(sent.clone()));
        assert_eq!(body.size_hint().exact(), Some(10));
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(data.as_bytes().as_ptr(), sent.as_ptr());
        assert!(body.is_end_stream() && body.frame().await.is_none());
        assert!(ResponseBody::complete(ResponseData::uncounted(Bytes::new())).is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_body_announces_all_sends_half_and_fails_after_the_limit() {
        let mut body = ResponseBody::stalled(&Bytes::from_static(b"12345678"));
        assert_eq!(body.size_hint().exact(), Some(8));
        let half = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(half.as_bytes(), "1234");
        assert!(!body.is_end_stream());
        // Paused time advances by itself to the only timer.
        #[expect(clippy::disallowed_methods, reason = "measures the paused time of the test")]
        let before = tokio::time::Instant::now();
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!(before.elapsed(), STALL_MAX);
    }
}
