//! Decoder: Cosmos binary JSON to JSON text.
//!
//! Input: untrusted bytes. Output: JSON text, or the error and its position. Decoding is one pass that
//! writes text directly, without an intermediate tree.

use std::borrow::Cow;
use std::fmt::Write;

use thiserror::Error;

use super::text::{Appender, write_string};
use super::{NESTING_MAX, markers as mark, strings};
use crate::number::write_double;

/// The error of binary JSON that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("binary JSON: {kind} at byte {position}")]
pub struct BinaryJsonError {
    /// The kind of the error.
    pub kind: BinaryJsonErrorKind,
    /// The byte offset of the error.
    pub position: usize,
}

/// The kinds of errors in binary JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BinaryJsonErrorKind {
    /// The body does not start with the marker of binary JSON.
    #[error("the first byte is not 80")]
    NotBinary,
    /// The body ends within a value.
    #[error("a value goes on past the end")]
    Truncated,
    /// The body has more than one value.
    #[error("something follows the value")]
    Trailing,
    /// A type marker is unknown.
    #[error("unknown marker {0:02X}")]
    UnknownMarker(u8),
    /// A type marker is not allowed at this position, such as a property name that is not a string.
    #[error("marker {0:02X} does not belong here")]
    MisplacedMarker(u8),
    /// The contents of an array or object do not fit its length or count.
    #[error("contents do not fit the length or count")]
    Mismatch,
    /// A string is not UTF-8, or not what its encoding allows.
    #[error("a string that is not text")]
    NotText,
    /// A number is infinite or NaN.
    #[error("a number that is not finite")]
    NotFinite,
    /// A string refers to a user dictionary, which is never sent.
    #[error("a string of an unknown dictionary")]
    UnknownDictionary,
    /// A string reference leads to no string, or to another reference.
    #[error("a reference to something else than a string")]
    BadReference,
    /// Arrays and objects nest deeper than [`NESTING_MAX`].
    #[error("too many levels of nesting")]
    TooDeep,
    /// Repeated references make the text much larger than the body.
    #[error("too much text for so few bytes")]
    TooLong,
}

use BinaryJsonErrorKind as Bad;

/// The output size that is always allowed, however short the input is.
const TEXT_BYTES_FREE: usize = 4 * 1024 * 1024;
/// The largest ratio of output to input above that size. Escapes cost a factor of six, so only string
/// references can exceed it.
const TEXT_FACTOR_MAX: usize = 16;

/// Converts binary JSON to text.
///
/// Cost: linear in input plus output. The output is limited to 16 times the input or 4 MiB, whichever is
/// more.
pub fn to_text(body: &[u8]) -> Result<Vec<u8>, BinaryJsonError> {
    if !super::is_binary(body) {
        return Err(BinaryJsonError { kind: Bad::NotBinary, position: 0 });
    }
    let mut decoder = Decoder {
        body,
        at: 1,
        end: body.len(),
        out: Vec::with_capacity(body.len() + body.len() / 2),
        out_max: body.len().saturating_mul(TEXT_FACTOR_MAX).max(TEXT_BYTES_FREE),
    };
    decoder.value(0)?;
    if decoder.at < body.len() {
        return Err(decoder.bad(Bad::Trailing, decoder.at));
    }
    Ok(decoder.out)
}

struct Decoder<'a> {
    body: &'a [u8],
    at: usize,
    /// Where the innermost array or object ends.
    end: usize,
    out: Vec<u8>,
    out_max: usize,
}

/// Whether the entries are elements of an array or members of an object.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Array,
    Object,
}

impl<'a> Decoder<'a> {
    fn value(&mut self, depth: usize) -> Result<(), BinaryJsonError> {
        let start = self.at;
        if depth > NESTING_MAX {
            return Err(self.bad(Bad::TooDeep, start));
        }
        if self.out.len() > self.out_max {
            return Err(self.bad(Bad::TooLong, start));
        }
        let marker = self.byte()?;
        match marker {
            0..=mark::LITERAL_MAX => self.write(marker),
            mark::SYSTEM_STRING..=mark::REFERENCE_4 => {
                let text = self.string(marker, start)?;
                write_string(&text, &mut self.out);
            }
            mark::NUMBER_U64 => {
                let number = u64::from_le_bytes(self.fixed()?);
                self.write(number);
            }
            mark::NUMBER_U8 => self.number(mark::U8, start)?,
            mark::NUMBER_I16 => self.number(mark::I16, start)?,
            mark::NUMBER_I32 => self.number(mark::I32, start)?,
            mark::NUMBER_I64 => self.number(mark::I64, start)?,
            mark::NUMBER_F64 => self.number(mark::F64, start)?,
            mark::F32..=mark::F16 | mark::U8..=mark::U32 => self.number(marker, start)?,
            mark::NULL => self.out.extend_from_slice(b"null"),
            mark::FALSE => self.out.extend_from_slice(b"false"),
            mark::TRUE => self.out.extend_from_slice(b"true"),
            mark::GUID => {
                let text = strings::guid_value(&self.fixed()?);
                write_string(&text, &mut self.out);
            }
            mark::BINARY_1..=mark::BINARY_4 => {
                let length = self.length([1, 2, 4][usize::from(marker - mark::BINARY_1)])?;
                let text = strings::blob(self.take(length)?);
                write_string(&text, &mut self.out);
            }
            mark::ARRAY_EMPTY => self.out.extend_from_slice(b"[]"),
            mark::OBJECT_EMPTY => self.out.extend_from_slice(b"{}"),
            mark::ARRAY_ONE => self.single(Shape::Array, depth)?,
            mark::OBJECT_ONE => self.single(Shape::Object, depth)?,
            mark::ARRAY_L1..=mark::ARRAY_LC4 => {
                self.container(Shape::Array, marker - mark::ARRAY_L1, depth)?;
            }
            mark::OBJECT_L1..=mark::OBJECT_LC4 => {
                self.container(Shape::Object, marker - mark::OBJECT_L1, depth)?;
            }
            mark::NUMBERS_1 | mark::NUMBERS_2 => self.numbers(marker, start)?,
            mark::NUMBER_ARRAYS_1 | mark::NUMBER_ARRAYS_2 => self.number_arrays(marker, start)?,
            _ => return Err(self.bad(Bad::UnknownMarker(marker), start)),
        }
        Ok(())
    }

    /// An array or object with one entry, which is encoded without length and count.
    fn single(&mut self, shape: Shape, depth: usize) -> Result<(), BinaryJsonError> {
        self.open(shape);
        self.entry(shape, depth)?;
        self.close(shape);
        Ok(())
    }

    /// An array or object with a length; `form` counts from the first marker of its kind.
    fn container(&mut self, shape: Shape, form: u8, depth: usize) -> Result<(), BinaryJsonError> {
        let start = self.at;
        let width = [1, 2, 4][usize::from(form % 3)];
        let length = self.length(width)?;
        let count = if form >= 3 { Some(self.length(width)?) } else { None };
        let end = self.at.checked_add(length).filter(|end| *end <= self.end);
        let end = end.ok_or_else(|| self.bad(Bad::Truncated, start))?;
        let outer_end = std::mem::replace(&mut self.end, end);
        self.open(shape);
        let mut entries = 0;
        while self.at < end {
            if entries > 0 {
                self.out.push(b',');
            }
            self.entry(shape, depth)?;
            entries += 1;
        }
        self.close(shape);
        self.end = outer_end;
        if count.is_some_and(|count| count != entries) {
            return Err(self.bad(Bad::Mismatch, start));
        }
        Ok(())
    }

    fn open(&mut self, shape: Shape) {
        self.out.push(if shape == Shape::Array { b'[' } else { b'{' });
    }

    fn close(&mut self, shape: Shape) {
        self.out.push(if shape == Shape::Array { b']' } else { b'}' });
    }

    fn entry(&mut self, shape: Shape, depth: usize) -> Result<(), BinaryJsonError> {
        if shape == Shape::Object {
            let start = self.at;
            let marker = self.byte()?;
            if !(mark::SYSTEM_STRING..=mark::REFERENCE_4).contains(&marker) {
                return Err(self.bad(Bad::MisplacedMarker(marker), start));
            }
            let name = self.string(marker, start)?;
            write_string(&name, &mut self.out);
            self.out.push(b':');
        }
        self.value(depth + 1)
    }

    /// A string whose marker has been read.
    fn string(&mut self, marker: u8, start: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        match marker {
            mark::REFERENCE_1..=mark::REFERENCE_4 => {
                let target = self.length(usize::from(marker - mark::REFERENCE_1) + 1)?;
                self.referenced(target, start)
            }
            _ => self.own_string(marker, start),
        }
    }

    /// A string reference. It must point backwards to a string that is not a reference itself: chains could
    /// be long, and cycles endless.
    fn referenced(&mut self, target: usize, start: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        let marker = self.body.get(target).copied().filter(|_| (1..start).contains(&target));
        match marker {
            Some(marker @ mark::SYSTEM_STRING..=mark::STRING_4) => {
                let (at, end) = (self.at, self.end);
                (self.at, self.end) = (target + 1, self.body.len());
                let text = self.own_string(marker, target);
                (self.at, self.end) = (at, end);
                text
            }
            _ => Err(self.bad(Bad::BadReference, start)),
        }
    }

    /// Any string that is not a reference.
    fn own_string(&mut self, marker: u8, start: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        match marker {
            mark::SYSTEM_STRING..=mark::SYSTEM_STRING_LAST => {
                Ok(mark::SYSTEM_STRINGS[usize::from(marker - mark::SYSTEM_STRING)].into())
            }
            mark::USER_STRING..=mark::USER_STRING_LAST => Err(self.bad(Bad::UnknownDictionary, start)),
            mark::SHORT_STRING..=mark::SHORT_STRING_LAST => {
                self.plain(usize::from(marker - mark::SHORT_STRING), start)
            }
            mark::STRING_1..=mark::STRING_4 => {
                let length = self.length([1, 2, 4][usize::from(marker - mark::STRING_1)])?;
                self.plain(length, start)
            }
            mark::GUID_LOWER => Ok(strings::guid_string(&self.fixed()?, strings::HEX_LOWER).into()),
            mark::GUID_UPPER => Ok(strings::guid_string(&self.fixed()?, strings::HEX_UPPER).into()),
            mark::GUID_QUOTED => {
                let guid = strings::guid_string(&self.fixed()?, strings::HEX_LOWER);
                Ok(format!("\"{guid}\"").into())
            }
            mark::BASE64_1 => self.base64(1, false, start),
            mark::BASE64_2 => self.base64(2, false, start),
            mark::BASE64_URL_1 => self.base64(1, true, start),
            mark::BASE64_URL_2 => self.base64(2, true, start),
            mark::HEX_LOWER => self.table(strings::HEX_LOWER, start),
            mark::HEX_UPPER => self.table(strings::HEX_UPPER, start),
            mark::DATE_TIME => self.table(strings::DATE_TIME, start),
            mark::PACKED_4 => self.packed_from_base(4, start),
            mark::PACKED_5 => self.packed_from_base(5, start),
            mark::PACKED_6 => self.packed_from_base(6, start),
            mark::PACKED_7_1 => {
                let count = self.length(1)?;
                self.unpack(count, 7, start, |number| number)
            }
            mark::PACKED_7_2 => {
                let count = self.length(2)?;
                self.unpack(count, 7, start, |number| number)
            }
            _ => Err(self.bad(Bad::UnknownMarker(marker), start)),
        }
    }

    fn plain(&mut self, length: usize, start: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| self.bad(Bad::NotText, start))
    }

    fn base64(
        &mut self,
        width: usize,
        url_safe: bool,
        start: usize,
    ) -> Result<Cow<'a, str>, BinaryJsonError> {
        let groups = self.length(width)?;
        let padding = self.byte()?;
        let shape =
            strings::Base64Shape::new(groups, padding).ok_or_else(|| self.bad(Bad::NotText, start))?;
        Ok(shape.text(self.take(shape.bytes)?, url_safe).into())
    }

    fn table(&mut self, table: &[u8; 16], start: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        let count = self.length(1)?;
        self.unpack(count, 4, start, |index| table[usize::from(index & 15)])
    }

    fn packed_from_base(&mut self, bits: usize, start: usize) -> Result<Cow<'a, str>, BinaryJsonError> {
        let count = self.length(1)?;
        let base = self.byte()?;
        self.unpack(count, bits, start, |number| number.saturating_add(base))
    }

    fn unpack(
        &mut self,
        count: usize,
        bits: usize,
        start: usize,
        character: impl Fn(u8) -> u8,
    ) -> Result<Cow<'a, str>, BinaryJsonError> {
        let bytes = self.take(strings::packed_length(count, bits))?;
        let text = strings::unpack(bytes, count, bits, character);
        text.map(Cow::Owned).ok_or_else(|| self.bad(Bad::NotText, start))
    }

    /// A number whose type marker has been read.
    fn number(&mut self, kind: u8, start: usize) -> Result<(), BinaryJsonError> {
        match kind {
            mark::U8 => {
                let number = self.byte()?;
                self.write(number);
            }
            mark::I8 => {
                let number = i8::from_le_bytes(self.fixed()?);
                self.write(number);
            }
            mark::I16 => {
                let number = i16::from_le_bytes(self.fixed()?);
                self.write(number);
            }
            mark::I32 => {
                let number = i32::from_le_bytes(self.fixed()?);
                self.write(number);
            }
            mark::I64 => {
                let number = i64::from_le_bytes(self.fixed()?);
                self.write(number);
            }
            mark::U32 => {
                let number = u32::from_le_bytes(self.fixed()?);
                self.write(number);
            }
            mark::F16 => {
                let number = half_to_double(u16::from_le_bytes(self.fixed()?));
                self.double(number, start)?;
            }
            mark::F32 => {
                let number = f32::from_le_bytes(self.fixed()?);
                self.double(f64::from(number), start)?;
            }
            mark::F64 => {
                let number = f64::from_le_bytes(self.fixed()?);
                self.double(number, start)?;
            }
            _ => return Err(self.bad(Bad::MisplacedMarker(kind), start)),
        }
        Ok(())
    }

    fn double(&mut self, number: f64, start: usize) -> Result<(), BinaryJsonError> {
        if !number.is_finite() {
            return Err(self.bad(Bad::NotFinite, start));
        }
        write_double(number, &mut Appender(&mut self.out));
        Ok(())
    }

    /// An array of numbers of one type: the type, the count, the numbers.
    fn numbers(&mut self, marker: u8, start: usize) -> Result<(), BinaryJsonError> {
        let kind = self.byte()?;
        let count = self.length(if marker == mark::NUMBERS_1 { 1 } else { 2 })?;
        self.number_array(kind, count, start)
    }

    /// An array of such arrays: their marker, the type, the length of each, the count.
    fn number_arrays(&mut self, marker: u8, start: usize) -> Result<(), BinaryJsonError> {
        let (width, inner) =
            if marker == mark::NUMBER_ARRAYS_1 { (1, mark::NUMBERS_1) } else { (2, mark::NUMBERS_2) };
        let found = self.byte()?;
        if found != inner {
            return Err(self.bad(Bad::MisplacedMarker(found), start));
        }
        let kind = self.byte()?;
        let (length, count) = (self.length(width)?, self.length(width)?);
        self.out.push(b'[');
        for index in 0..count {
            if index > 0 {
                self.out.push(b',');
            }
            self.number_array(kind, length, start)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn number_array(&mut self, kind: u8, count: usize, start: usize) -> Result<(), BinaryJsonError> {
        self.out.push(b'[');
        for index in 0..count {
            if index > 0 {
                self.out.push(b',');
            }
            self.number(kind, start)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn write(&mut self, number: impl std::fmt::Display) {
        write!(Appender(&mut self.out), "{number}").expect("writing to memory cannot fail");
    }

    fn byte(&mut self) -> Result<u8, BinaryJsonError> {
        Ok(self.take(1)?[0])
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], BinaryJsonError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// A little-endian unsigned integer of one to four bytes.
    fn length(&mut self, width: usize) -> Result<usize, BinaryJsonError> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    /// The next bytes, which must all lie within the innermost array or object.
    fn take(&mut self, length: usize) -> Result<&'a [u8], BinaryJsonError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.end);
        match end {
            Some(end) => {
                let bytes = &self.body[self.at..end];
                self.at = end;
                Ok(bytes)
            }
            None => Err(self.bad(Bad::Truncated, self.at)),
        }
    }

    fn bad(&self, kind: Bad, position: usize) -> BinaryJsonError {
        BinaryJsonError { kind, position }
    }
}

/// Converts a 16-bit float: one sign bit, five exponent bits, ten fraction bits.
fn half_to_double(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x03FF);
    match (bits >> 10) & 0x1F {
        0 => sign * fraction * 2f64.powi(-24),
        0x1F if fraction == 0.0 => sign * f64::INFINITY,
        0x1F => f64::NAN,
        exponent => sign * (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    }
}

#[cfg(test)]
mod half_tests {
    use super::half_to_double;

    #[test]
    fn halves_are_widened_exactly() {
        for (bits, expected) in [
            (0x0000, 0.0),
            (0x3C00, 1.0),
            (0xC000, -2.0),
            (0x3555, 0.333251953125),
            (0x7BFF, 65504.0),
            (0x0001, 5.960464477539063e-8),
            (0x7C00, f64::INFINITY),
        ] {
            assert_eq!(half_to_double(bits), expected);
        }
        assert!(half_to_double(0x7E00).is_nan());
    }
}
