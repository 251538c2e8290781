//! Pages of a result that is sorted anew for each of them.
//!
//! ORDER BY without an index that has the order, over few matches or over several partitions; DISTINCT and
//! GROUP BY, whose rows come in the order of their values when nothing else is asked for, and queries over
//! the rows of those. Each page looks
//! at everything, keeps what stands at or behind the [`Spot`] where the page before ended, and returns the
//! first of that: a row that nobody touched in between is returned once, whatever else was written.

use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use protocol::partition::EpkRange;
use sql::{QueryExecution, RowOrigin, SqlError, UnmergedRow, Value};

use super::continuation::{Continuation, Position, RangeProgress};
use super::execute::{QueryOutcome, QueryRequest};
use super::page::PageBody;
use super::route;
use super::spot::{Spot, Ties, identity_of_item, shortened};
use super::window::{Turn, Window};
use crate::items::Item;
use crate::store::index::IndexSpace;

impl QueryRequest<'_> {
    pub(super) fn run_sorted(&self, page: &mut PageBody) -> Result<QueryOutcome, SqlError> {
        let mut outcome = QueryOutcome::default();
        outcome.work.partitions_begun = if self.from.is_none() { self.scope.partitions.len() } else { 0 };
        let parts = self.parts();
        let ties = parts.iter().find_map(|part| Some(part.from.as_ref()?.ties)).unwrap_or(Ties::Forwards);
        let mut window = Window::after(self.statement, self.passed());
        let again: usize = parts.iter().map(Part::rows_to_pass).sum();
        let wanted = window.rows_for(page.rows_max().saturating_add(1)).saturating_add(again);
        let alike = (self.statement.row_origin() == RowOrigin::Rows).then(HashMap::new);
        let mut gathered =
            Gathered { parts: &parts, wanted, first: BinaryHeap::new(), values: HashMap::new(), alike };
        let (of_values, whole_documents) =
            (self.statement.row_origin() != RowOrigin::Documents, self.statement.returns_whole_documents());
        let mut run = QueryExecution::unmerged(self.statement, self.context);
        for (at, partition) in self.scope.partitions.iter().enumerate() {
            outcome.begin(at, true);
            let state = partition.snapshot();
            let (within, whole) = self.scope.range_in(partition);
            let choice = route::choose(self.statement.access_path(), &state, &within, whole);
            outcome.metrics.scanned |= !choice.indexed;
            let mut cursor = self.cursor(&state, choice, &Position::Start);
            while let Some(place) = cursor.next() {
                if !self.is_visible(&place, &state, &within) {
                    continue;
                }
                outcome.count_document(&place.item, true);
                run.push(&place.item.value())?;
                for (number, row) in run.drain_unmerged().into_iter().enumerate() {
                    if of_values {
                        gathered.offer_value(row);
                        continue;
                    }
                    let identity = identity_of_item(place.item.ordinal, number, ties);
                    let item = whole_documents.then(|| Arc::clone(&place.item));
                    gathered.offer(Row::new(row, &identity, item), &place.item);
                }
            }
        }
        run.finish_unmerged()?.into_iter().for_each(|row| gathered.offer_value(row));
        let rows = gathered.in_order();
        let mut passed_again = vec![0; parts.len()];
        for (at, row) in rows.iter().enumerate() {
            if parts[row.part].was_returned(row) && passed_again[row.part] < parts[row.part].rows_returned {
                passed_again[row.part] += 1;
                continue;
            }
            if window.is_over() {
                break;
            }
            if window.turn() == Turn::Return {
                if page.is_full() {
                    let spot = Spot::at(row.order(), row.identity(), ties);
                    let stretches = parts.iter().enumerate().map(|(part, before)| {
                        before.go_on_at(row, spot.clone(), rows[..at].iter().filter(|row| row.part == part))
                    });
                    let passed = window.told(self.statement);
                    outcome.continuation =
                        Some(Continuation { ranges: stretches.collect(), rows_passed: passed });
                    break;
                }
                match &row.item {
                    Some(item) => page.add_text(item.body_bytes()),
                    None => page.add(&row.row),
                }
            }
            window.pass();
        }
        Ok(outcome)
    }

    /// What remains of the ring, and from which spot on. Rows of DISTINCT and GROUP BY are of all of it.
    fn parts(&self) -> Vec<Part> {
        let mut stretches = self.stretches(&self.scope.within);
        if self.statement.row_origin() != RowOrigin::Documents {
            stretches.truncate(1);
            stretches.iter_mut().for_each(|all| all.range = self.scope.within.clone());
        }
        stretches.into_iter().map(|stretch| self.part(stretch)).collect()
    }

    fn part(&self, stretch: RangeProgress) -> Part {
        let RangeProgress { range, position, rows_returned } = stretch;
        let access = self.statement.access_path();
        let (from, rows_returned) = match position {
            Position::Spot(spot) => (Some(spot), rows_returned),
            // A walk in order has become impossible: go on from where it was.
            Position::Entry(entry) => {
                let space = entry.first_chunk().map(|space| IndexSpace::from_bytes(*space));
                let backwards = space.and_then(|space| route::went_backwards(access, space));
                (backwards.map(|backwards| Spot::of_entry(&entry, backwards, rows_returned)), 0)
            }
            Position::Missing(item) => {
                let mut undefined = Vec::new();
                sql::value::encode_whole_order_key(&Value::Undefined, &mut undefined);
                if access.order.iter().any(|(_, direction)| *direction == sql::ast::Direction::Descending) {
                    undefined.iter_mut().for_each(|byte| *byte = !*byte);
                }
                let identity = identity_of_item(item, rows_returned, Ties::Forwards);
                (Some(Spot::at(&undefined, &identity, Ties::Forwards)), 0)
            }
            Position::Start | Position::Item(_) | Position::Row(_) => (None, 0),
        };
        Part { range, from, rows_returned }
    }
}

/// A part of the ring and where it goes on.
struct Part {
    range: EpkRange,
    from: Option<Spot>,
    /// Rows that stand exactly there and were returned, when there is room for several.
    rows_returned: usize,
}

impl Part {
    /// Whether a row with these bytes is still to come.
    fn is_before(&self, bytes: &[u8]) -> bool {
        self.from.as_ref().is_none_or(|from| from.compare(bytes).is_ge())
    }

    fn rows_to_pass(&self) -> usize {
        if self.from.as_ref().is_some_and(Spot::is_cut) { self.rows_returned } else { 0 }
    }

    /// Whether this may be one of the rows that pages before have returned and could not name.
    fn was_returned(&self, row: &Row) -> bool {
        self.from.as_ref().is_some_and(|from| from.is_cut() && from.compare(&row.bytes).is_eq())
    }

    /// Where the next page begins here if it begins with `next`, which stands at `spot`; `before` are
    /// the rows of this part that stand in front of it.
    fn go_on_at<'r>(&self, next: &Row, spot: Spot, before: impl Iterator<Item = &'r Row>) -> RangeProgress {
        let range = self.range.clone();
        if let Some(from) = &self.from
            && from.compare(&next.bytes).is_lt()
        {
            let position = Position::Spot(from.clone());
            return RangeProgress { range, position, rows_returned: self.rows_returned };
        }
        let returned = |row: &&Row| spot.is_cut() && spot.compare(&row.bytes).is_eq();
        let rows_returned = before.filter(returned).count();
        RangeProgress { range, position: Position::Spot(spot), rows_returned }
    }
}

/// A row that may be returned.
struct Row {
    /// What it is sorted by, then what tells it from others.
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

/// The rows met so far, as far as they can matter.
struct Gathered<'p> {
    parts: &'p [Part],
    wanted: usize,
    /// Rows of documents: the first `wanted` that are still to come.
    first: BinaryHeap<Row>,
    /// Rows of values, by what tells them apart: each where it stands first.
    values: HashMap<Vec<u8>, Row>,
    /// How often each row was met, where those that are alike are so many rows.
    alike: Option<HashMap<Vec<u8>, u32>>,
}

impl Gathered<'_> {
    /// Takes a row of `item`.
    fn offer(&mut self, mut row: Row, item: &Item) {
        let Some(part) = self.parts.iter().position(|part| part.range.contains(&item.epk)) else { return };
        row.part = part;
        if self.parts[part].is_before(&row.bytes) {
            self.first.push(row);
            if self.first.len() > self.wanted {
                self.first.pop();
            }
        }
    }

    /// Takes a row that may be there already.
    fn offer_value(&mut self, mut row: UnmergedRow) {
        let mut identity = shortened(std::mem::take(&mut row.identity));
        if let Some(alike) = &mut self.alike {
            let met = alike.entry([row.order.as_slice(), &identity].concat()).or_default();
            identity.extend_from_slice(&met.to_be_bytes());
            *met += 1;
        }
        let row = Row::new(row, &identity, None);
        // Rows that are alike but sorted by something else are different rows as well.
        let key = if self.alike.is_some() { row.bytes.clone() } else { identity };
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

    fn in_order(self) -> Vec<Row> {
        let mut rows = self.first.into_vec();
        let to_come = |row: &Row| self.parts.first().is_some_and(|part| part.is_before(&row.bytes));
        rows.extend(self.values.into_values().filter(to_come));
        rows.sort_unstable();
        rows
    }
}
