//! A JSON parser that builds [`Value`]s in one pass.
//!
//! Input: text. Output: the value, and whether the text is *canonical*: byte for byte what `write_json`
//! makes of the value, so that it can be stored without writing it again. By hand because every stored item
//! passes here, and serde_json cannot tell whether a text is canonical. Text that this parser rejects is
//! given to serde_json, which has the error messages.

use std::sync::Arc;

use super::json::{NESTING_MAX, write_json_string};
use super::{Number, Object, SmolStr, Value};

/// Parses one value that spans all of `text`, and says whether the text is canonical; `None` if it is not
/// JSON. Cost: linear in the text.
pub(super) fn read(text: &[u8]) -> Option<(Value, bool)> {
    let mut reader = Reader {
        text: std::str::from_utf8(text).ok()?,
        at: 0,
        canonical: true,
        depth: 0,
        members: Vec::with_capacity(MEMBERS_CAPACITY),
        elements: Vec::new(),
    };
    reader.skip_space();
    let value = reader.value()?;
    reader.skip_space();
    (reader.at == text.len()).then_some((value, reader.canonical))
}

/// The initial capacity for the properties of an object: more than most documents need.
const MEMBERS_CAPACITY: usize = 32;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    canonical: bool,
    depth: usize,
    /// The properties of the open objects, outermost first, so that each object is allocated at its final
    /// length.
    members: Vec<(SmolStr, Value)>,
    /// The elements of the open arrays, outermost first.
    elements: Vec<Value>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.canonical = false;
            self.at += 1;
        }
    }

    /// Skips `byte` if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self) -> Option<Value> {
        match self.peek()? {
            b'"' => self.string().map(Value::String),
            b'{' => self.object(),
            b'[' => self.array(),
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'-' | b'0'..=b'9' => self.number().map(Value::Number),
            _ => None,
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        self.text.as_bytes()[self.at..].starts_with(word.as_bytes()).then(|| {
            self.at += word.len();
            value
        })
    }

    fn object(&mut self) -> Option<Value> {
        let start = self.members.len();
        self.open()?;
        if !self.take(b'}') {
            loop {
                let name = if self.peek() == Some(b'"') { self.string()? } else { return None };
                self.skip_space();
                if !self.take(b':') {
                    return None;
                }
                self.skip_space();
                let value = self.value()?;
                self.members.push((name, value));
                if self.ends_after(b'}')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        let members: Vec<_> = self.members.drain(start..).collect();
        let written = members.len();
        let object = Object::from_members(members);
        // A repeated name is written once.
        self.canonical &= object.len() == written;
        Some(Value::Object(Arc::new(object)))
    }

    fn array(&mut self) -> Option<Value> {
        let start = self.elements.len();
        self.open()?;
        if !self.take(b']') {
            loop {
                let value = self.value()?;
                self.elements.push(value);
                if self.ends_after(b']')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Some(Value::Array(Arc::new(self.elements.drain(start..).collect())))
    }

    /// Enters an array or object.
    fn open(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return None;
        }
        self.at += 1;
        self.skip_space();
        Some(())
    }

    /// After a property or element: whether `end` follows, rather than a comma.
    fn ends_after(&mut self, end: u8) -> Option<bool> {
        self.skip_space();
        if self.take(b',') {
            self.skip_space();
            return Some(false);
        }
        self.take(end).then_some(true)
    }

    fn string(&mut self) -> Option<SmolStr> {
        let start = self.at + 1;
        let end = plain_end(self.text.as_bytes(), start)?;
        if self.text.as_bytes()[end] == b'"' {
            self.at = end + 1;
            return Some(SmolStr::new(&self.text[start..end]));
        }
        self.escaped_string(end)
    }

    /// A string whose first escape is at `escape`.
    #[cold]
    fn escaped_string(&mut self, escape: usize) -> Option<SmolStr> {
        let (start, mut end) = (self.at, escape);
        while self.text.as_bytes()[end] != b'"' {
            // The escaped character is skipped, because it could be a quote.
            end = plain_end(self.text.as_bytes(), end + 2)?;
        }
        let written = &self.text[start..=end];
        let text: SmolStr = serde_json::from_str(written).ok()?;
        if self.canonical {
            let mut again = Vec::with_capacity(written.len());
            write_json_string(&text, &mut again);
            self.canonical = again == written.as_bytes();
        }
        self.at = end + 1;
        Some(text)
    }

    fn number(&mut self) -> Option<Number> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + usize::from(bytes[start] == b'-');
        let digits = at;
        let (mut magnitude, mut exact) = (0_u64, true);
        while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
            match magnitude.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit - b'0'))) {
                Some(next) => magnitude = next,
                None => exact = false,
            }
            at += 1;
        }
        let leading_zero = bytes.get(digits) == Some(&b'0') && at > digits + 1;
        if at == digits || leading_zero {
            return None;
        }
        if !matches!(bytes.get(at), Some(b'.' | b'e' | b'E')) && exact {
            let whole = match (digits > start, i64::try_from(magnitude)) {
                (false, Ok(value)) => Some(Number::Int(value)),
                (false, Err(_)) => Some(Number::UInt(magnitude)),
                // Minus zero is not an integer.
                (true, Ok(value)) if value != 0 => Some(Number::Int(-value)),
                (true, _) if magnitude == i64::MIN.unsigned_abs() => Some(Number::Int(i64::MIN)),
                (true, _) => None,
            };
            if let Some(whole) = whole {
                self.at = at;
                return Some(whole);
            }
        }
        self.at = end_of_number(bytes, at)?;
        self.float(start)
    }

    /// The number from `start` to the current position, as a double in its shortest form.
    fn float(&mut self, start: usize) -> Option<Number> {
        use std::fmt::Write as _;

        let written = &self.text[start..self.at];
        let number = Number::from_f64(written.parse().ok()?);
        if !number.is_finite() {
            return None;
        }
        if self.canonical {
            let mut rest = MatchingWriter { expected: written };
            self.canonical = write!(rest, "{number}").is_ok() && rest.expected.is_empty();
        }
        Some(number)
    }
}

/// A writer that compares what is written with an expected text.
struct MatchingWriter<'a> {
    expected: &'a str,
}

impl std::fmt::Write for MatchingWriter<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.expected = self.expected.strip_prefix(text).ok_or(std::fmt::Error)?;
        Ok(())
    }
}

/// The end of the fraction and the exponent, if there are any.
fn end_of_number(bytes: &[u8], mut at: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        let start = at;
        while let Some(b'0'..=b'9') = bytes.get(at) {
            at += 1;
        }
        (at > start).then_some(at)
    };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = digits(at)?;
    }
    Some(at)
}

/// The first quote or backslash from `from` on; `None` if a control character or the end of the text comes
/// first.
fn plain_end(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = from;
    // Eight bytes at a time: a byte that equals another is zero once combined with it, and of a subtraction
    // only bytes below what is subtracted borrow.
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let (quote, backslash) = (word ^ (ONES * 0x22), word ^ (ONES * 0x5C));
        let control = word.wrapping_sub(ONES * 0x20);
        let found = ((quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (control & !word))
            & HIGH;
        if found != 0 {
            // A borrow may mark bytes above a true one, never below: the lowest is right.
            at += (found.trailing_zeros() / 8) as usize;
            return (bytes[at] >= 0x20).then_some(at);
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' | b'\\' => return Some(at),
            0..0x20 => return None,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::write_json;

    /// Text that is mostly JSON, with unusual and some invalid parts.
    fn json() -> impl Strategy<Value = String> {
        let one_of = |texts: &[&'static str]| prop::sample::select(texts.to_vec()).prop_map(str::to_owned);
        let number = prop_oneof![
            10 => any::<i64>().prop_map(|n| n.to_string()),
            10 => any::<u64>().prop_map(|n| n.to_string()),
            10 => any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| n.to_string()),
            10 => any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
            10 => "-?[1-9][0-9]{0,21}(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
            30 => one_of(&[
                "-0", "0", "-0.0", "1.0", "1e2", "1E2", "1e+2", "100.50", "0.1", "0.30000000000000004",
                "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
                "-9223372036854775808", "-9223372036854775809", "9007199254740993", "9007199254740993.0",
                "1e21", "1e-7", "-1e-400", "5e-324", "1.7976931348623157e308",
            ]),
            1 => one_of(&["1e400", "00", "01", "-", "1.", ".5", "+1", "1e", "-e1", "NaN"]),
        ];
        let character = prop_oneof![
            80 => "[a-z0-9 ]",
            20 => any::<char>().prop_filter("plain", |c| !c.is_control() && !matches!(c, '"' | '\\')).prop_map(String::from),
            10 => one_of(&[
                "\\n", "\\\"", "\\\\", "\\/", "\\b", "\\u0000", "\\u001f", "\\u001F", "\\u0041",
                "\\ud83d\\ude00", "\\uD83D\\uDE00", "\u{7f}", "é", "😀", "\u{FFFD}",
            ]),
            1 => one_of(&["\\ud83d", "\\u12", "\\x", "\n", "\u{0}", "\u{1f}"]),
        ];
        let string =
            prop::collection::vec(character, 0..20).prop_map(|parts| format!("\"{}\"", parts.concat()));
        let word = prop_oneof![
            20 => one_of(&["null", "true", "false", "[]", "{}"]),
            1 => one_of(&["nul", "", "[1,]", "{\"a\"}", "[,]", "{\"a\":1,}", "{1:1}"]),
        ];
        let space = || prop_oneof![60 => Just(String::new()), 5 => "[ \t\r\n]{1,3}", 1 => "[\u{b}\u{a0}]"];
        let leaf = prop_oneof![2 => number, 3 => string.clone(), 1 => word];
        let name = prop_oneof![
            4 => "[a-z]{1,12}".prop_map(|name| format!("\"{name}\"")),
            1 => one_of(&["\"_rid\"", "\"_ts\"", "\"\"", "\"a\"", "\"\\u0061\""]),
            1 => string,
        ];
        leaf.prop_recursive(4, 64, 20, move |inner| {
            let member = (space(), name.clone(), space(), space(), inner.clone(), space())
                .prop_map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"));
            let element = (space(), inner, space()).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
            prop_oneof![
                prop::collection::vec(member, 0..20).prop_map(|parts| format!("{{{}}}", parts.join(","))),
                prop::collection::vec(element, 0..6).prop_map(|parts| format!("[{}]", parts.join(","))),
            ]
        })
    }

    /// The value as serde_json parses it, written out.
    fn by_serde(text: &[u8]) -> Option<Vec<u8>> {
        let value: Value = serde_json::from_slice(text).ok()?;
        Some(written(&value))
    }

    fn written(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        write_json(value, &mut out);
        out
    }

    #[track_caller]
    fn check(text: &[u8]) {
        let shown = String::from_utf8_lossy(text);
        let found = read(text);
        assert_eq!(found.as_ref().map(|(value, _)| written(value)), by_serde(text), "{shown}");
        if let Some((value, canonical)) = found {
            assert_eq!(canonical, written(&value) == text, "{shown}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

        #[test]
        fn parses_like_serde_json_and_recognises_canonical_text(text in json()) {
            check(text.as_bytes());
        }

        #[test]
        fn damaged_text_parses_like_serde_json(
            text in json(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = text.into_bytes();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                check(&bytes);
                check(&bytes[..at]);
            }
        }
    }

    #[test]
    fn unusual_texts_parse_like_serde_json() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let objects = |depth: usize| "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
        let long = format!("\"{}\\n{}\"", "x".repeat(100), "é".repeat(100));
        for text in [
            "",
            " ",
            "1 ",
            " 1",
            "1 2",
            "\u{feff}1",
            "\"",
            "\"\\",
            "\"\\\"",
            "{",
            "[",
            "{\"a\":1,}",
            "{,}",
            &long,
        ] {
            check(text.as_bytes());
        }
        // serde_json allows one level less.
        for depth in [NESTING_MAX - 1, NESTING_MAX + 1] {
            check(nested(depth).as_bytes());
            check(objects(depth).as_bytes());
        }
        assert!(read(nested(NESTING_MAX).as_bytes()).is_some());
        assert!(read(objects(NESTING_MAX).as_bytes()).is_some());
        check(b"\"\xff\"");
        check(b"{\"a\":1}\xff");
    }
}
