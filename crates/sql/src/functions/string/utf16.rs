//! Positions in strings, in UTF-16 code units.
//!
//! In ASCII strings, which are the most frequent, a unit is a byte and needs no conversion.

use smol_str::{SmolStr, SmolStrBuilder};

use super::super::{FunctionContext, argument::or_undefined};
use crate::value::Value;

/// `LENGTH(s)`: the length in UTF-16 units.
pub(super) fn length_of(args: &[Value], _: &FunctionContext<'_>) -> Value {
    match args {
        [Value::String(text)] => or_undefined(i64::try_from(length(text)).ok()),
        _ => Value::Undefined,
    }
}

/// The number of UTF-16 units of `text`.
pub(super) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The UTF-16 position of byte `byte` of `text`.
pub(super) fn unit_of(text: &str, byte: usize) -> usize {
    length(&text[..byte])
}

/// The byte position of UTF-16 unit `unit` in `text`; the end if it is past the end.
pub(super) fn byte_of(text: &str, unit: usize) -> BytePosition {
    if text.is_ascii() {
        return BytePosition { byte: unit.min(text.len()), splits_pair: false };
    }
    let mut units = 0;
    for (byte, character) in text.char_indices() {
        if units >= unit {
            return BytePosition { byte, splits_pair: units > unit };
        }
        units += character.len_utf16();
    }
    BytePosition { byte: text.len(), splits_pair: units > unit }
}

/// The byte position of a UTF-16 unit.
pub(super) struct BytePosition {
    /// The byte where the unit begins, or the byte after the character of which it is the second half.
    pub(super) byte: usize,
    /// Whether the unit is the second half of a surrogate pair.
    pub(super) splits_pair: bool,
}

/// The UTF-16 units `start..end` of `text`. Half of a surrogate pair has no UTF-8 form and becomes U+FFFD.
pub(super) fn slice(text: &SmolStr, start: usize, end: usize) -> SmolStr {
    if start >= end {
        return SmolStr::default();
    }
    let (from, to) = (byte_of(text, start), byte_of(text, end));
    if from.byte == 0 && to.byte == text.len() && !from.splits_pair && !to.splits_pair {
        return text.clone();
    }
    if !from.splits_pair && !to.splits_pair {
        return SmolStr::new(&text[from.byte..to.byte]);
    }
    let mut result = SmolStrBuilder::new();
    if from.splits_pair {
        result.push(char::REPLACEMENT_CHARACTER);
    }
    // A position inside a pair points after it: the character before it is the broken one.
    let whole = &text[from.byte..to.byte.max(from.byte)];
    if to.splits_pair && !whole.is_empty() {
        let last = whole.chars().next_back().map_or(0, char::len_utf8);
        result.push_str(&whole[..whole.len() - last]);
        result.push(char::REPLACEMENT_CHARACTER);
    } else {
        result.push_str(whole);
    }
    result.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_positions_count_utf16_units() {
        assert_eq!(length("abc"), 3);
        assert_eq!(length("aé😀b"), 5);
        assert_eq!(unit_of("aé😀b", "aé😀".len()), 4);
        assert_eq!(byte_of("aé😀b", 2).byte, 3);
        assert_eq!(byte_of("aé😀b", 99).byte, 8);
    }

    #[test]
    fn slices_are_what_utf16_gives_with_broken_pairs_replaced() {
        for text in ["", "abc", "aé😀b", "😀😀", "é", "😀"] {
            let units: Vec<u16> = text.encode_utf16().collect();
            for start in 0..=units.len() {
                for end in start..=units.len() {
                    let expected = String::from_utf16_lossy(&units[start..end]);
                    assert_eq!(slice(&SmolStr::new(text), start, end), expected, "{text}[{start}..{end}]");
                }
            }
        }
    }
}
