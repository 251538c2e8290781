//! Conflict resolution: two regions wrote one item, and one version has to win. Pure.
#![warn(clippy::wildcard_enum_match_arm, reason = "a new case must be decided on")]

use protocol::container::{ConflictResolutionMode, ConflictResolutionPolicy};
use sql::Value;

/// What happens to a version that arrives from another region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConflictDecision {
    /// It replaces the version that is there.
    Accept,
    /// The version that is there wins.
    Reject,
    /// The version that is there wins, and the other one goes to the conflicts feed.
    Record,
}

/// A container's conflict resolution policy, prepared for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConflictResolver {
    /// Last writer wins: the larger number at this path.
    LastWriterWins(Vec<String>),
    /// Left to a client that reads the conflicts feed.
    ConflictsFeed,
}

/// The version that arrives and the one that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConflictingVersions<'a> {
    /// The entity tag of the version that the writer replaced; none for a new item.
    pub(crate) base: Option<&'a str>,
    /// The version that the writer made; none for a deletion.
    pub(crate) incoming: Option<&'a Value>,
    /// The version that is there, if any: its entity tag and the item.
    pub(crate) present: Option<(&'a str, &'a Value)>,
}

impl ConflictResolver {
    /// The resolver for a container's conflict resolution policy.
    pub(crate) fn of(policy: &ConflictResolutionPolicy) -> ConflictResolver {
        match policy.mode {
            ConflictResolutionMode::Custom => ConflictResolver::ConflictsFeed,
            ConflictResolutionMode::LastWriterWins => {
                let path = policy.conflict_resolution_path.split('/').filter(|step| !step.is_empty());
                ConflictResolver::LastWriterWins(path.map(str::to_owned).collect())
            }
        }
    }

    /// Decides between the versions. A writer that replaced what is there meets no conflict. Otherwise a
    /// deletion wins over everything, the larger number over the smaller, and the later arrival where they
    /// are equal.
    pub(crate) fn resolve(&self, versions: ConflictingVersions<'_>) -> ConflictDecision {
        if versions.base == versions.present.map(|(etag, _)| etag) {
            return ConflictDecision::Accept;
        }
        let path = match self {
            ConflictResolver::ConflictsFeed => return ConflictDecision::Record,
            ConflictResolver::LastWriterWins(path) => path,
        };
        let number = |item: &Value| {
            let found = path.iter().fold(item, |value, name| value.member(name));
            found.as_f64().unwrap_or(f64::NEG_INFINITY)
        };
        match (versions.incoming, versions.present) {
            (None, _) => ConflictDecision::Accept,
            (Some(_), None) => ConflictDecision::Reject,
            (Some(incoming), Some((_, present))) if number(incoming) >= number(present) => {
                ConflictDecision::Accept
            }
            (Some(_), Some(_)) => ConflictDecision::Reject,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(text: &str) -> Value {
        sql::value::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn conflicts_are_resolved_by_the_container_s_policy() {
        let largest = |path: &str| {
            ConflictResolver::of(&ConflictResolutionPolicy {
                conflict_resolution_path: path.to_owned(),
                ..ConflictResolutionPolicy::default()
            })
        };
        let (one, two) = (item(r#"{"_ts":1,"p":{"q":9}}"#), item(r#"{"_ts":2,"p":{"q":3}}"#));
        let there = |item| Some(("b", item));
        let (time, nested) = (largest("/_ts"), largest("/p/q"));
        for (case, conflict_resolver, base, incoming, present, expected) in [
            ("replaces what is there", &time, Some("b"), Some(&one), there(&two), ConflictDecision::Accept),
            ("is new to everybody", &time, None, Some(&one), None, ConflictDecision::Accept),
            ("later", &time, Some("a"), Some(&two), there(&one), ConflictDecision::Accept),
            ("earlier", &time, Some("a"), Some(&one), there(&two), ConflictDecision::Reject),
            ("made twice", &time, None, Some(&two), there(&one), ConflictDecision::Accept),
            ("as late", &time, Some("a"), Some(&one), there(&one), ConflictDecision::Accept),
            ("larger at the path", &nested, Some("a"), Some(&one), there(&two), ConflictDecision::Accept),
            ("smaller at the path", &nested, Some("a"), Some(&two), there(&one), ConflictDecision::Reject),
            ("a deletion", &time, Some("a"), None, there(&two), ConflictDecision::Accept),
            ("after a deletion", &time, Some("a"), Some(&two), None, ConflictDecision::Reject),
            (
                "left to people",
                &ConflictResolver::ConflictsFeed,
                Some("a"),
                Some(&two),
                there(&one),
                ConflictDecision::Record,
            ),
            (
                "nothing to settle",
                &ConflictResolver::ConflictsFeed,
                Some("b"),
                Some(&two),
                there(&one),
                ConflictDecision::Accept,
            ),
        ] {
            assert_eq!(
                conflict_resolver.resolve(ConflictingVersions { base, incoming, present }),
                expected,
                "{case}"
            );
        }
    }
}
