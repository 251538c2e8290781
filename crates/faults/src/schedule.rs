//! When a rule applies: from which time, for how long, to which of the requests it matches, and how often.

use std::time::Duration;

use clock::HumanDuration;

/// When a rule applies. The default: from the moment it is added until it is removed, to every request.
///
/// In JSON and TOML the fields stand in the rule itself: `after`, `for`, `skip`, `everyNth` and `count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schedule {
    /// The time between adding the rule and its start (`after`).
    pub start_after: Option<HumanDuration>,
    /// The time between the start of the rule and its end (`for`).
    pub duration: Option<HumanDuration>,
    /// How many matching requests pass unharmed at first (`skip`).
    pub skip: Option<u64>,
    /// Applies to the n-th matching request, the 2n-th and so on (`everyNth`).
    pub every_nth: Option<u64>,
    /// The rule ends after this many hits (`count`).
    pub hits_max: Option<u64>,
}

/// Where a rule stands in its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedulePhase {
    /// The rule was added and has not started.
    Waiting {
        /// The time until the rule starts.
        starts_in: Duration,
    },
    /// The rule applies to requests.
    Active {
        /// The time until the rule ends by itself; none if it lasts until it is removed.
        ends_in: Option<Duration>,
    },
    /// The rule is over.
    Ended,
}

impl SchedulePhase {
    /// The time until the phase changes by itself.
    pub(crate) fn changes_in(self) -> Option<Duration> {
        match self {
            SchedulePhase::Waiting { starts_in } => Some(starts_in),
            SchedulePhase::Active { ends_in } => ends_in,
            SchedulePhase::Ended => None,
        }
    }
}

impl Schedule {
    /// The phase of a rule that was added `age` ago and has hit `hits` requests.
    pub(crate) fn phase(&self, age: Duration, hits: u64) -> SchedulePhase {
        let start = self.start_after.map_or(Duration::ZERO, |duration| duration.0);
        match (age.checked_sub(start), self.duration) {
            (None, _) => SchedulePhase::Waiting { starts_in: start - age },
            (Some(_), _) if self.hits_max.is_some_and(|max| hits >= max) => SchedulePhase::Ended,
            (Some(_), None) => SchedulePhase::Active { ends_in: None },
            (Some(running), Some(duration)) if running < duration.0 => {
                SchedulePhase::Active { ends_in: Some(duration.0 - running) }
            }
            (Some(_), Some(_)) => SchedulePhase::Ended,
        }
    }

    /// Whether the rule applies to the n-th request that it matches, counted from 0.
    pub(crate) fn selects(&self, number: u64) -> bool {
        match number.checked_sub(self.skip.unwrap_or(0)) {
            None => false,
            Some(number) => self.every_nth.is_none_or(|nth| (number + 1).is_multiple_of(nth)),
        }
    }

    /// Whether the rule applies to some of its requests only, by their number.
    pub(crate) fn counts_requests(&self) -> bool {
        self.skip.is_some() || self.every_nth.is_some() || self.hits_max.is_some()
    }

    /// Whether the rule applies to every request it matches, now and until it is removed.
    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Schedule::default()
    }

    /// What is wrong with the schedule, if anything.
    pub(crate) fn problem(&self) -> Option<String> {
        for (name, number) in [("skip", self.skip), ("everyNth", self.every_nth), ("count", self.hits_max)] {
            if number == Some(0) {
                return Some(format!("'{name}' of 0 has no meaning; leave it out, or give at least 1"));
            }
        }
        let never = self.duration.is_some_and(|duration| duration.0.is_zero());
        never.then(|| "a rule that lasts no time does nothing; leave 'for' out to let it last".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_rule_waits_applies_and_ends() {
        let schedule = Schedule {
            start_after: Some(HumanDuration(seconds(5))),
            duration: Some(HumanDuration(seconds(30))),
            hits_max: Some(2),
            ..Schedule::default()
        };
        assert_eq!(schedule.phase(seconds(0), 0), SchedulePhase::Waiting { starts_in: seconds(5) });
        assert_eq!(schedule.phase(seconds(5), 0), SchedulePhase::Active { ends_in: Some(seconds(30)) });
        assert_eq!(schedule.phase(seconds(34), 1), SchedulePhase::Active { ends_in: Some(seconds(1)) });
        assert_eq!(schedule.phase(seconds(34), 2), SchedulePhase::Ended);
        assert_eq!(schedule.phase(seconds(35), 0), SchedulePhase::Ended);
        assert_eq!(Schedule::default().phase(seconds(9_999), 99), SchedulePhase::Active { ends_in: None });
    }

    #[test]
    fn the_first_requests_are_skipped_and_of_the_others_every_nth_is_selected() {
        let selected = |schedule: Schedule| (0..8).filter(|number| schedule.selects(*number)).collect();
        let cases: [(Schedule, Vec<u64>); 4] = [
            (Schedule::default(), vec![0, 1, 2, 3, 4, 5, 6, 7]),
            (Schedule { skip: Some(6), ..Schedule::default() }, vec![6, 7]),
            (Schedule { every_nth: Some(3), ..Schedule::default() }, vec![2, 5]),
            (Schedule { skip: Some(2), every_nth: Some(3), ..Schedule::default() }, vec![4, 7]),
        ];
        for (schedule, expected) in cases {
            let found: Vec<u64> = selected(schedule);
            assert_eq!(found, expected, "{schedule:?}");
        }
    }
}
