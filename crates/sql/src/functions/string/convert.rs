//! Conversions between strings and other types.

use smol_str::{SmolStr, format_smolstr};

use super::super::FunctionContext;
use super::super::argument::{TEXT_BYTES_MAX, fits_as_json, or_undefined};
use crate::value::{Number, Value, ValueKind, parse, write_json};

/// `STRINGTOARRAY(s)`: parses a JSON array.
pub(super) fn string_to_array(args: &[Value], _: &FunctionContext<'_>) -> Value {
    parsed(args, ValueKind::Array)
}

/// `STRINGTOOBJECT(s)`: parses a JSON object.
pub(super) fn string_to_object(args: &[Value], _: &FunctionContext<'_>) -> Value {
    parsed(args, ValueKind::Object)
}

/// `STRINGTOBOOLEAN(s)`: parses a JSON boolean.
pub(super) fn string_to_boolean(args: &[Value], _: &FunctionContext<'_>) -> Value {
    parsed(args, ValueKind::Bool)
}

/// `STRINGTONULL(s)`: parses the JSON null.
pub(super) fn string_to_null(args: &[Value], _: &FunctionContext<'_>) -> Value {
    parsed(args, ValueKind::Null)
}

/// `STRINGTONUMBER(s)`: parses a JSON number.
pub(super) fn string_to_number(args: &[Value], _: &FunctionContext<'_>) -> Value {
    parsed(args, ValueKind::Number)
}

/// The JSON value of a string, if it is of `kind`.
fn parsed(args: &[Value], kind: ValueKind) -> Value {
    match args {
        [Value::String(text)] => {
            or_undefined(parse(text.as_bytes()).ok().filter(|value| value.kind() == kind))
        }
        _ => Value::Undefined,
    }
}

/// `TOSTRING(x)`: strings are unchanged, everything else becomes its JSON text.
pub(super) fn to_string(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [text @ Value::String(_)] => text.clone(),
        [Value::Null] => Value::from("null"),
        [Value::Bool(value)] => Value::from(if *value { "true" } else { "false" }),
        [Value::Number(number)] => Value::String(number_text(*number)),
        [value @ (Value::Array(_) | Value::Object(_))] if fits_as_json(value, TEXT_BYTES_MAX) => {
            let mut text = Vec::new();
            write_json(value, &mut text);
            or_undefined(String::from_utf8(text).ok().map(SmolStr::from))
        }
        _ => Value::Undefined,
    }
}

/// The shortest digits of the number. From 10^17 on, and below 10^-4, with an exponent of a sign and at
/// least three digits, as the service prints them; `ryu` has another format.
fn number_text(number: Number) -> SmolStr {
    let magnitude = number.as_f64().abs();
    if !number.is_finite() || magnitude == 0.0 || (1e-4..1e17).contains(&magnitude) {
        return format_smolstr!("{number}");
    }
    let scientific = format_smolstr!("{:e}", number.as_f64());
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format_smolstr!("{digits}e{sign}{exponent:0>3}")
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::check;

    #[test]
    fn text_is_read_as_json_of_the_wanted_type() {
        check(&[
            ("STRINGTOARRAY", r#""[ 1, \"a\", [2], {\"b\":null} ]""#, r#"[1,"a",[2],{"b":null}]"#),
            ("STRINGTOARRAY", r#""  []  ""#, "[]"),
            ("STRINGTOARRAY", r#""['a']""#, "u"),
            ("STRINGTOARRAY", r#""{}""#, "u"),
            ("STRINGTOARRAY", r#""[1,""#, "u"),
            ("STRINGTOARRAY", "null", "u"),
            ("STRINGTOOBJECT", r#""{\"a\": {\"b\": 1}}""#, r#"{"a":{"b":1}}"#),
            ("STRINGTOOBJECT", r#""{'a': 1}""#, "u"),
            ("STRINGTOOBJECT", r#""[]""#, "u"),
            ("STRINGTOBOOLEAN", "\" true \"", "true"),
            ("STRINGTOBOOLEAN", "\"True\"", "u"),
            ("STRINGTOBOOLEAN", "true", "u"),
            ("STRINGTONULL", "\" null \"", "null"),
            ("STRINGTONULL", "\"NULL\"", "u"),
            ("STRINGTONULL", "null", "u"),
            ("STRINGTONUMBER", "\"   60   \"", "60"),
            ("STRINGTONUMBER", "\"-1.79769e+308\"", "-1.79769e308"),
            ("STRINGTONUMBER", "\"1e999\"", "u"),
            ("STRINGTONUMBER", "\"0x10\"", "u"),
            ("STRINGTONUMBER", "\"Hello\"", "u"),
            ("STRINGTONUMBER", "\"\"", "u"),
        ]);
    }

    #[test]
    fn values_are_written_as_text() {
        check(&[
            ("TOSTRING", "1.0000", "\"1\""),
            ("TOSTRING", "0.1234", "\"0.1234\""),
            ("TOSTRING", "false", "\"false\""),
            ("TOSTRING", "null", "\"null\""),
            ("TOSTRING", "u", "u"),
            ("TOSTRING", "\"Hello World\"", "\"Hello World\""),
            ("TOSTRING", r#"[1,"a",{"b":null}]"#, r#""[1,\"a\",{\"b\":null}]""#),
            ("TOSTRING", "NaN", "\"NaN\""),
            ("TOSTRING", "Infinity", "\"Infinity\""),
            ("TOSTRING", "-Infinity", "\"-Infinity\""),
            ("TOSTRING", "14320368000000000", "\"14320368000000000\""),
            ("TOSTRING", "2049537175849502700", "\"2.0495371758495027e+018\""),
            ("TOSTRING", "1e300", "\"1e+300\""),
            ("TOSTRING", "0.0001", "\"0.0001\""),
            ("TOSTRING", "0.00001", "\"1e-005\""),
        ]);
    }
}
