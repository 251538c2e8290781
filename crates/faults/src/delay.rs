//! How long a rule makes a request wait: a fixed time, a range or a distribution.
//!
//! Sampling is pure: the random source is an argument.

use std::str::FromStr;
use std::time::Duration;

use clock::HumanDuration;
use fastrand::Rng;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::random::standard_normal;

/// The longest wait one request can be given, by one rule or by several together.
pub const DELAY_MAX: Duration = Duration::from_secs(600);

/// The 99th percentile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;

/// A time to wait, or the distribution it is sampled from.
///
/// In JSON and TOML: `"200ms"`, `{"from":"10ms","to":"50ms"}`, or `{"p50":"20ms","p99":"200ms"}` with an
/// optional `"shape"` (`lognormal`, `normal` or `exponential`) and an optional `"max"`. As text also
/// `"10ms..50ms"` and `"p50=20ms,p99=200ms"`, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Delay {
    /// Every request waits this long.
    Fixed(HumanDuration),
    /// Every time between two bounds is equally likely.
    Uniform(DelayRange),
    /// A distribution with this median and 99th percentile.
    Percentiles(DelayPercentiles),
}

/// The bounds of a uniform delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayRange {
    /// The shortest time to wait.
    pub from: HumanDuration,
    /// The longest time to wait.
    pub to: HumanDuration,
}

/// A distribution of delays, given by two of its percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayPercentiles {
    /// The median: half of the waits are shorter.
    pub p50: HumanDuration,
    /// The 99th percentile: one wait in a hundred is longer.
    pub p99: HumanDuration,
    /// The shape of the distribution.
    #[serde(default)]
    pub shape: DistributionShape,
    /// No wait is longer than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<HumanDuration>,
}

/// The shape of a distribution of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum DistributionShape {
    /// Lognormal: never negative, with a long tail, as latencies are.
    #[default]
    Lognormal,
    /// Normal: symmetric around the median; values below zero count as zero.
    Normal,
    /// Exponential: a sharp start and a steady decline.
    Exponential,
}

impl Delay {
    /// Samples one wait, with numbers of `rng`.
    pub fn sample(&self, rng: &mut Rng) -> Duration {
        let seconds = match self {
            Delay::Fixed(duration) => return duration.0.min(DELAY_MAX),
            Delay::Uniform(DelayRange { from, to }) => {
                let (from, to) = (from.0.as_secs_f64(), to.0.as_secs_f64());
                from + (to - from) * rng.f64()
            }
            Delay::Percentiles(percentiles) => percentiles.sample(rng),
        };
        // A sample may be negative or infinite: it becomes no wait at all, or the longest.
        Duration::try_from_secs_f64(seconds.clamp(0.0, DELAY_MAX.as_secs_f64())).unwrap_or_default()
    }

    /// What is wrong with the delay, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        let longest = match self {
            Delay::Fixed(duration) => *duration,
            Delay::Uniform(DelayRange { from, to }) if from > to => {
                return Some(format!("a delay from {from} to {to} is empty; swap the two"));
            }
            Delay::Uniform(DelayRange { to, .. }) => *to,
            Delay::Percentiles(DelayPercentiles { p50, p99, .. }) if p50 > p99 => {
                return Some(format!(
                    "the median of a delay, {p50}, cannot be above its 99th percentile, {p99}"
                ));
            }
            Delay::Percentiles(DelayPercentiles { p50, shape: DistributionShape::Lognormal, .. })
                if p50.0.is_zero() =>
            {
                return Some("a lognormal delay needs a median above 0".to_owned());
            }
            Delay::Percentiles(DelayPercentiles { p99, max, .. }) => max.unwrap_or(*p99),
        };
        (longest.0 > DELAY_MAX).then(|| {
            format!("a delay of {longest} is too long; {} is the longest there is", HumanDuration(DELAY_MAX))
        })
    }
}

impl DelayPercentiles {
    fn sample(&self, rng: &mut Rng) -> f64 {
        let (p50, p99) = (self.p50.0.as_secs_f64(), self.p99.0.as_secs_f64());
        let seconds = match self.shape {
            DistributionShape::Lognormal => {
                p50 * ((p99 / p50).ln() / NORMAL_P99 * standard_normal(rng)).exp()
            }
            DistributionShape::Normal => p50 + (p99 - p50) / NORMAL_P99 * standard_normal(rng),
            DistributionShape::Exponential => {
                // An exponential that starts where both percentiles fit; never before zero.
                let mean = (p99 - p50) / 50_f64.ln();
                p50 + mean * (-(1.0 - rng.f64()).ln() - std::f64::consts::LN_2)
            }
        };
        self.max.map_or(seconds, |max| seconds.min(max.0.as_secs_f64()))
    }
}

impl From<Duration> for Delay {
    fn from(duration: Duration) -> Delay {
        Delay::Fixed(HumanDuration(duration))
    }
}

impl FromStr for Delay {
    type Err = String;

    /// As people type it: `200ms`, `10ms..50ms`, or `p50=20ms,p99=200ms,shape=normal,max=1s`.
    fn from_str(text: &str) -> Result<Delay, String> {
        let wrong = |reason: String| {
            format!("{reason}; a delay is 200ms, a range 10ms..50ms, or a distribution p50=20ms,p99=200ms")
        };
        let duration = |text: &str| text.parse::<HumanDuration>().map_err(|error| wrong(error.to_string()));
        if let Some((from, to)) = text.split_once("..") {
            return Ok(Delay::Uniform(DelayRange { from: duration(from)?, to: duration(to)? }));
        }
        if !text.contains('=') {
            return Ok(Delay::Fixed(duration(text)?));
        }
        let pairs = text.split(',').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let members: serde_json::Map<String, Value> =
            pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().into())).collect();
        DelayPercentiles::deserialize(&Value::Object(members))
            .map(Delay::Percentiles)
            .map_err(|error| wrong(error.to_string()))
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Delay, D::Error> {
        // By hand, so that a mistake inside one form is reported as such and not as "no form fits".
        let value = Value::deserialize(deserializer)?;
        let read = match &value {
            Value::Object(members) if members.contains_key("from") || members.contains_key("to") => {
                DelayRange::deserialize(&value).map(Delay::Uniform)
            }
            Value::Object(_) => DelayPercentiles::deserialize(&value).map(Delay::Percentiles),
            Value::String(text) => text.parse().map_err(serde_json::Error::custom),
            _ => HumanDuration::deserialize(&value).map(Delay::Fixed),
        };
        read.map_err(|error| D::Error::custom(format!("delay: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u64 = 20_000;

    fn read(json: &str) -> Delay {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    fn samples(delay: Delay) -> Vec<f64> {
        let mut rng = Rng::with_seed(42);
        let mut waits: Vec<f64> =
            (0..SAMPLES).map(|_| delay.sample(&mut rng).as_secs_f64() * 1_000.0).collect();
        waits.sort_by(f64::total_cmp);
        waits
    }

    #[test]
    fn every_form_is_read_and_written_back() {
        for json in [
            r#""200ms""#,
            r#"{"from":"10ms","to":"50ms"}"#,
            r#"{"p50":"20ms","p99":"200ms","shape":"lognormal"}"#,
            r#"{"p50":"20ms","p99":"200ms","shape":"normal","max":"1s"}"#,
        ] {
            assert_eq!(serde_json::to_string(&read(json)).unwrap(), json);
            assert_eq!(read(json).problem(), None);
        }
    }

    #[test]
    fn a_distribution_has_the_percentiles_it_was_given() {
        for shape in ["lognormal", "normal", "exponential"] {
            let waits = samples(read(&format!(r#"{{"p50":"100ms","p99":"180ms","shape":"{shape}"}}"#)));
            let (p50, p99) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
            assert!((p50 - 100.0).abs() < 2.0 && (p99 - 180.0).abs() < 5.0, "{shape}: {p50} {p99}");
        }
        let waits = samples(read(r#"{"from":"10ms","to":"50ms"}"#));
        assert!(waits[0] >= 10.0 && waits[waits.len() - 1] <= 50.0);
        assert!((waits[waits.len() / 2] - 30.0).abs() < 1.0);
    }

    #[test]
    fn a_tail_ends_at_the_given_maximum_and_at_the_longest_wait_there_is() {
        let waits = samples(read(r#"{"p50":"100ms","p99":"900ms","max":"1s"}"#));
        assert_eq!(waits.last(), Some(&1_000.0));
        let waits = samples(read(r#"{"p50":"1ms","p99":"10m"}"#));
        assert_eq!(waits.last(), Some(&(DELAY_MAX.as_secs_f64() * 1_000.0)));
        assert_eq!(samples(read(r#"{"p50":"1ms","p99":"1s","shape":"normal"}"#))[0], 0.0);
    }

    #[test]
    fn a_delay_is_read_from_text() {
        for (text, json) in [
            ("200ms", r#""200ms""#),
            ("10ms..50ms", r#"{"from":"10ms","to":"50ms"}"#),
            ("p50=20ms,p99=200ms", r#"{"p50":"20ms","p99":"200ms","shape":"lognormal"}"#),
            ("p50=20ms, p99=2s, shape=normal", r#"{"p50":"20ms","p99":"2s","shape":"normal"}"#),
        ] {
            assert_eq!(text.parse(), Ok(read(json)), "{text}");
            assert_eq!(read(&format!("{text:?}")), read(json), "as text in JSON: {text}");
        }
        for text in ["", "soon", "1ms..", "p50=1ms", "p50=1ms,p99=2ms,p10=1ms", "a=b"] {
            assert!(text.parse::<Delay>().unwrap_err().contains("10ms..50ms"), "{text}");
        }
    }

    #[test]
    fn impossible_delays_say_why() {
        let cases = [
            (r#"{"from":"50ms","to":"10ms"}"#, "swap"),
            (r#"{"p50":"50ms","p99":"10ms"}"#, "99th"),
            (r#"{"p50":"0s","p99":"10ms"}"#, "above 0"),
            (r#""11m""#, "too long"),
            (r#"{"from":"0s","to":"11m"}"#, "too long"),
            (r#"{"p50":"1s","p99":"11m"}"#, "too long"),
        ];
        for (json, part) in cases {
            let problem = read(json).problem().unwrap_or_else(|| panic!("{json} is possible"));
            assert!(problem.contains(part), "{problem}");
        }
        for (json, part) in [
            (r#"{"from":"1ms"}"#, "`to`"),
            (r#"{"p50":"1ms","p99":"2ms","p90":"1ms"}"#, "p90"),
            (r#"{"p50":"1ms","p99":"2ms","shape":"flat"}"#, "flat"),
            (r#"true"#, "true"),
        ] {
            let error = serde_json::from_str::<Delay>(json).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
