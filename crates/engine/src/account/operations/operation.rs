//! One split or merge: its phases and the transitions between them. Pure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::OperationError;
use crate::account::partitions::PartitionError;
use clock::HumanDuration;

/// How long a manual operation may stay in preparation before it fails.
const PREPARING_MAX: Duration = Duration::from_secs(600);
/// How long a manual operation marks its ranges as splitting, by default.
const HOLD_DEFAULT: Duration = Duration::from_secs(60);

/// The container and the ranges that an operation changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationTarget {
    /// The name of the database.
    pub database: String,
    /// The name of the container.
    pub container: String,
    /// What happens to its ranges.
    pub change: PartitionChange,
}

/// The change that an operation makes to ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionChange {
    /// Split one range in two, at an effective partition key or in the middle.
    Split {
        /// The id of the range.
        range: u32,
        /// The split point in hexadecimal; the middle of the range without it.
        at: Option<String>,
    },
    /// Merge neighbouring ranges into one.
    Merge {
        /// The ids of the ranges.
        ranges: Vec<u32>,
    },
}

/// What makes an operation advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProgressionMode {
    /// It advances by itself.
    #[default]
    Automatic,
    /// The client advances it, phase by phase.
    Manual,
}

/// The phase of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Phase {
    /// Its ranges serve as before.
    Preparing,
    /// Requests to its ranges get 410/1007, if it is held.
    Swapping,
    /// The new ranges serve.
    Succeeded,
    /// It has failed, and the old ranges continue serving.
    Failed,
}

/// A split or merge, as it is now.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The id of the operation.
    pub id: u64,
    /// The container and ranges it changes.
    pub target: OperationTarget,
    /// The phase it is in.
    pub phase: Phase,
    /// The ids of the ranges it made.
    pub new_ranges: Vec<u32>,
    /// The message of its failure.
    pub error: Option<String>,
    /// The error behind that message.
    pub(super) failure: Option<PartitionError>,
    /// Whether the split or merge itself is under way, so that it can no longer be cancelled.
    pub(super) finishing: bool,
    /// The uptime at which its phase ends by itself.
    pub(super) ends_at: Duration,
    progression: ProgressionMode,
    hold: Duration,
}

impl OperationTarget {
    /// The ids of the ranges it replaces.
    pub fn ranges(&self) -> Vec<u32> {
        match &self.change {
            PartitionChange::Split { range, .. } => vec![*range],
            PartitionChange::Merge { ranges } => ranges.clone(),
        }
    }

    /// A range that both operations replace.
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
        target: OperationTarget,
        progression: ProgressionMode,
        hold: Option<Duration>,
        now: Duration,
    ) -> Operation {
        let (phase, default, ends_at) = match progression {
            // Its hold begins at once, and it ends when the change has been made.
            ProgressionMode::Automatic => (Phase::Swapping, Duration::ZERO, Duration::MAX),
            ProgressionMode::Manual => (Phase::Preparing, HOLD_DEFAULT, now.saturating_add(PREPARING_MAX)),
        };
        let hold = hold.unwrap_or(default);
        Operation {
            id: 0,
            target,
            phase,
            new_ranges: Vec::new(),
            error: None,
            failure: None,
            finishing: false,
            ends_at,
            progression,
            hold,
        }
    }

    /// Whether it has succeeded or failed.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// How long an automatic operation holds its ranges before the change; none for a manual one.
    pub(super) fn hold_before_change(&self) -> Option<Duration> {
        (self.progression == ProgressionMode::Automatic).then_some(self.hold)
    }

    /// Whether its ranges were held before the change.
    pub(super) fn is_held(&self) -> bool {
        self.progression == ProgressionMode::Manual || !self.hold.is_zero()
    }

    /// Fails it if it was not advanced in time.
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

    /// Moves to the next phase, or to the end, which the caller has to bring about.
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
                self.failure = Some(error);
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
        let target = OperationTarget { database: "d".to_owned(), container: "c".to_owned(), change };
        Operation::new(target, progression, hold, SECOND)
    }

    #[test]
    fn a_manual_operation_advances_phase_by_phase() {
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
    fn an_operation_that_is_not_advanced_expires() {
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
    fn an_automatic_operation_cannot_be_advanced_but_cancelled() {
        let mut automatic = operation(ProgressionMode::Automatic, Some(SECOND));
        assert_eq!(automatic.hold_before_change(), Some(SECOND));
        assert_eq!(automatic.advance(SECOND), Err(OperationError::Automatic(0)));
        automatic.cancel().unwrap();
        assert_eq!(automatic.phase, Phase::Failed);
        assert_eq!(operation(ProgressionMode::Automatic, None).hold_before_change(), Some(Duration::ZERO));
    }

    #[test]
    fn operations_overlap_if_they_share_a_range_of_a_container() {
        let target = |container: &str, change| OperationTarget {
            database: "d".to_owned(),
            container: container.to_owned(),
            change,
        };
        let merge = |ranges: &[u32]| PartitionChange::Merge { ranges: ranges.to_vec() };
        for (other, shared) in [
            (target("c", PartitionChange::Split { range: 2, at: None }), Some(2)),
            (target("c", merge(&[2, 3])), Some(2)),
            (target("c", merge(&[3, 4])), None),
            (target("other", merge(&[1, 2])), None),
        ] {
            assert_eq!(target("c", merge(&[1, 2])).shared_range(&other), shared, "{other:?}");
        }
    }
}
