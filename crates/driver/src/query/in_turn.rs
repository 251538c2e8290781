//! Pages one stretch of the ring after the other, asked for ahead of their turn.

use std::num::NonZeroU32;
use std::sync::Arc;

use bytes::Bytes;

use super::continuation::{From, Stream};
use super::fan_out::{Ahead, FanOut, Next, Start};
use super::source::PageSource;
use crate::error::Error;

/// What comes next.
#[derive(Debug)]
pub(super) enum Turn {
    /// A page of the current stretch.
    Page(Bytes),
    /// The current stretch was split and is read again from its beginning: what it gave is void.
    StartedOver,
    /// The current stretch is done.
    StretchDone,
}

/// What happens to a stretch that was split while it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterSplit {
    /// Its parts go on where it stopped. For queries whose rows depend on one document each: there the
    /// service's continuation means a place in the stretch, which its parts have as well.
    GoOn,
    /// Its parts are read from their beginning. For all other queries: a number of rows of the whole
    /// means nothing to a part.
    StartOver,
}

/// Pages in the order of the ring.
#[derive(Debug)]
pub(super) struct InTurn<S> {
    pub(super) fan_out: FanOut<S, ()>,
    after_split: AfterSplit,
    body: Bytes,
}

impl<S: PageSource> InTurn<S> {
    pub(super) fn new(
        source: Arc<S>,
        ahead: Ahead,
        after_split: AfterSplit,
        body: Bytes,
        streams: Vec<Stream>,
    ) -> InTurn<S> {
        let starts = streams.into_iter().map(|stream| {
            let continuation = match stream.from {
                From::Page(continuation) => Some(continuation),
                From::Start | From::Position(_) => None,
            };
            Start { range: stream.range, body: body.clone(), continuation, state: () }
        });
        let starts = starts.collect();
        InTurn { fan_out: FanOut::new(source, ahead, starts), after_split, body }
    }

    /// What comes next; none at the end.
    pub(super) async fn next(&mut self, items_max: Option<NonZeroU32>) -> Result<Option<Turn>, Error> {
        self.fan_out.limit_items(items_max);
        loop {
            let Some(first) = self.fan_out.cursors.first_mut() else { return Ok(None) };
            if let Some((_, page)) = first.pages.pop_front() {
                return Ok(Some(Turn::Page(page.body)));
            }
            match first.next().clone() {
                Next::End => {
                    self.fan_out.remove(0);
                    return Ok(Some(Turn::StretchDone));
                }
                Next::Divide(parts, continuation) => {
                    let starts_over = self.after_split == AfterSplit::StartOver;
                    let continuation = continuation.filter(|_| !starts_over);
                    let start = |range| Start {
                        range,
                        body: self.body.clone(),
                        continuation: continuation.clone(),
                        state: (),
                    };
                    let starts = parts.into_iter().map(start).collect();
                    self.fan_out.replace(0, starts);
                    if starts_over {
                        return Ok(Some(Turn::StartedOver));
                    }
                }
                Next::Page(_) => self.fan_out.arrival(|at, _| at == 0).await?,
            }
        }
    }

    /// Where each stretch goes on: after its last page, or from its beginning where that means nothing.
    pub(super) fn streams(&self) -> Vec<Stream> {
        let from = |continuation: &Option<String>| match (self.after_split, continuation) {
            (AfterSplit::GoOn, Some(continuation)) => From::Page(continuation.clone()),
            (AfterSplit::GoOn, None) | (AfterSplit::StartOver, _) => From::Start,
        };
        let streams = self.fan_out.cursors.iter().filter_map(|cursor| {
            let from = match (cursor.pages.front(), cursor.next()) {
                (Some((brought_by, _)), _) => from(brought_by),
                (None, Next::Page(continuation) | Next::Divide(_, continuation)) => from(continuation),
                (None, Next::End) => return None,
            };
            Some(Stream { range: cursor.range.clone(), from })
        });
        streams.collect()
    }
}
