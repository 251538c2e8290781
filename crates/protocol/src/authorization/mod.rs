//! Authentication of requests: the `authorization` header, signatures and tokens.
//!
//! Input: the header, the parts of a request that are signed, an [`AccountKey`]. Output: an
//! [`AuthorizationToken`] of one of four kinds, a signature, or whether a signature is right. Checking the
//! date, and the rights of a resource token or an Entra ID principal, is left to the server, which has a
//! clock and a catalog.

mod key; // the account key and its signatures
mod payload; // the string to sign
mod token; // the header

pub use key::{AccountKey, AccountKeyError, EMULATOR_KEY, Signature};
pub use payload::{SignaturePayload, SignedTarget, sign, signed_targets, string_to_sign, verify};
pub use token::{AuthorizationToken, AuthorizationTokenError};

#[cfg(test)]
mod tests;
