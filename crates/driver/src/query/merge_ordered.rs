//! Rows of all stretches in the order of ORDER BY.
//!
//! Each stretch gives its rows in order; the smallest of the first rows is next. Equal rows come in the
//! order of the ring. Cost: a row takes as many comparisons as the logarithm of the number of stretches.

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use protocol::partition::EffectivePartitionKey;
use protocol::query::SortOrder;

use super::continuation::{From, Stream};
use super::fan_out::{Ahead, Cursor, FanOut, Next, Start};
use super::plan::{Ordering, Template};
use super::position::{Catching, Position, compare_keys, resume_filter};
use super::rows::{self, OrderedRow};
use super::source::PageSource;
use crate::error::Error;

/// What the merge keeps of one stretch.
#[derive(Debug, Default)]
pub(super) struct Walk {
    rows: VecDeque<OrderedRow>,
    /// Whether one of its rows is among the heads.
    has_head: bool,
    /// The last row that was handed out.
    position: Option<Position>,
    /// Set while rows that were handed out before may come again.
    catching: Option<Catching>,
}

/// Rows in order.
#[derive(Debug)]
pub(super) struct MergeOrdered<S> {
    pub(super) fan_out: FanOut<S, Walk>,
    heads: BinaryHeap<Head>,
    template: Template,
    ordering: Ordering,
    directions: Arc<[SortOrder]>,
}

/// The first row of a stretch.
#[derive(Debug)]
struct Head {
    row: OrderedRow,
    /// The stretch it is from.
    stretch: EffectivePartitionKey,
    directions: Arc<[SortOrder]>,
}

impl<S: PageSource> MergeOrdered<S> {
    pub(super) fn new(
        source: Arc<S>,
        ahead: Ahead,
        template: Template,
        ordering: Ordering,
        streams: Vec<Stream>,
    ) -> MergeOrdered<S> {
        let starts = streams.into_iter().map(|stream| {
            let position = match stream.from {
                From::Position(position) => Some(position),
                From::Start | From::Page(_) => None,
            };
            start(&template, &ordering, stream.range, position)
        });
        let starts = starts.collect();
        let directions = ordering.directions.as_slice().into();
        let fan_out = FanOut::new(source, ahead, starts);
        MergeOrdered { fan_out, heads: BinaryHeap::new(), template, ordering, directions }
    }

    /// The next row; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        while !self.settle()? {
            self.fan_out.arrival(|_, cursor| !cursor.state.has_head).await?;
        }
        let Some(Head { row, stretch, .. }) = self.heads.pop() else { return Ok(None) };
        let cursor = self.fan_out.cursors.iter_mut().find(|cursor| cursor.range.min == stretch);
        if let Some(Cursor { range, state, .. }) = cursor {
            match &mut state.position {
                Some(position) => position.advance(row.keys, row.rid),
                None => state.position = Some(Position::after(row.keys, row.rid)),
            }
            match state.rows.pop_front() {
                Some(row) => {
                    let directions = Arc::clone(&self.directions);
                    self.heads.push(Head { row, stretch: range.min.clone(), directions });
                }
                None => state.has_head = false,
            }
        }
        Ok(Some(row.payload))
    }

    /// Brings the first row of every stretch among the heads, as far as pages are there; says whether
    /// all of them are.
    fn settle(&mut self) -> Result<bool, Error> {
        // Nearly every row leaves its stretch with another one at hand.
        if self.heads.len() == self.fan_out.cursors.len() {
            return Ok(true);
        }
        let (mut at, mut settled) = (0, true);
        while let Some(cursor) = self.fan_out.cursors.get_mut(at) {
            if cursor.state.has_head {
                at += 1;
                continue;
            }
            while cursor.state.rows.is_empty()
                && let Some((_, page)) = cursor.pages.pop_front()
            {
                cursor.state.take_page(&page.body, &self.directions)?;
            }
            if let Some(row) = cursor.state.rows.pop_front() {
                cursor.state.has_head = true;
                let directions = Arc::clone(&self.directions);
                self.heads.push(Head { row, stretch: cursor.range.min.clone(), directions });
                at += 1;
                continue;
            }
            match cursor.next().clone() {
                Next::End => {
                    self.fan_out.remove(at);
                }
                Next::Divide(parts, _) => {
                    let position = cursor.state.position.clone();
                    let starts = parts
                        .into_iter()
                        .map(|range| start(&self.template, &self.ordering, range, position.clone()));
                    let starts = starts.collect();
                    self.fan_out.replace(at, starts);
                }
                Next::Page(_) => {
                    settled = false;
                    at += 1;
                }
            }
        }
        Ok(settled)
    }

    /// Where each stretch goes on.
    pub(super) fn streams(&self) -> Vec<Stream> {
        let left = self
            .fan_out
            .cursors
            .iter()
            .filter(|cursor| cursor.state.has_head || !cursor.state.rows.is_empty() || !cursor.is_done());
        let streams = left.map(|cursor| Stream {
            range: cursor.range.clone(),
            from: cursor.state.position.clone().map_or(From::Start, From::Position),
        });
        streams.collect()
    }
}

/// A walk through `range` from `position` on.
fn start(
    template: &Template,
    ordering: &Ordering,
    range: protocol::partition::EpkRange,
    position: Option<Position>,
) -> Start<Walk> {
    let filter = match (&ordering.resume_on, &position, ordering.directions.first()) {
        (Some(expression), Some(Position { keys, .. }), Some(direction)) => {
            keys.first().map(|key| resume_filter(expression, *direction, key))
        }
        _ => None,
    };
    let catching = position.map(Catching::up_with);
    let position = catching.as_ref().map(Catching::position);
    let state = Walk { position, catching, ..Walk::default() };
    Start { range, body: template.body(filter.as_deref().unwrap_or("true")), continuation: None, state }
}

impl Walk {
    /// Takes the rows of a page, but for those that were handed out before.
    fn take_page(&mut self, body: &Bytes, directions: &[SortOrder]) -> Result<(), Error> {
        for row in rows::ordered(body)? {
            if let Some(catching) = &mut self.catching {
                match catching.is_new(&row.keys, &row.rid, directions) {
                    Some(false) => continue,
                    Some(true) => {}
                    None => self.catching = None,
                }
            }
            self.rows.push_back(row);
        }
        Ok(())
    }
}

/// The greatest is the next: the smallest by keys, then by the ring.
impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        compare_keys(&self.directions, &other.row.keys, &self.row.keys)
            .then_with(|| other.stretch.cmp(&self.stretch))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}
