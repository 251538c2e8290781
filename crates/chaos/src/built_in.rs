//! The built-in scenarios, one file each under `scenarios/`.

use crate::scenario::Scenario;

/// The files of the built-in scenarios by name, in the order in which they run.
const FILES: &[(&str, &str)] = &[
    ("region-down", include_str!("../scenarios/region-down.toml")),
    ("brown-out", include_str!("../scenarios/brown-out.toml")),
    ("drain", include_str!("../scenarios/drain.toml")),
    ("failover", include_str!("../scenarios/failover.toml")),
    ("black-hole", include_str!("../scenarios/black-hole.toml")),
    ("silent-writes", include_str!("../scenarios/silent-writes.toml")),
    ("stalled-peer", include_str!("../scenarios/stalled-peer.toml")),
    ("runtime-ends", include_str!("../scenarios/runtime-ends.toml")),
    ("invalid-arguments", include_str!("../scenarios/invalid-arguments.toml")),
    ("unlimited-times", include_str!("../scenarios/unlimited-times.toml")),
    ("no-writes", include_str!("../scenarios/no-writes.toml")),
    ("bad-partition", include_str!("../scenarios/bad-partition.toml")),
    ("throttle-storm", include_str!("../scenarios/throttle-storm.toml")),
    ("throttled-then-lost", include_str!("../scenarios/throttled-then-lost.toml")),
    ("slow-metadata", include_str!("../scenarios/slow-metadata.toml")),
    ("split-storm", include_str!("../scenarios/split-storm.toml")),
    ("resets", include_str!("../scenarios/resets.toml")),
    ("anything", include_str!("../scenarios/anything.toml")),
];

/// The names of the built-in scenarios.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// All built-in scenarios, in the order in which they run.
pub fn all() -> Vec<Scenario> {
    FILES
        .iter()
        .map(|(name, text)| Scenario::read(name, text).expect("the built-in scenarios are valid"))
        .collect()
}

/// The built-in scenario with this name.
pub fn find(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{FaultKind, WriteRegions};

    #[test]
    fn every_kind_of_fault_has_a_scenario_on_both_kinds_of_account() {
        let is_covered = |what: &dyn Fn(&FaultKind) -> bool, writes: WriteRegions| {
            all().iter().any(|scenario| {
                scenario.writes.contains(&writes) && scenario.faults.iter().any(|fault| what(&fault.kind))
            })
        };
        for name in
            ["down", "slow", "drain", "black hole", "bad partition", "throttle storm", "splits", "resets"]
        {
            for writes in [WriteRegions::One, WriteRegions::All] {
                assert!(is_covered(&|kind| kind.name() == name, writes), "{name}, {writes}");
            }
        }
        // An account with writes in all regions has nothing to fail over.
        for outage in [false, true] {
            assert!(is_covered(&|kind| *kind == FaultKind::Failover { outage }, WriteRegions::One));
        }
        assert!(all().iter().all(|scenario| !scenario.about.is_empty()));
        let black_hole = find("black-hole").expect("it is there");
        assert_eq!(
            black_hole.variants().len(),
            8,
            "both kinds of account, hedging on and off, two deadlines"
        );
        for name in ["black-hole", "invalid-arguments", "unlimited-times"] {
            let scenario = find(name).expect("it is there");
            assert_eq!(scenario.hedging, [true, false], "{name}");
            let attempt = scenario.attempt_timeout.expect("it is given");
            assert!(scenario.deadlines.iter().any(|deadline| *deadline < attempt), "{name}");
            assert!(scenario.deadlines.iter().any(|deadline| *deadline > attempt), "{name}");
        }
        assert_eq!(find("region-down").map(|scenario| scenario.name), Some("region-down".to_owned()));
        assert_eq!(find("nothing"), None);
    }
}
