//! Pages of a result that is sorted anew for each of them.
//!
//! This covers ORDER BY without an index that has the order, over few matches or over several partitions;
//! DISTINCT and GROUP BY, whose rows come in the order of their values when nothing else is asked for; and
//! queries over the rows of those. Each page reads everything, collects what stands at or after the
//! [`SortPosition`] where the page before ended, and returns the first rows of that: a row that is not
//! written in between is returned once, whatever else is written.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use protocol::partition::EpkRange;
use sql::{QueryExecution, RowOrigin, SqlError, UnmergedRow, Value};

use super::access_method;
use super::continuation::{Continuation, ItemPosition, RangeProgress};
use super::execute::{QueryOutcome, QueryRequest};
use super::offset_limit::{OffsetLimit, RowDecision};
use super::page::PageBody;
use super::sort_position::{SortPosition, identity_of_item, shortened};
use crate::items::Item;
use crate::store::index::IndexSpace;

impl QueryRequest<'_> {
    pub(super) fn run_sorted(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = if self.from.is_none() { self.scope.partitions.len() } else { 0 };
        let parts = self.parts();
        let ties = parts.iter().find_map(|part| Some(part.from.as_ref()?.ties));
        let ties = ties.unwrap_or_else(|| self.tie_order());
        let mut offset_limit = OffsetLimit::after(self.statement, self.passed());
        let returned_before: usize = parts.iter().map(SortedRange::rows_to_pass).sum();
        let wanted = offset_limit.rows_for(page.rows_max().saturating_add(1)).saturating_add(returned_before);
        let duplicates = (self.statement.row_origin() == RowOrigin::Rows).then(HashMap::new);
        let mut collector = RowCollector {
            parts: &parts,
            resume: self.resume_position(),
            wanted,
            first: BinaryHeap::new(),
            values: HashMap::new(),
            duplicates,
        };
        let (of_values, whole_documents) =
            (self.statement.row_origin() != RowOrigin::Documents, self.statement.returns_whole_documents());
        let mut run = QueryExecution::unmerged(self.statement, self.context);
        for (at, partition) in self.scope.partitions.iter().enumerate() {
            outcome.begin(at, true);
            let state = partition.snapshot();
            let (within, whole) = self.scope.range_in(partition);
            let plan = access_method::choose(self.statement.access_path(), &state, &within, whole);
            outcome.metrics.scanned |= !plan.indexed;
            let mut cursor = self.cursor(&state, plan, &ItemPosition::Start);
            while let Some(found) = cursor.next() {
                if !self.is_visible(&found, &state, &within) {
                    continue;
                }
                outcome.count_document(&found.item, true);
                run.push(&found.item.value())?;
                for (number, row) in run.drain_unmerged().into_iter().enumerate() {
                    if of_values {
                        collector.add_value_row(row);
                        continue;
                    }
                    let identity = identity_of_item(found.item.ordinal, number, ties);
                    let item = whole_documents.then(|| Arc::clone(&found.item));
                    collector.add_row(Row::new(row, &identity, item), &found.item);
                }
            }
        }
        run.finish_unmerged()?.into_iter().for_each(|row| collector.add_value_row(row));
        let rows = collector.in_order();
        let continue_at = |row: &Row, before: &[Row], offset_limit: &OffsetLimit| {
            let sort_position = SortPosition::at(row.order(), row.identity(), ties);
            let ranges = parts.iter().enumerate().map(|(part, range)| {
                let before = before.iter().filter(|row| row.part == part);
                range.continue_at(row, sort_position.clone(), before)
            });
            let rows_passed = offset_limit.rows_passed(self.statement);
            Some(Continuation { ranges: ranges.collect(), rows_passed })
        };
        let mut skipped_again = vec![0; parts.len()];
        for (at, row) in rows.iter().enumerate() {
            if parts[row.part].was_returned(row) && skipped_again[row.part] < parts[row.part].rows_returned {
                skipped_again[row.part] += 1;
                continue;
            }
            if offset_limit.is_exhausted() {
                break;
            }
            if offset_limit.decide() == RowDecision::Return {
                if page.is_full() {
                    outcome.continuation = continue_at(row, &rows[..at], &offset_limit);
                    return Ok(outcome);
                }
                match &row.item {
                    Some(item) => page.add_item(item),
                    None => page.add(&row.row),
                }
            }
            offset_limit.pass();
        }
        // As in the service, an exactly full last page is followed by an empty one, unless a limit ends it.
        if page.count() > 0
            && page.is_full()
            && !offset_limit.is_exhausted()
            && let Some(last) = rows.last()
        {
            outcome.continuation = continue_at(&last.successor(), &rows, &offset_limit);
        }
        Ok(outcome)
    }

    /// The ranges that remain, with their sort positions. Rows of DISTINCT and GROUP BY belong to the whole
    /// scope.
    fn parts(&self) -> Vec<SortedRange> {
        let mut ranges = self.ranges(&self.scope.within);
        if self.statement.row_origin() != RowOrigin::Documents {
            ranges.truncate(1);
            ranges.iter_mut().for_each(|all| all.range = self.scope.within.clone());
        }
        ranges.into_iter().map(|progress| self.part(progress)).collect()
    }

    fn part(&self, progress: RangeProgress) -> SortedRange {
        let RangeProgress { range, position, rows_returned } = progress;
        let access = self.statement.access_path();
        let (from, rows_returned) = match position {
            ItemPosition::Sorted(sort_position) => (Some(sort_position), rows_returned),
            // The ordered scan has become impossible: continue from its position.
            ItemPosition::Entry(entry) => {
                let space = entry.first_chunk().map(|space| IndexSpace::from_bytes(*space));
                let backwards = space.and_then(|space| access_method::went_backwards(access, space));
                (backwards.map(|backwards| SortPosition::of_entry(&entry, backwards, rows_returned)), 0)
            }
            ItemPosition::Undefined(item) => {
                let mut undefined = Vec::new();
                sql::value::encode_whole_order_key(&Value::Undefined, &mut undefined);
                if access.order.iter().any(|(_, direction)| *direction == sql::ast::Direction::Descending) {
                    undefined.iter_mut().for_each(|byte| *byte = !*byte);
                }
                let ties = self.tie_order();
                let identity = identity_of_item(item, rows_returned, ties);
                (Some(SortPosition::at(&undefined, &identity, ties)), 0)
            }
            ItemPosition::Start | ItemPosition::Item(_) | ItemPosition::RowCount(_) => (None, 0),
        };
        SortedRange { range, from, rows_returned }
    }
}

/// An EPK range and the sort position where it continues.
struct SortedRange {
    range: EpkRange,
    from: Option<SortPosition>,
    /// Rows at exactly that position that were returned, where several rows can share one.
    rows_returned: usize,
}

impl SortedRange {
    /// Whether a row with these bytes is still to come.
    fn is_before(&self, bytes: &[u8]) -> bool {
        self.from.as_ref().is_none_or(|from| from.compare(bytes).is_ge())
    }

    fn rows_to_pass(&self) -> usize {
        if self.from.as_ref().is_some_and(SortPosition::is_truncated) { self.rows_returned } else { 0 }
    }

    /// Whether this may be one of the rows that earlier pages returned and could not name.
    fn was_returned(&self, row: &Row) -> bool {
        self.from.as_ref().is_some_and(|from| from.is_truncated() && from.compare(&row.bytes).is_eq())
    }

    /// Where the next page begins in this range if it begins with `next`, which stands at `sort_position`;
    /// `before` are the rows of this range in front of it.
    fn continue_at<'r>(
        &self,
        next: &Row,
        sort_position: SortPosition,
        before: impl Iterator<Item = &'r Row>,
    ) -> RangeProgress {
        let range = self.range.clone();
        if let Some(from) = &self.from
            && from.compare(&next.bytes).is_lt()
        {
            let position = ItemPosition::Sorted(from.clone());
            return RangeProgress { range, position, rows_returned: self.rows_returned };
        }
        let returned = |row: &&Row| sort_position.is_truncated() && sort_position.compare(&row.bytes).is_eq();
        let rows_returned = before.filter(returned).count();
        RangeProgress { range, position: ItemPosition::Sorted(sort_position), rows_returned }
    }
}

/// A row that may be returned.
struct Row {
    /// The sort key, then what distinguishes it from rows with the same sort key.
    bytes: Vec<u8>,
    order_length: usize,
    row: Value,
    /// The item it is, when rows are items.
    item: Option<Arc<Item>>,
    part: usize,
}

impl Row {
    fn new(row: UnmergedRow, identity: &[u8], item: Option<Arc<Item>>) -> Row {
        let order_length = row.order.len();
        let mut bytes = row.order;
        bytes.extend_from_slice(identity);
        Row { bytes, order_length, row: row.row, item, part: 0 }
    }

    /// A row that would be the next one after this, for the position at which nothing more is known to be.
    fn successor(&self) -> Row {
        let bytes = [self.bytes.as_slice(), &[0]].concat();
        Row { bytes, order_length: self.order_length, row: Value::Undefined, item: None, part: self.part }
    }

    fn order(&self) -> &[u8] {
        &self.bytes[..self.order_length]
    }

    fn identity(&self) -> &[u8] {
        &self.bytes[self.order_length..]
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Row {}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Row) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Row) -> Ordering {
        self.bytes.cmp(&other.bytes)
    }
}

/// The rows read so far that the page may need.
struct RowCollector<'p> {
    parts: &'p [SortedRange],
    /// The first row that the client still wants.
    resume: Option<SortPosition>,
    wanted: usize,
    /// Rows of documents: the first `wanted` that are still to come.
    first: BinaryHeap<Row>,
    /// Rows of values, by what distinguishes them: each at its first position.
    values: HashMap<Vec<u8>, Row>,
    /// How often each row was read, where equal rows are separate rows.
    duplicates: Option<HashMap<Vec<u8>, u32>>,
}

impl RowCollector<'_> {
    /// Adds a row of `item`.
    fn add_row(&mut self, mut row: Row, item: &Item) {
        let Some(part) = self.parts.iter().position(|part| part.range.contains(&item.epk)) else { return };
        row.part = part;
        if self.parts[part].is_before(&row.bytes) && self.is_wanted(&row) {
            self.first.push(row);
            if self.first.len() > self.wanted {
                self.first.pop();
            }
        }
    }

    /// Whether the resume filter lets a row through.
    fn is_wanted(&self, row: &Row) -> bool {
        self.resume.as_ref().is_none_or(|from| from.compare(&row.bytes).is_ge())
    }

    /// Adds a row that may be there already.
    fn add_value_row(&mut self, mut row: UnmergedRow) {
        let mut identity = shortened(std::mem::take(&mut row.identity));
        if let Some(duplicates) = &mut self.duplicates {
            let count_so_far = duplicates.entry([row.order.as_slice(), &identity].concat()).or_default();
            identity.extend_from_slice(&count_so_far.to_be_bytes());
            *count_so_far += 1;
        }
        let row = Row::new(row, &identity, None);
        // Equal rows with different sort keys are different rows as well.
        let key = if self.duplicates.is_some() { row.bytes.clone() } else { identity };
        match self.values.entry(key) {
            Entry::Vacant(free) => {
                free.insert(row);
            }
            Entry::Occupied(mut taken) if row < *taken.get() => {
                taken.insert(row);
            }
            Entry::Occupied(_) => {}
        }
    }

    fn in_order(mut self) -> Vec<Row> {
        let mut rows = std::mem::take(&mut self.first).into_vec();
        let values = std::mem::take(&mut self.values);
        let to_come = |row: &Row| {
            self.parts.first().is_some_and(|part| part.is_before(&row.bytes)) && self.is_wanted(row)
        };
        rows.extend(values.into_values().filter(to_come));
        rows.sort_unstable();
        rows
    }
}
