//! The encoding of numbers and byte strings, which values on disk consist of.
//!
//! Numbers take seven bits per byte, lowest first; byte strings their length and then themselves. A
//! reader never trusts a length: what is cut short or too long is [`Malformed`], not a panic.

use thiserror::Error;

/// Bytes that are not in the expected format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed value")]
pub(crate) struct Malformed;

/// Appends a variable-length number.
pub(crate) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a byte string with its length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Reads what the functions above wrote.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The number of unread bytes.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return Err(Malformed);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    /// A number that fits into a smaller type.
    pub(crate) fn number_as<T: TryFrom<u64>>(&mut self) -> Result<T, Malformed> {
        T::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length: usize = self.number_as()?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A byte string whose length takes four bytes.
    pub(crate) fn long_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let (length, rest) = self.rest.split_first_chunk().ok_or(Malformed)?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(Malformed)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed)
    }

    /// Everything that has not been read yet.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Checks that everything has been read.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_and_strings_round_trip(numbers: Vec<u64>, strings: Vec<Vec<u8>>) {
            let mut bytes = Vec::new();
            for number in &numbers {
                put_number(&mut bytes, *number);
            }
            for string in &strings {
                put_bytes(&mut bytes, string);
            }
            let mut reader = Reader::new(&bytes);
            for number in numbers {
                prop_assert_eq!(reader.number(), Ok(number));
            }
            for string in &strings {
                prop_assert_eq!(reader.bytes(), Ok(string.as_slice()));
            }
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.bytes().is_ok() {}
            let mut reader = Reader::new(&bytes);
            while reader.number().is_ok() {}
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_malformed() {
        assert_eq!(Reader::new(&[0xFF; 10]).number(), Err(Malformed));
        let mut bytes = Vec::new();
        put_number(&mut bytes, 300);
        assert_eq!(Reader::new(&bytes).number_as::<u8>(), Err(Malformed));
        put_number(&mut bytes, u64::MAX);
        assert_eq!(Reader::new(&bytes[2..]).number(), Ok(u64::MAX));
        assert_eq!(Reader::new(&[5, 1, 2]).bytes(), Err(Malformed), "shorter than it says");
    }
}
