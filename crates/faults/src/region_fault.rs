//! Faults of a whole region: down, draining, slow or throttled.
//!
//! In: one [`RegionFault`] at a time per region. Out: a rule under an id of the region's own, so that it is
//! listed, counted and ended like any other. A second fault of a region takes the place of the first.

use std::str::FromStr;
use std::time::Duration;

use clock::HumanDuration;
use serde::{Deserialize, Serialize};

use crate::delay::Delay;
use crate::effect::{ConnectionEffect, FaultEffect};
use crate::filter::normalized;
use crate::probability::Probability;
use crate::rule::{FaultRule, REGION_FAULT_PREFIX};

/// The time after which throttled clients retry, unless the fault says otherwise.
const THROTTLE_RETRY_AFTER: HumanDuration = HumanDuration(Duration::from_millis(100));

/// A fault of a whole region.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum RegionFault {
    /// Clients cannot reach the region, or get 503 from it.
    Down(DownMode),
    /// The account is being removed from the region: 403/1008, while the region is still listed.
    Drain,
    /// Every request to the region waits.
    Slow(Delay),
    /// Requests to the region are throttled: 429/3200.
    Storm {
        /// The time after which clients retry; 100 ms when absent.
        retry_after: Option<Duration>,
        /// The share of requests that is throttled; all of them when absent.
        share: Option<f64>,
    },
}

/// In which way a region is down, as clients see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum DownMode {
    /// The region's port is closed, its connections are reset.
    #[default]
    Refused,
    /// The region's port accepts connections and never responds; open ones fall silent.
    BlackHole,
    /// The region responds with 503 to every request.
    Unavailable,
}

impl FromStr for DownMode {
    type Err = String;

    fn from_str(word: &str) -> Result<DownMode, String> {
        match word {
            "refused" => Ok(DownMode::Refused),
            "black-hole" | "blackHole" => Ok(DownMode::BlackHole),
            "503" | "unavailable" => Ok(DownMode::Unavailable),
            _ => Err(format!("expected refused, black-hole or 503, found '{word}'")),
        }
    }
}

/// The state of a region in one word, as the control port shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RegionCondition {
    /// The region has no fault as a whole.
    #[default]
    Up,
    /// The region has an outage of the kind [`DownMode::Refused`].
    Refused,
    /// The region has an outage of the kind [`DownMode::BlackHole`].
    BlackHole,
    /// The region has an outage of the kind [`DownMode::Unavailable`].
    Unavailable,
    /// The account is being removed from the region, see [`RegionFault::Drain`].
    Draining,
    /// Requests to the region wait, see [`RegionFault::Slow`].
    Slow,
    /// Requests to the region are throttled, see [`RegionFault::Storm`].
    Storm,
}

/// The id of the rule that is the fault of a region.
pub fn region_fault_id(region: &str) -> String {
    REGION_FAULT_PREFIX.chars().chain(normalized(region)).collect()
}

impl RegionFault {
    /// The effect of this fault on every request to the region.
    pub fn effect(self) -> FaultEffect {
        match self {
            RegionFault::Down(DownMode::Refused) => FaultEffect::of_connection(ConnectionEffect::Refuse),
            RegionFault::Down(DownMode::BlackHole) => FaultEffect::of_connection(ConnectionEffect::BlackHole),
            RegionFault::Down(DownMode::Unavailable) => FaultEffect::of_status(503, None),
            RegionFault::Drain => FaultEffect::of_status(403, Some(1008)),
            RegionFault::Slow(delay) => FaultEffect { delay: Some(delay), ..FaultEffect::default() },
            RegionFault::Storm { retry_after, .. } => FaultEffect {
                retry_after: Some(retry_after.map_or(THROTTLE_RETRY_AFTER, HumanDuration)),
                ..FaultEffect::of_status(429, Some(3200))
            },
        }
    }

    /// The rule for this fault of a region, which ends after `duration` or when it is removed.
    pub fn rule(self, region: &str, duration: Option<Duration>) -> FaultRule {
        let mut rule = FaultRule::new(self.effect()).in_region(region);
        rule.schedule.duration = duration.map(HumanDuration);
        if let RegionFault::Storm { share, .. } = self {
            rule.probability = share.map(Probability);
        }
        rule
    }
}

impl RegionCondition {
    /// The state of a region whose fault has this effect.
    pub fn of(effect: &FaultEffect) -> RegionCondition {
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
    fn every_region_fault_is_a_rule_and_the_rule_says_which() {
        let throttle = RegionFault::Storm { retry_after: Some(Duration::from_millis(7)), share: Some(0.5) };
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
            (throttle, RegionCondition::Storm, r#"{"status":429,"subStatus":3200,"retryAfter":"7ms"}"#),
        ];
        for (fault, condition, json) in cases {
            let rule = fault.rule("East US", Some(Duration::from_secs(30)));
            assert_eq!(RegionCondition::of(&rule.effect), condition, "{fault:?}");
            assert_eq!(serde_json::to_string(&rule.effect).unwrap(), json);
            assert_eq!(
                (rule.filter.regions, rule.schedule.duration),
                (vec!["East US".to_owned()], Some(HumanDuration(Duration::from_secs(30))))
            );
        }
        assert_eq!(throttle.rule("East US", None).probability, Some(Probability(0.5)));
        assert_eq!(region_fault_id("East US 2"), "region:eastus2");
    }
}
