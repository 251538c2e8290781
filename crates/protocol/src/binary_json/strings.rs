//! Encodings of strings in Cosmos binary JSON other than UTF-8: packed characters, hexadecimal, base64,
//! GUIDs.
//!
//! Input: the bytes after a marker. Output: the string. A valid string of these encodings is ASCII.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// The digits of lower-case hexadecimal strings, four bits each.
pub(super) const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
/// The digits of upper-case hexadecimal strings, four bits each.
pub(super) const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
/// The characters of date and time strings, four bits each.
pub(super) const DATE_TIME: &[u8; 16] = b" 0123456789:-.TZ";

/// The number of bytes that `count` characters of `bits` bits take.
pub(super) fn packed_length(count: usize, bits: usize) -> usize {
    (count * bits).div_ceil(8)
}

/// Unpacks `count` numbers of `bits` (at most 8) each, lowest bit first, into characters.
pub(super) fn unpack(
    bytes: &[u8],
    count: usize,
    bits: usize,
    character: impl Fn(u8) -> u8,
) -> Option<String> {
    let mut buffer: u32 = 0;
    let mut buffered_bits = 0;
    let mut source = bytes.iter();
    let mut text = Vec::with_capacity(count);
    for _ in 0..count {
        while buffered_bits < bits {
            buffer |= u32::from(*source.next()?) << buffered_bits;
            buffered_bits += 8;
        }
        text.push(character((buffer & ((1 << bits) - 1)) as u8));
        buffer >>= bits;
        buffered_bits -= bits;
    }
    text.is_ascii().then(|| String::from_utf8(text).ok()).flatten()
}

/// A GUID encoded as a string: each byte holds two digits, the first one in its low half.
pub(super) fn guid_string(bytes: &[u8; 16], digits: &[u8; 16]) -> String {
    hyphenated(bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]), digits)
}

/// A GUID encoded as a value: the first three groups are little-endian numbers.
pub(super) fn guid_value(bytes: &[u8; 16]) -> String {
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    hyphenated(ORDER.iter().flat_map(|&index| [bytes[index] >> 4, bytes[index] & 15]), HEX_LOWER)
}

fn hyphenated(nibbles: impl Iterator<Item = u8>, digits: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, nibble) in nibbles.enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digits[usize::from(nibble)].into());
    }
    text
}

/// The size of a base64 string: how many bytes it encodes and how it ends.
#[derive(Clone, Copy)]
pub(super) struct Base64Shape {
    /// The number of encoded bytes.
    pub(super) bytes: usize,
    /// The number of characters of the string.
    characters: usize,
}

impl Base64Shape {
    /// The size of `groups` of four characters, of which `padding` are `=`; above 2 it is the complement of
    /// the number of characters that were left out.
    pub(super) fn new(groups: usize, padding: u8) -> Option<Base64Shape> {
        let (missing, left_out) = if padding <= 2 { (padding, false) } else { (!padding, true) };
        if missing > 2 || (missing > 0 && groups == 0) {
            return None;
        }
        let (padded, missing) = (groups * 4, usize::from(missing));
        Some(Base64Shape {
            bytes: groups * 3 - missing,
            characters: if left_out { padded - missing } else { padded },
        })
    }

    /// The base64 string of `bytes`.
    pub(super) fn text(self, bytes: &[u8], url_safe: bool) -> String {
        let mut text = if url_safe { URL_SAFE.encode(bytes) } else { STANDARD.encode(bytes) };
        text.truncate(self.characters);
        text
    }
}

/// A binary value, which JSON text can only show as base64.
pub(super) fn blob(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
