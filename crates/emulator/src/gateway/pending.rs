//! A request between its arrival and its answer.
//!
//! Who waits may not live to see it: a client that leaves, or a connection that is cut, takes the
//! request's future along. What is known by then is written down all the same.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use smol_str::SmolStr;

use super::{Answer, Gateway, UNKNOWN};
use crate::sight::{Arrival, Seen, Text, UNANSWERED};

/// A request that is not answered yet. Dropped as such, it is written down as one that never was.
pub(super) struct Pending {
    gateway: Arc<Gateway>,
    /// None once it is answered.
    arrival: Option<Arrival>,
    /// What is known of the answer, if it has to wait.
    seen: Option<Box<Seen>>,
}

impl Pending {
    pub(super) fn new(gateway: &Arc<Gateway>, arrival: Arrival) -> Pending {
        Pending { gateway: Arc::clone(gateway), arrival: Some(arrival), seen: None }
    }

    /// It has to wait, and this is what it comes to if it lives to see it.
    pub(super) fn waits(&mut self, seen: &Seen) {
        let mut seen = Box::new(seen.clone());
        if let Some(before) = self.seen.take().filter(|_| seen.rules.is_empty()) {
            seen.rules = before.rules;
        }
        self.seen = Some(seen);
    }

    /// It has to wait before anything is done about it.
    pub(super) fn waits_for(&mut self, operation: &'static str, rules: &[SmolStr]) {
        self.seen = Some(Box::new(Seen { rules: rules.to_vec(), ..nothing(operation) }));
    }

    /// It is answered, with this.
    pub(super) fn answered(mut self, answer: Answer) -> Response<Bytes> {
        if let Some(arrival) = self.arrival.take() {
            self.gateway.account.sight.answered(self.gateway.region, arrival, answer.seen, answer.ready_at);
        }
        answer.response
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(arrival) = self.arrival.take() else { return };
        let seen = self.seen.take().map_or_else(|| nothing(UNKNOWN), |seen| *seen);
        let seen = Seen { status: UNANSWERED, sub_status: 0, ..seen };
        self.gateway.account.sight.answered(self.gateway.region, arrival, seen, self.gateway.clock.uptime());
    }
}

/// What is seen of an operation that nothing was done about.
fn nothing(operation: &'static str) -> Seen {
    Seen {
        operation,
        status: UNANSWERED,
        sub_status: 0,
        charge: 0.0,
        activity: Text::new(""),
        answerer: None,
        rules: Vec::new(),
    }
}
