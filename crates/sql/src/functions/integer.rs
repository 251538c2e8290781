//! Functions of 64-bit integers, which wrap around on overflow. Arguments with a fraction give undefined.

use super::argument::or_undefined;
use super::{Call, Family, Function, exactly};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    binary("INTADD", |args, _| of_two(args, |a, b| Some(a.wrapping_add(b)))),
    binary("INTBITAND", |args, _| of_two(args, |a, b| Some(a & b))),
    binary("INTBITLEFTSHIFT", |args, _| of_two(args, |a, by| Some(a.wrapping_shl(by as u32)))),
    exactly("INTBITNOT", 1, Family::Math, |args, _| match args {
        [argument] => or_undefined(argument.as_i64().map(|number| !number)),
        _ => Value::Undefined,
    }),
    binary("INTBITOR", |args, _| of_two(args, |a, b| Some(a | b))),
    binary("INTBITRIGHTSHIFT", |args, _| of_two(args, |a, by| Some(a.wrapping_shr(by as u32)))),
    binary("INTBITXOR", |args, _| of_two(args, |a, b| Some(a ^ b))),
    binary("INTDIV", |args, _| of_two(args, |a, b| (b != 0).then(|| a.wrapping_div(b)))),
    // The sign is the dividend's.
    binary("INTMOD", |args, _| of_two(args, |a, b| (b != 0).then(|| a.wrapping_rem(b)))),
    binary("INTMUL", |args, _| of_two(args, |a, b| Some(a.wrapping_mul(b)))),
    binary("INTSUB", |args, _| of_two(args, |a, b| Some(a.wrapping_sub(b)))),
];

const fn binary(name: &'static str, call: Call) -> Function {
    exactly(name, 2, Family::Math, call)
}

fn of_two(args: &[Value], function: fn(i64, i64) -> Option<i64>) -> Value {
    let [first, second] = args else { return Value::Undefined };
    or_undefined(first.as_i64().zip(second.as_i64()).and_then(|(first, second)| function(first, second)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn integer_functions_return_integers() {
        check(&[
            ("INTADD", "20 ; 10", "30"),
            ("INTADD", "20 ; 0.10", "u"),
            ("INTADD", "9223372036854775807 ; 1", "-9223372036854775808"),
            ("INTSUB", "25 ; 10", "15"),
            ("INTMUL", "6 ; -7", "-42"),
            ("INTDIV", "10 ; -2", "-5"),
            ("INTDIV", "10 ; 0", "u"),
            ("INTDIV", "10 ; 0.1", "u"),
            ("INTDIV", "-9223372036854775808 ; -1", "-9223372036854775808"),
            ("INTMOD", "12 ; -5", "2"),
            ("INTMOD", "-12 ; -5", "-2"),
            ("INTMOD", "12 ; 0", "u"),
            ("INTBITAND", "15 ; 25", "9"),
            ("INTBITOR", "56 ; 100", "124"),
            ("INTBITXOR", "56 ; 100", "92"),
            ("INTBITNOT", "65", "-66"),
            ("INTBITNOT", "0.1", "u"),
            ("INTBITLEFTSHIFT", "16 ; 4", "256"),
            ("INTBITLEFTSHIFT", "16 ; 0.4", "u"),
            ("INTBITRIGHTSHIFT", "16 ; 4", "1"),
            ("INTBITRIGHTSHIFT", "-16 ; 2", "-4"),
            ("INTADD", "1 ; \"1\"", "u"),
            ("INTADD", "u ; 1", "u"),
        ]);
    }
}
