//! Running a statement over a scope, one page at a time.
//!
//! Two ways to page. A statement whose rows depend on one document each goes on from a position:
//! a page costs what it returns. One whose rows depend on all of them (aggregates, GROUP BY,
//! DISTINCT, TOP, an ORDER BY no index serves) is worked out anew and skips what was returned.

use std::sync::Arc;

use protocol::partition::EpkRange;
use sql::{Context, InputOrder, Run, SqlError, Statement, Value};

use super::continuation::{Continuation, Position, Stretch};
use super::cursor::{Cursor, Place};
use super::metrics::Metrics;
use super::page::PageBody;
use super::route::{self, Choice, Route};
use super::scope::Scope;
use crate::charge::QueryWork;
use crate::store::{Item, State};

/// Items one page may look at before it is sent, full or not: no request occupies a core for long.
const EXAMINED_MAX: usize = 50_000;
/// What one page may do with them, in the units of [`Run::effort`], before it is sent. A single item
/// may take more than that, up to what a run allows.
const EFFORT_MAX: u64 = 5_000_000;

/// Containers of up to so many items are searched in no time, whatever is asked.
const LONG_ITEMS: usize = 1_000;

/// What to run, where, and from which point on.
pub(crate) struct QueryRequest<'a> {
    pub(crate) statement: &'a Statement,
    pub(crate) scope: Scope,
    pub(crate) context: Context,
    /// Seconds since the epoch, for expiry.
    pub(crate) now: u64,
    pub(crate) from: Option<Continuation>,
}

/// What a page was made of.
#[derive(Debug, Default)]
pub(crate) struct QueryOutcome {
    pub(crate) continuation: Option<Continuation>,
    /// Which of the scope's partitions the rows are from; the first when they are from several.
    pub(crate) partition: usize,
    /// Of the partitions that are done with.
    effort: u64,
    pub(crate) work: QueryWork,
    /// The part of `work` that each partition read had, by its place in the scope.
    pub(crate) shares: Vec<(usize, QueryWork)>,
    pub(crate) metrics: Metrics,
}

impl QueryRequest<'_> {
    /// Fills `page`.
    pub(crate) fn run(self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = if !self.statement.has_from() {
            self.run_without_documents(page)?
        } else if self.goes_on_by_position() {
            self.run_by_position(page)?
        } else {
            self.run_as_a_whole(page)?
        };
        outcome.work.output_bytes = page.bytes();
        outcome.metrics.output_count = page.count();
        outcome.metrics.output_bytes = page.bytes();
        Ok(outcome)
    }

    /// Whether it may keep a core busy for longer than other requests should wait.
    pub(crate) fn may_take_long(&self) -> bool {
        let items: usize = self.scope.partitions.iter().map(|partition| partition.snapshot().len()).sum();
        items > LONG_ITEMS && !(self.goes_on_by_position() && self.is_served_by_an_index())
    }

    fn is_served_by_an_index(&self) -> bool {
        self.scope.partitions.iter().all(|partition| {
            let (within, whole) = self.scope.part_of(partition);
            let choice = route::choose(self.statement.access(), &partition.snapshot(), &within, whole);
            choice.indexed || choice.exact
        })
    }

    /// Whether each row depends on one document alone, so that a page can go on from a position.
    fn goes_on_by_position(&self) -> bool {
        let worked_out = self.from.as_ref().is_some_and(|from| from.rows().is_some());
        !worked_out && (!self.statement.needs_merge() || self.walks_in_order())
    }

    /// Whether ORDER BY is all there is to merge and the one partition there is can be walked in order.
    fn walks_in_order(&self) -> bool {
        let query = self.statement.query();
        let limited = query.top.is_some() || query.offset_limit.is_some() || query.distinct;
        let [partition] = self.scope.partitions.as_slice() else { return false };
        if limited || !self.statement.is_streaming(InputOrder::AlreadyOrdered) {
            return false;
        }
        // A walk in order, once begun, is continued.
        self.from.is_some() || {
            let (within, whole) = self.scope.part_of(partition);
            route::choose(self.statement.access(), &partition.snapshot(), &within, whole).ordered
        }
    }

    fn run_without_documents(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let run = Run::new(self.statement, self.context, InputOrder::Any);
        for row in &run.finish()? {
            page.add(row);
        }
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = 1;
        outcome.begin(0, true);
        Ok(outcome)
    }

    /// Rows of a page are from one partition, so that its session token speaks for all of them.
    fn run_by_position(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = QueryOutcome::default();
        let go_on_at = |range: EpkRange, position, rows_returned| {
            let behind: Vec<Stretch> = self.from.iter().flat_map(|from| from.behind(&range.max)).collect();
            let mut next = Continuation::at(range, position, rows_returned);
            next.stretches.extend(behind);
            Some(next)
        };
        for (at, partition) in self.scope.partitions.iter().enumerate() {
            let (within, _) = self.scope.part_of(partition);
            let stretches = match &self.from {
                Some(from) => from.remaining(&within),
                None => vec![Stretch { range: within, position: Position::Start, rows_returned: 0 }],
            };
            if stretches.is_empty() {
                continue;
            }
            if page.count() > 0 {
                let Stretch { range, position, rows_returned } = stretches[0].clone();
                outcome.continuation = go_on_at(range, position, rows_returned);
                return Ok(outcome);
            }
            outcome.partition = at;
            let state = partition.snapshot();
            for stretch in stretches {
                let whole = stretch.range.covers(&partition.range);
                let anew = stretch.position == Position::Start;
                outcome.work.partitions_begun += usize::from(anew);
                outcome.begin(at, anew);
                let choice = route::choose(self.statement.access(), &state, &stretch.range, whole);
                outcome.metrics.scanned |= !choice.indexed;
                let Stretch { range, position, rows_returned } = stretch;
                let mut walk = Walk { request: self, state: &state, within: &range, rows_returned };
                if let Some((position, rows_returned)) = walk.fill(page, choice, &position, &mut outcome)? {
                    outcome.continuation = go_on_at(range, position, rows_returned);
                    return Ok(outcome);
                }
            }
        }
        Ok(outcome)
    }

    fn run_as_a_whole(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let skip = self.from.as_ref().and_then(Continuation::rows).unwrap_or(0);
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = if skip == 0 { self.scope.partitions.len() } else { 0 };
        let mut run = None;
        let mut rows: Vec<Value> = Vec::new();
        let mut together: Vec<Arc<Item>> = Vec::new();
        'partitions: for (at, partition) in self.scope.partitions.iter().enumerate() {
            outcome.begin(at, true);
            let state = partition.snapshot();
            let (within, whole) = self.scope.part_of(partition);
            let choice = route::choose(self.statement.access(), &state, &within, whole);
            outcome.metrics.scanned |= !choice.indexed;
            let ordered = choice.ordered && self.scope.partitions.len() == 1;
            let order = if ordered { InputOrder::AlreadyOrdered } else { InputOrder::Any };
            let run = run.get_or_insert_with(|| Run::new(self.statement, self.context, order));
            if choice.exact && self.statement.counts_documents_only() {
                run.push_unread(self.count(&state, choice, &within, whole));
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
                if flow == sql::Flow::Enough || rows.len() > skip + page.rows_max() {
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
            if flow == sql::Flow::Enough || rows.len() > skip + page.rows_max() {
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
    fn count(&self, state: &State, choice: Choice, within: &EpkRange, whole: bool) -> u64 {
        let all_live = state.expired(self.now).next().is_none();
        if whole && all_live && matches!(choice.route, Route::Scan) {
            return state.len() as u64;
        }
        let mut cursor = self.cursor(state, choice, &Position::Start);
        let places = std::iter::from_fn(|| cursor.next());
        places.filter(|place| self.is_visible(place, state, within)).count() as u64
    }

    fn cursor<'s>(&self, state: &'s State, choice: Choice, from: &Position) -> Cursor<'s> {
        let order_path = self.statement.access().order.first().map(|(path, _)| route::steps_of(path));
        Cursor::new(state, choice.route, from, order_path.unwrap_or_default())
    }

    fn is_visible(&self, place: &Place, state: &State, within: &EpkRange) -> bool {
        within.contains(&place.item.epk) && place.item.is_live(state.schema.default_ttl, self.now)
    }
}

/// The walk of one partition.
struct Walk<'a> {
    request: &'a QueryRequest<'a>,
    state: &'a State,
    within: &'a EpkRange,
    /// Rows of the first item that an earlier page returned.
    rows_returned: usize,
}

impl Walk<'_> {
    /// Adds rows until the page is full, and says where the next row is if there is one.
    fn fill(
        &mut self,
        page: &mut PageBody,
        choice: Choice,
        from: &Position,
        outcome: &mut QueryOutcome,
    ) -> Result<Option<(Position, usize)>, SqlError> {
        let request = self.request;
        let statement = request.statement;
        let whole_documents = statement.returns_whole_documents();
        // A walk that changed its route since the last page has to check every item again.
        let unchecked = choice.exact && whole_documents && route_continues(&choice.route, from);
        let mut run = Run::new(statement, request.context, InputOrder::AlreadyOrdered);
        let mut cursor = request.cursor(self.state, choice, from);
        while let Some(place) = cursor.next() {
            if !request.is_visible(&place, self.state, self.within) {
                continue;
            }
            if outcome.metrics.retrieved_count >= EXAMINED_MAX || outcome.effort + run.effort() >= EFFORT_MAX
            {
                return Ok(Some((place.position, 0)));
            }
            let rows = if unchecked {
                None
            } else {
                run.push(&place.item.value())?;
                Some(run.drain())
            };
            let count = rows.as_ref().map_or(1, Vec::len);
            outcome.count_document(&place.item, count > 0);
            let returned = std::mem::take(&mut self.rows_returned);
            for at in returned..count {
                if page.is_full() {
                    return Ok(Some((place.position, at)));
                }
                match &rows {
                    Some(rows) if !whole_documents => page.add(&rows[at]),
                    _ => page.add_text(place.item.body_bytes()),
                }
            }
        }
        outcome.effort += run.effort();
        Ok(None)
    }
}

/// Whether the route resumes where `from` says rather than being replaced by another.
fn route_continues(route: &Route, from: &Position) -> bool {
    match route {
        Route::Scan | Route::Matches(_) => !matches!(from, Position::Entry(_)),
        Route::Entries { .. } => !matches!(from, Position::Item(_)),
    }
}

impl QueryOutcome {
    /// Whose work follows: the partition at this place of the scope, for the first time or again.
    fn begin(&mut self, at: usize, anew: bool) {
        self.shares.push((at, QueryWork { partitions_begun: anew.into(), ..QueryWork::default() }));
    }

    fn count_document(&mut self, item: &Item, useful: bool) {
        self.metrics.retrieved_count += 1;
        self.metrics.retrieved_bytes += item.size();
        let share = self.shares.last_mut().map(|(_, share)| share);
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
