//! IIF.

use super::{Family, Function, FunctionContext, exactly};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[exactly("IIF", 3, Family::Conditional, iif)];

/// The second argument when the first is exactly `true`, otherwise the third.
fn iif(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [condition, yes, no] => if condition.is_true() { yes } else { no }.clone(),
        _ => Value::Undefined,
    }
}
