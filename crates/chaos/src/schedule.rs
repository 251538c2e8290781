//! What is to happen, and when exactly: a scenario after the seed decided what it leaves open. Pure.

use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use crate::dice::Dice;
use crate::scenario::{Drawn, Expect, FaultKind, Place, Scenario, Writes};
use crate::workload::Load;

/// What is to happen, and when exactly.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// The scenario's name.
    pub name: String,
    /// Where the account takes writes.
    pub writes: Writes,
    /// What every draw came from.
    pub seed: u64,
    /// The account's regions.
    pub regions: Vec<String>,
    /// Physical partitions at the start.
    pub partitions: u32,
    /// How long commits take from one region to another.
    pub lag: Option<Drawn>,
    /// What is done all the time.
    pub load: Load,
    /// What goes wrong, in the order it begins.
    pub faults: Vec<Planned>,
    /// When the load ends.
    pub end: Duration,
}

/// A fault that knows where and when.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Planned {
    /// What the fault does; nothing is left open.
    pub kind: FaultKind,
    /// The regions that the fault is in.
    pub regions: Vec<String>,
    /// When the fault begins, after the start of the run.
    pub begins: Duration,
    /// When the fault ends, after the start of the run.
    pub ends: Duration,
    /// What must hold during the fault.
    pub expect: Expect,
    /// The seed of the random choices that the fault makes while it lasts.
    pub seed: u64,
}

/// How a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// All times of faults are multiplied by this.
    pub scale: f64,
    /// The scenario is repeated for this long, each time with draws of its own; once when absent.
    pub lasting: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { scale: 1.0, lasting: None }
    }
}

impl Schedule {
    /// Decides what the scenario leaves open.
    pub fn new(scenario: &Scenario, writes: Writes, seed: u64, pace: Pace) -> Schedule {
        let mut faults = Vec::new();
        let mut round_begins = Duration::ZERO;
        let mut round = 0;
        loop {
            let dice = Dice::new(seed).of("round", round);
            let drawn: Vec<Planned> = (0..)
                .zip(&scenario.faults)
                .map(|(number, fault)| {
                    let dice = dice.of("fault", number);
                    let begins = round_begins + fault.at.at(dice.of("at", 0).uniform()).mul_f64(pace.scale);
                    let lasting = fault.lasting.at(dice.of("for", 0).uniform()).mul_f64(pace.scale);
                    Planned {
                        kind: decided(&fault.kind, scenario, dice),
                        regions: regions(&fault.region, &fault.kind, scenario, dice),
                        begins,
                        ends: begins + lasting,
                        expect: fault.expect.clone(),
                        seed: dice.seed(),
                    }
                })
                .collect();
            let ends = drawn.iter().map(|fault| fault.ends).max().unwrap_or(round_begins);
            faults.extend(drawn);
            round_begins = ends + scenario.calm.mul_f64(pace.scale);
            round += 1;
            if pace.lasting.is_none_or(|lasting| round_begins >= lasting) {
                break;
            }
        }
        faults.sort_by_key(|fault| fault.begins);
        Schedule {
            name: scenario.name.clone(),
            writes,
            seed,
            regions: scenario.regions.clone(),
            partitions: scenario.partitions,
            lag: scenario.lag,
            load: scenario.load.clone(),
            faults,
            end: round_begins,
        }
    }

    /// A number for all of it: the same for the same faults and the same operations at the same times.
    pub fn digest(&self) -> u64 {
        let mut hash = Xxh3::new();
        let Schedule { writes, regions, partitions, lag, load, faults, end, .. } = self;
        hash.update(
            format!("{writes:?} {regions:?} {partitions} {lag:?} {load:?} {faults:?} {end:?}").as_bytes(),
        );
        for worker in 0..load.workers {
            for turn in 0..load.turns(worker, *end) {
                hash.update(format!("{:?}", load.due(self.seed, worker, turn)).as_bytes());
            }
        }
        hash.digest()
    }
}

/// The regions that a fault is in.
fn regions(place: &Place, action: &FaultKind, scenario: &Scenario, dice: Dice) -> Vec<String> {
    // A failover to the region that writes already changes nothing.
    let first = usize::from(matches!(action, FaultKind::Failover { .. }) && scenario.regions.len() > 1);
    let choice = &scenario.regions[first..];
    match place {
        Place::Named(name) => vec![name.clone()],
        Place::Everywhere => scenario.regions.clone(),
        Place::Any => vec![choice[dice.of("region", 0).below(choice.len())].clone()],
    }
}

/// The action with nothing left open: the seed chooses the physical partition.
fn decided(action: &FaultKind, scenario: &Scenario, dice: Dice) -> FaultKind {
    let mut action = action.clone();
    if let FaultKind::Rules(rules) = &mut action
        && rules.any_partition
    {
        let range = dice.of("range", 0).below(scenario.partitions as usize);
        for rule in &mut rules.rules {
            rule.filter.partition_key_range = u32::try_from(range).ok();
        }
    }
    action
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONCE: Pace = Pace { scale: 1.0, lasting: None };

    fn scenario() -> Scenario {
        let text = "[[fault]]\nkind = 'partition'\nat = '1s..2s'\nfor = '1s..3s'\n\
                    [[fault]]\nkind = 'failover'\nat = '0s..1s'\nfor = '1s'";
        Scenario::read("mine", text).expect("valid")
    }

    #[test]
    fn the_seed_decides_everything_that_is_left_open_and_nothing_else_does() {
        let scenario = scenario();
        let of = |seed| Schedule::new(&scenario, Writes::One, seed, ONCE);
        assert_eq!(of(7), of(7));
        assert_eq!(of(7).digest(), of(7).digest());
        let (mut digests, mut ranges, mut regions) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..50 {
            let schedule = of(seed);
            let bad = schedule.faults.iter().find(|fault| fault.kind.name() == "bad partition");
            let bad = bad.expect("it is there");
            assert!(bad.begins >= Duration::from_secs(1) && bad.begins <= Duration::from_secs(2));
            assert!(schedule.faults.is_sorted_by_key(|fault| fault.begins));
            assert!(schedule.faults.iter().all(|fault| fault.ends < schedule.end));
            digests.push(schedule.digest());
            ranges.push(format!("{:?}", bad.kind));
            regions.extend(bad.regions.clone());
            let failover =
                schedule.faults.iter().find(|fault| matches!(fault.kind, FaultKind::Failover { .. }));
            assert_ne!(failover.expect("it is there").regions, ["West US"], "it writes already");
        }
        for drawn in [&mut ranges, &mut regions] {
            drawn.sort();
            drawn.dedup();
        }
        assert_eq!((ranges.len(), regions.len()), (4, 3), "every partition and every region has its turn");
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 50);
    }

    #[test]
    fn a_longer_run_repeats_it_with_other_draws() {
        let pace = Pace { scale: 0.5, lasting: Some(Duration::from_secs(60)) };
        let schedule = Schedule::new(&scenario(), Writes::One, 1, pace);
        assert!(schedule.end >= Duration::from_secs(60) && schedule.end < Duration::from_secs(64));
        assert!(schedule.faults.len() >= 30, "{}", schedule.faults.len());
        let mut lasting: Vec<Duration> =
            schedule.faults.iter().map(|fault| fault.ends - fault.begins).collect();
        lasting.sort_unstable();
        lasting.dedup();
        assert!(lasting.len() > 10, "{lasting:?}");
    }
}
