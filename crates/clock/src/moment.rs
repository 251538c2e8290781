//! Moments as text: `2030-01-31T08:00:00Z`, and back.

use std::fmt;
use std::str::FromStr;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{TICKS_PER_SECOND, Ticks};

/// Nanoseconds per tick.
const NANOSECONDS: i128 = 100;

/// Text that names no moment an account can be at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a time like 2030-01-31T08:00:00Z, 2030-01-31 or 1896076800 (seconds since 1970), between the \
     years 1970 and 9999, found '{0}'"
)]
pub struct BadMoment(String);

impl FromStr for Ticks {
    type Err = BadMoment;

    /// Reads a time with its zone, a date (its first moment, in UTC), or seconds since the epoch.
    fn from_str(text: &str) -> Result<Ticks, BadMoment> {
        let bad = || BadMoment(text.chars().take(40).collect());
        let text = text.trim();
        if let Ok(seconds) = text.parse::<u64>() {
            let last = Ticks::from_str("9999-12-31")?.seconds();
            let seconds = i64::try_from(seconds).ok().filter(|seconds| *seconds <= last).ok_or_else(bad)?;
            return Ok(Ticks(seconds * TICKS_PER_SECOND));
        }
        let full = if text.contains(['T', 't', ' ']) { text.to_owned() } else { format!("{text}T00:00:00Z") };
        let moment = OffsetDateTime::parse(&full, &Rfc3339).map_err(|_| bad())?;
        let ticks = i64::try_from(moment.unix_timestamp_nanos() / NANOSECONDS).map_err(|_| bad())?;
        if ticks < 0 { Err(bad()) } else { Ok(Ticks(ticks)) }
    }
}

impl fmt::Display for Ticks {
    /// UTC, with as many digits of a second as there are to tell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * NANOSECONDS);
        match moment.ok().and_then(|moment| moment.format(&Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            // Beyond the calendar: nobody can ask for it, so nobody will read it either.
            None => write!(f, "{} s since 1970", self.seconds()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_in_the_forms_people_write() {
        let cases = [
            ("2026-11-15T19:23:36Z", "2026-11-15T19:23:36Z"),
            ("2026-11-15T19:23:36.5+02:00", "2026-11-15T17:23:36.5Z"),
            ("2026-11-15", "2026-11-15T00:00:00Z"),
            ("1794770616", "2026-11-15T19:23:36Z"),
            (" 0 ", "1970-01-01T00:00:00Z"),
            ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
        ];
        for (text, shown) in cases {
            assert_eq!(text.parse::<Ticks>().map(|ticks| ticks.to_string()), Ok(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused_with_an_example() {
        for text in
            ["", "now", "tomorrow", "2026-13-01", "1969-12-31", "2026-11-15T19:23", "-5", "99999999999999"]
        {
            let error = text.parse::<Ticks>().unwrap_err().to_string();
            assert!(error.contains("2030-01-31T08:00:00Z"), "{error}");
        }
    }

    #[test]
    fn every_moment_can_be_shown() {
        for ticks in [i64::MIN, -1, 0, i64::MAX] {
            assert!(!Ticks(ticks).to_string().is_empty());
        }
    }
}
