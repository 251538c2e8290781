//! Rows of all ranges in the order of ORDER BY.
//!
//! Each range gives its rows in order; the smallest of the first rows is next. Equal rows come in the
//! EPK order. Cost: a row takes as many comparisons as the logarithm of the number of ranges.

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use protocol::partition::EffectivePartitionKey;
use protocol::query::SortOrder;

use super::continuation::{RangeStream, StreamStart};
use super::fan_out::{CursorState, FanOut, Prefetch, RangeCursor, RangeStart};
use super::plan::{Ordering, Template};
use super::position::{CatchUp, SortPosition, compare_keys, resume_filter};
use super::rows::{self, OrderedRow};
use super::source::PageSource;
use crate::error::Error;

/// What the merge keeps of one range.
#[derive(Debug, Default)]
pub(super) struct OrderedRange {
    rows: VecDeque<OrderedRow>,
    /// Whether one of its rows is among the heads.
    has_head: bool,
    /// The last row that was handed out.
    position: Option<SortPosition>,
    /// Set while rows that were handed out before may come again.
    catch_up: Option<CatchUp>,
}

/// The merge of all ranges in sort order.
#[derive(Debug)]
pub(super) struct MergeOrdered<S> {
    pub(super) fan_out: FanOut<S, OrderedRange>,
    heads: BinaryHeap<Head>,
    template: Template,
    ordering: Ordering,
    directions: Arc<[SortOrder]>,
}

/// The first row of an EPK range.
#[derive(Debug)]
struct Head {
    row: OrderedRow,
    /// The range it is from.
    range_min: EffectivePartitionKey,
    directions: Arc<[SortOrder]>,
}

impl<S: PageSource> MergeOrdered<S> {
    pub(super) fn new(
        source: Arc<S>,
        ahead: Prefetch,
        template: Template,
        ordering: Ordering,
        streams: Vec<RangeStream>,
    ) -> MergeOrdered<S> {
        let starts = streams.into_iter().map(|stream| {
            let position = match stream.from {
                StreamStart::Position(position) => Some(position),
                StreamStart::Start | StreamStart::Page(_) => None,
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
        while !self.refill_heads()? {
            self.fan_out.next_arrival(|_, cursor| !cursor.state.has_head).await?;
        }
        let Some(Head { row, range_min, .. }) = self.heads.pop() else { return Ok(None) };
        let cursor = self.fan_out.cursors.iter_mut().find(|cursor| cursor.range.min == range_min);
        if let Some(RangeCursor { range, state, .. }) = cursor {
            match &mut state.position {
                Some(position) => position.advance(row.keys, row.rid),
                None => state.position = Some(SortPosition::after(row.keys, row.rid)),
            }
            match state.rows.pop_front() {
                Some(row) => {
                    let directions = Arc::clone(&self.directions);
                    self.heads.push(Head { row, range_min: range.min.clone(), directions });
                }
                None => state.has_head = false,
            }
        }
        Ok(Some(row.payload))
    }

    /// Brings the first row of every range among the heads, as far as pages are there; says whether
    /// all of them are.
    fn refill_heads(&mut self) -> Result<bool, Error> {
        // Nearly every row leaves its range with another one at hand.
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
                self.heads.push(Head { row, range_min: cursor.range.min.clone(), directions });
                at += 1;
                continue;
            }
            match cursor.next().clone() {
                CursorState::End => {
                    self.fan_out.remove(at);
                }
                CursorState::Divide(parts, _) => {
                    let position = cursor.state.position.clone();
                    let starts = parts
                        .into_iter()
                        .map(|range| start(&self.template, &self.ordering, range, position.clone()));
                    let starts = starts.collect();
                    self.fan_out.replace(at, starts);
                }
                CursorState::Page(_) => {
                    settled = false;
                    at += 1;
                }
            }
        }
        Ok(settled)
    }

    /// Where each range continues.
    pub(super) fn streams(&self) -> Vec<RangeStream> {
        let left = self
            .fan_out
            .cursors
            .iter()
            .filter(|cursor| cursor.state.has_head || !cursor.state.rows.is_empty() || !cursor.is_done());
        let streams = left.map(|cursor| RangeStream {
            range: cursor.range.clone(),
            from: cursor.state.position.clone().map_or(StreamStart::Start, StreamStart::Position),
        });
        streams.collect()
    }
}

/// A walk through `range` from `position` on.
fn start(
    template: &Template,
    ordering: &Ordering,
    range: protocol::partition::EpkRange,
    position: Option<SortPosition>,
) -> RangeStart<OrderedRange> {
    let filter = match (&ordering.resume_on, &position, ordering.directions.first()) {
        (Some(expression), Some(SortPosition { keys, .. }), Some(direction)) => {
            keys.first().map(|key| resume_filter(expression, *direction, key))
        }
        _ => None,
    };
    let catching = position.map(CatchUp::new);
    let position = catching.as_ref().map(CatchUp::position);
    let state = OrderedRange { position, catch_up: catching, ..OrderedRange::default() };
    RangeStart { range, body: template.body(filter.as_deref().unwrap_or("true")), continuation: None, state }
}

impl OrderedRange {
    /// Takes the rows of a page, but for those that were handed out before.
    fn take_page(&mut self, body: &Bytes, directions: &[SortOrder]) -> Result<(), Error> {
        for row in rows::ordered(body)? {
            if let Some(catching) = &mut self.catch_up {
                match catching.is_new(&row.keys, &row.rid, directions) {
                    Some(false) => continue,
                    Some(true) => {}
                    None => self.catch_up = None,
                }
            }
            self.rows.push_back(row);
        }
        Ok(())
    }
}

/// The greatest is the next: the smallest by keys, then by the EPK space.
impl Ord for Head {
    fn cmp(&self, other: &Head) -> std::cmp::Ordering {
        compare_keys(&self.directions, &other.row.keys, &self.row.keys)
            .then_with(|| other.range_min.cmp(&self.range_min))
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
