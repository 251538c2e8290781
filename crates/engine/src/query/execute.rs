//! Running a statement over a scope, one page at a time.
//!
//! How a page goes on depends on what its rows are made of:
//!
//! * One document each, in any order or in that of an index, with or without OFFSET, LIMIT and TOP: from a
//!   position among the items (`walk`). A page costs what it returns.
//! * One document each in an order that no index has, or over several partitions; one value (DISTINCT) or
//!   one group (GROUP BY) each, or the rows of a query over those: sorted anew, from a place in that order
//!   (`sort`).
//! * All documents at once: aggregates are one row; what ORDER BY RANK gives is worked out anew, here, and
//!   goes on by the number of rows, since a row's place changes with every document. Writes between two
//!   pages of it can move rows across them.
//!
//! In the first two, a row that nobody touched between two pages is returned once, whatever else was
//! written. OFFSET, LIMIT and TOP count over all pages.

use std::sync::Arc;

use protocol::partition::EpkRange;
use sql::{InputOrder, QueryContext, QueryExecution, RowOrigin, SqlError, Statement, Value};

use super::continuation::{Continuation, InvalidContinuation, Position, RangeProgress};
use super::cursor::{Cursor, Place};
use super::metrics::QueryMetrics;
use super::page::PageBody;
use super::route::{self, Choice, Route};
use super::scope::Scope;
use crate::charge::QueryWork;
use crate::items::Item;
use crate::store::PartitionState;
use crate::store::index::IndexSpace;

/// Containers of up to so many items are searched in no time, whatever is asked.
const LONG_ITEMS: usize = 1_000;

/// What to run, where, and from which point on.
pub struct QueryRequest<'a> {
    pub statement: &'a Statement,
    pub scope: Scope,
    pub context: QueryContext,
    /// Seconds since the epoch, for expiry.
    pub now: u64,
    pub from: Option<Continuation>,
}

/// How the pages of a statement are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    WithoutDocuments,
    ByPosition,
    Sorted,
    AsAWhole,
}

/// What a page was made of.
#[derive(Debug, Default)]
pub struct QueryOutcome {
    pub continuation: Option<Continuation>,
    /// Which of the scope's partitions the rows are from; the first when they are from several.
    pub partition: usize,
    /// Of the partitions that are done with.
    pub(super) effort: u64,
    pub work: QueryWork,
    /// The part of `work` that each partition read had, by its place in the scope.
    pub work_by_partition: Vec<(usize, QueryWork)>,
    pub metrics: QueryMetrics,
}

impl QueryRequest<'_> {
    /// Fills `page`.
    pub fn run(self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = match self.way() {
            Way::WithoutDocuments => self.run_without_documents(page)?,
            Way::ByPosition => self.run_by_position(page)?,
            Way::Sorted => self.run_sorted(page)?,
            Way::AsAWhole => self.run_as_a_whole(page)?,
        };
        outcome.work.output_bytes = page.bytes();
        outcome.metrics.output_count = page.count();
        outcome.metrics.output_bytes = page.bytes();
        Ok(outcome)
    }

    /// Whether it may keep a core busy for longer than other requests should wait.
    pub fn may_take_long(&self) -> bool {
        let items: usize = self.scope.partitions.iter().map(|partition| partition.snapshot().len()).sum();
        items > LONG_ITEMS && !(self.way() == Way::ByPosition && self.is_served_by_an_index())
    }

    fn is_served_by_an_index(&self) -> bool {
        self.scope.partitions.iter().all(|partition| {
            let (within, whole) = self.scope.range_in(partition);
            let choice = route::choose(self.statement.access_path(), &partition.snapshot(), &within, whole);
            choice.indexed || choice.exact
        })
    }

    /// How its pages are made.
    fn way(&self) -> Way {
        if !self.statement.has_from() {
            return Way::WithoutDocuments;
        }
        if self.from.as_ref().is_some_and(|from| from.returned_rows().is_some()) {
            return Way::AsAWhole;
        }
        match self.statement.row_origin() {
            RowOrigin::Documents if !self.statement.is_ordered() || self.walks_in_order() => Way::ByPosition,
            RowOrigin::Documents | RowOrigin::Values | RowOrigin::Rows => Way::Sorted,
            RowOrigin::AllDocuments => Way::AsAWhole,
        }
    }

    /// What remains to be read of `within`, and from which place on.
    pub(super) fn stretches(&self, within: &EpkRange) -> Vec<RangeProgress> {
        match &self.from {
            Some(from) => from.remaining(within),
            None => {
                vec![RangeProgress { range: within.clone(), position: Position::Start, rows_returned: 0 }]
            }
        }
    }

    /// Rows that OFFSET skipped and that TOP or LIMIT let through so far.
    pub(super) fn passed(&self) -> u64 {
        self.from.as_ref().map_or(0, |from| from.rows_passed)
    }

    /// Whether the token is one that this statement can have given.
    pub fn check_token(&self) -> Result<(), InvalidContinuation> {
        let Some(from) = &self.from else { return Ok(()) };
        let ordered = self.statement.is_ordered()
            || matches!(self.statement.row_origin(), RowOrigin::Values | RowOrigin::Rows);
        let in_order = |entry: &[u8]| {
            let space = entry.first_chunk().map(|space| IndexSpace::from_bytes(*space));
            space.is_some_and(|space| route::went_backwards(self.statement.access_path(), space).is_some())
        };
        let fits = from.ranges.iter().all(|stretch| match &stretch.position {
            Position::Start | Position::Row(_) => true,
            Position::Item(_) => !ordered,
            Position::Entry(entry) => !ordered || in_order(entry),
            Position::Missing(_) => self.statement.access_path().order.len() == 1,
            Position::Spot(_) => ordered,
        });
        if fits { Ok(()) } else { Err(InvalidContinuation) }
    }

    fn run_without_documents(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let run = QueryExecution::new(self.statement, self.context, InputOrder::Any);
        for row in &run.finish()? {
            page.add(row);
        }
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = 1;
        outcome.begin(0, true);
        Ok(outcome)
    }

    fn run_as_a_whole(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let skip = self.from.as_ref().and_then(Continuation::returned_rows).unwrap_or(0);
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = if skip == 0 { self.scope.partitions.len() } else { 0 };
        let mut run = None;
        let mut rows: Vec<Value> = Vec::new();
        let mut together: Vec<Arc<Item>> = Vec::new();
        'partitions: for (at, partition) in self.scope.partitions.iter().enumerate() {
            outcome.begin(at, true);
            let state = partition.snapshot();
            let (within, whole) = self.scope.range_in(partition);
            let choice = route::choose(self.statement.access_path(), &state, &within, whole);
            outcome.metrics.scanned |= !choice.indexed;
            let ordered = choice.ordered && self.scope.partitions.len() == 1;
            let order = if ordered { InputOrder::AlreadyOrdered } else { InputOrder::Any };
            let run = run.get_or_insert_with(|| QueryExecution::new(self.statement, self.context, order));
            if choice.exact && self.statement.counts_documents_only() {
                run.push_count(self.count(&state, choice, &within, whole));
                continue;
            }
            let mut cursor = self.cursor(&state, choice, &Position::Start);
            let visible =
                std::iter::from_fn(|| cursor.next()).filter(|place| self.is_visible(place, &state, &within));
            if self.scope.partitions.len() > 1 {
                together.extend(visible.map(|place| place.item));
                continue;
            }
            for place in visible {
                outcome.count_document(&place.item, true);
                let flow = run.push(&place.item.value())?;
                rows.extend(run.drain());
                if flow == sql::InputDemand::Enough || rows.len() > skip + page.rows_max() {
                    break 'partitions;
                }
            }
        }
        // In the order in which they were created, as one partition has them: a page that is asked for
        // after a split goes on where the page before it ended.
        together.sort_unstable_by_key(|item| item.ordinal);
        for item in together {
            outcome.count_document(&item, true);
            let run = run.as_mut().expect("items come from a partition, which began the run");
            let flow = run.push(&item.value())?;
            rows.extend(run.drain());
            if flow == sql::InputDemand::Enough || rows.len() > skip + page.rows_max() {
                break;
            }
        }
        if let Some(run) = run {
            rows.extend(run.finish()?);
        }
        for (returned, row) in (skip..).zip(rows.iter().skip(skip)) {
            if page.is_full() {
                let within = self.scope.within.clone();
                outcome.continuation = Some(Continuation::at(within, Position::Row(returned), 0));
                break;
            }
            page.add(row);
        }
        Ok(outcome)
    }

    /// How many items are on a route, without reading them.
    fn count(&self, state: &PartitionState, choice: Choice, within: &EpkRange, whole: bool) -> u64 {
        let all_live = state.expired(self.now).next().is_none();
        if whole && all_live && matches!(choice.route, Route::Scan) {
            return state.len() as u64;
        }
        let mut cursor = self.cursor(state, choice, &Position::Start);
        let places = std::iter::from_fn(|| cursor.next());
        places.filter(|place| self.is_visible(place, state, within)).count() as u64
    }

    pub(super) fn cursor<'s>(
        &self,
        state: &'s PartitionState,
        choice: Choice,
        from: &Position,
    ) -> Cursor<'s> {
        let order_path = self.statement.access_path().order.first().map(|(path, _)| route::steps_of(path));
        Cursor::new(state, choice.route, from, order_path.unwrap_or_default())
    }

    pub(super) fn is_visible(&self, place: &Place, state: &PartitionState, within: &EpkRange) -> bool {
        within.contains(&place.item.epk) && place.item.is_live(state.schema.default_ttl, self.now)
    }
}

impl QueryOutcome {
    /// Whose work follows: the partition at this place of the scope, for the first time or again.
    pub(super) fn begin(&mut self, at: usize, anew: bool) {
        self.work_by_partition
            .push((at, QueryWork { partitions_begun: anew.into(), ..QueryWork::default() }));
    }

    pub(super) fn count_document(&mut self, item: &Item, useful: bool) {
        self.metrics.retrieved_count += 1;
        self.metrics.retrieved_bytes += item.size();
        let share = self.work_by_partition.last_mut().map(|(_, share)| share);
        if useful {
            self.work.loaded += 1;
            share.into_iter().for_each(|share| share.loaded += 1);
        } else {
            self.work.rejected += 1;
            share.into_iter().for_each(|share| share.rejected += 1);
            self.metrics.rejected_count += 1;
        }
    }
}
