//! Parsing and writing of JSON text.

use std::fmt;
use std::io::Write as _;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::read::read;
use super::{Number, Object, SmolStr, Value};

/// The deepest nesting of arrays and objects.
pub const NESTING_MAX: usize = 128;

/// The error of invalid JSON text.
pub type JsonError = serde_json::Error;

/// Parses one JSON value that spans all of `text`. Cost: linear in the text. Nesting beyond [`NESTING_MAX`]
/// is an error, so that hostile input cannot exhaust the stack.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    parse_checking_canonical(text).map(|(value, _)| value)
}

/// Parses one JSON value, and says whether `text` is canonical: byte for byte what [`write_json`] makes of
/// the value.
pub fn parse_checking_canonical(text: &[u8]) -> Result<(Value, bool), JsonError> {
    if let Some(found) = read(text) {
        return Ok(found);
    }
    match escape_control_characters(text).as_deref().and_then(read) {
        Some((value, _)) => Ok((value, false)),
        // serde_json parses it again for its error message.
        None => serde_json::from_slice(text).map(|value| (value, false)),
    }
}

/// `text` with the control characters inside its strings escaped: the service accepts them as they are. `None`
/// if there are none.
fn escape_control_characters(text: &[u8]) -> Option<Vec<u8>> {
    let mut escaped = Vec::new();
    let (mut in_string, mut after_backslash, mut copied) = (false, false, 0);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'"' if !after_backslash => in_string = !in_string,
            0..0x20 if in_string => {
                escaped.extend_from_slice(&text[copied..at]);
                escaped.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                copied = at + 1;
            }
            _ => {}
        }
        after_backslash = *byte == b'\\' && !after_backslash;
    }
    (copied > 0).then(|| [escaped.as_slice(), &text[copied..]].concat())
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(Number::Int(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(i64::try_from(value).map_or(Number::UInt(value), Number::Int)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(SmolStr::new(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element()? {
            elements.push(element);
        }
        Ok(Value::Array(Arc::new(elements)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry::<SmolStr, Value>()? {
            members.push(member);
        }
        Ok(Value::Object(Arc::new(Object::from_members(members))))
    }
}

/// Appends `value` as compact JSON. Undefined and non-finite numbers, which JSON cannot represent, are
/// dropped from arrays and objects; at the top they write nothing.
pub fn write_json(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => {}
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) if number.is_finite() => {
            write!(out, "{number}").expect("writing to memory does not fail");
        }
        Value::Number(_) => {}
        Value::String(text) => write_json_string(text, out),
        Value::Array(elements) => {
            out.push(b'[');
            let mut first = true;
            for element in elements.iter().filter(|element| is_writable(element)) {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                write_json(element, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            let mut first = true;
            for (name, member) in members.iter().filter(|(_, member)| is_writable(member)) {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                write_json_string(name, out);
                out.push(b':');
                write_json(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Why JSON text cannot represent a value, or why [`parse`] would reject the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJson {
    /// A number is infinite or not a number.
    NonFinite,
    /// A value is undefined, which JSON cannot write.
    Undefined,
    /// Arrays and objects are nested too deeply.
    TooDeep,
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotJson::NonFinite => f.write_str("a number is beyond the range of a double"),
            NotJson::Undefined => f.write_str("a value is undefined"),
            NotJson::TooDeep => write!(f, "it is nested deeper than {NESTING_MAX} levels"),
        }
    }
}

/// Checks that [`write_json`] writes all of `value`, as text that [`parse`] accepts. Values that come from
/// [`parse`] always pass; values that were computed may not. Cost: linear in the value.
pub fn check_json(value: &Value) -> Result<(), NotJson> {
    check_json_within(value, NESTING_MAX)
}

/// `levels` is how many arrays and objects may still be entered. The bound also ends the recursion.
fn check_json_within(value: &Value, levels: usize) -> Result<(), NotJson> {
    let inside = || levels.checked_sub(1).ok_or(NotJson::TooDeep);
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
        Value::Undefined => Err(NotJson::Undefined),
        Value::Number(number) if number.is_finite() => Ok(()),
        Value::Number(_) => Err(NotJson::NonFinite),
        Value::Array(elements) => {
            let levels = inside()?;
            elements.iter().try_for_each(|element| check_json_within(element, levels))
        }
        Value::Object(members) => {
            let levels = inside()?;
            members.iter().try_for_each(|(_, member)| check_json_within(member, levels))
        }
    }
}

/// Whether `text` is JSON that [`parse`] accepts. Mostly builds no value, which makes it several times
/// cheaper.
pub fn is_json(text: &[u8]) -> bool {
    let opened = text.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    // Ignored values are not limited in depth. With so few brackets the limit cannot be exceeded.
    let ignored = opened <= NESTING_MAX && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    ignored || parse(text).is_ok()
}

fn is_writable(value: &Value) -> bool {
    match value {
        Value::Undefined => false,
        Value::Number(number) => number.is_finite(),
        _ => true,
    }
}

/// Appends `text` as a JSON string, quotes included.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    // Most strings need no escapes, and one check of all bytes is cheaper than looking at each for its
    // escape.
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    serde_json::to_writer(out, text).expect("writing a string to memory does not fail");
}

/// The compact JSON text; empty for undefined.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        write_json(self, &mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn round_trip(text: &str, expected: &str) {
        assert_eq!(parse(text.as_bytes()).unwrap().to_string(), expected);
    }

    #[test]
    fn text_survives_with_members_in_order_and_numbers_in_their_shortest_form() {
        round_trip(r#"{ "b": 1, "a": [1.0, 2.50, null, true] }"#, r#"{"b":1,"a":[1,2.5,null,true]}"#);
        round_trip("9223372036854775807", "9223372036854775807");
        round_trip("18446744073709551615", "18446744073709551615");
        round_trip(r#""a\u0000\"\\\n é 😀""#, r#""a\u0000\"\\\n é 😀""#);
        round_trip("-0", "-0");
    }

    #[test]
    fn a_repeated_name_keeps_its_position_and_its_last_value() {
        round_trip(r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn too_deep_nesting_is_an_error() {
        let deep = "[".repeat(NESTING_MAX + 1) + &"]".repeat(NESTING_MAX + 1);
        assert!(parse(deep.as_bytes()).is_err());
        let fits = "[".repeat(NESTING_MAX) + &"]".repeat(NESTING_MAX);
        assert!(parse(fits.as_bytes()).is_ok());
    }

    #[test]
    fn a_value_passes_the_check_exactly_if_its_text_can_be_parsed() {
        let nested =
            |levels: usize| (0..levels).fold(Value::Null, |inner, _| Value::Array(Arc::new(vec![inner])));
        for levels in [0, 1, NESTING_MAX - 2, NESTING_MAX - 1, NESTING_MAX, NESTING_MAX + 1] {
            let value = nested(levels);
            let text = value.to_string();
            assert_eq!(check_json(&value).is_ok(), parse(text.as_bytes()).is_ok(), "{levels} levels");
            assert_eq!(is_json(text.as_bytes()), parse(text.as_bytes()).is_ok(), "{levels} levels");
        }
        assert_eq!(check_json(&nested(NESTING_MAX + 5)), Err(NotJson::TooDeep));
        assert_eq!(check_json(&Value::from(f64::INFINITY)), Err(NotJson::NonFinite));
        assert_eq!(check_json(&Value::Array(Arc::new(vec![Value::Undefined]))), Err(NotJson::Undefined));
        assert!(!is_json(br#"{"n":,"a":1}"#));
    }

    #[test]
    fn values_that_json_cannot_represent_are_dropped() {
        let value = Value::object([
            (SmolStr::new("a"), Value::from(f64::INFINITY)),
            (SmolStr::new("b"), Value::Undefined),
            (SmolStr::new("c"), Value::from(1)),
        ]);
        assert_eq!(value.to_string(), r#"{"c":1}"#);
    }
}
