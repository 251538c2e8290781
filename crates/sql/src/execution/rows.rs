//! FROM and JOIN: frames for every combination of sources.

use super::{InputDemand, subquery};
use crate::bound::SourceCode;
use crate::evaluate::{Frame, World};

/// What to do with each combination.
pub(super) type Visit<'a> = dyn FnMut(&Frame<'_>) -> InputDemand + 'a;

/// Calls `visit` with each combination of `sources`, in order: a cross product in which a later
/// source may depend on the earlier ones.
pub(super) fn for_each_row(
    sources: &[SourceCode],
    frame: &Frame<'_>,
    world: &World<'_>,
    visit: &mut Visit<'_>,
) -> InputDemand {
    if !world.effort().spend(1) {
        return InputDemand::Enough;
    }
    let Some((first, rest)) = sources.split_first() else { return visit(frame) };
    match first {
        SourceCode::One(code) => {
            let value = code.evaluate(frame, world);
            if !value.is_defined() {
                return InputDemand::More;
            }
            for_each_row(rest, &Frame::with(frame, &value), world, visit)
        }
        SourceCode::Each(code) => {
            let value = code.evaluate(frame, world);
            for element in value.as_array().unwrap_or_default() {
                if for_each_row(rest, &Frame::with(frame, element), world, visit) == InputDemand::Enough {
                    return InputDemand::Enough;
                }
            }
            InputDemand::More
        }
        SourceCode::Rows(pipeline) => subquery::for_each_output(pipeline, frame, world, &mut |row| {
            for_each_row(rest, &Frame::with(frame, &row), world, visit)
        }),
        SourceCode::EachOfRows(pipeline) => subquery::for_each_output(pipeline, frame, world, &mut |row| {
            for element in row.as_array().unwrap_or_default() {
                if for_each_row(rest, &Frame::with(frame, element), world, visit) == InputDemand::Enough {
                    return InputDemand::Enough;
                }
            }
            InputDemand::More
        }),
    }
}
