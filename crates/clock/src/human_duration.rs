//! Durations as text: `250ms`, `30s`, `1h 30m`, and back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration as people write it, on the command line and in JSON: `250ms`, `30s`, `1h30m`, `7d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a duration like 250ms, 30s, 5m, 1h30m or 7d, found '{0}'")]
pub struct ParseDurationError(String);

/// A thousand years: the longest duration that is accepted. No sum of two such overflows.
const DURATION_MAX: Duration = Duration::from_secs(1_000 * 366 * 86_400);

impl HumanDuration {
    /// Rounds a remaining time up for display: to whole seconds from ten seconds on, to milliseconds below.
    pub fn remaining(left: Duration) -> HumanDuration {
        let unit = if left >= Duration::from_secs(10) { 1_000 } else { 1 };
        let milliseconds = u64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        HumanDuration(Duration::from_millis(milliseconds.div_ceil(unit).saturating_mul(unit)))
    }
}

impl FromStr for HumanDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<HumanDuration, ParseDurationError> {
        match humantime::parse_duration(text.trim()) {
            Ok(duration) if duration <= DURATION_MAX => Ok(HumanDuration(duration)),
            _ => Err(ParseDurationError(text.chars().take(40).collect())),
        }
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HumanDuration, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_with_units() {
        let cases = [
            ("250ms", 250, "250ms"),
            ("90s", 90_000, "1m 30s"),
            ("1h30m", 5_400_000, "1h 30m"),
            (" 7d ", 604_800_000, "7days"),
            ("0", 0, "0s"),
        ];
        for (text, milliseconds, shown) in cases {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!(duration.0, Duration::from_millis(milliseconds), "{text}");
            assert_eq!(duration.to_string(), shown);
            assert_eq!(shown.parse(), Ok(duration));
        }
    }

    #[test]
    fn a_remaining_time_is_rounded_up_for_display() {
        for (micros, shown) in [(29_999_829, "30s"), (10_000_000, "10s"), (9_876_543, "9s 877ms"), (0, "0s")]
        {
            assert_eq!(HumanDuration::remaining(Duration::from_micros(micros)).to_string(), shown);
        }
    }

    #[test]
    fn text_that_is_no_duration_is_refused_with_examples() {
        for text in ["", "5", "s", "-5s", "1..5s", "999999999999d", "5s!", "soon"] {
            let error = text.parse::<HumanDuration>().unwrap_err().to_string();
            assert!(error.contains("1h30m"), "{text}: {error}");
        }
    }

    #[test]
    fn in_json_a_duration_is_text() {
        assert_eq!(serde_json::to_string(&HumanDuration(Duration::from_secs(90))).unwrap(), r#""1m 30s""#);
        assert_eq!(
            serde_json::from_str::<HumanDuration>(r#""2s""#).unwrap(),
            HumanDuration(Duration::from_secs(2))
        );
        assert!(serde_json::from_str::<HumanDuration>("2").is_err());
    }
}
