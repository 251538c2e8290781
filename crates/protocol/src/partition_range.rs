//! Physical partitions, as the `pkranges` feed describes them.
//!
//! In and out: ids and bodies. When a range splits, and what answers for it then, is the server's
//! affair.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of a physical partition: a decimal number, never reused within a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeId(pub u32);

impl fmt::Display for RangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RangeId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<RangeId, Self::Err> {
        text.parse().map(RangeId)
    }
}

impl Serialize for RangeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RangeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RangeId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
