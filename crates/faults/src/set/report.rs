//! What is reported about a rule: its state and its counts.

use std::collections::BTreeMap;

use clock::HumanDuration;
use serde::Serialize;

use crate::rule::FaultRule;

/// A rule with its state and its counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RuleReport {
    /// The rule, under the id it was given.
    #[serde(flatten)]
    pub rule: FaultRule,
    /// Whether the rule has started, or is over.
    pub state: RuleState,
    /// How many requests, or connections, the rule matched while it was active (`met`).
    #[serde(rename = "met")]
    pub matched: u64,
    /// How many requests, or connections, the rule applied to (`struck`).
    #[serde(rename = "struck")]
    pub hits: u64,
    /// The connections that the rule refused, reset or swallowed, by region.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub connections: BTreeMap<String, u64>,
    /// The time until the rule starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_in: Option<HumanDuration>,
    /// The time until the rule ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in: Option<HumanDuration>,
}

/// Whether a rule has started, or is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RuleState {
    /// The rule has not started yet.
    Waiting,
    /// The rule applies to requests.
    Active,
    /// The rule is over: its time has passed, or it had all its hits.
    Ended,
}
