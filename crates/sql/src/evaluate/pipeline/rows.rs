//! FROM and JOIN: the combinations of sources that form the rows of a query.

use super::super::{EvaluationContext, Frame};
use super::{InputDemand, subquery};
use crate::bound::BoundSource;

/// The function called with the frames of each row.
pub(crate) type RowVisitor<'a> = dyn FnMut(&Frame<'_>) -> InputDemand + 'a;

/// Calls `visit` with each combination of `sources`, in order: a cross product in which a source may depend
/// on the previous ones.
pub(crate) fn for_each_row(
    sources: &[BoundSource],
    frame: &Frame<'_>,
    context: &EvaluationContext<'_>,
    visit: &mut RowVisitor<'_>,
) -> InputDemand {
    if !context.budget().spend(1) {
        return InputDemand::Enough;
    }
    let Some((first, rest)) = sources.split_first() else { return visit(frame) };
    match first {
        BoundSource::Value(expression) => {
            let value = expression.evaluate(frame, context);
            if !value.is_defined() {
                return InputDemand::More;
            }
            for_each_row(rest, &Frame::with(frame, &value), context, visit)
        }
        BoundSource::Elements(expression) => {
            let value = expression.evaluate(frame, context);
            for element in value.as_array().unwrap_or_default() {
                if for_each_row(rest, &Frame::with(frame, element), context, visit) == InputDemand::Enough {
                    return InputDemand::Enough;
                }
            }
            InputDemand::More
        }
        BoundSource::Rows(pipeline) => subquery::for_each_output(pipeline, frame, context, &mut |row| {
            for_each_row(rest, &Frame::with(frame, &row), context, visit)
        }),
        BoundSource::RowElements(pipeline) => {
            subquery::for_each_output(pipeline, frame, context, &mut |row| {
                for element in row.as_array().unwrap_or_default() {
                    if for_each_row(rest, &Frame::with(frame, element), context, visit) == InputDemand::Enough
                    {
                        return InputDemand::Enough;
                    }
                }
                InputDemand::More
            })
        }
    }
}
