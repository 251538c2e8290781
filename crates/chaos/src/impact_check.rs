//! Compares the impact of a fault with what its scenario expects. Pure.

use std::time::Duration;

use emulator::clock::HumanDuration;

use crate::guarantee::{Guarantee, Violation};
use crate::impact::{FaultImpact, Phases};
use crate::schedule::ScheduledFault;

/// The expectations of a fault that were not met.
pub(crate) fn unmet_expectations(scheduled: &ScheduledFault, impact: &FaultImpact) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut violated = |guarantee, text: String| {
        violations.push(Violation::new(guarantee, format!("{}: {text}", impact.fault)));
    };
    let expect = &scheduled.expect;
    for (what, phases, within) in
        [("reads", &impact.reads, expect.reads_within), ("writes", &impact.writes, expect.writes_within)]
    {
        if let Some(text) = within.and_then(|within| slow_recovery(what, phases, within)) {
            violated(Guarantee::Recovers, text);
        }
    }
    for (what, phases, within) in
        [("read", &impact.reads, expect.left_within), ("write", &impact.writes, expect.writes_left_within)]
    {
        if let Some(text) = within.and_then(|within| late_use(what, phases, within)) {
            violated(Guarantee::RegionIsLeft, text);
        }
    }
    if let Some(text) = slow_median(scheduled, &impact.reads) {
        violated(Guarantee::RegionIsLeft, text);
    }
    if let Some(within) = expect.found_within {
        // Whether the region would have been found is unknown if the next fault began too early.
        let is_known = impact.observed >= within.0;
        match impact.reads.found {
            Some(found) if found <= within.0 => {}
            Some(found) => violated(
                Guarantee::RegionIsFound,
                format!("found again {} after its end, expected {within}", shown(found)),
            ),
            None if is_known => violated(
                Guarantee::RegionIsFound,
                format!("not found again in {} after its end, expected {within}", shown(impact.observed)),
            ),
            None => {}
        }
    }
    if expect.reads_stay && impact.reads.diverted > 0 {
        let (diverted, all) = (impact.reads.diverted, impact.reads.during.operations);
        violated(Guarantee::ReadsStay, format!("{diverted} of {all} reads were sent elsewhere first"));
    }
    let undecided = impact.writes.during.failures.get("undecided").copied().unwrap_or(0);
    if let Some(max) = expect.undecided_max
        && undecided > max
    {
        violated(
            Guarantee::FewUndecided,
            format!("{undecided} writes are undecided, expected at most {max}"),
        );
    }
    violations
}

/// What is wrong with the recovery of operations, if anything.
fn slow_recovery(what: &str, phases: &Phases, within: HumanDuration) -> Option<String> {
    let took = match phases.recovery {
        Some(took) if took <= within.0 => return None,
        Some(took) => format!("{took:?}"),
        None => "longer than the run".to_owned(),
    };
    Some(format!("{what} took {took} to recover, expected {within}"))
}

/// How operations used the region of the fault later than they should, if they did.
fn late_use(what: &str, phases: &Phases, within: HumanDuration) -> Option<String> {
    let began_later = phases.settled.as_ref().map_or(0, |settled| settled.operations);
    match phases.left {
        Some(left) if left > within.0 => Some(format!(
            "a {what} that began after {} still used the region, expected {within}",
            shown(left)
        )),
        // Without an operation nothing was shown: perhaps all workers wait for the region.
        _ if began_later == 0 => Some(format!("no {what} began later than {within} after its beginning")),
        _ => None,
    }
}

/// Why the median of the reads that left the region is too long, if it is.
fn slow_median(scheduled: &ScheduledFault, reads: &Phases) -> Option<String> {
    let within = scheduled.expect.left_within?;
    let (before, settled) = (reads.before.p50?, reads.settled.as_ref()?.p50?);
    let max = scheduled.expect.median_max(before);
    (settled > max).then(|| {
        format!(
            "the median read takes {} from {within} on, and took {} before; expected at most {}",
            shown(settled),
            shown(before),
            shown(max)
        )
    })
}

/// A duration to the microsecond.
fn shown(duration: Duration) -> HumanDuration {
    HumanDuration(Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::ActiveInterval;
    use crate::region_set::RegionsUsed;
    use crate::sample::{OperationClass, OperationSample};
    use crate::scenario::{Scenario, WriteRegions};
    use crate::schedule::{RunOptions, Schedule};

    const MS: Duration = Duration::from_millis(1);
    const WEST: usize = 0;
    const EAST: usize = 1;

    /// The violations of a fault in West US, which begins after 1 s and ends after 9 s.
    fn violations(expect: &str, samples: &[OperationSample], lasted: Duration) -> Vec<(Guarantee, String)> {
        let text = format!(
            "[[fault]]\nkind = 'down'\nregion = 'West US'\nat = '1s'\nfor = '8s'\nexpect = {{ {expect} }}"
        );
        let scenario = Scenario::read("x", &text).expect("valid");
        let schedule = Schedule::new(&scenario, WriteRegions::One, 1, RunOptions::default());
        let of = |class| samples.iter().filter(|sample| sample.class == class).copied().collect::<Vec<_>>();
        let (reads, writes) = (of(OperationClass::Read), of(OperationClass::Write));
        let interval = [ActiveInterval { began: MS * 1_000, ended: MS * 9_000 }];
        let impact = FaultImpact::new(&schedule, 0, &interval, lasted, (&reads, &writes));
        unmet_expectations(&schedule.faults[0], &impact)
            .into_iter()
            .map(|violation| (violation.guarantee, violation.example))
            .collect()
    }

    fn read(began: u32, took: u32, regions: &[usize]) -> OperationSample {
        let mut sample = OperationSample::new(OperationClass::Read, MS * began, MS * took, None);
        sample.regions = RegionsUsed::of(regions);
        sample
    }

    fn undecided(began: u32) -> OperationSample {
        OperationSample::new(OperationClass::Write, MS * began, MS * 10, Some("undecided"))
    }

    /// A name, the expectation, the operations, how long the run lasted, and the violation.
    type Case =
        (&'static str, &'static str, Vec<OperationSample>, Duration, Option<(Guarantee, &'static str)>);

    #[test]
    fn expectations_about_regions_are_met_or_named() {
        let before = read(500, 4, &[WEST]);
        let last = read(3_900, 200, &[WEST, EAST]);
        let later = read(4_100, 5, &[EAST]);
        let back = read(12_000, 5, &[WEST]);
        let (left, found) = ("left-within = '3s'", "found-within = '30s'");
        let end = MS * 40_000;
        let table: &[Case] = &[
            ("left in time", left, vec![before, last, later], end, None),
            (
                "a late read there",
                left,
                vec![before, later, read(4_100, 4, &[EAST, WEST])],
                end,
                Some((Guarantee::RegionIsLeft, "began after 3s 100ms still used")),
            ),
            (
                "every worker waits",
                left,
                vec![before, last],
                end,
                Some((Guarantee::RegionIsLeft, "no read began later than 3s")),
            ),
            (
                "left, but slow",
                left,
                vec![before, last, read(4_100, 14, &[EAST])],
                end,
                Some((Guarantee::RegionIsLeft, "the median read takes 14ms")),
            ),
            (
                "slow as the scenario allows",
                "left-within = '3s', median-tolerance = '20ms'",
                vec![before, last, read(4_100, 14, &[EAST])],
                end,
                None,
            ),
            (
                "writes need not leave",
                left,
                vec![before, later, OperationSample { class: OperationClass::Write, ..back }],
                end,
                None,
            ),
            (
                "no write left",
                "writes-left-within = '3s'",
                vec![OperationSample { class: OperationClass::Write, ..last }],
                end,
                Some((Guarantee::RegionIsLeft, "no write began later")),
            ),
            ("found in time", found, vec![before, later, back], end, None),
            (
                "found too late",
                found,
                vec![read(39_100, 5, &[WEST])],
                MS * 41_000,
                Some((Guarantee::RegionIsFound, "found again 30s 105ms after")),
            ),
            (
                "not found",
                found,
                vec![read(9_100, 5, &[EAST, WEST]), read(9_200, 5, &[EAST])],
                end,
                Some((Guarantee::RegionIsFound, "not found again")),
            ),
            ("nobody knows", found, vec![later], MS * 20_000, None),
            ("reads stay", "reads-stay = true", vec![read(2_000, 5, &[WEST, EAST]), back], end, None),
            (
                "a read went elsewhere",
                "reads-stay = true",
                vec![read(2_000, 5, &[EAST, WEST])],
                end,
                Some((Guarantee::ReadsStay, "1 of 1 reads")),
            ),
            ("as many as allowed", "undecided-max = 1", vec![undecided(2_000), undecided(9_100)], end, None),
            (
                "too many",
                "undecided-max = 1",
                vec![undecided(2_000), undecided(2_100)],
                end,
                Some((Guarantee::FewUndecided, "2 writes are undecided")),
            ),
        ];
        for (name, expect, samples, lasted, expected) in table {
            let found = violations(expect, samples, *lasted);
            match (found.as_slice(), expected) {
                ([], None) => {}
                ([(guarantee, example)], Some((expected, part))) => {
                    assert_eq!(guarantee, expected, "{name}");
                    assert!(
                        example.starts_with("down West US: ") && example.contains(part),
                        "{name}: {example}"
                    );
                }
                _ => panic!("{name}: {found:?}"),
            }
        }
    }
}
