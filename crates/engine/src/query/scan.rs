//! Pages whose rows come from one document each, along an access method.
//!
//! A page costs what it returns: it begins at the item, or at the index entry, where the one before it
//! ended.

use protocol::partition::EpkRange;
use sql::{InputOrder, QueryExecution, SqlError, Value};

use super::access_method::{self, AccessMethod, AccessPlan};
use super::continuation::{Continuation, ItemPosition, RangeProgress};
use super::cursor;
use super::execute::{QueryOutcome, QueryRequest};
use super::offset_limit::{OffsetLimit, RowDecision};
use super::page::PageBody;
use super::sort_position::identity_of_item;
use crate::store::PartitionState;

/// Items one page may read before it is sent, full or not: no request occupies a core for long.
const EXAMINED_MAX: usize = 50_000;
/// The work one page may do, in the units of [`QueryExecution::effort`], before it is sent. A single item may take more
/// than that, up to what a run allows.
const WORK_UNITS_MAX: u64 = 5_000_000;

impl QueryRequest<'_> {
    /// Whether the only partition can be scanned in the order of ORDER BY, from where the page before ended.
    /// A scan that was begun is continued; whether to begin one depends on which method reads less.
    pub(super) fn has_ordered_scan(&self) -> bool {
        let [partition] = self.scope.partitions.as_slice() else { return false };
        if !self.statement.is_streaming(InputOrder::AlreadyOrdered) {
            return false;
        }
        let (within, whole) = self.scope.range_in(partition);
        let ranges = self.ranges(&within);
        match ranges.as_slice() {
            [] => true,
            [RangeProgress { position: ItemPosition::Start, .. }] => {
                access_method::choose(self.statement.access_path(), &partition.snapshot(), &within, whole)
                    .ordered
            }
            [RangeProgress { position: ItemPosition::Entry(_) | ItemPosition::Undefined(_), .. }] => true,
            // Each range has an order of its own, and they have to be merged.
            _ => false,
        }
    }

    /// Fills `page` with rows of one partition, so that its session token covers all of them.
    pub(super) fn run_by_position(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = QueryOutcome::default();
        let mut offset_limit = OffsetLimit::after(self.statement, self.passed());
        let mut is_begun = false;
        let partitions = self.scope.partitions.len();
        for step in 0..partitions {
            let at = if self.backwards { partitions - 1 - step } else { step };
            let partition = &self.scope.partitions[at];
            let (within, _) = self.scope.range_in(partition);
            let ranges = self.ranges(&within);
            if ranges.is_empty() {
                continue;
            }
            // As in the service, a page is of one partition, also if that has no rows.
            if std::mem::replace(&mut is_begun, true) {
                outcome.continuation = Some(self.continue_at(ranges[0].clone(), &offset_limit));
                return Ok(outcome);
            }
            outcome.partition = at;
            let state = partition.snapshot();
            for progress in ranges {
                let whole = progress.range.covers(&partition.range);
                let Some(plan) = self.plan(&state, &progress.range, whole) else {
                    // Since the scan began, the index has lost the order.
                    return self.run_sorted(page);
                };
                let anew = progress.position == ItemPosition::Start;
                outcome.work.partitions_begun += usize::from(anew);
                outcome.begin(at, anew);
                outcome.metrics.scanned |= !plan.indexed;
                let RangeProgress { range, position, rows_returned } = progress;
                let mut scan = PartitionScan {
                    request: self,
                    state: &state,
                    within: &range,
                    rows_returned,
                    offset_limit: &mut offset_limit,
                };
                if let Some((position, rows_returned)) = scan.fill(page, plan, &position, &mut outcome)? {
                    let progress = RangeProgress { range, position, rows_returned };
                    outcome.continuation = Some(self.continue_at(progress, &offset_limit));
                    return Ok(outcome);
                }
                if offset_limit.is_exhausted() {
                    return Ok(outcome);
                }
            }
        }
        Ok(outcome)
    }

    fn plan(&self, state: &PartitionState, within: &EpkRange, whole: bool) -> Option<AccessPlan> {
        let access = self.statement.access_path();
        if self.backwards {
            let access_method = AccessMethod::FullScanBackwards;
            return Some(AccessPlan { access_method, exact: access.exact, ordered: false, indexed: false });
        }
        if self.statement.is_ordered() {
            access_method::in_order(access, state)
        } else {
            Some(access_method::choose(access, state, within, whole))
        }
    }

    fn continue_at(&self, progress: RangeProgress, offset_limit: &OffsetLimit) -> Continuation {
        let ranges = match self.backwards {
            true => {
                let before = self.from.iter().flat_map(|from| from.ranges_before(&progress.range.min));
                before.chain(std::iter::once(progress.clone())).collect()
            }
            false => {
                let after = self.from.iter().flat_map(|from| from.ranges_after(&progress.range.max));
                std::iter::once(progress.clone()).chain(after).collect()
            }
        };
        Continuation { ranges, rows_passed: offset_limit.rows_passed(self.statement) }
    }
}

/// A scan of one partition.
struct PartitionScan<'a> {
    request: &'a QueryRequest<'a>,
    state: &'a PartitionState,
    within: &'a EpkRange,
    /// Rows of its first item that an earlier page returned.
    rows_returned: usize,
    offset_limit: &'a mut OffsetLimit,
}

impl PartitionScan<'_> {
    /// Adds rows until the page is full, and returns the position of the next row if there is one.
    fn fill(
        &mut self,
        page: &mut PageBody,
        plan: AccessPlan,
        from: &ItemPosition,
        outcome: &mut QueryOutcome,
    ) -> Result<Option<(ItemPosition, usize)>, SqlError> {
        let request = self.request;
        let statement = request.statement;
        let whole_documents = statement.returns_whole_documents();
        let resume = request.resume_position();
        // A scan whose access method changed since the last page has to check every item again.
        let unchecked =
            plan.exact && whole_documents && continues(&plan.access_method, from) && resume.is_none();
        // OFFSET and LIMIT are counted outside the run; without them, rows need not be kept apart.
        let unmerged = statement.is_limited() || resume.is_some();
        let start = match (&request.resume, &resume, from) {
            (Some(filter), Some(position), ItemPosition::Start) => {
                &filter.scan_start(position, &plan.access_method)
            }
            _ => from,
        };
        let mut run = match unmerged {
            true => QueryExecution::unmerged(statement, request.context),
            false => QueryExecution::new(statement, request.context, InputOrder::AlreadyOrdered),
        };
        let mut cursor = request.cursor(self.state, plan, start);
        while !self.offset_limit.is_exhausted()
            && let Some(found) = cursor.next()
        {
            if !request.is_visible(&found, self.state, self.within) {
                continue;
            }
            // If the item the last page stopped at is gone, none of the next one's rows were returned.
            let returned = if found.position == *from { self.rows_returned } else { 0 };
            let work_units = outcome.work_units + run.work_done();
            if outcome.metrics.retrieved_count >= EXAMINED_MAX || work_units >= WORK_UNITS_MAX {
                return Ok(Some((found.position, returned)));
            }
            let rows: Option<Vec<Value>> = if unchecked {
                None
            } else {
                run.push(&found.item.value())?;
                let rows = run.drain_unmerged().into_iter().enumerate();
                let wanted = rows.filter(|(number, row)| {
                    let Some(from) = &resume else { return true };
                    let identity = identity_of_item(found.item.ordinal, *number, from.ties);
                    from.compare(&[row.order.as_slice(), &identity].concat()).is_ge()
                });
                let wanted = wanted.map(|(_, row)| row.row);
                Some(if unmerged { wanted.collect() } else { run.drain() })
            };
            let count = rows.as_ref().map_or(1, Vec::len);
            // The last page ended after the item's last row, and has been charged for it.
            if returned > 0 && returned >= count {
                continue;
            }
            outcome.count_document(&found.item, count > 0);
            for at in returned..count {
                if self.offset_limit.is_exhausted() {
                    break;
                }
                let decision = self.offset_limit.decide();
                if decision == RowDecision::Return {
                    match &rows {
                        Some(rows) if !whole_documents => page.add(&rows[at]),
                        _ => page.add_item(&found.item),
                    }
                }
                self.offset_limit.pass();
                // As in the service, a full page does not look for more rows: if there are none, the next page
                // is empty. Only a limit is known to be the end.
                if decision == RowDecision::Return && page.is_full() && !self.offset_limit.is_exhausted() {
                    return Ok(Some((found.position, at + 1)));
                }
            }
        }
        outcome.work_units += run.work_done();
        Ok(None)
    }
}

/// Whether the access method continues at `from` rather than being replaced by another.
fn continues(access_method: &AccessMethod, from: &ItemPosition) -> bool {
    match access_method {
        AccessMethod::FullScan | AccessMethod::FullScanBackwards | AccessMethod::Matches(_) => {
            !matches!(from, ItemPosition::Entry(_))
        }
        AccessMethod::Entries { range, .. } => cursor::continues(range, from),
    }
}
