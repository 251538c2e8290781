//! The body of a request, on its way out.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body::{Body, Frame, SizeHint};

use crate::call::Cause;
use crate::connection::Wire;

/// The body of a request: nothing, bytes, or a stream of bytes.
///
/// ```
/// use perihelion_http::RequestBody;
///
/// let nothing = RequestBody::empty();
/// let text = RequestBody::from("hello");
/// let pieces = futures::stream::iter([Ok::<_, std::io::Error>("hel".into()), Ok("lo".into())]);
/// let stream = RequestBody::stream(pieces, Some(5));
/// assert_eq!([nothing.len(), text.len(), stream.len()], [Some(0), Some(5), Some(5)]);
/// ```
pub struct RequestBody {
    content: Content,
    /// Told when the end was taken.
    wire: Option<Arc<Wire>>,
}

enum Content {
    Bytes(Bytes),
    Stream { stream: Pieces, left: Option<u64> },
}

type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Cause>> + Send>>;

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        RequestBody::from(Bytes::new())
    }

    /// A body that arrives in pieces. If its length is given, it is announced, and enforced.
    pub fn stream<S, E>(stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let stream = Box::pin(stream.map_err(Into::into));
        RequestBody { content: Content::Stream { stream, left: length }, wire: None }
    }

    /// How long it is, or what is left of it; nothing if that is not known.
    pub fn len(&self) -> Option<u64> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes.len() as u64),
            Content::Stream { left, .. } => *left,
        }
    }

    /// Whether there is none, if that is known.
    pub fn is_empty(&self) -> Option<bool> {
        self.len().map(|length| length == 0)
    }

    /// Lets `wire` know when the end was taken, which for an empty body is at once.
    pub(crate) fn tell_end(&mut self, wire: &Arc<Wire>) {
        wire.request_begins();
        if self.is_over() {
            wire.request_ends();
        } else {
            self.wire = Some(Arc::clone(wire));
        }
    }

    /// All of it, if it is bytes.
    pub(crate) fn take_bytes(&mut self) -> Option<Bytes> {
        match &mut self.content {
            Content::Bytes(bytes) => Some(std::mem::take(bytes)),
            Content::Stream { .. } => None,
        }
    }

    /// The next piece.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cause>>> {
        let piece = match &mut self.content {
            Content::Bytes(bytes) if bytes.is_empty() => None,
            Content::Bytes(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Stream { stream, left } => match (ready!(stream.as_mut().poll_next(cx)), left) {
                (Some(Ok(piece)), Some(left)) => match left.checked_sub(piece.len() as u64) {
                    Some(less) => {
                        *left = less;
                        Some(Ok(piece))
                    }
                    None => Some(Err("the request's body is longer than announced".into())),
                },
                (None, Some(left)) if *left > 0 => Some(Err(format!(
                    "the request's body ended {left} bytes before its announced end"
                )
                .into())),
                (piece, _) => piece,
            },
        };
        if (piece.is_none() || self.is_over())
            && let Some(wire) = self.wire.take()
        {
            wire.request_ends();
        }
        Poll::Ready(piece)
    }

    /// Whether there is nothing left to take.
    pub(crate) fn is_over(&self) -> bool {
        match &self.content {
            Content::Bytes(bytes) => bytes.is_empty(),
            Content::Stream { left, .. } => *left == Some(0),
        }
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        RequestBody::empty()
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        RequestBody { content: Content::Bytes(bytes), wire: None }
    }
}

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for RequestBody {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for RequestBody {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<()> for RequestBody {
    fn from((): ()) -> Self {
        RequestBody::empty()
    }
}

impl From<&azure_core::http::Body> for RequestBody {
    fn from(body: &azure_core::http::Body) -> Self {
        match body {
            azure_core::http::Body::Bytes(bytes) => bytes.clone().into(),
            azure_core::http::Body::SeekableStream(stream) => {
                RequestBody::stream(stream.clone(), stream.len())
            }
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("length", &self.len()).finish_non_exhaustive()
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.len().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use std::future::poll_fn;

    fn stream(pieces: &[&'static str], length: Option<u64>) -> RequestBody {
        let pieces: Vec<Result<Bytes, std::io::Error>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        RequestBody::stream(futures::stream::iter(pieces), length)
    }

    fn read(mut body: RequestBody) -> Result<String, String> {
        let mut text = String::new();
        while let Some(piece) = block_on(poll_fn(|cx| body.poll_piece(cx))) {
            let piece = piece.map_err(|error| error.to_string())?;
            text.push_str(std::str::from_utf8(&piece).expect("text went in"));
        }
        Ok(text)
    }

    #[test]
    fn a_body_is_as_long_as_announced_or_an_error() {
        let too_long = Err("the request's body is longer than announced".to_owned());
        let too_short = Err("the request's body ended 1 bytes before its announced end".to_owned());
        for (pieces, length, expected) in [
            (&["ab", "c"][..], None, Ok("abc".to_owned())),
            (&["ab", "c"], Some(3), Ok("abc".to_owned())),
            (&["ab", "c"], Some(2), too_long),
            (&["ab", "c"], Some(4), too_short),
            (&[], Some(0), Ok(String::new())),
        ] {
            assert_eq!(read(stream(pieces, length)), expected, "{pieces:?} announced as {length:?}");
        }
        assert_eq!(read("abc".into()), Ok("abc".to_owned()));
    }

    #[test]
    fn the_end_is_told_when_it_is_taken() {
        for (mut body, pieces) in [
            (RequestBody::empty(), 0),
            (RequestBody::from("abc"), 1),
            (stream(&["a", "b"], Some(2)), 2),
            (stream(&["a", "b"], None), 3),
        ] {
            let wire = Arc::new(Wire::new(crate::clock::now()));
            body.tell_end(&wire);
            for piece in 0..pieces {
                assert_eq!(wire.request_end(), None, "{body:?} before piece {piece}");
                let _ = block_on(poll_fn(|cx| body.poll_piece(cx)));
            }
            assert!(wire.request_end().is_some(), "{body:?}");
        }
    }
}
