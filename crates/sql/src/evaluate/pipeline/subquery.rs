//! Subqueries in expressions and in FROM.

use super::super::{EvaluationContext, Frame};
use super::{InputDemand, PipelineState, rows};
use crate::ast::SubqueryKind;
use crate::bound::Pipeline;
use crate::error::{SqlError, code};
use crate::token::Span;
use crate::value::Value;

/// Calls `visit` with each row of a subquery, and stops early if `visit` returns `Enough`.
pub(super) fn for_each_output(
    pipeline: &Pipeline,
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
    visit: &mut dyn FnMut(Value) -> InputDemand,
) -> InputDemand {
    if pipeline.grouping.is_none() && !pipeline.distinct {
        // Rows are final as soon as they are found, so none is collected.
        return rows::for_each_row(&pipeline.sources, frame, context, &mut |row| {
            if pipeline.filter.as_ref().is_some_and(|filter| !filter.is_true(row, context)) {
                return InputDemand::More;
            }
            let output = pipeline.projection.evaluate(row, context);
            if !output.is_defined() {
                return InputDemand::More;
            }
            let output = output.into_owned();
            context.budget().spend_on_retained(&output);
            visit(output)
        });
    }
    let mut stage = PipelineState::new(pipeline, false);
    stage.push(frame, context);
    stage.finish(frame, context);
    for row in stage.drain() {
        if visit(row) == InputDemand::Enough {
            return InputDemand::Enough;
        }
    }
    InputDemand::More
}

/// The value of a subquery used as an expression.
pub(crate) fn subquery_value(
    form: SubqueryKind,
    (pipeline, span): (&Pipeline, Span),
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
) -> Value {
    let each = |visit: &mut dyn FnMut(Value) -> InputDemand| {
        for_each_output(pipeline, frame, context, visit);
    };
    match form {
        SubqueryKind::Exists => {
            let mut found = false;
            each(&mut |_| {
                found = true;
                InputDemand::Enough
            });
            Value::Bool(found)
        }
        SubqueryKind::Array => {
            let mut rows = Vec::new();
            each(&mut |row| {
                rows.push(row);
                InputDemand::More
            });
            Value::array(rows)
        }
        SubqueryKind::All => {
            let mut all = true;
            each(&mut |row| {
                all = row.is_true();
                if all { InputDemand::More } else { InputDemand::Enough }
            });
            Value::Bool(all)
        }
        SubqueryKind::First => {
            let mut first = Value::Undefined;
            each(&mut |row| {
                first = row;
                InputDemand::Enough
            });
            first
        }
        SubqueryKind::Last => {
            let mut last = Value::Undefined;
            each(&mut |row| {
                last = row;
                InputDemand::More
            });
            last
        }
        SubqueryKind::Scalar => {
            let mut only = Value::Undefined;
            each(&mut |row| {
                if only.is_defined() {
                    let message =
                        "a scalar subquery returned more than one row; use ARRAY(…), FIRST(…) or EXISTS(…)";
                    context.fail(SqlError::new(code::SCALAR_SUBQUERY_ROWS, span, message));
                    return InputDemand::Enough;
                }
                only = row;
                InputDemand::More
            });
            only
        }
    }
}
