//! Durations in scenario files: `2s`, and ranges to draw one from: `1s..3s`. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use emulator::clock::HumanDuration;
use serde::{Deserialize, Deserializer};

/// A duration, or a range to draw one from: `2s`, `1s..3s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationRange {
    /// The shortest duration of the range.
    pub from: Duration,
    /// The longest duration of the range.
    pub to: Duration,
}

impl DurationRange {
    /// A range of one duration.
    pub fn always(duration: Duration) -> DurationRange {
        DurationRange { from: duration, to: duration }
    }

    /// The duration at `random`, which is in `0.0..1.0`.
    pub(crate) fn at(self, random: f64) -> Duration {
        self.from + (self.to - self.from).mul_f64(random)
    }
}

impl FromStr for DurationRange {
    type Err = String;

    fn from_str(text: &str) -> Result<DurationRange, String> {
        let span =
            |text: &str| text.parse::<HumanDuration>().map(|span| span.0).map_err(|error| error.to_string());
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let range = DurationRange { from: span(from)?, to: span(to)? };
        if range.from > range.to {
            Err(format!("the range '{text}' is empty; swap its two durations"))
        } else {
            Ok(range)
        }
    }
}

impl fmt::Display for DurationRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from == self.to {
            HumanDuration(self.from).fmt(f)
        } else {
            write!(f, "{}..{}", HumanDuration(self.from), HumanDuration(self.to))
        }
    }
}

impl<'de> Deserialize<'de> for DurationRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DurationRange, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Serializes a [`Duration`] as people write it, for `#[serde(with)]`.
pub(crate) mod human_readable {
    use super::{Deserialize, Deserializer, Duration, HumanDuration};
    use serde::{Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        HumanDuration(*duration).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        HumanDuration::deserialize(deserializer).map(|span| span.0)
    }
}
