//! Queries inside expressions and sources.

use super::stage::Stage;
use super::{Flow, rows};
use crate::code::Pipeline;
use crate::error::{SqlError, code};
use crate::evaluate::{Frame, World};
use crate::token::Span;
use crate::tree::SubqueryForm;
use crate::value::Value;

/// Calls `visit` with each row of a subquery; stops early when told so and the subquery allows it.
pub(super) fn for_each_output(
    pipeline: &Pipeline,
    frame: &Frame<'_>,
    world: &World<'_>,
    visit: &mut dyn FnMut(Value) -> Flow,
) -> Flow {
    if pipeline.grouping.is_none() && !pipeline.distinct {
        // Rows come out as they are found: nothing needs to be collected.
        return rows::for_each_row(&pipeline.sources, frame, world, &mut |row| {
            if pipeline.filter.as_ref().is_some_and(|filter| !filter.is_true(row, world)) {
                return Flow::Continue;
            }
            let output = pipeline.projection.evaluate(row, world);
            if !output.is_defined() {
                return Flow::Continue;
            }
            let output = output.into_owned();
            world.effort().spend_on_kept(&output);
            visit(output)
        });
    }
    let mut stage = Stage::new(pipeline, false);
    stage.feed(frame, world);
    stage.finish(frame, world);
    for row in stage.drain() {
        if visit(row) == Flow::Enough {
            return Flow::Enough;
        }
    }
    Flow::Continue
}

/// What a subquery is worth as an expression.
pub(crate) fn subquery_value(
    form: SubqueryForm,
    (pipeline, span): (&Pipeline, Span),
    frame: &Frame<'_>,
    world: &World<'_>,
) -> Value {
    let each = |visit: &mut dyn FnMut(Value) -> Flow| {
        for_each_output(pipeline, frame, world, visit);
    };
    match form {
        SubqueryForm::Exists => {
            let mut found = false;
            each(&mut |_| {
                found = true;
                Flow::Enough
            });
            Value::Bool(found)
        }
        SubqueryForm::Array => {
            let mut rows = Vec::new();
            each(&mut |row| {
                rows.push(row);
                Flow::Continue
            });
            Value::array(rows)
        }
        SubqueryForm::All => {
            let mut all = true;
            each(&mut |row| {
                all = row.is_true();
                if all { Flow::Continue } else { Flow::Enough }
            });
            Value::Bool(all)
        }
        SubqueryForm::First => {
            let mut first = Value::Undefined;
            each(&mut |row| {
                first = row;
                Flow::Enough
            });
            first
        }
        SubqueryForm::Last => {
            let mut last = Value::Undefined;
            each(&mut |row| {
                last = row;
                Flow::Continue
            });
            last
        }
        SubqueryForm::Scalar => {
            let mut only = Value::Undefined;
            each(&mut |row| {
                if only.is_defined() {
                    let message =
                        "a scalar subquery returned more than one row; use ARRAY(…), FIRST(…) or EXISTS(…)";
                    world.fail(SqlError::new(code::SCALAR_SUBQUERY_ROWS, span, message));
                    return Flow::Enough;
                }
                only = row;
                Flow::Continue
            });
            only
        }
    }
}
