//! A region as a whole: down, draining, slow, throttled, and up again.
//!
//! In: one [`Trouble`] at a time per region. Out: a rule under the region's own id, so that it is
//! listed, counted and ended like any other. A second trouble takes the place of the first.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::delay::Delay;
use super::effect::{ConnectionEffect, Effect};
use super::rule::{Rule, SWITCH_PREFIX};
use clock::Span;

/// What a throttled client is told to wait unless the storm says otherwise.
const STORM_RETRY_AFTER: Span = Span(Duration::from_millis(100));

/// What is wrong with a region.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trouble {
    /// Nobody can reach it.
    Down(Down),
    /// The account is leaving it: 403/1008, while it is still listed.
    Drain,
    /// Every request waits.
    Slow(Delay),
    /// Every request is throttled: 429/3200.
    Storm {
        /// What clients are told to wait; 100 ms when absent.
        retry_after: Option<Duration>,
        /// The share of requests; all of them when absent.
        share: Option<f64>,
    },
}

/// How a region is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Down {
    /// Its port is closed, its connections are reset.
    #[default]
    Refused,
    /// Its port accepts and never answers, its connections fall silent.
    BlackHole,
    /// It answers 503 to everything.
    Unavailable,
}

impl FromStr for Down {
    type Err = String;

    fn from_str(word: &str) -> Result<Down, String> {
        match word {
            "refused" => Ok(Down::Refused),
            "black-hole" | "blackHole" => Ok(Down::BlackHole),
            "503" | "unavailable" => Ok(Down::Unavailable),
            _ => Err(format!("expected refused, black-hole or 503, found '{word}'")),
        }
    }
}

/// How a region is, in a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Condition {
    /// Nothing is wrong with it as a whole.
    #[default]
    Up,
    /// [`Down::Refused`].
    Refused,
    /// [`Down::BlackHole`].
    BlackHole,
    /// [`Down::Unavailable`].
    Unavailable,
    /// [`Trouble::Drain`].
    Draining,
    /// [`Trouble::Slow`].
    Slow,
    /// [`Trouble::Storm`].
    Storm,
}

/// The id of the rule that stands for the trouble of a region.
pub(super) fn id_of(region: &str) -> String {
    let normal = region.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase);
    SWITCH_PREFIX.chars().chain(normal).collect()
}

impl Trouble {
    /// The rule that makes it so, for a time or until it is ended.
    pub(super) fn rule(self, region: &str, lasting: Option<Duration>) -> Rule {
        let effect = match self {
            Trouble::Down(Down::Refused) => Effect::of_connection(ConnectionEffect::Refuse),
            Trouble::Down(Down::BlackHole) => Effect::of_connection(ConnectionEffect::BlackHole),
            Trouble::Down(Down::Unavailable) => Effect::of_status(503, None),
            Trouble::Drain => Effect::of_status(403, Some(1008)),
            Trouble::Slow(delay) => Effect { delay: Some(delay), ..Effect::default() },
            Trouble::Storm { retry_after, .. } => Effect {
                retry_after: Some(retry_after.map_or(STORM_RETRY_AFTER, Span)),
                ..Effect::of_status(429, Some(3200))
            },
        };
        let mut rule = Rule::with(effect).in_region(region);
        rule.lasting = lasting.map(Span);
        if let Trouble::Storm { share, .. } = self {
            rule.share = share;
        }
        rule
    }
}

impl Condition {
    /// What the rule of a region's trouble amounts to.
    pub(super) fn of(effect: &Effect) -> Condition {
        match (effect.connection, effect.status) {
            (Some(ConnectionEffect::Refuse), _) => Condition::Refused,
            (Some(ConnectionEffect::BlackHole), _) => Condition::BlackHole,
            (_, Some(403)) => Condition::Draining,
            (_, Some(429)) => Condition::Storm,
            (_, Some(_)) => Condition::Unavailable,
            (_, None) => Condition::Slow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trouble_is_a_rule_that_tells_what_it_is() {
        let storm = Trouble::Storm { retry_after: Some(Duration::from_millis(7)), share: Some(0.5) };
        let cases = [
            (Trouble::Down(Down::Refused), Condition::Refused, r#"{"connection":"refuse"}"#),
            (Trouble::Down(Down::BlackHole), Condition::BlackHole, r#"{"connection":"blackHole"}"#),
            (Trouble::Down(Down::Unavailable), Condition::Unavailable, r#"{"status":503}"#),
            (Trouble::Drain, Condition::Draining, r#"{"status":403,"subStatus":1008}"#),
            (Trouble::Slow(Duration::from_millis(5).into()), Condition::Slow, r#"{"delay":"5ms"}"#),
            (storm, Condition::Storm, r#"{"status":429,"subStatus":3200,"retryAfter":"7ms"}"#),
        ];
        for (trouble, condition, json) in cases {
            let rule = trouble.rule("East US", Some(Duration::from_secs(30)));
            assert_eq!(Condition::of(&rule.effect), condition, "{trouble:?}");
            assert_eq!(serde_json::to_string(&rule.effect).unwrap(), json);
            assert_eq!(
                (rule.filter.regions, rule.lasting),
                (vec!["East US".to_owned()], Some(Span(Duration::from_secs(30))))
            );
        }
        assert_eq!(storm.rule("East US", None).share, Some(0.5));
        assert_eq!(id_of("East US 2"), "region:eastus2");
    }
}
