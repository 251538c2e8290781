//! A reference implementation of query execution, against which tests compare
//! [`QueryExecution`](super::QueryExecution).
//!
//! All rows are collected, then sorted, then compared pairwise, then limited. Only the evaluation of
//! expressions is shared with the streaming implementation.

use std::cmp::Ordering;

use crate::ast::Direction;
use crate::bound::{Grouping, Pipeline, PipelineInput};
use crate::context::QueryContext;
use crate::error::SqlError;
use crate::evaluate::{EvaluationContext, Frame, InputDemand, Ranking, for_each_row, project_row};
use crate::functions::aggregate::Accumulator;
use crate::statement::Statement;
use crate::value::{Value, deep_equal, total_order};

/// All rows of `statement` over `documents`, without streaming and without an index.
pub fn run_reference<'d>(
    statement: &Statement,
    documents: impl IntoIterator<Item = &'d Value>,
    context: QueryContext,
) -> Result<Vec<Value>, SqlError> {
    let context = EvaluationContext::new(context, statement.schema());
    let documents: Vec<Value> = documents.into_iter().cloned().collect();
    let rows = evaluate(statement.pipeline(), &documents, &context);
    context.check()?;
    Ok(rows)
}

struct ReferenceRow {
    keys: Vec<Value>,
    output: Value,
}

fn evaluate(pipeline: &Pipeline, documents: &[Value], context: &EvaluationContext<'_>) -> Vec<Value> {
    if let Some(rank) = &pipeline.rank {
        let mut ranking = Ranking::new(rank, pipeline);
        for document in documents {
            ranking.push(&Frame::with(&Frame::ROOT, document), document, context);
        }
        return ranking.finish(context);
    }
    let origins = match &pipeline.input {
        PipelineInput::Outer => vec![None],
        PipelineInput::Documents => documents.iter().cloned().map(Some).collect(),
        PipelineInput::Rows(inner) => {
            evaluate(inner, documents, context).into_iter().map(Some).collect::<Vec<_>>()
        }
    };
    let mut outputs = Vec::new();
    let mut groups: Vec<(Vec<Value>, Vec<Accumulator>)> = Vec::new();
    if let Some(grouping) = &pipeline.grouping
        && grouping.single
    {
        groups.push((Vec::new(), start(grouping)));
    }
    for origin in &origins {
        let outer = match origin {
            Some(value) => Frame::with(&Frame::ROOT, value),
            None => Frame::ROOT,
        };
        for_each_row(&pipeline.sources, &outer, context, &mut |row| {
            if pipeline.filter.as_ref().is_none_or(|filter| filter.is_true(row, context)) {
                match &pipeline.grouping {
                    Some(grouping) => add_to_group(grouping, &mut groups, row, context),
                    None => outputs.extend(reference_row(pipeline, row, context)),
                }
            }
            InputDemand::More
        });
    }
    for (keys, accumulators) in groups {
        let aggregates: Vec<Value> = accumulators.into_iter().map(Accumulator::finish).collect();
        outputs.extend(reference_row(
            pipeline,
            &Frame::with_group(&Frame::ROOT, &keys, &aggregates),
            context,
        ));
    }
    outputs.sort_by(|left, right| compare(pipeline, left, right));
    let mut rows: Vec<Value> = Vec::new();
    for output in outputs {
        if !pipeline.distinct || !rows.iter().any(|row| deep_equal(row, &output.output)) {
            rows.push(output.output);
        }
    }
    let limit = pipeline.limit().map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let offset = usize::try_from(pipeline.offset()).unwrap_or(usize::MAX);
    rows.into_iter().skip(offset).take(limit).collect()
}

fn start(grouping: &Grouping) -> Vec<Accumulator> {
    grouping.aggregates.iter().map(|(aggregate, _)| aggregate.start()).collect()
}

fn add_to_group(
    grouping: &Grouping,
    groups: &mut Vec<(Vec<Value>, Vec<Accumulator>)>,
    row: &Frame<'_>,
    context: &EvaluationContext<'_>,
) {
    let keys: Vec<Value> = grouping.keys.iter().map(|key| key.evaluate(row, context).into_owned()).collect();
    let at = groups.iter().position(|(known, _)| *known == keys).unwrap_or_else(|| {
        groups.push((keys, start(grouping)));
        groups.len() - 1
    });
    for (accumulator, (_, argument)) in groups[at].1.iter_mut().zip(&grouping.aggregates) {
        accumulator.push(&argument.evaluate(row, context));
    }
}

fn reference_row(
    pipeline: &Pipeline,
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
) -> Option<ReferenceRow> {
    let output = project_row(&pipeline.projection, frame, context)?;
    let keys = pipeline.order.iter().map(|order| order.key.evaluate(frame, context).into_owned()).collect();
    Some(ReferenceRow { keys, output })
}

fn compare(pipeline: &Pipeline, left: &ReferenceRow, right: &ReferenceRow) -> Ordering {
    for (order, (left, right)) in pipeline.order.iter().zip(left.keys.iter().zip(&right.keys)) {
        let found = total_order(left, right);
        let found = if order.direction == Direction::Descending { found.reverse() } else { found };
        if found.is_ne() {
            return found;
        }
    }
    Ordering::Equal
}
