//! The operators of SQL on values.

use std::cmp::Ordering;

use smol_str::SmolStrBuilder;

use crate::ast::BinaryOperator;
use crate::functions::TEXT_BYTES_MAX;
use crate::value::{Value, compare, deep_equal};

/// Evaluates a binary operator that always evaluates both operands.
pub(super) fn binary(operator: BinaryOperator, left: &Value, right: &Value) -> Value {
    match operator {
        BinaryOperator::Equal => equality(left, right, true),
        BinaryOperator::NotEqual => equality(left, right, false),
        BinaryOperator::Less => ordering(left, right, Ordering::is_lt),
        BinaryOperator::LessOrEqual => ordering(left, right, Ordering::is_le),
        BinaryOperator::Greater => ordering(left, right, Ordering::is_gt),
        BinaryOperator::GreaterOrEqual => ordering(left, right, Ordering::is_ge),
        BinaryOperator::Add => arithmetic(left, right, |l, r| l + r),
        BinaryOperator::Subtract => arithmetic(left, right, |l, r| l - r),
        BinaryOperator::Multiply => arithmetic(left, right, |l, r| l * r),
        BinaryOperator::Divide => arithmetic(left, right, |l, r| l / r),
        BinaryOperator::Modulo => arithmetic(left, right, |l, r| l % r),
        BinaryOperator::BitAnd => bitwise(left, right, |l, r| f64::from(l & r)),
        BinaryOperator::BitOr => bitwise(left, right, |l, r| f64::from(l | r)),
        BinaryOperator::BitXor => bitwise(left, right, |l, r| f64::from(l ^ r)),
        BinaryOperator::ShiftLeft => bitwise(left, right, |l, r| f64::from(l.wrapping_shl(r as u32))),
        BinaryOperator::ShiftRight => bitwise(left, right, |l, r| f64::from(l.wrapping_shr(r as u32))),
        BinaryOperator::ShiftRightUnsigned => {
            bitwise(left, right, |l, r| f64::from((l as u32).wrapping_shr(r as u32)))
        }
        BinaryOperator::Concat => match (left, right) {
            (Value::String(left), Value::String(right)) if left.len() + right.len() <= TEXT_BYTES_MAX => {
                let mut joined = SmolStrBuilder::new();
                joined.push_str(left);
                joined.push_str(right);
                Value::String(joined.finish())
            }
            _ => Value::Undefined,
        },
        BinaryOperator::Coalesce => if left.is_defined() { left } else { right }.clone(),
    }
}

/// Equality: undefined if an operand is undefined; values of different types are not equal.
fn equality(left: &Value, right: &Value, wanted: bool) -> Value {
    if left.is_defined() && right.is_defined() {
        Value::Bool(deep_equal(left, right) == wanted)
    } else {
        Value::Undefined
    }
}

fn ordering(left: &Value, right: &Value, wanted: fn(Ordering) -> bool) -> Value {
    compare(left, right).map_or(Value::Undefined, |order| Value::Bool(wanted(order)))
}

fn arithmetic(left: &Value, right: &Value, compute: fn(f64, f64) -> f64) -> Value {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => Value::from(compute(left, right)),
        _ => Value::Undefined,
    }
}

/// Operands become 32-bit integers as in JavaScript; shifts use the low five bits of the distance.
fn bitwise(left: &Value, right: &Value, compute: fn(i32, i32) -> f64) -> Value {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => Value::from(compute(to_int32(left), to_int32(right))),
        _ => Value::Undefined,
    }
}

/// The low 32 bits of the integer part; 0 for infinities and NaN.
fn to_int32(value: f64) -> i32 {
    const TWO_TO_32: f64 = 4_294_967_296.0;
    if !value.is_finite() {
        return 0;
    }
    // The remainder is below 2^32 in magnitude, so it fits an i64 exactly; the cast keeps 32 bits.
    (value.trunc() % TWO_TO_32) as i64 as i32
}

pub(super) fn not(operand: &Value) -> Value {
    operand.as_bool().map_or(Value::Undefined, |value| Value::Bool(!value))
}

/// Three-valued AND of two values.
pub(super) fn and(left: &Value, right: &Value) -> Value {
    match (left.as_bool(), right.as_bool()) {
        (Some(false), _) | (_, Some(false)) => Value::Bool(false),
        (Some(true), Some(true)) => Value::Bool(true),
        _ => Value::Undefined,
    }
}

pub(super) fn plus(operand: &Value) -> Value {
    if operand.as_f64().is_some() { operand.clone() } else { Value::Undefined }
}

pub(super) fn minus(operand: &Value) -> Value {
    operand.as_f64().map_or(Value::Undefined, |value| Value::from(-value))
}

pub(super) fn complement(operand: &Value) -> Value {
    operand.as_f64().map_or(Value::Undefined, |value| Value::from(f64::from(!to_int32(value))))
}

/// `base[index]`: a whole number indexes an array, a string indexes an object.
pub(super) fn index<'a>(base: &'a Value, index: &Value) -> &'a Value {
    match index {
        Value::String(name) => base.member(name),
        Value::Number(number) => number
            .as_i64()
            .and_then(|index| usize::try_from(index).ok())
            .map_or(&Value::Undefined, |index| base.element(index)),
        _ => &Value::Undefined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitwise_operands_wrap_to_32_bits_as_in_javascript() {
        for (value, expected) in [
            (0.0, 0),
            (-1.9, -1),
            (2_147_483_648.0, i32::MIN),
            (4_294_967_296.0, 0),
            (4_294_967_295.0, -1),
            (1e300, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
        ] {
            assert_eq!(to_int32(value), expected, "{value}");
        }
    }
}
