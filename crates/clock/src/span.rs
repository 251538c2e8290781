//! Durations as text: `250ms`, `30s`, `1h 30m`, and back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration as people write it, on the command line and in JSON: `250ms`, `30s`, `1h30m`, `7d`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// Text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a duration like 250ms, 30s, 5m, 1h30m or 7d, found '{0}'")]
pub struct BadSpan(String);

/// A thousand years. Nothing here lasts longer, and no sum of two such overflows.
const LONGEST: Duration = Duration::from_secs(1_000 * 366 * 86_400);

impl Span {
    /// As exactly as people want to know how long something still takes: seconds, or milliseconds where
    /// seconds would say little. Never less than what is left.
    pub fn remaining(left: Duration) -> Span {
        let unit = if left >= Duration::from_secs(10) { 1_000 } else { 1 };
        let milliseconds = u64::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX);
        Span(Duration::from_millis(milliseconds.div_ceil(unit).saturating_mul(unit)))
    }
}

impl FromStr for Span {
    type Err = BadSpan;

    fn from_str(text: &str) -> Result<Span, BadSpan> {
        match humantime::parse_duration(text.trim()) {
            Ok(duration) if duration <= LONGEST => Ok(Span(duration)),
            _ => Err(BadSpan(text.chars().take(40).collect())),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_the_forms_people_write() {
        let cases = [
            ("250ms", 250, "250ms"),
            ("90s", 90_000, "1m 30s"),
            ("1h30m", 5_400_000, "1h 30m"),
            (" 7d ", 604_800_000, "7days"),
            ("0", 0, "0s"),
        ];
        for (text, milliseconds, shown) in cases {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0, Duration::from_millis(milliseconds), "{text}");
            assert_eq!(span.to_string(), shown);
            assert_eq!(shown.parse(), Ok(span));
        }
    }

    #[test]
    fn what_is_left_is_told_as_exactly_as_it_matters() {
        for (micros, shown) in [(29_999_829, "30s"), (10_000_000, "10s"), (9_876_543, "9s 877ms"), (0, "0s")]
        {
            assert_eq!(Span::remaining(Duration::from_micros(micros)).to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_examples() {
        for text in ["", "5", "s", "-5s", "1..5s", "999999999999d", "5s!", "soon"] {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains("1h30m"), "{text}: {error}");
        }
    }

    #[test]
    fn in_json_a_duration_is_text() {
        assert_eq!(serde_json::to_string(&Span(Duration::from_secs(90))).unwrap(), r#""1m 30s""#);
        assert_eq!(serde_json::from_str::<Span>(r#""2s""#).unwrap(), Span(Duration::from_secs(2)));
        assert!(serde_json::from_str::<Span>("2").is_err());
    }
}
