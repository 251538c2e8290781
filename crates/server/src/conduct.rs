//! What a handler may ask for beyond its answer: that something goes wrong on the way out.
//!
//! In: an answer and a [`Conduct`] out of its extensions. Out: the body that hyper sends. Only fault
//! injection asks for any of this.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// How long a stalled answer holds its connection if the client does not give up.
pub const STALL_MAX: Duration = Duration::from_secs(300);

/// In a response's extensions: what becomes of it and of the connection it would go out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conduct {
    /// The connection closes; the answer is never sent.
    Close,
    /// The head and half of the body are sent, and then nothing until [`STALL_MAX`] has passed or
    /// the client gives up. An answer without a body does not even begin.
    Stall,
    /// The answer is sent and the connection takes no more requests: GOAWAY in HTTP/2, `connection:
    /// close` before it.
    GoAway,
}

/// A body on its way out.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// All of it, unless it was sent already.
    Whole(Option<Bytes>),
    /// Half of it, and then nothing.
    Half(Box<Stalled>),
}

/// A body that stops half way.
#[derive(Debug)]
pub(crate) struct Stalled {
    first_half: Option<Bytes>,
    /// What the head promised and is still owed.
    owed: u64,
    patience: Pin<Box<Sleep>>,
}

/// The answer was cut off on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the answer stalled half way, as a fault asked for")]
pub(crate) struct CutOff;

impl Outgoing {
    pub(crate) fn whole(body: Bytes) -> Outgoing {
        Outgoing::Whole(Some(body).filter(|body| !body.is_empty()))
    }

    pub(crate) fn half(body: &Bytes) -> Outgoing {
        let first_half = body.slice(..body.len() / 2);
        let patience = Box::pin(tokio::time::sleep(STALL_MAX));
        Outgoing::Half(Box::new(Stalled { first_half: Some(first_half), owed: body.len() as u64, patience }))
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        match &mut *self {
            Outgoing::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Outgoing::Half(stalled) => match stalled.first_half.take() {
                Some(half) if !half.is_empty() => {
                    stalled.owed -= half.len() as u64;
                    Poll::Ready(Some(Ok(Frame::data(half))))
                }
                _ => stalled.patience.as_mut().poll(cx).map(|()| Some(Err(CutOff))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Outgoing::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Outgoing::Whole(body) => body.as_ref().map_or(0, |body| body.len() as u64),
            Outgoing::Half(stalled) => stalled.owed,
        })
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_whole_body_is_sent_as_it_is() {
        let sent = Bytes::from_static(b"{\"id\":\"1\"}");
        let mut body = Outgoing::whole(sent.clone());
        assert_eq!(body.size_hint().exact(), Some(10));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().as_ptr(), sent.as_ptr());
        assert!(body.is_end_stream() && body.frame().await.is_none());
        assert!(Outgoing::whole(Bytes::new()).is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_body_promises_all_sends_half_and_gives_up_in_the_end() {
        let mut body = Outgoing::half(&Bytes::from_static(b"12345678"));
        assert_eq!(body.size_hint().exact(), Some(8));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "1234");
        assert!(!body.is_end_stream());
        // Paused time moves by itself to the only timer there is.
        #[expect(clippy::disallowed_methods, reason = "paused time, which the test measures")]
        let before = tokio::time::Instant::now();
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!(before.elapsed(), STALL_MAX);
    }
}
