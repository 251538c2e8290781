//! One fault: whom it strikes, how often, when, and what happens then.
//!
//! In: JSON, or the builder methods of [`Rule`]. Out: a rule that was checked against itself and
//! against the account's regions. Pure; what has already happened to a rule is `set`'s affair.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::delay::Delay;
use super::draw::Draw;
use super::effect::{ConnectionEffect, Delayed, Effect};
use super::filter::{Filter, OperationKind};
use clock::HumanDuration;
use engine::regions::{RegionId, Topology};

/// Characters of a rule's id.
const ID_LENGTH_MAX: usize = 64;
/// Entries of one list inside a rule.
const LIST_MAX: usize = 64;
/// What the ids of region switches start with.
pub(crate) const SWITCH_PREFIX: &str = "region:";

/// A fault to inject. In JSON, everything but `effect` may be left out:
///
/// ```json
/// {"id": "storm", "match": {"operations": ["read"], "regions": ["East US"]}, "share": 0.3,
///  "after": "5s", "for": "30s", "effect": {"status": 429, "subStatus": 3200, "retryAfter": "50ms"}}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// What it is called; made up when absent. Adding a rule under a known id replaces that rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The requests it is about; all of them when absent.
    #[serde(rename = "match", default, skip_serializing_if = "is_everything")]
    pub filter: Filter,
    /// The share of those it strikes, drawn from the seed: above 0, at most 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Strikes the n-th of them, the 2n-th, and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_nth: Option<u64>,
    /// Strikes this often, then ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Starts this long after it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<HumanDuration>,
    /// Ends this long after it started.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<HumanDuration>,
    /// What happens to a request that is struck.
    #[serde(default)]
    pub effect: Effect,
}

/// Why a rule is refused, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRule(pub(crate) String);

impl Rule {
    /// Whether `later` could never strike while this rule is there: this one is about the same requests, strikes
    /// all of them for as long as it is there, and leaves nothing to decide.
    pub(super) fn hides(&self, later: &Rule) -> bool {
        let always = self.share.is_none() && self.every_nth.is_none();
        let for_ever = self.count.is_none() && self.lasting.is_none() && self.after.is_none();
        always && for_ever && self.effect.decides() && self.filter == later.filter
    }

    /// Answers with a status and a sub-status, 0 for none.
    pub fn answer(status: u16, sub_status: u32) -> Rule {
        Rule::with(Effect::of_status(status, (sub_status != 0).then_some(sub_status)))
    }

    /// Makes requests wait.
    pub fn delay(delay: impl Into<Delay>) -> Rule {
        Rule::with(Effect { delay: Some(delay.into()), ..Effect::default() })
    }

    /// Does something to the connection.
    pub fn connection(connection: ConnectionEffect) -> Rule {
        Rule::with(Effect::of_connection(connection))
    }

    /// Has this effect.
    pub fn with(effect: Effect) -> Rule {
        Rule { effect, ..Rule::default() }
    }

    /// The same rule under this id.
    pub fn named(mut self, id: &str) -> Rule {
        self.id = Some(id.to_owned());
        self
    }

    /// The same rule for this operation, and for those added before.
    pub fn on(mut self, operation: OperationKind) -> Rule {
        self.filter.operations.push(operation);
        self
    }

    /// The same rule in this region, and in those added before.
    pub fn in_region(mut self, region: &str) -> Rule {
        self.filter.regions.push(region.to_owned());
        self
    }

    /// The same rule for one container.
    pub fn in_container(mut self, database: &str, container: &str) -> Rule {
        self.filter.database = Some(database.to_owned());
        self.filter.container = Some(container.to_owned());
        self
    }

    /// The same rule for a share of the requests.
    pub fn share(mut self, share: f64) -> Rule {
        self.share = Some(share);
        self
    }

    /// The same rule, ending after so many strikes.
    pub fn times(mut self, count: u64) -> Rule {
        self.count = Some(count);
        self
    }

    /// The same rule, ending after this time.
    pub fn lasting(mut self, duration: Duration) -> Rule {
        self.lasting = Some(HumanDuration(duration));
        self
    }

    /// The same rule, whose answers say when to come back.
    pub fn retry_after(mut self, duration: Duration) -> Rule {
        self.effect.retry_after = Some(HumanDuration(duration));
        self
    }

    /// The same rule, waiting first.
    pub fn delayed_by(mut self, delay: impl Into<Delay>) -> Rule {
        self.effect.delay = Some(delay.into());
        self
    }

    /// The same rule, whose delay holds up the answer instead of the request.
    pub fn holding_the_answer(mut self) -> Rule {
        self.effect.delayed = Delayed::Answer;
        self
    }

    /// Reads a rule from JSON. What it asks for is checked when it is added.
    pub fn from_json(json: &[u8]) -> Result<Rule, BadRule> {
        let unreadable = |error| BadRule(format!("the rule cannot be read: {error}"));
        let value: Value = serde_json::from_slice(json).map_err(unreadable)?;
        if !value.is_object() {
            return Err(BadRule("a rule is a JSON object, like {\"effect\":{\"status\":503}}".to_owned()));
        }
        serde_json::from_value(value).map_err(unreadable)
    }

    /// Refuses what cannot be, or could never strike.
    pub(crate) fn check(&self, topology: &Topology) -> Result<(), BadRule> {
        let problem = self
            .id
            .as_deref()
            .and_then(id_problem)
            .or_else(|| self.list_problem())
            .or_else(|| self.filter.problem())
            .or_else(|| self.region_problem(topology))
            .or_else(|| self.timing_problem())
            .or_else(|| self.effect.problem())
            .or_else(|| self.door_problem());
        problem.map_or(Ok(()), |problem| Err(BadRule(problem)))
    }

    fn list_problem(&self) -> Option<String> {
        let Filter { operations, resources, regions, methods, .. } = &self.filter;
        let longest = operations.len().max(resources.len()).max(regions.len()).max(methods.len());
        (longest > LIST_MAX)
            .then(|| format!("a list in 'match' is too long; {LIST_MAX} entries are the most"))
    }

    fn region_problem(&self, topology: &Topology) -> Option<String> {
        let mut unknown = self.filter.regions.iter().filter_map(|name| topology.find(name).err());
        unknown.next().map(|error| error.to_string())
    }

    fn timing_problem(&self) -> Option<String> {
        match self.share {
            Some(share) if !(share > 0.0 && share <= 1.0) => {
                return Some(format!("a share of {share} is impossible; expected more than 0 and at most 1"));
            }
            Some(_) if self.every_nth.is_some() => {
                return Some("'share' and 'everyNth' both say how often; leave one of them out".to_owned());
            }
            _ => {}
        }
        for (name, number) in [("everyNth", self.every_nth), ("count", self.count)] {
            if number == Some(0) {
                return Some(format!("'{name}' of 0 never strikes; leave it out, or give at least 1"));
            }
        }
        let never = self.lasting.is_some_and(|span| span.0.is_zero());
        never.then(|| "a rule that lasts no time does nothing; leave 'for' out to let it last".to_owned())
    }

    /// A closed port does not know which request would have come.
    fn door_problem(&self) -> Option<String> {
        let picky = self.filter.looks_at_requests()
            || self.share.is_some()
            || self.every_nth.is_some()
            || self.count.is_some();
        (picky && self.effect.connection.is_some_and(ConnectionEffect::is_the_doors)).then(|| {
            "refuse and blackHole concern a region's port, before any request is read: they go with \
             'regions', 'after' and 'for' only"
                .to_owned()
        })
    }

    /// The regions named.
    pub(crate) fn regions(&self, topology: &Topology) -> Vec<RegionId> {
        self.filter.regions.iter().filter_map(|name| topology.find(name).ok()).collect()
    }

    /// Whether the `n`-th request that is meant, counted from 0, is struck.
    pub(crate) fn strikes(&self, n: u64, draw: Draw) -> bool {
        self.every_nth.is_none_or(|nth| (n + 1).is_multiple_of(nth))
            && self.share.is_none_or(|share| draw.uniform() < share)
    }

    /// Where the rule stands, `age` after it was added.
    pub(crate) fn phase(&self, age: Duration) -> Phase {
        let start = self.after.map_or(Duration::ZERO, |span| span.0);
        match (age.checked_sub(start), self.lasting) {
            (None, _) => Phase::Waiting { starts_in: start - age },
            (Some(_), None) => Phase::Active { ends_in: None },
            (Some(running), Some(lasting)) if running < lasting.0 => {
                Phase::Active { ends_in: Some(lasting.0 - running) }
            }
            (Some(_), Some(_)) => Phase::Ended,
        }
    }
}

/// Where a rule stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Added, not started.
    Waiting {
        /// Time until it starts.
        starts_in: Duration,
    },
    /// Striking.
    Active {
        /// Time until it ends; until it is removed when absent.
        ends_in: Option<Duration>,
    },
    /// Over.
    Ended,
}

impl Phase {
    /// Time until the phase changes by itself.
    pub(crate) fn changes_in(self) -> Option<Duration> {
        match self {
            Phase::Waiting { starts_in } => Some(starts_in),
            Phase::Active { ends_in } => ends_in,
            Phase::Ended => None,
        }
    }
}

fn id_problem(id: &str) -> Option<String> {
    if id.is_empty() || id.len() > ID_LENGTH_MAX {
        return Some(format!("a rule's id has 1 to {ID_LENGTH_MAX} characters"));
    }
    // It is shown in a header and named in a URL.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if !id.bytes().all(is_plain) {
        return Some(format!("'{id}' is no id for a rule; use letters, digits, '-', '_', '.' and ':'"));
    }
    id.starts_with(SWITCH_PREFIX).then(|| {
        format!("ids that start with '{SWITCH_PREFIX}' belong to the switches of regions; choose another")
    })
}

fn is_everything(filter: &Filter) -> bool {
    *filter == Filter::default()
}

#[cfg(test)]
mod tests {
    use protocol::account::ConsistencyLevel;
    use serde_json::json;

    use super::*;
    use engine::regions::{Lag, Region};

    fn topology() -> Topology {
        let regions = ["West US", "East US", "North Europe"].map(|name| Region::new(name, 0)).to_vec();
        Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap()
    }

    fn read(json: &Value) -> Result<Rule, BadRule> {
        let rule = Rule::from_json(json.to_string().as_bytes())?;
        rule.check(&topology())?;
        Ok(rule)
    }

    #[test]
    fn a_rule_survives_the_way_to_json_and_back() {
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
            json!({"everyNth": 3, "match": {"partitionKeyRange": 0}, "effect": {"connection": "closeAfter"}}),
        ] {
            assert_eq!(serde_json::to_value(read(&json).unwrap()).unwrap(), json);
        }
    }

    #[test]
    fn hostile_rules_are_refused_with_what_is_wrong() {
        let slow = json!({"delay": "1s"});
        let cases = [
            (json!({}), "effect is missing"),
            (json!([]), "JSON object"),
            (json!({"effect": {}}), "effect is missing"),
            (json!({"effect": slow, "nth": 3}), "nth"),
            (json!({"effect": {"delay": "1s", "explode": true}}), "explode"),
            (json!({"effect": slow, "match": {"colour": "red"}}), "colour"),
            (json!({"effect": slow, "match": {"operations": ["fly"]}}), "fly"),
            (json!({"effect": slow, "match": {"regions": ["Mars"]}}), "'East US', 'North Europe'"),
            (json!({"effect": slow, "share": 1.5}), "share"),
            (json!({"effect": slow, "share": 0}), "share"),
            (json!({"effect": slow, "share": -0.1}), "share"),
            (json!({"effect": slow, "share": "half"}), "half"),
            (json!({"effect": slow, "share": 0.5, "everyNth": 2}), "leave one"),
            (json!({"effect": slow, "count": 0}), "at least 1"),
            (json!({"effect": slow, "everyNth": 0}), "at least 1"),
            (json!({"effect": slow, "count": -1}), "-1"),
            (json!({"effect": slow, "for": "0s"}), "no time"),
            (json!({"effect": slow, "for": "soon"}), "soon"),
            (json!({"effect": slow, "for": 30}), "30"),
            (json!({"effect": slow, "id": ""}), "id"),
            (json!({"effect": slow, "id": "a b"}), "a b"),
            (json!({"effect": slow, "id": "x".repeat(65)}), "64"),
            (json!({"effect": slow, "id": "region:East"}), "switches"),
            (json!({"effect": {"connection": "refuse"}, "share": 0.5}), "port"),
            (json!({"effect": {"connection": "refuse"}, "match": {"operations": ["read"]}}), "port"),
            (json!({"effect": {"connection": "blackHole"}, "count": 3}), "port"),
            (json!({"effect": slow, "match": {"methods": vec!["GET"; 65]}}), "64"),
        ];
        for (json, part) in cases {
            let error = read(&json).expect_err(&json.to_string()).to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
        assert!(Rule::from_json(&[b'['; 100_000]).is_err(), "nested deeper than any rule");
    }

    #[test]
    fn every_nth_and_share_choose_among_the_requests_that_are_meant() {
        let count = |rule: &Rule| (0..1_000).filter(|n| rule.strikes(*n, Draw::of(1, "rule", *n))).count();
        let all = Rule::delay(Duration::from_secs(1));
        assert_eq!(count(&all), 1_000);
        let third = Rule { every_nth: Some(3), ..all.clone() };
        assert_eq!(count(&third), 333);
        assert!(!third.strikes(1, Draw::of(1, "rule", 1)) && third.strikes(2, Draw::of(1, "rule", 2)));
        let share = count(&all.clone().share(0.3));
        assert!((250..350).contains(&share), "{share}");
        assert_eq!(count(&all.share(1.0)), 1_000);
    }

    #[test]
    fn a_rule_waits_strikes_and_ends() {
        let seconds = Duration::from_secs;
        let rule =
            Rule { after: Some(HumanDuration(seconds(5))), ..Rule::delay(seconds(1)) }.lasting(seconds(30));
        assert_eq!(rule.phase(seconds(0)), Phase::Waiting { starts_in: seconds(5) });
        assert_eq!(rule.phase(seconds(5)), Phase::Active { ends_in: Some(seconds(30)) });
        assert_eq!(rule.phase(seconds(34)), Phase::Active { ends_in: Some(seconds(1)) });
        assert_eq!(rule.phase(seconds(35)), Phase::Ended);
        assert_eq!(Rule::delay(seconds(1)).phase(seconds(9_999)), Phase::Active { ends_in: None });
    }
}
