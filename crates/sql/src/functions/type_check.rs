//! IS_…: what kind of value the argument is. Never undefined; undefined is simply none of the kinds.

use super::{Family, Function, exactly};
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    check("IS_ARRAY", |args, _| is_kind(args, Kind::Array)),
    check("IS_BOOL", |args, _| is_kind(args, Kind::Bool)),
    check("IS_DEFINED", |args, _| is(args, Value::is_defined)),
    check("IS_FINITE_NUMBER", |args, _| is(args, |value| value.as_f64().is_some_and(f64::is_finite))),
    check("IS_INTEGER", |args, _| is(args, is_integer)),
    check("IS_NULL", |args, _| is_kind(args, Kind::Null)),
    check("IS_NUMBER", |args, _| is_kind(args, Kind::Number)),
    check("IS_OBJECT", |args, _| is_kind(args, Kind::Object)),
    check("IS_PRIMITIVE", |args, _| is(args, is_primitive)),
    check("IS_STRING", |args, _| is_kind(args, Kind::String)),
];

const fn check(name: &'static str, call: super::Call) -> Function {
    exactly(name, 1, Family::TypeCheck, call)
}

fn is(args: &[Value], test: impl FnOnce(&Value) -> bool) -> Value {
    Value::Bool(args.first().is_some_and(test))
}

fn is_kind(args: &[Value], kind: Kind) -> Value {
    is(args, |value| value.kind() == kind)
}

fn is_integer(value: &Value) -> bool {
    matches!(value, Value::Number(number) if number.as_i64().is_some())
}

fn is_primitive(value: &Value) -> bool {
    matches!(value.kind(), Kind::Null | Kind::Bool | Kind::Number | Kind::String)
}
