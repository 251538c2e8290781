//! The scenarios that come with it, one file each under `scenarios/`.

use crate::scenario::Scenario;

/// Their files, by name, in the order they are played.
const FILES: &[(&str, &str)] = &[
    ("region-down", include_str!("../scenarios/region-down.toml")),
    ("brown-out", include_str!("../scenarios/brown-out.toml")),
    ("drain", include_str!("../scenarios/drain.toml")),
    ("failover", include_str!("../scenarios/failover.toml")),
    ("black-hole", include_str!("../scenarios/black-hole.toml")),
    ("bad-partition", include_str!("../scenarios/bad-partition.toml")),
    ("throttle-storm", include_str!("../scenarios/throttle-storm.toml")),
    ("split-storm", include_str!("../scenarios/split-storm.toml")),
    ("resets", include_str!("../scenarios/resets.toml")),
    ("anything", include_str!("../scenarios/anything.toml")),
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// All of them.
pub fn all() -> Vec<Scenario> {
    FILES
        .iter()
        .map(|(name, text)| Scenario::read(name, text).expect("the scenarios that come with it are valid"))
        .collect()
}

/// The one of this name.
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{FaultKind, Writes};

    #[test]
    fn every_kind_of_failure_has_a_scenario_on_both_kinds_of_account() {
        let is_covered = |what: &dyn Fn(&FaultKind) -> bool, writes: Writes| {
            all().iter().any(|scenario| {
                scenario.writes.contains(&writes) && scenario.faults.iter().any(|fault| what(&fault.kind))
            })
        };
        for name in
            ["down", "slow", "drain", "black hole", "bad partition", "throttle storm", "splits", "resets"]
        {
            for writes in [Writes::One, Writes::All] {
                assert!(is_covered(&|action| action.name() == name, writes), "{name}, {writes}");
            }
        }
        // Where all regions write there is nothing to fail over.
        for outage in [false, true] {
            assert!(is_covered(&|action| *action == FaultKind::Failover { outage }, Writes::One));
        }
        assert!(all().iter().all(|scenario| !scenario.about.is_empty()));
        assert_eq!(find("region-down").map(|scenario| scenario.name), Some("region-down".to_owned()));
        assert_eq!(find("nothing"), None);
    }
}
