//! Faults of a region as a whole: down, draining, slow, throttled.
//!
//! Input: one [`RegionFault`] at a time per region. Output: a rule with the region's own id, so that it is
//! listed, counted and ended like any other rule. A second fault replaces the first.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::delay::Delay;
use super::effect::{ConnectionEffect, Effect};
use super::rule::{Rule, SWITCH_PREFIX};
use clock::HumanDuration;

/// The retry-after of a throttling storm that does not set one.
const STORM_RETRY_AFTER: HumanDuration = HumanDuration(Duration::from_millis(100));

/// A fault of a whole region.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RegionFault {
    /// The region cannot be reached.
    Down(DownMode),
    /// The region is being removed from the account: 403/1008, while it is still listed.
    Drain,
    /// Every request is delayed.
    Slow(Delay),
    /// Every request is throttled with 429/3200.
    Storm {
        /// The retry-after of the responses; 100 ms when absent.
        retry_after: Option<Duration>,
        /// The share of requests that is throttled; all of them when absent.
        share: Option<f64>,
    },
}

/// In which way a region is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum DownMode {
    /// Its port is closed, its connections are reset.
    #[default]
    Refused,
    /// Its port accepts connections and never responds, its connections go silent.
    BlackHole,
    /// It responds 503 to every request.
    Unavailable,
}

impl FromStr for DownMode {
    type Err = String;

    fn from_str(text: &str) -> Result<DownMode, String> {
        match text {
            "refused" => Ok(DownMode::Refused),
            "black-hole" | "blackHole" => Ok(DownMode::BlackHole),
            "503" | "unavailable" => Ok(DownMode::Unavailable),
            _ => Err(format!("expected refused, black-hole or 503, found '{text}'")),
        }
    }
}

/// The condition of a region, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RegionCondition {
    /// The region as a whole has no fault.
    #[default]
    Up,
    /// The port is closed: [`DownMode::Refused`].
    Refused,
    /// Connections are silent: [`DownMode::BlackHole`].
    BlackHole,
    /// Requests get 503: [`DownMode::Unavailable`].
    Unavailable,
    /// The region is being removed: [`RegionFault::Drain`].
    Draining,
    /// Requests are delayed: [`RegionFault::Slow`].
    Slow,
    /// Requests are throttled: [`RegionFault::Storm`].
    Storm,
}

/// The id of the rule that carries out the fault of a region.
pub(super) fn rule_id(region: &str) -> String {
    let normal = region.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase);
    SWITCH_PREFIX.chars().chain(normal).collect()
}

impl RegionFault {
    /// The rule that carries out this fault, for a duration or until it is removed.
    pub(super) fn rule(self, region: &str, lasting: Option<Duration>) -> Rule {
        let effect = match self {
            RegionFault::Down(DownMode::Refused) => Effect::of_connection(ConnectionEffect::Refuse),
            RegionFault::Down(DownMode::BlackHole) => Effect::of_connection(ConnectionEffect::BlackHole),
            RegionFault::Down(DownMode::Unavailable) => Effect::of_status(503, None),
            RegionFault::Drain => Effect::of_status(403, Some(1008)),
            RegionFault::Slow(delay) => Effect { delay: Some(delay), ..Effect::default() },
            RegionFault::Storm { retry_after, .. } => Effect {
                retry_after: Some(retry_after.map_or(STORM_RETRY_AFTER, HumanDuration)),
                ..Effect::of_status(429, Some(3200))
            },
        };
        let mut rule = Rule::with(effect).in_region(region);
        rule.lasting = lasting.map(HumanDuration);
        if let RegionFault::Storm { share, .. } = self {
            rule.share = share;
        }
        rule
    }
}

impl RegionCondition {
    /// The condition that the effect of a region's rule means.
    pub(super) fn of(effect: &Effect) -> RegionCondition {
        match (effect.connection, effect.status) {
            (Some(ConnectionEffect::Refuse), _) => RegionCondition::Refused,
            (Some(ConnectionEffect::BlackHole), _) => RegionCondition::BlackHole,
            (_, Some(403)) => RegionCondition::Draining,
            (_, Some(429)) => RegionCondition::Storm,
            (_, Some(_)) => RegionCondition::Unavailable,
            (_, None) => RegionCondition::Slow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_region_fault_becomes_a_rule_with_its_condition() {
        let storm = RegionFault::Storm { retry_after: Some(Duration::from_millis(7)), share: Some(0.5) };
        let cases = [
            (RegionFault::Down(DownMode::Refused), RegionCondition::Refused, r#"{"connection":"refuse"}"#),
            (
                RegionFault::Down(DownMode::BlackHole),
                RegionCondition::BlackHole,
                r#"{"connection":"blackHole"}"#,
            ),
            (RegionFault::Down(DownMode::Unavailable), RegionCondition::Unavailable, r#"{"status":503}"#),
            (RegionFault::Drain, RegionCondition::Draining, r#"{"status":403,"subStatus":1008}"#),
            (RegionFault::Slow(Duration::from_millis(5).into()), RegionCondition::Slow, r#"{"delay":"5ms"}"#),
            (storm, RegionCondition::Storm, r#"{"status":429,"subStatus":3200,"retryAfter":"7ms"}"#),
        ];
        for (fault, condition, json) in cases {
            let rule = fault.rule("East US", Some(Duration::from_secs(30)));
            assert_eq!(RegionCondition::of(&rule.effect), condition, "{fault:?}");
            assert_eq!(serde_json::to_string(&rule.effect).unwrap(), json);
            assert_eq!(
                (rule.filter.regions, rule.lasting),
                (vec!["East US".to_owned()], Some(HumanDuration(Duration::from_secs(30))))
            );
        }
        assert_eq!(storm.rule("East US", None).share, Some(0.5));
        assert_eq!(rule_id("East US 2"), "region:eastus2");
    }
}
