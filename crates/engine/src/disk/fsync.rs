//! When an acknowledged write has reached the disk itself.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How long `interval` lets a write wait for the disk.
pub(super) const SYNC_INTERVAL: Duration = Duration::from_millis(100);

/// The durability of an acknowledged write. In all three modes it survives the end of the process, `kill -9`
/// included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fsync {
    /// It also survives a power failure: acknowledged means on the disk.
    Always,
    /// It also survives a power failure, unless it was made in the last 100 ms: the journal is synced that
    /// often.
    #[default]
    Interval,
    /// Nothing more: the operating system decides when the disk is written.
    Never,
}

impl fmt::Display for Fsync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fsync::Always => "always",
            Fsync::Interval => "interval",
            Fsync::Never => "never",
        })
    }
}

impl FromStr for Fsync {
    type Err = String;

    fn from_str(text: &str) -> Result<Fsync, String> {
        match text.to_ascii_lowercase().as_str() {
            "always" => Ok(Fsync::Always),
            "interval" => Ok(Fsync::Interval),
            "never" => Ok(Fsync::Never),
            _ => Err(format!("expected always, interval or never, found '{text}'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_round_trips_as_text() {
        for choice in [Fsync::Always, Fsync::Interval, Fsync::Never] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert!("sometimes".parse::<Fsync>().unwrap_err().contains("always, interval or never"));
    }
}
