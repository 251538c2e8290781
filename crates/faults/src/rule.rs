//! One fault rule: which requests it is about, how likely and when it applies, and what happens then.
//!
//! In: JSON, TOML, or the builder methods of [`FaultRule`]. Out: a rule that is checked against itself
//! ([`FaultRule::validate`]) and against its applier (`support`). Pure; how often a rule has applied is kept in `set`.

use std::time::Duration;

use clock::HumanDuration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::delay::Delay;
use crate::effect::{ConnectionEffect, Delayed, FaultEffect};
use crate::filter::{OperationKind, RequestFilter, ResourceKind};
use crate::invalid::InvalidRule;
use crate::probability::Probability;
use crate::schedule::Schedule;

/// How many characters the id of a rule may have.
const ID_LENGTH_MAX: usize = 64;
/// What the ids of region faults start with.
pub(crate) const REGION_FAULT_PREFIX: &str = "region:";

/// A fault to inject. In JSON and TOML, everything but `effect` may be left out:
///
/// ```json
/// {"id": "storm", "match": {"operations": ["read"], "regions": ["East US"]}, "share": 0.3,
///  "after": "5s", "for": "30s", "effect": {"status": 429, "subStatus": 3200, "retryAfter": "50ms"}}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "RuleFields", into = "RuleFields")]
#[non_exhaustive]
pub struct FaultRule {
    /// The name of the rule; made up when absent. Adding a rule under a known id replaces that rule.
    pub id: Option<String>,
    /// The requests the rule is about (`match`); all of them when absent.
    pub filter: RequestFilter,
    /// The share of those requests that the rule applies to (`share`); all of them when absent.
    pub probability: Option<Probability>,
    /// When the rule applies, and how often.
    pub schedule: Schedule,
    /// What happens to a request that the rule applies to.
    pub effect: FaultEffect,
}

/// A rule as it is written: one flat object, so that an unknown field can be named.
#[derive(Serialize, Deserialize)]
#[serde(rename = "FaultRule", rename_all = "camelCase", deny_unknown_fields)]
struct RuleFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(rename = "match", default, skip_serializing_if = "RequestFilter::is_everything")]
    filter: RequestFilter,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    share: Option<Probability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skip: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every_nth: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<HumanDuration>,
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    duration: Option<HumanDuration>,
    #[serde(default)]
    effect: FaultEffect,
}

impl From<RuleFields> for FaultRule {
    fn from(fields: RuleFields) -> FaultRule {
        let RuleFields { id, share, skip, every_nth, count, after, duration, filter, effect } = fields;
        let schedule = Schedule { start_after: after, duration, skip, every_nth, hits_max: count };
        FaultRule { id, filter, probability: share, schedule, effect }
    }
}

impl From<FaultRule> for RuleFields {
    fn from(rule: FaultRule) -> RuleFields {
        let FaultRule { id, filter, probability, schedule, effect } = rule;
        let Schedule { start_after, duration, skip, every_nth, hits_max } = schedule;
        let (share, after, count) = (probability, start_after, hits_max);
        RuleFields { id, share, skip, every_nth, count, after, duration, filter, effect }
    }
}

impl FaultRule {
    /// A rule with this effect on every request.
    pub fn new(effect: FaultEffect) -> FaultRule {
        FaultRule { effect, ..FaultRule::default() }
    }

    /// Responds with a status and a sub-status, 0 for none; the operation is not carried out.
    pub fn status(status: u16, sub_status: u32) -> FaultRule {
        FaultRule::new(FaultEffect::of_status(status, (sub_status != 0).then_some(sub_status)))
    }

    /// Throttles: responds with 429/3200 and the time after which to retry.
    pub fn throttle(retry_after: Duration) -> FaultRule {
        FaultRule::status(429, 3200).retry_after(retry_after)
    }

    /// Makes requests wait this long.
    pub fn delay(delay: impl Into<Delay>) -> FaultRule {
        FaultRule::new(FaultEffect { delay: Some(delay.into()), ..FaultEffect::default() })
    }

    /// Makes connections fail in this way.
    pub fn connection(connection: ConnectionEffect) -> FaultRule {
        FaultRule::new(FaultEffect::of_connection(connection))
    }

    /// Sets the id of the rule.
    #[must_use]
    pub fn named(mut self, id: &str) -> FaultRule {
        self.id = Some(id.to_owned());
        self
    }

    /// Limits the rule to this kind of operation, beside those added before.
    #[must_use]
    pub fn on(mut self, operation: OperationKind) -> FaultRule {
        self.filter.operations.push(operation);
        self
    }

    /// Limits the rule to this kind of resource, beside those added before.
    #[must_use]
    pub fn on_resource(mut self, resource: ResourceKind) -> FaultRule {
        self.filter.resources.push(resource);
        self
    }

    /// Limits the rule to this region, beside those added before.
    #[must_use]
    pub fn in_region(mut self, region: &str) -> FaultRule {
        self.filter.regions.push(region.to_owned());
        self
    }

    /// Limits the rule to one container, by names.
    #[must_use]
    pub fn in_container(mut self, database: &str, container: &str) -> FaultRule {
        self.filter.database = Some(database.to_owned());
        self.filter.container = Some(container.to_owned());
        self
    }

    /// Limits the rule to this endpoint (`host:port`), beside those added before. Driver only.
    #[must_use]
    pub fn at_endpoint(mut self, authority: &str) -> FaultRule {
        self.filter.endpoints.push(authority.to_owned());
        self
    }

    /// Limits the rule to this connection shard of the driver, beside those added before.
    #[must_use]
    pub fn on_shard(mut self, shard: u64) -> FaultRule {
        self.filter.shards.push(shard);
        self
    }

    /// Limits the rule to a random share of the requests: above 0, at most 1.
    #[must_use]
    pub fn share(mut self, share: f64) -> FaultRule {
        self.probability = Some(Probability(share));
        self
    }

    /// Lets this many matching requests pass before the rule applies.
    #[must_use]
    pub fn skipping(mut self, requests: u64) -> FaultRule {
        self.schedule.skip = Some(requests);
        self
    }

    /// Limits the rule to the n-th matching request, the 2n-th and so on.
    #[must_use]
    pub fn every_nth(mut self, nth: u64) -> FaultRule {
        self.schedule.every_nth = Some(nth);
        self
    }

    /// Ends the rule after this many hits.
    #[must_use]
    pub fn times(mut self, hits: u64) -> FaultRule {
        self.schedule.hits_max = Some(hits);
        self
    }

    /// Starts the rule this long after it is added.
    #[must_use]
    pub fn starting_after(mut self, duration: Duration) -> FaultRule {
        self.schedule.start_after = Some(HumanDuration(duration));
        self
    }

    /// Ends the rule this long after its start.
    #[must_use]
    pub fn lasting(mut self, duration: Duration) -> FaultRule {
        self.schedule.duration = Some(HumanDuration(duration));
        self
    }

    /// Adds the time after which to retry to the response.
    #[must_use]
    pub fn retry_after(mut self, duration: Duration) -> FaultRule {
        self.effect.retry_after = Some(HumanDuration(duration));
        self
    }

    /// Adds a delay to the effect of the rule.
    #[must_use]
    pub fn delayed_by(mut self, delay: impl Into<Delay>) -> FaultRule {
        self.effect.delay = Some(delay.into());
        self
    }

    /// Makes the delay hold up the response instead of the request.
    #[must_use]
    pub fn delaying_the_response(mut self) -> FaultRule {
        self.effect.delayed = Delayed::Response;
        self
    }

    /// Reads a rule from JSON. What it asks for is checked when it is added.
    pub fn from_json(json: &[u8]) -> Result<FaultRule, InvalidRule> {
        let unreadable = |error| InvalidRule::new(format!("the rule cannot be read: {error}"));
        let value: Value = serde_json::from_slice(json).map_err(unreadable)?;
        if !value.is_object() {
            return Err(InvalidRule::new("a rule is a JSON object, like {\"effect\":{\"status\":503}}"));
        }
        serde_json::from_value(value).map_err(unreadable)
    }

    /// Checks the rule against itself: contradictions, impossible values, and rules that could never apply.
    pub fn validate(&self) -> Result<(), InvalidRule> {
        let problem = self
            .id
            .as_deref()
            .and_then(id_problem)
            .or_else(|| self.filter.problem())
            .or_else(|| self.frequency_problem())
            .or_else(|| self.effect.problem())
            .or_else(|| self.port_problem());
        problem.map_or(Ok(()), |problem| Err(InvalidRule::new(problem)))
    }

    fn frequency_problem(&self) -> Option<String> {
        if let Some(problem) = self.probability.and_then(Probability::problem) {
            return Some(problem);
        }
        if self.probability.is_some() && self.schedule.every_nth.is_some() {
            return Some("'share' and 'everyNth' both say how often; leave one of them out".to_owned());
        }
        self.schedule.problem()
    }

    /// A closed port does not know which request would have come.
    fn port_problem(&self) -> Option<String> {
        let is_selective = self.filter.names_more_than_regions()
            || self.probability.is_some()
            || self.schedule.counts_requests();
        (is_selective && self.is_on_port()).then(|| {
            "refuse and blackHole concern a region's port, before any request is read: they go with \
             'regions', 'after' and 'for' only"
                .to_owned()
        })
    }

    /// Whether the rule concerns a region's port rather than single requests.
    pub(crate) fn is_on_port(&self) -> bool {
        self.effect.connection.is_some_and(ConnectionEffect::is_on_port)
    }

    /// Whether `later` could never apply while this rule is in force: this one is about the same requests, applies
    /// to all of them until it is removed, and ends the evaluation.
    pub(crate) fn hides(&self, later: &FaultRule) -> bool {
        self.probability.is_none()
            && self.schedule.is_unlimited()
            && self.effect.ends_evaluation()
            && self.filter == later.filter
    }
}

fn id_problem(id: &str) -> Option<String> {
    if id.is_empty() || id.len() > ID_LENGTH_MAX {
        return Some(format!("a rule's id has 1 to {ID_LENGTH_MAX} characters"));
    }
    // The id is the value of a header and part of a URL.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if !id.bytes().all(is_plain) {
        return Some(format!("'{id}' is no id for a rule; use letters, digits, '-', '_', '.' and ':'"));
    }
    id.starts_with(REGION_FAULT_PREFIX).then(|| {
        format!("ids that start with '{REGION_FAULT_PREFIX}' belong to the faults of whole regions; choose another")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: &Value) -> Result<FaultRule, InvalidRule> {
        let rule = FaultRule::from_json(json.to_string().as_bytes())?;
        rule.validate()?;
        Ok(rule)
    }

    #[test]
    fn a_rule_is_written_as_it_was_read() {
        for json in [
            json!({"effect": {"delay": "200ms"}}),
            json!({
                "id": "storm",
                "match": {
                    "operations": ["read", "queryPlan"], "resources": ["item"], "database": "shop",
                    "container": "carts", "partitionKey": ["p1"], "regions": ["East US"], "methods": ["GET"],
                },
                "share": 0.3, "count": 5, "after": "5s", "for": "30s",
                "effect": {"status": 429, "subStatus": 3200, "retryAfter": "50ms"},
            }),
            json!({"skip": 2, "match": {"endpoints": ["one.example:443"], "shards": [0]}, "effect": {"connection": "timeout"}}),
            json!({"everyNth": 3, "match": {"partitionKeyRange": 0}, "effect": {"connection": "closeAfter"}}),
        ] {
            assert_eq!(serde_json::to_value(read(&json).unwrap()).unwrap(), json);
        }
    }

    #[test]
    fn invalid_rules_are_rejected_with_what_is_wrong() {
        let slow = json!({"delay": "1s"});
        let cases = [
            (json!({}), "effect is missing"),
            (json!([]), "JSON object"),
            (json!({"effect": {}}), "effect is missing"),
            (json!({"effect": slow, "nth": 3}), "nth"),
            (json!({"effect": {"delay": "1s", "explode": true}}), "explode"),
            (json!({"effect": slow, "match": {"colour": "red"}}), "colour"),
            (json!({"effect": slow, "match": {"operations": ["fly"]}}), "fly"),
            (json!({"effect": slow, "share": 1.5}), "share"),
            (json!({"effect": slow, "share": 0}), "share"),
            (json!({"effect": slow, "share": -0.1}), "share"),
            (json!({"effect": slow, "share": "half"}), "half"),
            (json!({"effect": slow, "share": 0.5, "everyNth": 2}), "leave one"),
            (json!({"effect": slow, "count": 0}), "at least 1"),
            (json!({"effect": slow, "everyNth": 0}), "at least 1"),
            (json!({"effect": slow, "skip": 0}), "at least 1"),
            (json!({"effect": slow, "count": -1}), "-1"),
            (json!({"effect": slow, "for": "0s"}), "no time"),
            (json!({"effect": slow, "for": "soon"}), "soon"),
            (json!({"effect": slow, "for": 30}), "30"),
            (json!({"effect": slow, "id": ""}), "id"),
            (json!({"effect": slow, "id": "a b"}), "a b"),
            (json!({"effect": slow, "id": "x".repeat(65)}), "64"),
            (json!({"effect": slow, "id": "region:East"}), "whole regions"),
            (json!({"effect": {"connection": "refuse"}, "share": 0.5}), "port"),
            (json!({"effect": {"connection": "refuse"}, "match": {"operations": ["read"]}}), "port"),
            (json!({"effect": {"connection": "blackHole"}, "count": 3}), "port"),
            (json!({"effect": {"connection": "blackHole"}, "skip": 3}), "port"),
            (json!({"effect": slow, "match": {"methods": vec!["GET"; 65]}}), "64"),
        ];
        for (json, part) in cases {
            let error = read(&json).expect_err(&json.to_string()).to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
        assert!(FaultRule::from_json(&[b'['; 100_000]).is_err(), "nested deeper than any rule");
    }
}
