//! The conditional function IIF.

use super::{Family, Function, FunctionContext, exactly};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[exactly("IIF", 3, Family::Conditional, iif)];

/// `IIF(condition, a, b)`: `a` if the condition is exactly `true`, otherwise `b`.
fn iif(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [condition, yes, no] => if condition.is_true() { yes } else { no }.clone(),
        _ => Value::Undefined,
    }
}
