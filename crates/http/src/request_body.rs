//! The body of a request: bytes, or a stream of chunks.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use http_body::{Body, Frame, SizeHint};

use crate::error::BoxError;
use crate::stream::IoCounters;

/// The body of a request: empty, bytes, or a stream of chunks.
///
/// ```
/// use perihelion_http::RequestBody;
///
/// let empty = RequestBody::empty();
/// let text = RequestBody::from("hello");
/// let chunks = futures::stream::iter([Ok::<_, std::io::Error>("hel".into()), Ok("lo".into())]);
/// let stream = RequestBody::stream(chunks, Some(5));
/// assert_eq!([empty.len(), text.len(), stream.len()], [Some(0), Some(5), Some(5)]);
/// ```
pub struct RequestBody {
    content: Content,
    /// Gets a mark when the last chunk has been taken.
    io: Option<Arc<IoCounters>>,
}

enum Content {
    Bytes(Bytes),
    Stream { stream: ChunkStream, remaining: Option<u64> },
}

type ChunkStream = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

impl RequestBody {
    /// Creates an empty body.
    pub fn empty() -> Self {
        RequestBody::from(Bytes::new())
    }

    /// Creates a body from a stream of chunks. A length that is given is sent as `Content-Length` and enforced.
    pub fn stream<S, E>(stream: S, length: Option<u64>) -> Self
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let stream = Box::pin(stream.map_err(Into::into));
        RequestBody { content: Content::Stream { stream, remaining: length }, io: None }
    }

    /// The number of bytes that have not been taken yet; `None` if it is not known.
    pub fn len(&self) -> Option<u64> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes.len() as u64),
            Content::Stream { remaining, .. } => *remaining,
        }
    }

    /// Whether no bytes are left; `None` if it is not known.
    pub fn is_empty(&self) -> Option<bool> {
        self.len().map(|length| length == 0)
    }

    /// Marks the end of the request in `io` when the last chunk is taken, which for an empty body is at once.
    pub(crate) fn report_end_to(&mut self, io: &Arc<IoCounters>) {
        io.start_request();
        if self.is_finished() {
            io.end_request();
        } else {
            self.io = Some(Arc::clone(io));
        }
    }

    /// Takes the whole body if it is bytes and not a stream.
    pub(crate) fn take_bytes(&mut self) -> Option<Bytes> {
        match &mut self.content {
            Content::Bytes(bytes) => Some(std::mem::take(bytes)),
            Content::Stream { .. } => None,
        }
    }

    /// Polls for the next chunk; `None` after the last one.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        let chunk = match &mut self.content {
            Content::Bytes(bytes) if bytes.is_empty() => None,
            Content::Bytes(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Stream { stream, remaining } => match (ready!(stream.as_mut().poll_next(cx)), remaining)
            {
                (Some(Ok(chunk)), Some(remaining)) => match remaining.checked_sub(chunk.len() as u64) {
                    Some(rest) => {
                        *remaining = rest;
                        Some(Ok(chunk))
                    }
                    None => Some(Err("the request's body is longer than its content length".into())),
                },
                (None, Some(remaining)) if *remaining > 0 => {
                    Some(Err(format!("the request's body ended {remaining} bytes before its content length")
                        .into()))
                }
                (chunk, _) => chunk,
            },
        };
        if (chunk.is_none() || self.is_finished())
            && let Some(io) = self.io.take()
        {
            io.end_request();
        }
        Poll::Ready(chunk)
    }

    /// Whether the last chunk has been taken.
    pub(crate) fn is_finished(&self) -> bool {
        match &self.content {
            Content::Bytes(bytes) => bytes.is_empty(),
            Content::Stream { remaining, .. } => *remaining == Some(0),
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
        RequestBody { content: Content::Bytes(bytes), io: None }
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
        self.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_finished()
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

    fn stream(chunks: &[&'static str], length: Option<u64>) -> RequestBody {
        let chunks: Vec<Result<Bytes, std::io::Error>> =
            chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        RequestBody::stream(futures::stream::iter(chunks), length)
    }

    fn read(mut body: RequestBody) -> Result<String, String> {
        let mut text = String::new();
        while let Some(chunk) = block_on(poll_fn(|cx| body.poll_chunk(cx))) {
            let chunk = chunk.map_err(|error| error.to_string())?;
            text.push_str(std::str::from_utf8(&chunk).expect("text went in"));
        }
        Ok(text)
    }

    #[test]
    fn a_body_that_differs_from_its_content_length_is_an_error() {
        let too_long = Err("the request's body is longer than its content length".to_owned());
        let too_short = Err("the request's body ended 1 bytes before its content length".to_owned());
        for (chunks, length, expected) in [
            (&["ab", "c"][..], None, Ok("abc".to_owned())),
            (&["ab", "c"], Some(3), Ok("abc".to_owned())),
            (&["ab", "c"], Some(2), too_long),
            (&["ab", "c"], Some(4), too_short),
            (&[], Some(0), Ok(String::new())),
        ] {
            assert_eq!(read(stream(chunks, length)), expected, "{chunks:?} with length {length:?}");
        }
        assert_eq!(read("abc".into()), Ok("abc".to_owned()));
    }

    #[test]
    fn the_end_is_marked_when_the_last_chunk_is_taken() {
        for (mut body, chunks) in [
            (RequestBody::empty(), 0),
            (RequestBody::from("abc"), 1),
            (stream(&["a", "b"], Some(2)), 2),
            (stream(&["a", "b"], None), 3),
        ] {
            let io = Arc::new(IoCounters::new(crate::clock::now()));
            body.report_end_to(&io);
            for chunk in 0..chunks {
                assert_eq!(io.request_end_flush(), None, "{body:?} before chunk {chunk}");
                let _ = block_on(poll_fn(|cx| body.poll_chunk(cx)));
            }
            assert!(io.request_end_flush().is_some(), "{body:?}");
        }
    }
}
