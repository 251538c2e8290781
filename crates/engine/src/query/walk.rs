//! Pages of rows that come of one document each, along an access path.
//!
//! A page costs what it returns: it begins at the item, or at the index entry, where the one before it
//! ended.

use protocol::partition::EpkRange;
use sql::{InputOrder, QueryExecution, SqlError, Value};

use super::continuation::{Continuation, Position, RangeProgress};
use super::cursor;
use super::execute::{QueryOutcome, QueryRequest};
use super::page::PageBody;
use super::route::{self, Choice, Route};
use super::window::{Turn, Window};
use crate::store::PartitionState;

/// Items one page may look at before it is sent, full or not: no request occupies a core for long.
const EXAMINED_MAX: usize = 50_000;
/// What one page may do with them, in the units of [`Run::effort`], before it is sent. A single item
/// may take more than that, up to what a run allows.
const EFFORT_MAX: u64 = 5_000_000;

impl QueryRequest<'_> {
    /// Whether the one partition there is can be walked in the order of ORDER BY, from where the page
    /// before ended. A walk once begun is continued; whether to begin one is a matter of what is shorter.
    pub(super) fn walks_in_order(&self) -> bool {
        let [partition] = self.scope.partitions.as_slice() else { return false };
        if !self.statement.is_streaming(InputOrder::AlreadyOrdered) {
            return false;
        }
        let (within, whole) = self.scope.range_in(partition);
        let stretches = self.stretches(&within);
        match stretches.as_slice() {
            [] => true,
            [RangeProgress { position: Position::Start, .. }] => {
                route::choose(self.statement.access_path(), &partition.snapshot(), &within, whole).ordered
            }
            [RangeProgress { position: Position::Entry(_) | Position::Missing(_), .. }] => true,
            // Each has an order of its own, and they have to be merged.
            _ => false,
        }
    }

    /// Fills `page` with rows of one partition, so that its session token speaks for all of them.
    pub(super) fn run_by_position(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = QueryOutcome::default();
        let mut window = Window::after(self.statement, self.passed());
        for (at, partition) in self.scope.partitions.iter().enumerate() {
            let (within, _) = self.scope.range_in(partition);
            let stretches = self.stretches(&within);
            if stretches.is_empty() {
                continue;
            }
            if page.count() > 0 {
                outcome.continuation = Some(self.go_on_at(stretches[0].clone(), &window));
                return Ok(outcome);
            }
            outcome.partition = at;
            let state = partition.snapshot();
            for stretch in stretches {
                let whole = stretch.range.covers(&partition.range);
                let Some(choice) = self.choice(&state, &stretch.range, whole) else {
                    // Since the walk began, the index has lost the order.
                    return self.run_sorted(page);
                };
                let anew = stretch.position == Position::Start;
                outcome.work.partitions_begun += usize::from(anew);
                outcome.begin(at, anew);
                outcome.metrics.scanned |= !choice.indexed;
                let RangeProgress { range, position, rows_returned } = stretch;
                let mut walk =
                    Walk { request: self, state: &state, within: &range, rows_returned, window: &mut window };
                if let Some((position, rows_returned)) = walk.fill(page, choice, &position, &mut outcome)? {
                    let stretch = RangeProgress { range, position, rows_returned };
                    outcome.continuation = Some(self.go_on_at(stretch, &window));
                    return Ok(outcome);
                }
                if window.is_over() {
                    return Ok(outcome);
                }
            }
        }
        Ok(outcome)
    }

    fn choice(&self, state: &PartitionState, within: &EpkRange, whole: bool) -> Option<Choice> {
        let access = self.statement.access_path();
        if self.statement.is_ordered() {
            route::in_order(access, state)
        } else {
            Some(route::choose(access, state, within, whole))
        }
    }

    fn go_on_at(&self, stretch: RangeProgress, window: &Window) -> Continuation {
        let behind = self.from.iter().flat_map(|from| from.behind(&stretch.range.max));
        let stretches = std::iter::once(stretch.clone()).chain(behind).collect();
        Continuation { ranges: stretches, rows_passed: window.told(self.statement) }
    }
}

/// The walk of one partition.
struct Walk<'a> {
    request: &'a QueryRequest<'a>,
    state: &'a PartitionState,
    within: &'a EpkRange,
    /// Rows of the item where it begins that an earlier page returned.
    rows_returned: usize,
    window: &'a mut Window,
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
        let unchecked = choice.exact && whole_documents && continues(&choice.route, from);
        // Limits are the window's affair; without any, nothing has to be left out and nothing told apart.
        let limited = statement.is_limited();
        let mut run = match limited {
            true => QueryExecution::unmerged(statement, request.context),
            false => QueryExecution::new(statement, request.context, InputOrder::AlreadyOrdered),
        };
        let mut cursor = request.cursor(self.state, choice, from);
        while !self.window.is_over()
            && let Some(place) = cursor.next()
        {
            if !request.is_visible(&place, self.state, self.within) {
                continue;
            }
            // If the item the last page stopped at is gone, none of the next one's rows were returned.
            let returned = if place.position == *from { self.rows_returned } else { 0 };
            let effort = outcome.effort + run.work_done();
            if outcome.metrics.retrieved_count >= EXAMINED_MAX || effort >= EFFORT_MAX {
                return Ok(Some((place.position, returned)));
            }
            let rows: Option<Vec<Value>> = if unchecked {
                None
            } else {
                run.push(&place.item.value())?;
                let unmerged = run.drain_unmerged().into_iter().map(|row| row.row);
                Some(if limited { unmerged.collect() } else { run.drain() })
            };
            let count = rows.as_ref().map_or(1, Vec::len);
            outcome.count_document(&place.item, count > 0);
            for at in returned..count {
                if self.window.is_over() {
                    break;
                }
                if self.window.turn() == Turn::Return {
                    if page.is_full() {
                        return Ok(Some((place.position, at)));
                    }
                    match &rows {
                        Some(rows) if !whole_documents => page.add(&rows[at]),
                        _ => page.add_text(place.item.body_bytes()),
                    }
                }
                self.window.pass();
            }
        }
        outcome.effort += run.work_done();
        Ok(None)
    }
}

/// Whether the route resumes where `from` says rather than being replaced by another.
fn continues(route: &Route, from: &Position) -> bool {
    match route {
        Route::Scan | Route::Matches(_) => !matches!(from, Position::Entry(_)),
        Route::Entries { range, .. } => cursor::continues(range, from),
    }
}
