//! One split or merge: its phases and what moves it from one to the next. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::OperationError;
use crate::account::partitions::PartitionError;
use clock::HumanDuration;

/// How long a manual operation is prepared before it is given up.
const PREPARING_MAX: Duration = Duration::from_secs(600);
/// How long a manual operation holds its ranges, unless it says otherwise.
const HOLD_DEFAULT: Duration = Duration::from_secs(60);

/// What is to happen to which ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationTarget {
    pub database: String,
    pub container: String,
    pub change: PartitionChange,
}

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionChange {
    /// Into two, at an effective partition key or in the middle.
    Split { range: u32, at: Option<String> },
    /// Into one.
    Merge { ranges: Vec<u32> },
}

/// Who carries it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProgressionMode {
    /// It does so itself.
    #[default]
    Automatic,
    /// Whoever began it.
    Manual,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Phase {
    /// Nobody notices anything yet.
    Preparing,
    /// Its ranges are held.
    Swapping,
    /// The new ranges serve.
    Succeeded,
    /// The old ranges serve, and will.
    Failed,
}

/// A split or merge.
#[derive(Clone, Debug)]
pub struct Operation {
    pub id: u64,
    pub target: OperationTarget,
    pub phase: Phase,
    /// The ranges that came of it.
    pub new_ranges: Vec<u32>,
    /// Why it failed.
    pub error: Option<String>,
    /// The same as it was said.
    pub(super) refused: Option<PartitionError>,
    /// Whether the change itself is under way, so that it is too late for anything else.
    pub(super) finishing: bool,
    /// When its phase ends by itself, by uptime.
    pub(super) ends_at: Duration,
    progression: ProgressionMode,
    hold: Duration,
}

impl OperationTarget {
    /// The ranges that end with it.
    pub fn ranges(&self) -> Vec<u32> {
        match &self.change {
            PartitionChange::Split { range, .. } => vec![*range],
            PartitionChange::Merge { ranges } => ranges.clone(),
        }
    }

    /// A range that both are about.
    pub(super) fn shared_range(&self, other: &OperationTarget) -> Option<u32> {
        if (&self.database, &self.container) != (&other.database, &other.container) {
            return None;
        }
        let others = other.ranges();
        self.ranges().into_iter().find(|range| others.contains(range))
    }
}

impl Operation {
    pub(super) fn new(
        subject: OperationTarget,
        progression: ProgressionMode,
        hold: Option<Duration>,
        now: Duration,
    ) -> Operation {
        let (phase, default, ends_at) = match progression {
            // It is held from the start, if at all, and ends when the change has been made.
            ProgressionMode::Automatic => (Phase::Swapping, Duration::ZERO, Duration::MAX),
            ProgressionMode::Manual => (Phase::Preparing, HOLD_DEFAULT, now.saturating_add(PREPARING_MAX)),
        };
        let hold = hold.unwrap_or(default);
        Operation {
            id: 0,
            target: subject,
            phase,
            new_ranges: Vec::new(),
            error: None,
            refused: None,
            finishing: false,
            ends_at,
            progression,
            hold,
        }
    }

    /// Whether nothing more will happen.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// How long its ranges are held before it carries itself on; none if somebody else does.
    pub(super) fn hold_before_change(&self) -> Option<Duration> {
        (self.progression == ProgressionMode::Automatic).then_some(self.hold)
    }

    /// Gives it up if nobody carried it on in time.
    pub(super) fn expire(&mut self, now: Duration) {
        if !self.is_over() && !self.finishing && now >= self.ends_at {
            let waited = match self.phase {
                Phase::Preparing => PREPARING_MAX,
                _ => self.hold,
            };
            self.fail(format!(
                "nobody advanced it for {}; its ranges serve as before",
                HumanDuration(waited)
            ));
        }
    }

    /// The next phase, or the end, which the caller has to bring about.
    pub(super) fn advance(&mut self, now: Duration) -> Result<(), OperationError> {
        self.check_changeable()?;
        if self.progression == ProgressionMode::Automatic {
            return Err(OperationError::Automatic(self.id));
        }
        match self.phase {
            Phase::Preparing => {
                self.phase = Phase::Swapping;
                self.ends_at = now.saturating_add(self.hold);
            }
            _ => self.finishing = true,
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self) -> Result<(), OperationError> {
        self.check_changeable()?;
        self.fail("it was cancelled".to_owned());
        Ok(())
    }

    pub(super) fn finished(&mut self, made: Result<Vec<u32>, PartitionError>) {
        match made {
            Ok(made) => {
                self.phase = Phase::Succeeded;
                self.new_ranges = made;
            }
            Err(error) => {
                self.fail(error.to_string());
                self.refused = Some(error);
            }
        }
    }

    fn check_changeable(&self) -> Result<(), OperationError> {
        if self.is_over() || self.finishing { Err(OperationError::Finished(self.id)) } else { Ok(()) }
    }

    fn fail(&mut self, error: String) {
        self.phase = Phase::Failed;
        self.error = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn operation(progression: ProgressionMode, hold: Option<Duration>) -> Operation {
        let change = PartitionChange::Split { range: 0, at: None };
        let subject = OperationTarget { database: "d".to_owned(), container: "c".to_owned(), change };
        Operation::new(subject, progression, hold, SECOND)
    }

    #[test]
    fn a_manual_one_goes_from_phase_to_phase_when_it_is_told() {
        let mut manual = operation(ProgressionMode::Manual, None);
        assert_eq!((manual.phase, manual.hold_before_change()), (Phase::Preparing, None));
        manual.advance(SECOND).unwrap();
        assert_eq!((manual.phase, manual.finishing), (Phase::Swapping, false));
        manual.advance(SECOND).unwrap();
        assert_eq!((manual.phase, manual.finishing), (Phase::Swapping, true));
        assert_eq!(manual.advance(SECOND), Err(OperationError::Finished(0)));
        assert_eq!(manual.cancel(), Err(OperationError::Finished(0)));
        manual.finished(Ok(vec![1, 2]));
        assert_eq!((manual.phase, manual.new_ranges), (Phase::Succeeded, vec![1, 2]));
    }

    #[test]
    fn one_that_nobody_carries_on_is_given_up() {
        let cases = [
            (0, None, Duration::from_secs(601)),
            (1, None, Duration::from_secs(61)),
            (1, Some(SECOND * 5), Duration::from_secs(6)),
        ];
        for (advances, hold, ends) in cases {
            let mut manual = operation(ProgressionMode::Manual, hold);
            (0..advances).for_each(|_| manual.advance(SECOND).unwrap());
            manual.expire(ends - Duration::from_millis(1));
            assert!(!manual.is_over(), "{advances} {hold:?}");
            manual.expire(ends);
            assert_eq!(manual.phase, Phase::Failed, "{advances} {hold:?}");
        }
    }

    #[test]
    fn an_automatic_one_needs_nobody_and_can_be_called_off() {
        let mut automatic = operation(ProgressionMode::Automatic, Some(SECOND));
        assert_eq!(automatic.hold_before_change(), Some(SECOND));
        assert_eq!(automatic.advance(SECOND), Err(OperationError::Automatic(0)));
        automatic.cancel().unwrap();
        assert_eq!(automatic.phase, Phase::Failed);
        assert_eq!(operation(ProgressionMode::Automatic, None).hold_before_change(), Some(Duration::ZERO));
    }

    #[test]
    fn two_are_about_the_same_if_they_share_a_range_of_a_container() {
        let subject = |container: &str, change| OperationTarget {
            database: "d".to_owned(),
            container: container.to_owned(),
            change,
        };
        let merge = |ranges: &[u32]| PartitionChange::Merge { ranges: ranges.to_vec() };
        for (other, shared) in [
            (subject("c", PartitionChange::Split { range: 2, at: None }), Some(2)),
            (subject("c", merge(&[2, 3])), Some(2)),
            (subject("c", merge(&[3, 4])), None),
            (subject("other", merge(&[1, 2])), None),
        ] {
            assert_eq!(subject("c", merge(&[1, 2])).shared_range(&other), shared, "{other:?}");
        }
    }
}
