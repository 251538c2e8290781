//! Two regions wrote one item: which version stays. Pure.

use protocol::container::{ConflictResolutionMode, ConflictResolutionPolicy};
use sql::Value;

/// What becomes of a version that comes from another region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It takes its place.
    Accept,
    /// The version that is there stays.
    Reject,
    /// The same, and the other one is kept where people can look at it.
    Record,
}

/// How a container settles conflicts, worked out once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// The larger number at this path.
    Largest(Vec<String>),
    /// Somebody who reads the conflicts feed.
    Feed,
}

/// What is known of the version that comes in and of the one that is there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meeting<'a> {
    /// The version the writer replaced, by its entity tag; none for a new item.
    pub(crate) base: Option<&'a str>,
    /// What it wrote; none for a deletion.
    pub(crate) incoming: Option<&'a Value>,
    /// The version that is there, if any: its entity tag and the item.
    pub(crate) present: Option<(&'a str, &'a Value)>,
}

impl Settlement {
    /// What `policy` means.
    pub(crate) fn of(policy: &ConflictResolutionPolicy) -> Settlement {
        match policy.mode {
            ConflictResolutionMode::Custom => Settlement::Feed,
            ConflictResolutionMode::LastWriterWins => {
                let path = policy.conflict_resolution_path.split('/').filter(|step| !step.is_empty());
                Settlement::Largest(path.map(str::to_owned).collect())
            }
        }
    }

    /// Decides. A writer that replaced what is there meets no conflict. Otherwise a deletion wins over
    /// everything, the larger number over the smaller, and the later arrival where they are equal.
    pub(crate) fn settle(&self, meeting: Meeting<'_>) -> Verdict {
        if meeting.base == meeting.present.map(|(etag, _)| etag) {
            return Verdict::Accept;
        }
        let path = match self {
            Settlement::Feed => return Verdict::Record,
            Settlement::Largest(path) => path,
        };
        let number = |item: &Value| {
            let found = path.iter().fold(item, |value, name| value.member(name));
            found.as_f64().unwrap_or(f64::NEG_INFINITY)
        };
        match (meeting.incoming, meeting.present) {
            (None, _) => Verdict::Accept,
            (Some(_), None) => Verdict::Reject,
            (Some(incoming), Some((_, present))) if number(incoming) >= number(present) => Verdict::Accept,
            (Some(_), Some(_)) => Verdict::Reject,
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
    fn conflicts_are_settled_as_the_container_says() {
        let largest = |path: &str| {
            Settlement::of(&ConflictResolutionPolicy {
                conflict_resolution_path: path.to_owned(),
                ..ConflictResolutionPolicy::default()
            })
        };
        let (one, two) = (item(r#"{"_ts":1,"p":{"q":9}}"#), item(r#"{"_ts":2,"p":{"q":3}}"#));
        let there = |item| Some(("b", item));
        let (time, nested) = (largest("/_ts"), largest("/p/q"));
        for (case, settlement, base, incoming, present, expected) in [
            ("replaces what is there", &time, Some("b"), Some(&one), there(&two), Verdict::Accept),
            ("is new to everybody", &time, None, Some(&one), None, Verdict::Accept),
            ("later", &time, Some("a"), Some(&two), there(&one), Verdict::Accept),
            ("earlier", &time, Some("a"), Some(&one), there(&two), Verdict::Reject),
            ("made twice", &time, None, Some(&two), there(&one), Verdict::Accept),
            ("as late", &time, Some("a"), Some(&one), there(&one), Verdict::Accept),
            ("larger at the path", &nested, Some("a"), Some(&one), there(&two), Verdict::Accept),
            ("smaller at the path", &nested, Some("a"), Some(&two), there(&one), Verdict::Reject),
            ("a deletion", &time, Some("a"), None, there(&two), Verdict::Accept),
            ("after a deletion", &time, Some("a"), Some(&two), None, Verdict::Reject),
            ("left to people", &Settlement::Feed, Some("a"), Some(&two), there(&one), Verdict::Record),
            ("nothing to settle", &Settlement::Feed, Some("b"), Some(&two), there(&one), Verdict::Accept),
        ] {
            assert_eq!(settlement.settle(Meeting { base, incoming, present }), expected, "{case}");
        }
    }
}
