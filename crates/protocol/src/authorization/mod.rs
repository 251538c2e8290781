//! Who is asking: signatures and tokens.
//!
//! In: the `authorization` header, the parts of a request that are signed, a [`AccountKey`]. Out: a
//! [`AuthorizationToken`] of one of three kinds, a signature, or whether one is right. Checking the date, and
//! what a resource token or a principal may do, is left to the gateway: both need a clock or a
//! catalog.

mod key; // the account key, and what it signs
mod payload; // the five lines
mod token; // the header's text

pub use key::{AccountKey, AccountKeyError, EMULATOR_KEY, Signature};
pub use payload::{SignaturePayload, SignedTarget, sign, signed_targets, string_to_sign, verify};
pub use token::{AuthorizationToken, AuthorizationTokenError};

#[cfg(test)]
mod tests;
