//! Everything an evaluation may answer: what to do next, and what to change.

use std::time::Duration;

use super::attempts::Attempts;
use crate::operation::ContainerName;
use crate::routing::{PartitionRegion, Region, Unavailable};

/// What follows an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The answer is the operation's.
    Finish,
    /// Nothing more is tried.
    GiveUp(Why),
    /// Another attempt, after a while.
    Again {
        /// How long to wait; zero for at once.
        delay: Duration,
        /// What has been tried, this attempt included.
        attempts: Attempts,
    },
}

/// In which terms the caller hears of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// In the service's own: the answer says it all.
    Answer,
    /// No region could be reached, and nothing was changed.
    Unreachable,
    /// Nobody knows whether the write happened.
    Undecided,
    /// The time is up, and nothing was changed.
    Deadline,
    /// The credential gave no token.
    Credential,
    /// What came back cannot be an answer of the service.
    Nonsense,
}

/// A change of what drivers know, carried out by the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The region is not to be asked for a while.
    MarkUnavailable(Region, Unavailable),
    /// The account is asked again, if that is not too often, and the next attempt waits for the answer.
    RefreshAccount,
    /// A read or write speaks against the partition in that region.
    PartitionFailed(PartitionRegion, Access),
    /// The region does not take this partition's writes.
    PartitionTripped(PartitionRegion),
    /// The partitions of the container are listed again.
    RefreshPartitions(ContainerName),
    /// What is known of the container, its sessions included, is forgotten.
    ForgetContainer(ContainerName),
}

/// What was tried on a partition; counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// What an attempt means: the next step, why, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// What follows.
    pub(crate) step: Step,
    /// Why, for diagnostics.
    pub(crate) reason: &'static str,
    /// What to change; empty nearly always.
    pub(crate) effects: Vec<Effect>,
}

impl Verdict {
    /// Nothing more is tried.
    pub(crate) fn give_up(why: Why, reason: &'static str) -> Verdict {
        Verdict { step: Step::GiveUp(why), reason, effects: Vec::new() }
    }

    /// Another attempt.
    pub(crate) fn again(delay: Duration, attempts: Attempts, reason: &'static str) -> Verdict {
        Verdict { step: Step::Again { delay, attempts }, reason, effects: Vec::new() }
    }

    /// The same, and this is changed.
    #[must_use]
    pub(crate) fn with(mut self, effect: Effect) -> Verdict {
        self.effects.push(effect);
        self
    }

    /// The same, and this is changed if it is anything.
    #[must_use]
    pub(crate) fn with_some(mut self, effect: Option<Effect>) -> Verdict {
        self.effects.extend(effect);
        self
    }
}
