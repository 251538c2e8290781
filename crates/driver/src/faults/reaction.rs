//! What happens to a request that a rule hits.

use std::time::Duration;

use protocol::status::{Status, SubStatus};

/// What happens: first a delay, then an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaction {
    /// Before anything else.
    pub delay: Duration,
    /// Then.
    pub outcome: Outcome,
}

/// What comes of the request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It goes on to the service, late.
    PassOn,
    /// It is answered without the service.
    Answer {
        /// The status.
        status: Status,
        /// The sub-status.
        sub_status: SubStatus,
        /// How long the service would ask to wait.
        retry_after: Option<Duration>,
    },
    /// The connection fails before anything left.
    ConnectionErrorBeforeSending,
    /// The service gets it and answers, and the answer is lost.
    ConnectionErrorAfterSending,
    /// Nothing comes back, up to the deadline.
    Timeout,
}

impl Reaction {
    /// An answer with this status.
    pub fn answer(status: u16) -> Reaction {
        let (sub_status, retry_after) = (SubStatus::NONE, None);
        Reaction::from(Outcome::Answer { status: Status(status), sub_status, retry_after })
    }

    /// An answer with this status and sub-status.
    pub fn answer_with(status: u16, sub_status: SubStatus) -> Reaction {
        Reaction::from(Outcome::Answer { status: Status(status), sub_status, retry_after: None })
    }

    /// 429, with how long to wait.
    pub fn throttle(retry_after: Duration) -> Reaction {
        Reaction::from(Outcome::Answer {
            status: Status::TOO_MANY_REQUESTS,
            sub_status: SubStatus::REQUEST_RATE_TOO_LARGE,
            retry_after: Some(retry_after),
        })
    }

    /// The request reaches the service, late.
    pub fn delay(delay: Duration) -> Reaction {
        Reaction { delay, outcome: Outcome::PassOn }
    }

    /// The same, later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Reaction {
        Reaction { delay, ..self }
    }
}

impl From<Outcome> for Reaction {
    fn from(outcome: Outcome) -> Reaction {
        Reaction { delay: Duration::ZERO, outcome }
    }
}
