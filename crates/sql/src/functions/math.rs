//! Mathematical functions of doubles. Integer functions are in `integer`.
//!
//! Infinite and NaN results are kept: SQL computes with them, and drops them when it writes JSON.

use std::f64::consts::PI;

use super::{Call, Family, Function, FunctionContext, between, exactly};
use crate::value::{Number, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    unary("ABS", |args, _| rounded(args, f64::abs, i64::checked_abs)),
    unary("ACOS", |args, _| of_one(args, f64::acos)),
    unary("ASIN", |args, _| of_one(args, f64::asin)),
    unary("ATAN", |args, _| of_one(args, f64::atan)),
    exactly("ATN2", 2, Family::Math, |args, _| of_two(args, f64::atan2)),
    unary("CEILING", |args, _| rounded(args, f64::ceil, Some)),
    unary("COS", |args, _| of_one(args, f64::cos)),
    unary("COT", |args, _| of_one(args, |angle| 1.0 / angle.tan())),
    unary("DEGREES", |args, _| of_one(args, |angle| angle * (180.0 / PI))),
    unary("EXP", |args, _| of_one(args, f64::exp)),
    unary("FLOOR", |args, _| rounded(args, f64::floor, Some)),
    between("LOG", (1, 2), Family::Math, log),
    unary("LOG10", |args, _| of_one(args, f64::log10)),
    between("NUMBERBIN", (1, 2), Family::Math, number_bin),
    exactly("PI", 0, Family::Math, |_, _| Value::from(PI)),
    exactly("POWER", 2, Family::Math, |args, _| of_two(args, f64::powf)),
    unary("RADIANS", |args, _| of_one(args, |angle| angle * (PI / 180.0))),
    exactly("RAND", 0, Family::Random, |_, context| Value::from(context.random())),
    // Halves are rounded away from zero.
    unary("ROUND", |args, _| rounded(args, f64::round, Some)),
    unary("SIGN", |args, _| of_one(args, sign)),
    unary("SIN", |args, _| of_one(args, f64::sin)),
    unary("SQRT", |args, _| of_one(args, f64::sqrt)),
    unary("SQUARE", |args, _| of_one(args, |number| number * number)),
    unary("TAN", |args, _| of_one(args, f64::tan)),
    unary("TRUNC", |args, _| rounded(args, f64::trunc, Some)),
];

const fn unary(name: &'static str, call: Call) -> Function {
    exactly(name, 1, Family::Math, call)
}

/// A number as a result; minus zero becomes zero.
fn number(result: f64) -> Value {
    Value::from(result + 0.0)
}

fn of_one(args: &[Value], function: fn(f64) -> f64) -> Value {
    match args {
        [Value::Number(argument)] => number(function(argument.as_f64())),
        _ => Value::Undefined,
    }
}

fn of_two(args: &[Value], function: fn(f64, f64) -> f64) -> Value {
    match args {
        [Value::Number(first), Value::Number(second)] => number(function(first.as_f64(), second.as_f64())),
        _ => Value::Undefined,
    }
}

/// Like [`of_one`], for functions that map integers to integers: those keep all 64 bits.
fn rounded(args: &[Value], function: fn(f64) -> f64, exact: fn(i64) -> Option<i64>) -> Value {
    match args {
        [Value::Number(Number::Int(argument))] => match exact(*argument) {
            Some(result) => Value::from(result),
            None => of_one(args, function),
        },
        _ => of_one(args, function),
    }
}

fn sign(number: f64) -> f64 {
    if number == 0.0 || number.is_nan() { number } else { number.signum() }
}

/// `LOG(x[, base])`: the natural logarithm without a base.
fn log(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [_] => of_one(args, f64::ln),
        _ => of_two(args, |argument, base| {
            // The two common bases have functions of their own, which are more exact.
            if base == 10.0 {
                argument.log10()
            } else if base == 2.0 {
                argument.log2()
            } else {
                argument.ln() / base.ln()
            }
        }),
    }
}

/// `NUMBERBIN(x[, size])`: the multiple of `size` at or below `x` (at or above it for a negative size).
fn number_bin(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let (argument, size) = match args {
        [Value::Number(argument)] => (argument.as_f64(), 1.0),
        [Value::Number(argument), Value::Number(size)] => (argument.as_f64(), size.as_f64()),
        _ => return Value::Undefined,
    };
    if size == 0.0 { Value::Undefined } else { number((argument / size).floor() * size) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn functions_of_numbers_return_numbers() {
        check(&[
            ("ABS", "-1", "1"),
            ("ABS", "-9223372036854775807", "9223372036854775807"),
            ("ABS", "-9223372036854775808", "9223372036854776000"),
            ("ATN2", "35.175643 ; 129.44", "0.265344532064832"),
            ("CEILING", "-62.6", "-62"),
            ("CEILING", "-0.5", "0"),
            ("COT", "124.1332", "-0.040311998371148884"),
            ("LOG", "8 ; 2", "3"),
            ("LOG", "2 ; 10", "0.3010299956639812"),
            ("LOG", "0", "-Infinity"),
            ("LOG", "9 ; 3", "2"),
            ("POWER", "2 ; 10", "1024"),
            ("POWER", "10 ; 400", "Infinity"),
            ("ROUND", "2.5", "3"),
            ("ROUND", "-6.5", "-7"),
            ("ROUND", "-0.5", "-1"),
            ("ROUND", "-0.4", "0"),
            ("ROUND", "9223372036854775807", "9223372036854775807"),
            ("SIGN", "-2", "-1"),
            ("SIGN", "0", "0"),
            ("SIGN", "0.5", "1"),
            ("SQRT", "-1", "NaN"),
            ("TRUNC", "-2.6", "-2"),
            ("PI", "", "3.141592653589793"),
            ("DEGREES", "3.141592653589793", "180"),
            ("RADIANS", "180", "3.141592653589793"),
            ("NUMBERBIN", "37.752 ; -100", "100"),
            ("NUMBERBIN", "37.752 ; 0.1", "37.7"),
            ("NUMBERBIN", "37.752 ; 0", "u"),
            ("NUMBERBIN", "37.752", "37"),
        ]);
    }

    #[test]
    fn anything_but_numbers_is_undefined() {
        for function in super::FUNCTIONS.iter().filter(|function| function.min_args == 1) {
            for argument in ["u", "null", "\"1\"", "true", "[1]", "{}"] {
                check(&[(function.name, argument, "u")]);
            }
        }
        check(&[("POWER", "2 ; \"1\"", "u"), ("ATN2", "u ; 1", "u"), ("LOG", "2 ; u", "u")]);
    }
}
