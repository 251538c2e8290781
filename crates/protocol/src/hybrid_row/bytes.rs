//! Reading bytes one after the other, never beyond their end.

use super::HybridRowError;

/// What is left of a sequence of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    /// Takes the next `count` bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], HybridRowError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(HybridRowError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], HybridRowError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(HybridRowError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, HybridRowError> {
        self.take_array().map(|[byte]| byte)
    }

    pub(super) fn i32(&mut self) -> Result<i32, HybridRowError> {
        self.take_array().map(i32::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, HybridRowError> {
        self.take_array().map(u32::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, HybridRowError> {
        self.take_array().map(f64::from_le_bytes)
    }

    /// Takes an integer of 7 bits a byte, low bits first.
    pub(super) fn varuint(&mut self) -> Result<u64, HybridRowError> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte has one bit left.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(HybridRowError::InvalidInteger)
    }

    /// Takes a length and as many bytes.
    pub(super) fn counted(&mut self) -> Result<&'a [u8], HybridRowError> {
        let length = self.varuint()?;
        self.take(usize::try_from(length).map_err(|_| HybridRowError::Truncated)?)
    }
}

/// Appends an integer of 7 bits a byte, low bits first.
pub(super) fn write_varuint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and as many bytes.
pub(super) fn write_counted(bytes: &[u8], out: &mut Vec<u8>) {
    write_varuint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}
