//! The account key and the HMAC-SHA256 signatures made with it.
//!
//! Input: the key as base64 text. Output: signatures of bytes. Which bytes are signed is decided in
//! `payload`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use thiserror::Error;

/// The well-known key of every Cosmos DB emulator. It protects nothing.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// An account key, ready for signing.
///
/// Holds the hash state after the key has been absorbed, so that signing costs only the text.
#[derive(Clone)]
pub struct AccountKey(Hmac<Sha256>);

/// The error of a text that is not a base64 key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an account key is base64 text, and not empty")]
pub struct AccountKeyError;

impl AccountKey {
    /// Reads a key as the Azure portal shows it.
    pub fn from_base64(text: &str) -> Result<AccountKey, AccountKeyError> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| AccountKeyError)?;
        if bytes.is_empty() {
            return Err(AccountKeyError);
        }
        Hmac::new_from_slice(&bytes).map(AccountKey).map_err(|_| AccountKeyError)
    }

    /// Signs any bytes, such as the content of a resource token.
    ///
    /// Cost: linear in the bytes, without an allocation.
    pub fn sign_bytes(&self, bytes: &[u8]) -> Signature {
        let mut mac = self.0.clone();
        mac.update(bytes);
        Signature(mac.finalize().into_bytes().into())
    }
}

impl FromStr for AccountKey {
    type Err = AccountKeyError;

    fn from_str(text: &str) -> Result<AccountKey, AccountKeyError> {
        AccountKey::from_base64(text)
    }
}

/// Does not print the key.
impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The value in [`SEXTETS`] of a character outside the base64 alphabet; no sextet has this bit.
const NO_SEXTET: u8 = 0x80;

/// The six bits that each base64 character stands for.
const SEXTETS: [u8; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut sextets = [NO_SEXTET; 256];
    let mut at = 0;
    while at < alphabet.len() {
        sextets[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    sextets
};

/// A 256-bit HMAC. Comparing two takes the same time wherever they differ.
#[derive(Clone, Copy, Debug)]
pub struct Signature([u8; 32]);

impl Signature {
    /// Reads base64 text; `None` if the length or the alphabet is wrong.
    pub fn from_base64(text: &str) -> Option<Signature> {
        Signature::from_base64_bytes(text.as_bytes().try_into().ok()?)
    }

    /// Reads base64 text of 44 characters, which encode 32 bytes and one padding character.
    ///
    /// By hand because every request passes here: with a known length, decoding is eleven groups of four
    /// characters, which is faster than the general decoder.
    pub(super) fn from_base64_bytes(text: &[u8; 44]) -> Option<Signature> {
        let mut text = *text;
        if std::mem::replace(&mut text[43], b'A') != b'=' {
            return None;
        }
        let mut bytes = [0; 33];
        let mut unknown = 0;
        let sextet = |character: &u8| SEXTETS[usize::from(*character)];
        for ([a, b, c, d], three) in text.as_chunks::<4>().0.iter().zip(bytes.as_chunks_mut::<3>().0) {
            let (a, b, c, d) = (sextet(a), sextet(b), sextet(c), sextet(d));
            unknown |= a | b | c | d;
            *three = [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d];
        }
        // The unused bits of the last character must be zero.
        let is_whole = unknown & NO_SEXTET == 0 && bytes[32] == 0;
        if is_whole { bytes.first_chunk().copied().map(Signature) } else { None }
    }

    /// The base64 form that tokens carry.
    pub fn to_base64(self) -> String {
        STANDARD.encode(self.0)
    }
}

impl PartialEq for Signature {
    fn eq(&self, other: &Signature) -> bool {
        let (own, others) = (self.0.as_chunks::<8>().0, other.0.as_chunks::<8>().0);
        // By hand: all words are combined before one comparison, so that the time does not depend on where
        // they differ.
        let difference =
            |(one, two): (&[u8; 8], &[u8; 8])| u64::from_ne_bytes(*one) ^ u64::from_ne_bytes(*two);
        own.iter().zip(others).map(difference).fold(0, |all, one| all | one).ct_eq(&0).into()
    }
}

impl Eq for Signature {}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_are_base64() {
        assert!(AccountKey::from_base64(EMULATOR_KEY).is_ok());
        for bad in ["", "not base64!", "===="] {
            assert_eq!(bad.parse::<AccountKey>().err(), Some(AccountKeyError), "{bad}");
        }
    }

    #[test]
    fn debug_output_does_not_contain_the_key() {
        let key = AccountKey::from_base64(EMULATOR_KEY).expect("a key");
        assert_eq!(format!("{key:?}"), "Key(..)");
    }

    #[test]
    fn signatures_match_the_standard() {
        // RFC 4231, test case 2.
        let key = AccountKey::from_base64(&STANDARD.encode("Jefe")).expect("a key");
        let signature = key.sign_bytes(b"what do ya want for nothing?");
        let expected = [
            0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
            0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43,
        ];
        assert_eq!(signature, Signature(expected));
    }

    #[test]
    fn a_signature_is_44_characters() {
        for bad in ["", "AAAA", &"A".repeat(44), &"A".repeat(43), &format!("{}=", "!".repeat(43))] {
            assert_eq!(Signature::from_base64(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_signature_survives_its_text(bytes: [u8; 32]) {
            let text = Signature(bytes).to_base64();
            prop_assert_eq!(Signature::from_base64(&text), Some(Signature(bytes)));
            prop_assert_eq!(Signature(bytes).to_string(), text);
        }

        #[test]
        fn text_is_read_as_the_library_reads_it(text in "[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048B+/=!]=|[ -~]{44}") {
            let read = STANDARD.decode(&text).ok().and_then(|bytes| bytes.try_into().ok()).map(Signature);
            prop_assert_eq!(Signature::from_base64(&text), read, "{}", text);
        }

        #[test]
        fn signatures_that_differ_anywhere_are_different(bytes: [u8; 32], at in 0..32_usize, flip in 1..=255_u8) {
            let mut other = bytes;
            other[at] ^= flip;
            prop_assert!(Signature(bytes) == Signature(bytes) && Signature(bytes) != Signature(other));
        }
    }
}
