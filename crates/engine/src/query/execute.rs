//! Running a statement over a scope, one page at a time.
//!
//! How a page continues depends on what its rows are made of:
//!
//! * One document each, in any order or in that of an index, with or without OFFSET, LIMIT and TOP: from a
//!   position among the items (`scan`). A page costs what it returns.
//! * One document each in an order that no index has, or over several partitions; one value (DISTINCT) or
//!   one group (GROUP BY) each, or the rows of a query over those: sorted anew, from a position in that order
//!   (`sort`).
//! * All documents at once: aggregates are one row; the result of ORDER BY RANK is computed anew, here, and
//!   continues by the number of rows, since a row's position changes with every document. Writes between two
//!   pages of it can move rows across them.
//!
//! In the first two, a row that is not written between two pages is returned once, whatever else is written.
//! OFFSET, LIMIT and TOP count over all pages.

use std::sync::Arc;

use protocol::partition::EpkRange;
use sql::{InputOrder, QueryContext, QueryExecution, RowOrigin, SqlError, Statement, Value};

use super::access_method::{self, AccessMethod, AccessPlan};
use super::continuation::{Continuation, InvalidContinuation, ItemPosition, RangeProgress};
use super::cursor::{Cursor, PositionedItem};
use super::metrics::QueryMetrics;
use super::page::PageBody;
use super::resume::{InvalidResumeFilter, ResumeFilter};
use super::run_limit::RunLimit;
use super::scope::Scope;
use super::sort_position::{SortPosition, TieOrder};
use crate::charge::QueryWork;
use crate::items::Item;
use crate::store::PartitionState;
use crate::store::index::IndexSpace;

/// Containers of up to this many items are searched quickly, whatever the query.
const LONG_ITEMS: usize = 1_000;

/// One page of a query: the statement, its scope, and where it begins.
pub struct QueryRequest<'a> {
    /// The statement, prepared for the container.
    pub statement: &'a Statement,
    /// The partitions and the EPK range to search.
    pub scope: Scope,
    /// What the evaluation needs besides documents, such as the current time.
    pub context: QueryContext,
    /// Seconds since the epoch, for expiry.
    pub now: u64,
    /// Where the page begins; from the beginning without it.
    pub from: Option<Continuation>,
    /// Which rows a client that merges several ranges still wants. Beside a continuation the later position
    /// counts.
    pub resume: Option<ResumeFilter>,
    /// Whether items come in reverse order of creation, from the last partition to the first. Only for
    /// statements that return every item as it is.
    pub backwards: bool,
    /// How much the run may do.
    pub limit: RunLimit,
}

/// Why a run made no page.
#[derive(Debug)]
pub enum RunError {
    /// The query cannot be evaluated.
    Sql(SqlError),
    /// The run reached its limit. Another one with a higher limit can succeed.
    Interrupted,
}

impl From<SqlError> for RunError {
    fn from(error: SqlError) -> RunError {
        RunError::Sql(error)
    }
}

/// How the pages of a statement are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PagingStrategy {
    WithoutDocuments,
    ByPosition,
    Sorted,
    Whole,
}

/// The outcome of one page of a query.
#[derive(Debug, Default)]
pub struct QueryOutcome {
    /// Where the next page begins; none after the last.
    pub continuation: Option<Continuation>,
    /// Which of the scope's partitions the rows are from; the first when they are from several.
    pub partition: usize,
    /// The work of the partitions that have been read, in the units of [`QueryExecution::effort`].
    pub(super) work_units: u64,
    /// The work that the page is charged for.
    pub work: QueryWork,
    /// The part of `work` that each partition caused, by its index in the scope.
    pub work_by_partition: Vec<(usize, QueryWork)>,
    /// The counts for the metrics header.
    pub metrics: QueryMetrics,
}

impl QueryRequest<'_> {
    /// Runs the query and fills `page`.
    pub fn run(mut self, page: &mut PageBody) -> Result<QueryOutcome, RunError> {
        self.context.work_units_max = self.limit.work_units();
        let outcome = match self.strategy() {
            PagingStrategy::WithoutDocuments => self.run_without_documents(page),
            PagingStrategy::ByPosition => self.run_by_position(page),
            PagingStrategy::Sorted => self.run_sorted(page),
            PagingStrategy::Whole => self.run_whole(page),
        };
        let mut outcome = match outcome {
            _ if self.limit.is_reached() => return Err(RunError::Interrupted),
            Err(error) if error.is_too_much_work() && self.limit.work_units().is_some() => {
                return Err(RunError::Interrupted);
            }
            outcome => outcome?,
        };
        outcome.work.output_bytes = page.bytes();
        outcome.metrics.output_count = page.count();
        outcome.metrics.output_bytes = page.bytes();
        Ok(outcome)
    }

    /// Whether it may keep a core busy for longer than other requests should wait.
    pub fn may_take_long(&self) -> bool {
        let items: usize = self.scope.partitions.iter().map(|partition| partition.snapshot().len()).sum();
        items > LONG_ITEMS && !(self.strategy() == PagingStrategy::ByPosition && self.is_served_by_an_index())
    }

    fn is_served_by_an_index(&self) -> bool {
        self.scope.partitions.iter().all(|partition| {
            let (within, whole) = self.scope.range_in(partition);
            let plan =
                access_method::choose(self.statement.access_path(), &partition.snapshot(), &within, whole);
            plan.indexed || plan.exact
        })
    }

    /// The way in which its pages are made.
    fn strategy(&self) -> PagingStrategy {
        if !self.statement.has_from() {
            return PagingStrategy::WithoutDocuments;
        }
        if self.from.as_ref().is_some_and(|from| from.returned_rows().is_some()) {
            return PagingStrategy::Whole;
        }
        match self.statement.row_origin() {
            RowOrigin::Documents if !self.statement.is_ordered() || self.has_ordered_scan() => {
                PagingStrategy::ByPosition
            }
            RowOrigin::Documents | RowOrigin::Values | RowOrigin::Rows => PagingStrategy::Sorted,
            RowOrigin::AllDocuments => PagingStrategy::Whole,
        }
    }

    /// The ranges of `within` that remain to be read, with their positions.
    pub(super) fn ranges(&self, within: &EpkRange) -> Vec<RangeProgress> {
        match &self.from {
            Some(from) if self.backwards => from.remaining_backwards(within),
            Some(from) => from.remaining(within),
            None => {
                vec![RangeProgress { range: within.clone(), position: ItemPosition::Start, rows_returned: 0 }]
            }
        }
    }

    /// Rows that OFFSET skipped and that TOP or LIMIT let through so far.
    pub(super) fn passed(&self) -> u64 {
        self.from.as_ref().map_or(0, |from| from.rows_passed)
    }

    /// Checks that the resume filter can be one of this statement.
    pub fn check_resume_filter(&self) -> Result<(), InvalidResumeFilter> {
        self.resume.as_ref().map_or(Ok(()), |resume| resume.check(self.statement))
    }

    /// Whether items with equal ORDER BY values come in reverse order of creation although the first column is
    /// ascending, or the other way round. Clients that continue by item assume the direction of the first column
    /// and have to be told; `None` where they are right.
    pub fn unusual_tie_order(&self) -> Option<bool> {
        let backwards = self.statement.is_ordered() && self.tie_order() == TieOrder::Backwards;
        (backwards != self.statement.is_stated_descending()).then_some(backwards)
    }

    /// The order of items with equal ORDER BY values.
    pub(super) fn tie_order(&self) -> TieOrder {
        match self.scope.partitions.first() {
            Some(partition) => access_method::tie_order(self.statement, &partition.snapshot().schema.policy),
            None => TieOrder::Forwards,
        }
    }

    /// The position of the first row that the resume filter lets through.
    pub(super) fn resume_position(&self) -> Option<SortPosition> {
        Some(self.resume.as_ref()?.position(self.statement, self.tie_order()))
    }

    /// Checks that the token can be one of this statement.
    pub fn check_token(&self) -> Result<(), InvalidContinuation> {
        let Some(from) = &self.from else { return Ok(()) };
        let ordered = self.statement.is_ordered()
            || matches!(self.statement.row_origin(), RowOrigin::Values | RowOrigin::Rows);
        let in_order = |entry: &[u8]| {
            let space = entry.first_chunk().map(|space| IndexSpace::from_bytes(*space));
            space.is_some_and(|space| {
                access_method::went_backwards(self.statement.access_path(), space).is_some()
            })
        };
        let fits = from.ranges.iter().all(|progress| match &progress.position {
            ItemPosition::Start | ItemPosition::RowCount(_) => true,
            ItemPosition::Item(_) => !ordered,
            ItemPosition::Entry(entry) => !ordered || in_order(entry),
            ItemPosition::Undefined(_) => self.statement.access_path().order.len() == 1,
            ItemPosition::Sorted(_) => ordered,
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

    fn run_whole(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let skip = self.from.as_ref().and_then(Continuation::returned_rows).unwrap_or(0);
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = if skip == 0 { self.scope.partitions.len() } else { 0 };
        let mut run = None;
        let mut rows: Vec<Value> = Vec::new();
        let mut all_items: Vec<Arc<Item>> = Vec::new();
        'partitions: for (at, partition) in self.scope.partitions.iter().enumerate() {
            outcome.begin(at, true);
            let state = partition.snapshot();
            let (within, whole) = self.scope.range_in(partition);
            let plan = access_method::choose(self.statement.access_path(), &state, &within, whole);
            outcome.metrics.scanned |= !plan.indexed;
            let ordered = plan.ordered && self.scope.partitions.len() == 1;
            let order = if ordered { InputOrder::AlreadyOrdered } else { InputOrder::Any };
            let run = run.get_or_insert_with(|| QueryExecution::new(self.statement, self.context, order));
            if plan.exact && self.statement.counts_documents_only() {
                run.push_count(self.count(&state, plan, &within, whole));
                continue;
            }
            let mut cursor = self.cursor(&state, plan, &ItemPosition::Start);
            let visible =
                std::iter::from_fn(|| cursor.next()).filter(|found| self.is_visible(found, &state, &within));
            if self.scope.partitions.len() > 1 {
                all_items.extend(visible.map(|found| found.item));
                continue;
            }
            for found in visible {
                outcome.count_document(&found.item, true);
                let flow = run.push(&found.item.value())?;
                rows.extend(run.drain());
                if flow == sql::InputDemand::Enough || rows.len() > skip + page.rows_max() {
                    break 'partitions;
                }
            }
        }
        // In order of creation, as one partition has them: a page after a split continues where the page
        // before it ended.
        all_items.sort_unstable_by_key(|item| item.ordinal);
        for item in all_items {
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
                outcome.continuation = Some(Continuation::at(within, ItemPosition::RowCount(returned), 0));
                break;
            }
            page.add(row);
        }
        Ok(outcome)
    }

    /// The number of items on an access method, without reading them.
    fn count(&self, state: &PartitionState, plan: AccessPlan, within: &EpkRange, whole: bool) -> u64 {
        let all_live = state.expired(self.now).next().is_none();
        if whole && all_live && matches!(plan.access_method, AccessMethod::FullScan) {
            return state.len() as u64;
        }
        let mut cursor = self.cursor(state, plan, &ItemPosition::Start);
        let found = std::iter::from_fn(|| cursor.next());
        found.filter(|found| self.is_visible(found, state, within)).count() as u64
    }

    pub(super) fn cursor<'s>(
        &'s self,
        state: &'s PartitionState,
        plan: AccessPlan,
        from: &ItemPosition,
    ) -> Cursor<'s> {
        let order_path =
            self.statement.access_path().order.first().map(|(path, _)| access_method::steps_of(path));
        Cursor::new(state, plan.access_method, from, order_path.unwrap_or_default(), &self.limit)
    }

    pub(super) fn is_visible(
        &self,
        found: &PositionedItem,
        state: &PartitionState,
        within: &EpkRange,
    ) -> bool {
        within.contains(&found.item.epk)
            && found.item.is_live(state.schema.default_ttl, self.now)
            // As in the service, an item that is not indexed is found by no condition.
            && (found.item.is_indexed || !self.statement.has_conditions())
    }
}

impl QueryOutcome {
    /// Begins to count the work of the partition at this index of the scope, for the first time or again.
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
