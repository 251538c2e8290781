//! The log sequence number (LSN) of a partition.
//!
//! Input and output: an integer, as the `lsn` header and session tokens carry it. Which writes advance it
//! is decided by the store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A log sequence number. It grows by one per committed write or batch of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The LSN before any write.
    pub const ZERO: Lsn = Lsn(0);

    /// The LSN of the next write.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Lsn {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Lsn, Self::Err> {
        text.parse().map(Lsn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_lsn_prints_and_parses_as_a_plain_number() {
        assert_eq!(Lsn(42).to_string(), "42");
        assert_eq!("42".parse(), Ok(Lsn(42)));
        assert!("-1".parse::<Lsn>().is_err(), "no write has a negative number");
        assert_eq!(Lsn::ZERO.next(), Lsn(1));
    }
}
