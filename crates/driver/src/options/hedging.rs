//! Options of hedging: whether and when a second region is tried.

use std::num::NonZeroU32;
use std::time::Duration;

use super::InvalidOption;

/// The smallest hedging threshold there is.
pub const THRESHOLD_FLOOR: Duration = Duration::from_millis(50);
/// The largest threshold of hedging.
pub const THRESHOLD_CEILING: Duration = Duration::from_millis(4000);

/// When the second attempt starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgingThreshold {
    /// At the recent 99th percentile of the operation's kind and region, kept within bounds.
    Dynamic {
        /// Not before. Default: 50 ms, which is also the least.
        min: Duration,
        /// Not after. Default: 4 s, which is also the most.
        max: Duration,
    },
    /// Always after this duration.
    Static(Duration),
}

impl Default for HedgingThreshold {
    fn default() -> HedgingThreshold {
        HedgingThreshold::Dynamic { min: THRESHOLD_FLOOR, max: THRESHOLD_CEILING }
    }
}

impl HedgingThreshold {
    /// At the recent 99th percentile within these bounds, which lie between 50 ms and 4 s.
    pub fn dynamic(min: Duration, max: Duration) -> Result<HedgingThreshold, InvalidOption> {
        HedgingThreshold::Dynamic { min, max }.checked()
    }

    /// After this long, between 50 ms and 4 s.
    pub fn after(threshold: Duration) -> Result<HedgingThreshold, InvalidOption> {
        HedgingThreshold::Static(threshold).checked()
    }

    fn checked(self) -> Result<HedgingThreshold, InvalidOption> {
        let gates = THRESHOLD_FLOOR..=THRESHOLD_CEILING;
        let problem = match self {
            HedgingThreshold::Dynamic { min, max } if !gates.contains(&min) || !gates.contains(&max) => {
                format!("the bounds {min:?} and {max:?} must lie between 50 ms and 4 s")
            }
            HedgingThreshold::Dynamic { min, max } if min > max => {
                format!("the lower bound {min:?} is above the upper bound {max:?}")
            }
            HedgingThreshold::Static(after) if !gates.contains(&after) => {
                format!("{after:?} must lie between 50 ms and 4 s")
            }
            HedgingThreshold::Dynamic { .. } | HedgingThreshold::Static(_) => return Ok(self),
        };
        Err(InvalidOption::new("hedging.threshold", problem))
    }
}

/// Options of hedging; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HedgingOptions {
    /// Overrides [`HedgingSettings::enabled`] if it is set.
    pub enabled: Option<bool>,
    /// Overrides [`HedgingSettings::threshold`] if it is set.
    pub threshold: Option<HedgingThreshold>,
    /// Overrides [`HedgingSettings::concurrent_max`] if it is set.
    pub concurrent_max: Option<NonZeroU32>,
}

/// The resolved settings of hedging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HedgingSettings {
    /// Whether reads are hedged, and on multi-write accounts creates, conditional writes, and writes that the
    /// caller marks [repeatable](crate::Operation::repeatable): a duplicate that arrives late must not undo
    /// what came after it. Default: yes.
    pub enabled: bool,
    /// When the second attempt starts. Default: the recent 99th percentile.
    pub threshold: HedgingThreshold,
    /// Concurrent second attempts of one driver; beyond it operations are not hedged.
    /// Default: 64.
    pub concurrent_max: NonZeroU32,
}

impl Default for HedgingSettings {
    fn default() -> HedgingSettings {
        HedgingSettings {
            enabled: true,
            threshold: HedgingThreshold::default(),
            concurrent_max: NonZeroU32::new(64).expect("64 is not zero"),
        }
    }
}

impl HedgingOptions {
    /// Options that set nothing.
    pub fn new() -> HedgingOptions {
        HedgingOptions::default()
    }

    /// Sets the value of [`HedgingSettings::enabled`].
    #[must_use]
    pub fn with_enabled(self, enabled: bool) -> HedgingOptions {
        HedgingOptions { enabled: Some(enabled), ..self }
    }

    /// Sets the value of [`HedgingSettings::threshold`].
    #[must_use]
    pub fn with_threshold(self, threshold: HedgingThreshold) -> HedgingOptions {
        HedgingOptions { threshold: Some(threshold), ..self }
    }

    /// Sets the value of [`HedgingSettings::concurrent_max`].
    #[must_use]
    pub fn with_concurrent_max(self, hedges: NonZeroU32) -> HedgingOptions {
        HedgingOptions { concurrent_max: Some(hedges), ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &HedgingOptions) -> HedgingOptions {
        HedgingOptions {
            enabled: self.enabled.or(fallback.enabled),
            threshold: self.threshold.or(fallback.threshold),
            concurrent_max: self.concurrent_max.or(fallback.concurrent_max),
        }
    }

    pub(super) fn resolve(&self) -> Result<HedgingSettings, InvalidOption> {
        let default = HedgingSettings::default();
        Ok(HedgingSettings {
            enabled: self.enabled.unwrap_or(default.enabled),
            threshold: self.threshold.unwrap_or(default.threshold).checked()?,
            concurrent_max: self.concurrent_max.unwrap_or(default.concurrent_max),
        })
    }
}

/// Hedging on or off.
impl From<bool> for HedgingOptions {
    fn from(enabled: bool) -> HedgingOptions {
        HedgingOptions::new().with_enabled(enabled)
    }
}

/// Hedging on, with a second attempt when the first has not responded for this long.
impl From<Duration> for HedgingOptions {
    fn from(threshold: Duration) -> HedgingOptions {
        HedgingThreshold::Static(threshold).into()
    }
}

/// Hedging on, with this threshold.
impl From<HedgingThreshold> for HedgingOptions {
    fn from(threshold: HedgingThreshold) -> HedgingOptions {
        HedgingOptions::new().with_enabled(true).with_threshold(threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_stay_within_the_gates() {
        let ms = Duration::from_millis;
        for (threshold, valid) in [
            (HedgingThreshold::Static(ms(50)), true),
            (HedgingThreshold::Static(ms(4000)), true),
            (HedgingThreshold::Static(ms(49)), false),
            (HedgingThreshold::Static(ms(4001)), false),
            (HedgingThreshold::Dynamic { min: ms(50), max: ms(4000) }, true),
            (HedgingThreshold::Dynamic { min: ms(100), max: ms(100) }, true),
            (HedgingThreshold::Dynamic { min: ms(200), max: ms(100) }, false),
            (HedgingThreshold::Dynamic { min: ms(0), max: ms(100) }, false),
            (HedgingThreshold::Dynamic { min: ms(50), max: ms(9000) }, false),
        ] {
            let options = HedgingOptions::new().with_threshold(threshold);
            assert_eq!(options.resolve().is_ok(), valid, "{threshold:?}");
        }
        assert!(HedgingThreshold::after(ms(1)).is_err());
        assert!(HedgingThreshold::dynamic(ms(60), ms(70)).is_ok());
    }
}
