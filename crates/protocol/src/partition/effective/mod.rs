//! The effective partition key (EPK) of a partition key.
//!
//! Input: a container's partition key definition and a partition key. Output: bytes that equal and compare
//! like those of the service.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::definition::{KeyCompleteness, PartitionKeyDefinition, PartitionKeyKind, PartitionKeyVersion};
use super::key::{PartitionKey, PartitionKeyComponent};
use super::range::EpkRange;
use crate::murmur_hash::{Murmur, Murmur32, Murmur128};

/// An effective partition key: bytes in lexicographic order.
///
/// Up to 22 bytes (every version 2 key of one level) are stored inline; longer ones are shared. A clone
/// copies 24 bytes or increments a reference count.
#[derive(Clone)]
pub struct EffectivePartitionKey(Bytes);

const INLINE_MAX: usize = 22;

#[derive(Clone)]
enum Bytes {
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    Shared(Arc<[u8]>),
}

impl EffectivePartitionKey {
    /// The start of the EPK space.
    pub const MIN: EffectivePartitionKey =
        EffectivePartitionKey(Bytes::Inline { length: 0, bytes: [0; INLINE_MAX] });

    /// The end of the EPK space, above every key.
    pub const MAX: EffectivePartitionKey = {
        let mut bytes = [0; INLINE_MAX];
        bytes[0] = 0xFF;
        EffectivePartitionKey(Bytes::Inline { length: 1, bytes })
    };

    /// The effective partition key with these bytes.
    pub fn from_bytes(bytes: &[u8]) -> EffectivePartitionKey {
        if bytes.len() <= INLINE_MAX {
            let mut inline = [0; INLINE_MAX];
            inline[..bytes.len()].copy_from_slice(bytes);
            EffectivePartitionKey(Bytes::Inline { length: bytes.len() as u8, bytes: inline })
        } else {
            EffectivePartitionKey(Bytes::Shared(bytes.into()))
        }
    }

    /// The bytes, in comparison order.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Shared(bytes) => bytes,
        }
    }

    /// The form of headers and ranges: upper-case hex, `""` for [`Self::MIN`], `"FF"` for [`Self::MAX`].
    pub fn to_hex(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let bytes = self.as_bytes();
        let mut hex = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            hex.push(DIGITS[usize::from(byte >> 4)].into());
            hex.push(DIGITS[usize::from(byte & 15)].into());
        }
        hex
    }

    /// Parses hexadecimal digits of either case.
    pub fn from_hex(hex: &str) -> Result<EffectivePartitionKey, EffectivePartitionKeyError> {
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
            return Err(EffectivePartitionKeyError);
        };
        let byte = |[high, low]: [u8; 2]| Some(digit(high)? << 4 | digit(low)?);
        if pairs.len() <= INLINE_MAX {
            let mut bytes = [0; INLINE_MAX];
            for (slot, pair) in bytes.iter_mut().zip(pairs) {
                *slot = byte(*pair).ok_or(EffectivePartitionKeyError)?;
            }
            return Ok(EffectivePartitionKey(Bytes::Inline { length: pairs.len() as u8, bytes }));
        }
        let bytes: Option<Arc<[u8]>> = pairs.iter().map(|pair| byte(*pair)).collect();
        bytes.map(|bytes| EffectivePartitionKey(Bytes::Shared(bytes))).ok_or(EffectivePartitionKeyError)
    }

    /// This key with one more byte. With byte 0 it is the next key; with byte `FF` it is above every key
    /// that starts with this one.
    #[must_use]
    pub(super) fn followed_by(&self, byte: u8) -> EffectivePartitionKey {
        let bytes = self.as_bytes();
        let mut longer = Vec::with_capacity(bytes.len() + 1);
        longer.extend_from_slice(bytes);
        longer.push(byte);
        EffectivePartitionKey::from_bytes(&longer)
    }
}

/// The error of a text that is not an even number of hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an effective partition key is an even number of hexadecimal digits")]
pub struct EffectivePartitionKeyError;

/// The effective partition key of `key` in a container with this definition. A prefix of a hierarchical key
/// gives the first EPK of its range.
///
/// Cost: linear in the key's bytes; no allocation for a version 2 key of one level.
pub fn effective_key(definition: &PartitionKeyDefinition, key: &PartitionKey) -> EffectivePartitionKey {
    use {PartitionKeyKind as Kind, PartitionKeyVersion as Version};
    let components = key.components();
    match (definition.kind, definition.version()) {
        // No component: the start of the EPK space.
        _ if components.is_empty() => EffectivePartitionKey::MIN,
        (Kind::Hash, Version::V2) => EffectivePartitionKey::from_bytes(&hash_v2(components)),
        (Kind::MultiHash, _) => {
            if let [component] = components {
                return EffectivePartitionKey::from_bytes(&hash_v2(std::slice::from_ref(component)));
            }
            let hashes = components.iter().flat_map(|component| hash_v2(std::slice::from_ref(component)));
            EffectivePartitionKey::from_bytes(&hashes.collect::<Vec<u8>>())
        }
        (Kind::Hash, Version::V1) => {
            let mut bytes = Vec::with_capacity(32);
            encode_number(f64::from(hash_v1(components)), &mut bytes);
            encode_components(components, &mut bytes);
            EffectivePartitionKey::from_bytes(&bytes)
        }
        (Kind::Range, _) => {
            let mut bytes = Vec::with_capacity(32);
            encode_components(components, &mut bytes);
            EffectivePartitionKey::from_bytes(&bytes)
        }
    }
}

/// The EPK range of all keys that start with `prefix`: one EPK for a complete key, a range for a prefix of
/// a hierarchical key, the whole EPK space for an empty one.
pub fn prefix_range(definition: &PartitionKeyDefinition, prefix: &PartitionKey) -> EpkRange {
    if prefix.components().is_empty() {
        return EpkRange::FULL;
    }
    let min = effective_key(definition, prefix);
    match definition.completeness(prefix) {
        KeyCompleteness::Prefix => {
            let max = min.followed_by(0xFF);
            EpkRange { min, max }
        }
        KeyCompleteness::Complete | KeyCompleteness::TooLong => EpkRange::point(min),
    }
}

/// The largest hash of a level in version 2, whose upper two bits are always clear.
pub(super) const HASH_V2_MAX: u128 = u128::MAX >> 2;

fn hash_v2(components: &[PartitionKeyComponent]) -> [u8; 16] {
    let mut hasher = Murmur128::default();
    write_components(&mut hasher, components, |hasher, text| {
        hasher.write(text.as_bytes());
        hasher.write(&[0xFF]);
    });
    (hasher.finish() & HASH_V2_MAX).to_be_bytes()
}

fn hash_v1(components: &[PartitionKeyComponent]) -> u32 {
    let mut hasher = Murmur32::default();
    write_components(&mut hasher, components, |hasher, text| {
        let (text, replacement) = cut_v1(text);
        hasher.write(text.as_bytes());
        hasher.write(replacement.as_bytes());
        hasher.write(&[0]);
    });
    hasher.finish()
}

/// Feeds a partition key to a hash. The versions differ in how they end a string, and only in that.
fn write_components<H: Murmur>(
    hasher: &mut H,
    components: &[PartitionKeyComponent],
    write_text: impl Fn(&mut H, &str),
) {
    for component in components {
        match component {
            PartitionKeyComponent::Undefined => hasher.write(&[MARK_UNDEFINED]),
            PartitionKeyComponent::Null => hasher.write(&[MARK_NULL]),
            PartitionKeyComponent::Bool(value) => hasher.write(&[mark_bool(*value)]),
            PartitionKeyComponent::Number(value) => hasher.write(&number_to_hash(*value)),
            PartitionKeyComponent::String(value) => {
                hasher.write(&[MARK_STRING]);
                write_text(hasher, value);
            }
        }
    }
}

const MARK_UNDEFINED: u8 = 0x00;
const MARK_NULL: u8 = 0x01;
const MARK_FALSE: u8 = 0x02;
const MARK_TRUE: u8 = 0x03;
const MARK_NUMBER: u8 = 0x05;
const MARK_STRING: u8 = 0x08;

fn mark_bool(value: bool) -> u8 {
    if value { MARK_TRUE } else { MARK_FALSE }
}

fn number_to_hash(value: f64) -> [u8; 9] {
    let mut bytes = [MARK_NUMBER; 9];
    bytes[1..].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// The part of a string that version 1 hashes: 100 UTF-16 code units. A character of two units that would
/// be cut in half becomes a replacement character, which is the second string.
fn cut_v1(text: &str) -> (&str, &'static str) {
    const UNITS_MAX: usize = 100;
    if text.len() <= UNITS_MAX {
        return (text, "");
    }
    let mut units = 0;
    for (at, character) in text.char_indices() {
        match UNITS_MAX - units {
            0 => return (&text[..at], ""),
            1 if character.len_utf16() == 2 => return (&text[..at], "\u{FFFD}"),
            _ => units += character.len_utf16(),
        }
    }
    (text, "")
}

fn encode_components(components: &[PartitionKeyComponent], out: &mut Vec<u8>) {
    for component in components {
        match component {
            PartitionKeyComponent::Undefined => out.push(MARK_UNDEFINED),
            PartitionKeyComponent::Null => out.push(MARK_NULL),
            PartitionKeyComponent::Bool(value) => out.push(mark_bool(*value)),
            PartitionKeyComponent::Number(value) => encode_number(*value, out),
            PartitionKeyComponent::String(value) => encode_string(value, out),
        }
    }
}

/// Encodes a number as bytes that compare as the numbers do: the ordered bits, first one whole byte, then
/// seven bits at a time with the lowest bit telling whether more follow.
pub(super) fn encode_number(value: f64, out: &mut Vec<u8>) {
    let bits = value.to_bits();
    let sign = 1 << 63;
    let ordered = if bits & sign == 0 { bits ^ sign } else { bits.wrapping_neg() };
    out.push(MARK_NUMBER);
    out.push((ordered >> 56) as u8);
    let mut rest = ordered << 8;
    loop {
        let group = (rest >> 56) as u8;
        rest <<= 7;
        if rest == 0 {
            out.push(group & 0xFE);
            return;
        }
        out.push(group | 1);
    }
}

fn encode_string(text: &str, out: &mut Vec<u8>) {
    const BYTES_MAX: usize = 100;
    let (text, replacement) = cut_v1(text);
    let length = text.len() + replacement.len();
    out.push(MARK_STRING);
    // UTF-8 has no byte FF, so adding one never wraps.
    out.extend(text.bytes().chain(replacement.bytes()).take(BYTES_MAX + 1).map(|byte| byte + 1));
    if length <= BYTES_MAX {
        out.push(0);
    }
}

impl PartialEq for EffectivePartitionKey {
    fn eq(&self, other: &EffectivePartitionKey) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for EffectivePartitionKey {}

impl PartialOrd for EffectivePartitionKey {
    fn partial_cmp(&self, other: &EffectivePartitionKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EffectivePartitionKey {
    fn cmp(&self, other: &EffectivePartitionKey) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl Hash for EffectivePartitionKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Display for EffectivePartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for EffectivePartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for EffectivePartitionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for EffectivePartitionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EffectivePartitionKey, D::Error> {
        let hex = String::deserialize(deserializer)?;
        EffectivePartitionKey::from_hex(&hex).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
