//! The variants of a scenario: which regions of the account write, and what the client is configured with. Pure.

use std::fmt;
use std::time::Duration;

use emulator::clock::HumanDuration;
use serde::{Deserialize, Serialize};

/// Which regions of an account accept writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WriteRegions {
    /// Only the first region does.
    One,
    /// Every region of the account does.
    All,
}

impl fmt::Display for WriteRegions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WriteRegions::One => "one region writes",
            WriteRegions::All => "all regions write",
        })
    }
}

/// One variant of a scenario. Each variant is a run of its own, with the same faults and operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Which regions of the account accept writes.
    pub writes: WriteRegions,
    /// Whether the client hedges; it does if the scenario does not say.
    pub hedging: Option<bool>,
    /// The deadline of every operation; that of the workload if the scenario does not say.
    pub deadline: Option<Duration>,
}

impl From<WriteRegions> for Variant {
    fn from(writes: WriteRegions) -> Variant {
        Variant { writes, hedging: None, deadline: None }
    }
}

/// What the scenario says about the variant: `one region writes, hedging off, deadline 5s`.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.writes.fmt(f)?;
        match self.hedging {
            Some(true) => f.write_str(", hedging on")?,
            Some(false) => f.write_str(", hedging off")?,
            None => {}
        }
        match self.deadline {
            Some(deadline) => write!(f, ", deadline {}", HumanDuration(deadline)),
            None => Ok(()),
        }
    }
}

/// All combinations of the choices of a scenario; an empty list leaves a choice to the defaults.
pub(super) fn combinations(
    writes: &[WriteRegions],
    hedging: &[bool],
    deadlines: &[Duration],
) -> Vec<Variant> {
    fn choices<T: Copy>(listed: &[T]) -> Vec<Option<T>> {
        if listed.is_empty() { vec![None] } else { listed.iter().copied().map(Some).collect() }
    }
    let mut variants = Vec::new();
    for writes in writes {
        for hedging in choices(hedging) {
            for deadline in choices(deadlines) {
                variants.push(Variant { writes: *writes, hedging, deadline });
            }
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_all_combinations_and_name_what_the_scenario_says() {
        let both = [WriteRegions::One, WriteRegions::All];
        let named = |hedging: &[bool], deadlines: &[Duration]| -> Vec<String> {
            combinations(&both, hedging, deadlines).iter().map(Variant::to_string).collect()
        };
        assert_eq!(named(&[], &[]), ["one region writes", "all regions write"]);
        let deadlines = [5, 20].map(Duration::from_secs);
        let all = named(&[true, false], &deadlines);
        assert_eq!(all.len(), 8);
        assert_eq!(all[0], "one region writes, hedging on, deadline 5s");
        assert_eq!(all[7], "all regions write, hedging off, deadline 20s");
    }
}
