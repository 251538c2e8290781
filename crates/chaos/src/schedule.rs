//! The schedule of a run: a scenario whose open times and regions were chosen by a seed. Pure.

use std::fmt;
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use crate::duration::DurationRange;
use crate::region_set::RegionSet;
use crate::scenario::{Expectation, FaultKind, RegionSelector, Scenario, Variant};
use crate::seed::{derive_seed, rng_for};
use crate::workload::Workload;

/// All faults and operations of a run, with their times.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// The name of the scenario.
    pub name: String,
    /// The variant of the scenario: the kind of account, and the settings of the client.
    pub variant: Variant,
    /// How long one attempt of the client may take; the driver's default if it is missing.
    pub attempt_timeout: Option<Duration>,
    /// Whether the first operations of the client run on a runtime of their own, which ends before the workload begins.
    pub first_runtime_ends: bool,
    /// Whether the client connects with TLS, and so with HTTP/2; otherwise with HTTP/1.1.
    pub https: bool,
    /// Whether the counter reset window and the failback interval of the client's circuit breakers are as long as a
    /// duration can be.
    pub unlimited_windows: bool,
    /// The seed of all random choices.
    pub seed: u64,
    /// The regions of the account.
    pub regions: Vec<String>,
    /// The number of physical partitions at the start.
    pub partitions: u32,
    /// How long a commit takes to be replicated to another region.
    pub lag: Option<DurationRange>,
    /// The operations that run all the time.
    pub workload: Workload,
    /// The faults, in the order in which they begin.
    pub faults: Vec<ScheduledFault>,
    /// When the workload ends, counted from the start.
    pub end: Duration,
}

/// A fault with its regions and times.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScheduledFault {
    /// What the fault does.
    pub kind: FaultKind,
    /// The regions that the fault affects.
    pub regions: Vec<String>,
    /// When the fault begins, counted from the start.
    pub begins: Duration,
    /// When the fault ends, counted from the start.
    pub ends: Duration,
    /// What must hold during the fault.
    pub expect: Expectation,
    /// The seed of random choices during the fault.
    pub seed: u64,
}

/// The kind and the regions: `down East US`.
impl fmt::Display for ScheduledFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match &self.kind {
            FaultKind::Splits { .. } => Ok(()),
            _ if self.regions.len() > 1 => f.write_str(" everywhere"),
            _ => write!(f, " {}", self.regions.join(", ")),
        }
    }
}

/// How fast and how long a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// The factor by which all times of faults are multiplied.
    pub time_scale: f64,
    /// How long the scenario is repeated, each time with other random choices; it runs once if this is missing.
    pub duration: Option<Duration>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { time_scale: 1.0, duration: None }
    }
}

impl Schedule {
    /// Makes the schedule of a scenario: the seed chooses everything that the scenario leaves open.
    pub fn new(scenario: &Scenario, variant: impl Into<Variant>, seed: u64, options: RunOptions) -> Schedule {
        let variant = variant.into();
        let mut faults = Vec::new();
        let mut round_begins = Duration::ZERO;
        let mut round = 0;
        loop {
            let round_seed = derive_seed(seed, "round", round);
            let scheduled: Vec<ScheduledFault> = (0..)
                .zip(&scenario.faults)
                .map(|(number, fault)| {
                    let seed = derive_seed(round_seed, "fault", number);
                    let at = fault.at.at(rng_for(seed, "at").f64()).mul_f64(options.time_scale);
                    let lasting = fault.duration.at(rng_for(seed, "for").f64()).mul_f64(options.time_scale);
                    let begins = round_begins + at;
                    ScheduledFault {
                        kind: resolve_kind(&fault.kind, scenario, seed),
                        regions: resolve_regions(&fault.region, &fault.kind, scenario, seed),
                        begins,
                        ends: begins + lasting,
                        expect: fault.expect.clone(),
                        seed,
                    }
                })
                .collect();
            let ends = scheduled.iter().map(|fault| fault.ends).max().unwrap_or(round_begins);
            faults.extend(scheduled);
            round_begins = ends + scenario.calm.mul_f64(options.time_scale);
            round += 1;
            if options.duration.is_none_or(|lasting| round_begins >= lasting) {
                break;
            }
        }
        faults.sort_by_key(|fault| fault.begins);
        let mut workload = scenario.workload.clone();
        workload.deadline = variant.deadline.unwrap_or(workload.deadline);
        Schedule {
            name: scenario.name.clone(),
            variant,
            attempt_timeout: scenario.attempt_timeout,
            first_runtime_ends: scenario.first_runtime_ends,
            unlimited_windows: scenario.unlimited_windows,
            https: scenario.https,
            seed,
            regions: scenario.regions.clone(),
            partitions: scenario.partitions,
            lag: scenario.lag,
            workload,
            faults,
            end: round_begins,
        }
    }

    /// Whether the client hedges.
    pub fn hedges(&self) -> bool {
        self.variant.hedging.unwrap_or(true)
    }

    /// The regions of a fault.
    pub(crate) fn regions_of(&self, fault: &ScheduledFault) -> RegionSet {
        (0..)
            .zip(&self.regions)
            .filter(|(_, region)| fault.regions.contains(region))
            .map(|(at, _)| at)
            .collect()
    }

    /// A hash of the schedule: equal for the same faults and the same operations at the same times.
    pub fn digest(&self) -> u64 {
        let mut hash = Xxh3::new();
        let Schedule { variant, regions, partitions, lag, workload, faults, end, .. } = self;
        let client = (self.attempt_timeout, self.first_runtime_ends, self.unlimited_windows, self.https);
        hash.update(
            format!(
                "{variant:?} {client:?} {regions:?} {partitions} {lag:?} {workload:?} {faults:?} {end:?}"
            )
            .as_bytes(),
        );
        for worker in 0..workload.workers {
            for sequence in 0..workload.operation_count(worker, *end) {
                hash.update(format!("{:?}", workload.operation(self.seed, worker, sequence)).as_bytes());
            }
        }
        hash.digest()
    }
}

/// The regions that a fault affects.
fn resolve_regions(
    selector: &RegionSelector,
    kind: &FaultKind,
    scenario: &Scenario,
    seed: u64,
) -> Vec<String> {
    // A failover to the region that is the write region already would change nothing.
    let first = usize::from(matches!(kind, FaultKind::Failover { .. }) && scenario.regions.len() > 1);
    let candidates = &scenario.regions[first..];
    match selector {
        RegionSelector::Named(name) => vec![name.clone()],
        RegionSelector::All => scenario.regions.clone(),
        RegionSelector::Any => {
            vec![candidates[rng_for(seed, "region").usize(0..candidates.len())].clone()]
        }
    }
}

/// The kind of a fault, with a physical partition chosen if the scenario leaves it open.
fn resolve_kind(kind: &FaultKind, scenario: &Scenario, seed: u64) -> FaultKind {
    let mut kind = kind.clone();
    if let FaultKind::Rules(rules) = &mut kind
        && rules.any_partition
    {
        let range = rng_for(seed, "range").u32(0..scenario.partitions);
        for rule in &mut rules.rules {
            rule.filter.partition_key_range = Some(range);
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::WriteRegions;

    const ONCE: RunOptions = RunOptions { time_scale: 1.0, duration: None };

    fn scenario() -> Scenario {
        let text = "[[fault]]\nkind = 'partition'\nat = '1s..2s'\nfor = '1s..3s'\n\
                    [[fault]]\nkind = 'failover'\nat = '0s..1s'\nfor = '1s'";
        Scenario::read("mine", text).expect("valid")
    }

    #[test]
    fn the_seed_alone_decides_everything_that_a_scenario_leaves_open() {
        let scenario = scenario();
        let of = |seed| Schedule::new(&scenario, WriteRegions::One, seed, ONCE);
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
            assert_ne!(failover.expect("it is there").regions, ["West US"], "it is the write region already");
        }
        for values in [&mut ranges, &mut regions] {
            values.sort();
            values.dedup();
        }
        assert_eq!((ranges.len(), regions.len()), (4, 3), "every partition and every region is chosen");
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), 50);
    }

    #[test]
    fn variants_have_the_same_faults_and_operations() {
        let mut scenario = scenario();
        (scenario.hedging, scenario.deadlines) = (vec![true, false], vec![Duration::from_secs(20)]);
        let schedules: Vec<Schedule> = scenario
            .variants()
            .into_iter()
            .map(|variant| Schedule::new(&scenario, variant, 7, ONCE))
            .collect();
        let [on, off] = &schedules[..] else { panic!("{schedules:?}") };
        assert_eq!((on.hedges(), off.hedges()), (true, false));
        assert_eq!((&on.faults, &on.workload, on.end), (&off.faults, &off.workload, off.end));
        assert_eq!(on.workload.deadline, Duration::from_secs(20));
        assert_ne!(on.digest(), off.digest(), "each has a database of its own");
        let default = Schedule::new(&scenario, WriteRegions::One, 7, ONCE);
        assert_eq!((default.hedges(), &default.workload), (true, &scenario.workload));
    }

    #[test]
    fn a_longer_run_repeats_the_scenario_with_other_random_choices() {
        let options = RunOptions { time_scale: 0.5, duration: Some(Duration::from_secs(60)) };
        let schedule = Schedule::new(&scenario(), WriteRegions::One, 1, options);
        assert!(schedule.end >= Duration::from_secs(60) && schedule.end < Duration::from_secs(64));
        assert!(schedule.faults.len() >= 30, "{}", schedule.faults.len());
        let mut lasting: Vec<Duration> =
            schedule.faults.iter().map(|fault| fault.ends - fault.begins).collect();
        lasting.sort_unstable();
        lasting.dedup();
        assert!(lasting.len() > 10, "{lasting:?}");
    }
}
