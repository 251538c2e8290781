//! Replication lag: how long a commit takes from one region to another.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// The longest lag; more than that is surely a mistake.
const LAG_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A range of replication lags; each commit gets one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    min: Duration,
    max: Duration,
}

/// A text that could not be parsed as a lag.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected a lag such as '30ms' or '20ms..50ms' of a day at the most, found '{0}'")]
pub struct InvalidLag(String);

impl Lag {
    /// No lag at all.
    pub const NONE: Lag = Lag { min: Duration::ZERO, max: Duration::ZERO };

    /// A lag between `min` and `max`.
    pub fn between(min: Duration, max: Duration) -> Result<Lag, InvalidLag> {
        if min > max || max > LAG_MAX {
            return Err(InvalidLag(format!("{min:?}..{max:?}")));
        }
        Ok(Lag { min, max })
    }

    /// The lag at a fraction of the range, from zero to one.
    pub(crate) fn at(self, draw: f64) -> Duration {
        self.min + (self.max - self.min).mul_f64(draw.clamp(0.0, 1.0))
    }

    /// The upper end of the range.
    pub(crate) fn max(self) -> Duration {
        self.max
    }
}

impl FromStr for Lag {
    type Err = InvalidLag;

    fn from_str(text: &str) -> Result<Lag, InvalidLag> {
        let read =
            |part: &str| humantime::parse_duration(part.trim()).map_err(|_| InvalidLag(text.to_owned()));
        let (min, max) = match text.split_once("..") {
            Some((min, max)) => (read(min)?, read(max)?),
            None if text.trim() == "0" => return Ok(Lag::NONE),
            None => (read(text)?, read(text)?),
        };
        Lag::between(min, max).map_err(|_| InvalidLag(text.to_owned()))
    }
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = (humantime::format_duration(self.min), humantime::format_duration(self.max));
        if self.min == self.max { write!(f, "{min}") } else { write!(f, "{min}..{max}") }
    }
}
