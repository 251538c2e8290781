//! Type checks `IS_…`. The result is never undefined; an undefined argument has none of the types.

use super::date_time::text;
use super::{Family, Function, exactly};
use crate::value::{Value, ValueKind};

pub(super) const FUNCTIONS: &[Function] = &[
    check("IS_ARRAY", |args, _| is_kind(args, ValueKind::Array)),
    check("IS_BOOL", |args, _| is_kind(args, ValueKind::Bool)),
    check("IS_DATETIME", |args, _| is(args, |value| value.as_str().is_some_and(text::is_date_time))),
    check("IS_DEFINED", |args, _| is(args, Value::is_defined)),
    check("IS_FINITE_NUMBER", |args, _| is(args, |value| value.as_f64().is_some_and(f64::is_finite))),
    check("IS_INTEGER", |args, _| is(args, is_integer)),
    check("IS_NULL", |args, _| is_kind(args, ValueKind::Null)),
    check("IS_NUMBER", |args, _| is_kind(args, ValueKind::Number)),
    check("IS_OBJECT", |args, _| is_kind(args, ValueKind::Object)),
    check("IS_PRIMITIVE", |args, _| is(args, is_primitive)),
    check("IS_STRING", |args, _| is_kind(args, ValueKind::String)),
];

const fn check(name: &'static str, call: super::Call) -> Function {
    exactly(name, 1, Family::TypeCheck, call)
}

fn is(args: &[Value], test: impl FnOnce(&Value) -> bool) -> Value {
    Value::Bool(args.first().is_some_and(test))
}

fn is_kind(args: &[Value], kind: ValueKind) -> Value {
    is(args, |value| value.kind() == kind)
}

fn is_integer(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.as_i64().is_some())
}

fn is_primitive(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Null | ValueKind::Bool | ValueKind::Number | ValueKind::String)
}

#[cfg(test)]
mod tests {
    use super::super::tests::call;

    #[test]
    fn each_type_check_accepts_one_type() {
        let kinds = [
            ("IS_ARRAY", "[1]"),
            ("IS_BOOL", "false"),
            ("IS_NULL", "null"),
            ("IS_NUMBER", "1.5"),
            ("IS_OBJECT", "{}"),
            ("IS_STRING", "\"a\""),
        ];
        for (name, own) in kinds {
            for (_, argument) in kinds.into_iter().chain([("", "u")]) {
                assert_eq!(call(name, &[argument]), (argument == own).to_string(), "{name}({argument})");
            }
        }
        for (_, argument) in kinds {
            let primitive = !matches!(argument, "[1]" | "{}");
            assert_eq!(call("IS_PRIMITIVE", &[argument]), primitive.to_string(), "{argument}");
            assert_eq!(call("IS_DEFINED", &[argument]), "true");
        }
        assert_eq!(call("IS_PRIMITIVE", &["u"]), "false");
        assert_eq!(call("IS_DEFINED", &["u"]), "false");
    }

    #[test]
    fn numbers_are_integers_within_64_bits_and_finite_when_they_are() {
        for (argument, integer, finite) in [
            ("3454.123", false, true),
            ("5523432", true, true),
            ("2.0", true, true),
            ("-9223372036854775808", true, true),
            ("9223372036854775807", true, true),
            ("18446744073709551615", false, true),
            ("1e300", false, true),
            ("Infinity", false, false),
            ("NaN", false, false),
            ("\"1\"", false, false),
            ("u", false, false),
        ] {
            assert_eq!(call("IS_INTEGER", &[argument]), integer.to_string(), "{argument}");
            assert_eq!(call("IS_FINITE_NUMBER", &[argument]), finite.to_string(), "{argument}");
        }
    }

    #[test]
    fn dates_are_strings_of_the_right_form() {
        for (argument, expected) in [
            ("\"2024-12-12T20:21:25.123Z\"", "true"),
            ("\"2024-12-12T20Z\"", "false"),
            ("1", "false"),
            ("u", "false"),
        ] {
            assert_eq!(call("IS_DATETIME", &[argument]), expected, "{argument}");
        }
    }
}
