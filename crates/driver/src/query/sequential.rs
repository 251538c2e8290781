//! Pages of one EPK range after the other, prefetched within bounds.

use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;

use super::continuation::{RangeStream, StreamStart};
use super::fan_out::{CursorState, FanOut, Prefetch, RangeStart};
use super::source::PageSource;
use crate::error::Error;

/// The next step of reading the pages.
#[derive(Debug)]
pub(super) enum PageStep {
    /// A page of the current range.
    Page(Bytes),
    /// The current range was split and is read again from its beginning: what it gave is void.
    Restarted,
    /// The current range is done.
    RangeDone,
}

/// What happens to an EPK range that was split while it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterSplit {
    /// Its parts continue where it stopped. For queries whose rows depend on one document each: there the
    /// service's continuation means a place in the range, which its parts have as well.
    Continue,
    /// Its parts are read from their beginning. For all other queries: a number of rows of the whole
    /// means nothing to a part.
    Restart,
}

/// Pages in EPK order.
#[derive(Debug)]
pub(super) struct SequentialPages<S> {
    pub(super) fan_out: FanOut<S, ()>,
    after_split: AfterSplit,
    body: Bytes,
}

impl<S: PageSource> SequentialPages<S> {
    pub(super) fn new(
        source: Arc<S>,
        ahead: Prefetch,
        after_split: AfterSplit,
        body: Bytes,
        streams: Vec<RangeStream>,
    ) -> SequentialPages<S> {
        let starts = streams.into_iter().map(|stream| {
            let continuation = match stream.from {
                StreamStart::Page(continuation) => Some(continuation),
                StreamStart::Start | StreamStart::Position(_) => None,
            };
            RangeStart { range: stream.range, body: body.clone(), continuation, state: () }
        });
        let starts = starts.collect();
        SequentialPages { fan_out: FanOut::new(source, ahead, starts), after_split, body }
    }

    /// The next step; none at the end.
    pub(super) async fn next(&mut self, items_max: Option<NonZeroU32>) -> Result<Option<PageStep>, Error> {
        self.fan_out.limit_items(items_max);
        loop {
            let Some(first) = self.fan_out.cursors.first_mut() else { return Ok(None) };
            if let Some((_, page)) = first.pages.pop_front() {
                return Ok(Some(PageStep::Page(page.body)));
            }
            match first.next().clone() {
                CursorState::End => {
                    self.fan_out.remove(0);
                    return Ok(Some(PageStep::RangeDone));
                }
                CursorState::Divide(parts, continuation) => {
                    let starts_over = self.after_split == AfterSplit::Restart;
                    let continuation = continuation.filter(|_| !starts_over);
                    let start = |range| RangeStart {
                        range,
                        body: self.body.clone(),
                        continuation: continuation.clone(),
                        state: (),
                    };
                    let starts = parts.into_iter().map(start).collect();
                    self.fan_out.replace(0, starts);
                    if starts_over {
                        return Ok(Some(PageStep::Restarted));
                    }
                }
                CursorState::Page(_) => self.fan_out.next_arrival(|at, _| at == 0).await?,
            }
        }
    }

    /// Where each range continues: after its last page, or from its beginning where that means nothing.
    pub(super) fn streams(&self) -> Vec<RangeStream> {
        let from = |continuation: &Option<String>| match (self.after_split, continuation) {
            (AfterSplit::Continue, Some(continuation)) => StreamStart::Page(continuation.clone()),
            (AfterSplit::Continue, None) | (AfterSplit::Restart, _) => StreamStart::Start,
        };
        let streams = self.fan_out.cursors.iter().filter_map(|cursor| {
            let from = match (cursor.pages.front(), cursor.next()) {
                (Some((brought_by, _)), _) => from(brought_by),
                (None, CursorState::Page(continuation) | CursorState::Divide(_, continuation)) => {
                    from(continuation)
                }
                (None, CursorState::End) => return None,
            };
            Some(RangeStream { range: cursor.range.clone(), from })
        });
        streams.collect()
    }
}
