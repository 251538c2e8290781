//! Encoder: JSON text to Cosmos binary JSON.
//!
//! Input: JSON text. Output: binary JSON in the subset that the Rust client writes: small numbers as single
//! markers, other integers in eight bytes, strings, arrays and objects with their lengths.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{NESTING_MAX, markers as mark};

/// Converts JSON text to binary. Integers beyond 64 bits become doubles, as in other JSON readers.
///
/// Cost: linear, plus one move of the bytes of each array and object once its length is known.
pub fn from_text(text: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = Vec::with_capacity(text.len() + 16);
    out.push(mark::FORMAT);
    let mut reader = serde_json::Deserializer::from_slice(text);
    // The encoder has a limit of its own: that of the reader is less than an item may have.
    reader.disable_recursion_limit();
    Encoder { out: &mut out, levels: NESTING_MAX }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(out)
}

/// A serde visitor that writes each value as binary JSON.
struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    /// How many arrays and objects may still be entered, which also ends the recursion.
    levels: usize,
}

impl Encoder<'_> {
    fn inside<E: serde::de::Error>(&mut self) -> Result<Encoder<'_>, E> {
        let levels = self.levels.checked_sub(1).ok_or_else(|| E::custom("too many levels of nesting"))?;
        Ok(Encoder { out: self.out, levels })
    }
}

impl<'de> DeserializeSeed<'de> for Encoder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Encoder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.out.push(mark::NULL);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.out.push(if value { mark::TRUE } else { mark::FALSE });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        match u8::try_from(value) {
            Ok(small @ 0..=mark::LITERAL_MAX) => self.out.push(small),
            _ => {
                self.out.push(mark::NUMBER_I64);
                self.out.extend_from_slice(&value.to_le_bytes());
            }
        }
        Ok(())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => {
                self.out.push(mark::NUMBER_U64);
                self.out.extend_from_slice(&value.to_le_bytes());
                Ok(())
            }
        }
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.out.push(mark::NUMBER_F64);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        let length = value.len();
        match length {
            0..=0x3F => self.out.push(mark::SHORT_STRING | length as u8),
            0x40..=0xFF => self.out.extend_from_slice(&[mark::STRING_1, length as u8]),
            0x100..=0xFFFF => {
                self.out.push(mark::STRING_2);
                self.out.extend_from_slice(&(length as u16).to_le_bytes());
            }
            _ => {
                // Bodies are bounded far below 4 GiB.
                self.out.push(mark::STRING_4);
                self.out.extend_from_slice(&(length as u32).to_le_bytes());
            }
        }
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let (start, mut count) = (self.out.len(), 0);
        while items.next_element_seed(self.inside()?)?.is_some() {
            count += 1;
        }
        frame(self.out, start, count, mark::ARRAY_LC1);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let (start, mut count) = (self.out.len(), 0);
        while members.next_key_seed(self.inside()?)?.is_some() {
            members.next_value_seed(self.inside()?)?;
            count += 1;
        }
        frame(self.out, start, count, mark::OBJECT_LC1);
        Ok(())
    }
}

/// Inserts marker, length and count before the bytes written since `start`, in the narrowest width.
fn frame(out: &mut Vec<u8>, start: usize, count: usize, first_marker: u8) {
    let length = out.len() - start;
    let (form, width) = match length.max(count) {
        0..=0xFF => (0, 1),
        0x100..=0xFFFF => (1, 2),
        _ => (2, 4),
    };
    let mut header = [0; 9];
    header[0] = first_marker + form;
    header[1..=width].copy_from_slice(&(length as u32).to_le_bytes()[..width]);
    header[1 + width..=2 * width].copy_from_slice(&(count as u32).to_le_bytes()[..width]);
    out.splice(start..start, header[..=2 * width].iter().copied());
}
