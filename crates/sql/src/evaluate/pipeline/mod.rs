//! Execution of one compiled query over its input rows: filter, group, project, deduplicate, sort,
//! and limit.
//!
//! A [`PipelineState`] takes one input row at a time. Subqueries run through the same code, called
//! from the evaluation of expressions.

mod group; // GROUP BY and aggregates
mod rank; // ORDER BY RANK
mod rows; // FROM and JOIN
mod sort; // ORDER BY
mod subquery; // queries inside expressions and sources
mod unmerged; // rows before DISTINCT, ORDER BY and limits

use std::collections::HashSet;

pub(crate) use rank::Ranking;
pub(crate) use rows::for_each_row;
pub(super) use subquery::subquery_value;
pub use unmerged::UnmergedRow;

use super::{EvaluationContext, Frame};
use crate::bound::{BoundExpression, Pipeline};
use crate::functions::fits_as_json;
use crate::value::{HashableValue, Value};
use group::Groups;
use sort::Sorter;

/// Whether a query needs more input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputDemand {
    /// More documents may give more rows.
    More,
    /// No further document changes the result.
    Enough,
}

/// The largest row that a projection makes, as JSON with escapes.
const ROW_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The state of one pipeline during execution.
#[derive(Debug)]
pub(crate) struct PipelineState<'a> {
    pipeline: &'a Pipeline,
    groups: Option<Groups<'a>>,
    output_stage: OutputStage<'a>,
}

impl<'a> PipelineState<'a> {
    /// A pipeline without input so far. With `already_ordered`, rows come in the order of ORDER BY.
    pub(crate) fn new(pipeline: &'a Pipeline, already_ordered: bool) -> PipelineState<'a> {
        let bound = pipeline.limit().map(|limit| pipeline.offset().saturating_add(limit));
        let bound = bound.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        // Groups are in the order of their first row, not in that of ORDER BY.
        let sorts = !pipeline.order.is_empty() && (!already_ordered || pipeline.grouping.is_some());
        let output_stage = OutputStage {
            pipeline,
            sorter: sorts.then(|| Sorter::new(&pipeline.order, bound, pipeline.distinct)),
            seen: (pipeline.distinct && !sorts).then(HashSet::new),
            skip: pipeline.offset(),
            remaining: pipeline.limit(),
            output: Vec::new(),
            unmerged: None,
        };
        PipelineState { pipeline, groups: pipeline.grouping.as_ref().map(Groups::new), output_stage }
    }

    /// Leaves DISTINCT, ORDER BY, OFFSET, LIMIT and TOP to the caller.
    pub(crate) fn leave_unmerged(&mut self) {
        let pipeline = self.pipeline;
        let unmerged = Some(Vec::new());
        self.output_stage = OutputStage {
            pipeline,
            sorter: None,
            seen: None,
            skip: 0,
            remaining: None,
            output: Vec::new(),
            unmerged,
        };
    }

    /// Processes one input row with all combinations of its sources.
    pub(crate) fn push(&mut self, frame: &Frame<'_>, context: &EvaluationContext<'_>) -> InputDemand {
        if self.output_stage.remaining == Some(0) {
            return InputDemand::Enough;
        }
        let PipelineState { pipeline, groups, output_stage } = self;
        for_each_row(&pipeline.sources, frame, context, &mut |row| {
            if pipeline.filter.as_ref().is_some_and(|filter| !filter.is_true(row, context)) {
                return InputDemand::More;
            }
            match groups {
                Some(groups) => {
                    groups.push(row, context);
                    InputDemand::More
                }
                None => output_stage.offer(row, &[], context),
            }
        })
    }

    /// Counts `rows` rows of which only the number matters.
    pub(crate) fn push_count(&mut self, rows: u64) {
        if let Some(groups) = &mut self.groups {
            groups.push_count(rows);
        }
    }

    /// Ends the input: computes groups and sorted rows.
    pub(crate) fn finish(&mut self, outer: &Frame<'_>, context: &EvaluationContext<'_>) {
        if let Some(groups) = self.groups.take() {
            for (keys, aggregates) in groups.finish() {
                let frame = Frame::with_group(outer, &keys, &aggregates);
                if self.output_stage.offer(&frame, &keys, context) == InputDemand::Enough {
                    break;
                }
            }
        }
        if let Some(mut sorter) = self.output_stage.sorter.take() {
            for row in sorter.finish() {
                if self.output_stage.emit(row) == InputDemand::Enough {
                    break;
                }
            }
        }
    }

    /// Takes the rows that are final.
    pub(crate) fn drain(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.output_stage.output)
    }

    /// Takes the rows of a pipeline that leaves them unmerged.
    pub(crate) fn drain_unmerged(&mut self) -> Vec<UnmergedRow> {
        self.output_stage.unmerged.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// The stages after grouping: projection, DISTINCT, ORDER BY, OFFSET and LIMIT.
#[derive(Debug)]
struct OutputStage<'a> {
    pipeline: &'a Pipeline,
    sorter: Option<Sorter>,
    seen: Option<HashSet<HashableValue>>,
    skip: u64,
    remaining: Option<u64>,
    output: Vec<Value>,
    /// The unmerged rows, if the caller does the merging; the other stages are then unused.
    unmerged: Option<Vec<UnmergedRow>>,
}

impl OutputStage<'_> {
    /// Processes a row or group; `group` are the GROUP BY keys.
    fn offer(&mut self, frame: &Frame<'_>, group: &[Value], context: &EvaluationContext<'_>) -> InputDemand {
        let project = || project_row(&self.pipeline.projection, frame, context);
        if let Some(sorter) = &mut self.sorter {
            let keys: Vec<Value> = self
                .pipeline
                .order
                .iter()
                .map(|order| order.key.evaluate(frame, context).into_owned())
                .collect();
            for key in &keys {
                context.budget().spend_on_retained(key);
            }
            sorter.offer(keys, project);
            return InputDemand::More;
        }
        let Some(row) = project() else { return InputDemand::More };
        context.budget().spend(1);
        if let Some(unmerged) = &mut self.unmerged {
            unmerged.push(UnmergedRow::new(self.pipeline, row, group, frame, context));
            return InputDemand::More;
        }
        if self.seen.is_some() {
            context.budget().spend_on_retained(&row);
        }
        if let Some(seen) = &mut self.seen
            && !seen.insert(HashableValue::new(row.clone()))
        {
            return InputDemand::More;
        }
        self.emit(row)
    }

    /// Applies OFFSET, LIMIT and TOP to a row.
    fn emit(&mut self, row: Value) -> InputDemand {
        if self.remaining == Some(0) {
            return InputDemand::Enough;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return InputDemand::More;
        }
        self.output.push(row);
        match &mut self.remaining {
            None => InputDemand::More,
            Some(remaining) => {
                *remaining -= 1;
                if *remaining == 0 { InputDemand::Enough } else { InputDemand::More }
            }
        }
    }
}

/// The projected row; `None` if it is undefined or a number that JSON cannot represent.
pub(crate) fn project_row(
    projection: &BoundExpression,
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
) -> Option<Value> {
    match projection.evaluate(frame, context).into_owned() {
        Value::Undefined => None,
        Value::Number(number) if !number.is_finite() => None,
        // Shared values take no memory until they are written out, each time they occur.
        row @ (Value::Array(_) | Value::Object(_))
            if !matches!(projection, BoundExpression::Source { .. } | BoundExpression::Path { .. })
                && !fits_as_json(&row, ROW_BYTES_MAX) =>
        {
            context.budget().exhaust();
            None
        }
        row => Some(row),
    }
}
