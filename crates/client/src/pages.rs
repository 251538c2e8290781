//! Pages as streams: what queries, change feeds and lists have in common.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::try_unfold;
use futures::{Stream, TryStreamExt};

use crate::Result;

/// Reads pages one after the other.
pub(crate) trait PageReader: Send + 'static {
    /// A page before its entries are deserialized.
    type Page: Send + 'static;

    /// Reads the next page; none after the last. After an error, a further call reads the same page.
    fn read(&mut self) -> impl Future<Output = Result<Option<Self::Page>>> + Send;
}

/// A stream of pages. The request for a page stays in progress when the caller stops waiting for it, so nothing is lost.
pub(crate) struct PageStream<R: PageReader>(State<R>);

enum State<R: PageReader> {
    /// The reader waits to be asked; it is none only while it is moved.
    Idle(Option<R>),
    Reading(BoxFuture<'static, (R, Result<Option<R::Page>>)>),
}

impl<R: PageReader> PageStream<R> {
    pub(crate) fn new(reader: R) -> PageStream<R> {
        PageStream(State::Idle(Some(reader)))
    }
}

// The reader is moved while it is idle and boxed while it reads: neither needs to stay where it is.
impl<R: PageReader> Unpin for PageStream<R> {}

impl<R: PageReader> Stream for PageStream<R> {
    type Item = Result<R::Page>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<R::Page>>> {
        let state = &mut self.get_mut().0;
        // Ends when the page is there or has to be waited for: a reader that is idle starts to read once.
        loop {
            match state {
                State::Idle(reader) => {
                    let Some(mut reader) = reader.take() else { return Poll::Ready(None) };
                    *state = State::Reading(Box::pin(async move {
                        let page = reader.read().await;
                        (reader, page)
                    }));
                }
                State::Reading(reading) => {
                    let Poll::Ready((reader, page)) = reading.as_mut().poll(context) else {
                        return Poll::Pending;
                    };
                    *state = State::Idle(Some(reader));
                    return Poll::Ready(page.transpose());
                }
            }
        }
    }
}

impl<R: PageReader> fmt::Debug for PageStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Idle(_) => "PageStream(idle)",
            State::Reading(_) => "PageStream(reading)",
        })
    }
}

/// The entries of pages as a stream, which ends with the first error.
pub(crate) fn entries<T: Send>(
    pages: impl Stream<Item = Result<Vec<T>>> + Send + Unpin,
) -> impl Stream<Item = Result<T>> + Send {
    try_unfold((pages, Vec::new().into_iter()), async |(mut pages, mut entries)| {
        loop {
            if let Some(entry) = entries.next() {
                return Ok(Some((entry, (pages, entries))));
            }
            match pages.try_next().await? {
                Some(page) => entries = page.into_iter(),
                None => return Ok(None),
            }
        }
    })
}
