//! String functions that build strings. Results longer than [`TEXT_BYTES_MAX`] are undefined.

use smol_str::{SmolStr, SmolStrBuilder};

use super::super::FunctionContext;
use super::super::argument::TEXT_BYTES_MAX;
use super::utf16;
use crate::value::Value;

/// The longest result of REPLICATE, in UTF-16 units.
const REPLICATE_UNITS_MAX: usize = 10_000;

/// `CONCAT(s1, s2, …)`: all strings in one.
pub(super) fn concat(args: &[Value], _: &FunctionContext<'_>) -> Value {
    joined(args, "")
}

/// `STRINGJOIN(array, separator)`: the strings with a separator between them.
pub(super) fn string_join(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [Value::Array(parts), Value::String(separator)] => joined(parts, separator),
        _ => Value::Undefined,
    }
}

/// Joins `parts`, which must be strings, with `separator`.
fn joined(parts: &[Value], separator: &str) -> Value {
    let mut bytes = separator.len().saturating_mul(parts.len().saturating_sub(1));
    for part in parts {
        let Value::String(text) = part else { return Value::Undefined };
        bytes = bytes.saturating_add(text.len());
    }
    if bytes > TEXT_BYTES_MAX {
        return Value::Undefined;
    }
    let mut result = Builder::with_capacity(bytes);
    for (at, part) in parts.iter().filter_map(Value::as_str).enumerate() {
        if at > 0 {
            result.push(separator);
        }
        result.push(part);
    }
    result.finish()
}

/// `REPLACE(s, find, with)`: replaces every occurrence; an empty `find` does not occur.
pub(super) fn replace(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [Value::String(text), Value::String(find), Value::String(with)] = args else {
        return Value::Undefined;
    };
    if find.is_empty() {
        return Value::String(text.clone());
    }
    let count = text.matches(find.as_str()).count();
    if count == 0 {
        return Value::String(text.clone());
    }
    let bytes = (text.len() - count * find.len()).saturating_add(count.saturating_mul(with.len()));
    if bytes > TEXT_BYTES_MAX {
        return Value::Undefined;
    }
    let mut result = Builder::with_capacity(bytes);
    for (at, part) in text.split(find.as_str()).enumerate() {
        if at > 0 {
            result.push(with);
        }
        result.push(part);
    }
    result.finish()
}

/// `REPLICATE(s, n)`: the string n times.
pub(super) fn replicate(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let [Value::String(text), Value::Number(count)] = args else { return Value::Undefined };
    let count = count.as_f64();
    if !count.is_finite() || count < 0.0 {
        return Value::Undefined;
    }
    // A cast of a double truncates and saturates.
    let count = count as usize;
    if utf16::length(text).saturating_mul(count) > REPLICATE_UNITS_MAX {
        return Value::Undefined;
    }
    let count = if text.is_empty() { 0 } else { count };
    let mut result = Builder::with_capacity(text.len() * count);
    (0..count).for_each(|_| result.push(text));
    result.finish()
}

/// `REVERSE(s)`: reverses by character, so that surrogate pairs stay intact.
pub(super) fn reverse(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [Value::String(text)] => Value::String(text.chars().rev().collect()),
        _ => Value::Undefined,
    }
}

/// A builder of a string of known length: inline when short, in one allocation otherwise.
enum Builder {
    Short(SmolStrBuilder),
    Long(String),
}

impl Builder {
    /// The longest text that a [`SmolStr`] stores inline.
    const INLINE_MAX: usize = 23;

    fn with_capacity(bytes: usize) -> Builder {
        if bytes <= Self::INLINE_MAX {
            Builder::Short(SmolStrBuilder::new())
        } else {
            Builder::Long(String::with_capacity(bytes))
        }
    }

    fn push(&mut self, text: &str) {
        match self {
            Builder::Short(builder) => builder.push_str(text),
            Builder::Long(string) => string.push_str(text),
        }
    }

    fn finish(self) -> Value {
        Value::String(match self {
            Builder::Short(builder) => builder.finish(),
            Builder::Long(string) => SmolStr::from(string),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{check, value};
    use super::*;
    use crate::context::{QueryContext, QuerySchema};

    #[test]
    fn texts_are_joined_replaced_and_repeated() {
        check(&[
            ("CONCAT", "\"a\" ; \"b\" ; \"c\"", "\"abc\""),
            (
                "CONCAT",
                "\"a long text that is \" ; \"kept elsewhere\"",
                "\"a long text that is kept elsewhere\"",
            ),
            ("CONCAT", "\"a\" ; 1", "u"),
            ("CONCAT", "\"a\" ; u", "u"),
            ("STRINGJOIN", "[\"a\",\"b\"] ; \", \"", "\"a, b\""),
            ("STRINGJOIN", "[] ; \",\"", "\"\""),
            ("STRINGJOIN", "[\"a\",1] ; \",\"", "u"),
            ("STRINGJOIN", "[\"a\"] ; u", "u"),
            ("REPLACE", "\"This is a Test\" ; \"Test\" ; \"desk\"", "\"This is a desk\""),
            ("REPLACE", "\"aaa\" ; \"a\" ; \"bb\"", "\"bbbbbb\""),
            ("REPLACE", "\"aaa\" ; \"\" ; \"b\"", "\"aaa\""),
            ("REPLACE", "\"aaa\" ; \"a\" ; 1", "u"),
            ("REPLICATE", "\"Cosmic\" ; 3", "\"CosmicCosmicCosmic\""),
            ("REPLICATE", "\"a\" ; 0", "\"\""),
            ("REPLICATE", "\"\" ; 1e300", "\"\""),
            ("REPLICATE", "\"a\" ; -1", "u"),
            ("REPLICATE", "\"a\" ; 10001", "u"),
            ("REPLICATE", "\"a\" ; 1e300", "u"),
            ("REPLICATE", "\"a\" ; Infinity", "u"),
            ("REPLICATE", "\"a\" ; NaN", "u"),
            ("REVERSE", "\"aé😀\"", "\"😀éa\""),
            ("REVERSE", "1", "u"),
        ]);
    }

    #[test]
    fn results_that_would_not_fit_are_undefined() {
        let schema = QuerySchema::default();
        let context = FunctionContext::new(QueryContext::default(), &schema);
        let half = Value::from("x".repeat(TEXT_BYTES_MAX / 2 + 1).as_str());
        assert!(!concat(&[half.clone(), half.clone()], &context).is_defined());
        assert!(!replace(&[half.clone(), value("\"x\""), value("\"xy\"")], &context).is_defined());
        assert!(replace(&[half, value("\"x\""), value("\"y\"")], &context).is_defined());
    }
}
