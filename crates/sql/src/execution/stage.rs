//! One query's path from rows to output: keep, group, project, tell apart, sort, cut.

use std::collections::HashSet;

use super::group::Groups;
use super::identity::HashableValue;
use super::order::Sorter;
use super::unmerged::UnmergedRow;
use super::{InputDemand, rows};
use crate::bound::{Code, Pipeline};
use crate::evaluate::{Frame, World};
use crate::functions::fits_as_json;
use crate::value::Value;

/// The largest row that a projection makes, escapes included.
const ROW_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A pipeline under way.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pipeline: &'a Pipeline,
    groups: Option<Groups<'a>>,
    tail: Tail<'a>,
}

impl<'a> Stage<'a> {
    /// A pipeline that has seen nothing. With `already_ordered` rows come in the order of ORDER BY.
    pub(super) fn new(pipeline: &'a Pipeline, already_ordered: bool) -> Stage<'a> {
        let bound = pipeline.limit().map(|limit| pipeline.offset().saturating_add(limit));
        let bound = bound.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        // Groups come out in the order they were met, whatever the order of the input.
        let sorts = !pipeline.order.is_empty() && (!already_ordered || pipeline.grouping.is_some());
        let tail = Tail {
            pipeline,
            sorter: sorts.then(|| Sorter::new(&pipeline.order, bound, pipeline.distinct)),
            seen: (pipeline.distinct && !sorts).then(HashSet::new),
            skip: pipeline.offset(),
            left: pipeline.limit(),
            output: Vec::new(),
            unmerged: None,
        };
        Stage { pipeline, groups: pipeline.grouping.as_ref().map(Groups::new), tail }
    }

    /// Leaves what follows grouping to whoever takes the rows.
    pub(super) fn leave_unmerged(&mut self) {
        let pipeline = self.pipeline;
        let unmerged = Some(Vec::new());
        self.tail =
            Tail { pipeline, sorter: None, seen: None, skip: 0, left: None, output: Vec::new(), unmerged };
    }

    /// Runs all combinations of sources that one row of the origin gives.
    pub(super) fn feed(&mut self, frame: &Frame<'_>, world: &World<'_>) -> InputDemand {
        if self.tail.left == Some(0) {
            return InputDemand::Enough;
        }
        let Stage { pipeline, groups, tail } = self;
        rows::for_each_row(&pipeline.sources, frame, world, &mut |row| {
            if pipeline.filter.as_ref().is_some_and(|filter| !filter.is_true(row, world)) {
                return InputDemand::More;
            }
            match groups {
                Some(groups) => {
                    groups.push(row, world);
                    InputDemand::More
                }
                None => tail.offer(row, &[], world),
            }
        })
    }

    /// Counts `rows` rows of which only the number matters.
    pub(super) fn feed_unread(&mut self, rows: u64) {
        if let Some(groups) = &mut self.groups {
            groups.push_unread(rows);
        }
    }

    /// After the last row: whatever was held back.
    pub(super) fn finish(&mut self, outer: &Frame<'_>, world: &World<'_>) {
        if let Some(groups) = self.groups.take() {
            for (keys, aggregates) in groups.finish() {
                let frame = Frame::with_group(outer, &keys, &aggregates);
                if self.tail.offer(&frame, &keys, world) == InputDemand::Enough {
                    break;
                }
            }
        }
        if let Some(mut sorter) = self.tail.sorter.take() {
            for row in sorter.finish() {
                if self.tail.emit(row) == InputDemand::Enough {
                    break;
                }
            }
        }
    }

    /// The rows that are ready.
    pub(super) fn drain(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.tail.output)
    }

    /// The rows of a stage that leaves them unmerged.
    pub(super) fn drain_unmerged(&mut self) -> Vec<UnmergedRow> {
        self.tail.unmerged.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// What follows grouping.
#[derive(Debug)]
struct Tail<'a> {
    pipeline: &'a Pipeline,
    sorter: Option<Sorter>,
    seen: Option<HashSet<HashableValue>>,
    skip: u64,
    left: Option<u64>,
    output: Vec<Value>,
    /// In place of all that, when somebody else does it.
    unmerged: Option<Vec<UnmergedRow>>,
}

impl Tail<'_> {
    /// Takes a row; `group` are the keys of its group.
    fn offer(&mut self, frame: &Frame<'_>, group: &[Value], world: &World<'_>) -> InputDemand {
        let project = || projected(&self.pipeline.projection, frame, world);
        if let Some(sorter) = &mut self.sorter {
            let keys: Vec<Value> = self
                .pipeline
                .order
                .iter()
                .map(|order| order.key.evaluate(frame, world).into_owned())
                .collect();
            for key in &keys {
                world.effort().spend_on_kept(key);
            }
            sorter.offer(keys, project);
            return InputDemand::More;
        }
        let Some(row) = project() else { return InputDemand::More };
        world.effort().spend(1);
        if let Some(unmerged) = &mut self.unmerged {
            unmerged.push(UnmergedRow::new(self.pipeline, row, group, frame, world));
            return InputDemand::More;
        }
        if self.seen.is_some() {
            world.effort().spend_on_kept(&row);
        }
        if let Some(seen) = &mut self.seen
            && !seen.insert(HashableValue(row.clone()))
        {
            return InputDemand::More;
        }
        self.emit(row)
    }

    /// Applies OFFSET, LIMIT and TOP.
    fn emit(&mut self, row: Value) -> InputDemand {
        if self.left == Some(0) {
            return InputDemand::Enough;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return InputDemand::More;
        }
        self.output.push(row);
        match &mut self.left {
            None => InputDemand::More,
            Some(left) => {
                *left -= 1;
                if *left == 0 { InputDemand::Enough } else { InputDemand::More }
            }
        }
    }
}

/// What a row becomes; nothing when it is undefined or a number that JSON cannot hold.
pub(super) fn projected(projection: &Code, frame: &Frame<'_>, world: &World<'_>) -> Option<Value> {
    match projection.evaluate(frame, world).into_owned() {
        Value::Undefined => None,
        Value::Number(number) if !number.is_finite() => None,
        // Shared parts cost nothing until they are written out, each time they occur.
        row @ (Value::Array(_) | Value::Object(_))
            if !matches!(projection, Code::Source { .. } | Code::Path { .. })
                && !fits_as_json(&row, ROW_BYTES_MAX) =>
        {
            world.effort().exhaust();
            None
        }
        row => Some(row),
    }
}
