//! What an evaluation decides: the next step, and the changes that go with it.

use std::time::{Duration, Instant};

use super::retry_state::RetryState;
use crate::operation::ContainerName;
use crate::routing::{PartitionFailure, PartitionRegion, Region, Unavailable};

/// What follows an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The response of the attempt is the response of the operation.
    Finish,
    /// The operation ends with an error.
    GiveUp(GiveUpReason),
    /// Another attempt is made.
    Retry {
        /// How long to wait before it; zero for none.
        delay: Duration,
        /// What has been tried, this attempt included.
        state: RetryState,
    },
}

/// Which kind of error the caller gets when an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GiveUpReason {
    /// The error of the service's last response.
    ServiceError,
    /// No region could be reached, and nothing was changed.
    Unreachable,
    /// It is not known whether the write was carried out.
    Undecided,
    /// The deadline passed, and nothing was changed.
    Deadline,
    /// The credential gave no token.
    Credential,
    /// The response cannot be read.
    InvalidResponse,
    /// The request cannot be sent as it is.
    InvalidRequest,
}

/// A change of shared state, carried out by the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No requests of this kind go to the region for a while.
    MarkUnavailable(Region, Unavailable),
    /// The account's properties are read again, if that is not too often, and the next attempt waits for them.
    RefreshAccount,
    /// A failed read or write is counted for the partition in that region.
    PartitionFailed(PartitionRegion, PartitionFailure),
    /// The region gave no response to an attempt; once it has been silent for long enough, it counts as unavailable.
    RegionSilent(Region, NoResponse),
    /// The region does not take this partition's writes: its breaker opens.
    PartitionTripped(PartitionRegion),
    /// The partition ranges of the container are read again.
    RefreshPartitions(ContainerName),
    /// The container is removed from the cache, its session tokens included.
    ForgetContainer(ContainerName),
}

/// An attempt that got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoResponse {
    /// When the attempt started.
    pub(crate) started: Instant,
    /// When the region last responded to anything.
    pub(crate) last_response: Option<Instant>,
}

/// The decision about an attempt: the next step, the reason, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// What follows the attempt.
    pub(crate) step: Step,
    /// The reason as a short text, for diagnostics.
    pub(crate) reason: &'static str,
    /// What to change; empty for nearly every attempt.
    pub(crate) effects: Vec<Effect>,
}

impl Decision {
    /// The response is the operation's.
    pub(crate) fn finish() -> Decision {
        Decision { step: Step::Finish, reason: "done", effects: Vec::new() }
    }

    /// The operation ends with an error.
    pub(crate) fn give_up(error: GiveUpReason, reason: &'static str) -> Decision {
        Decision { step: Step::GiveUp(error), reason, effects: Vec::new() }
    }

    /// Another attempt is made, after `delay`.
    pub(crate) fn retry(delay: Duration, state: RetryState, reason: &'static str) -> Decision {
        Decision { step: Step::Retry { delay, state }, reason, effects: Vec::new() }
    }

    /// Adds an effect to the decision.
    #[must_use]
    pub(crate) fn with(mut self, effect: Effect) -> Decision {
        self.effects.push(effect);
        self
    }

    /// Adds an effect to the decision, if there is one.
    #[must_use]
    pub(crate) fn with_some(mut self, effect: Option<Effect>) -> Decision {
        self.effects.extend(effect);
        self
    }
}
