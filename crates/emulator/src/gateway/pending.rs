//! A request between its arrival and its answer.
//!
//! Who waits may not live to see it: a client that leaves, or a connection that is cut, takes the
//! request's future along. What is known by then is written down all the same.

use std::time::Duration;

use http::HeaderValue;
use smol_str::SmolStr;

use super::{Gateway, UNKNOWN};
use crate::sight::{Arrival, Seen, UNANSWERED};

/// A request that is not answered yet. Dropped as such, it is written down as one that never was.
pub(super) struct Pending<'g> {
    gateway: &'g Gateway,
    /// None once it is answered.
    arrival: Option<Arrival>,
    /// What is known of the answer, if it has to wait.
    seen: Option<Box<Seen>>,
}

impl<'g> Pending<'g> {
    pub(super) fn new(gateway: &'g Gateway, arrival: Arrival) -> Pending<'g> {
        Pending { gateway, arrival: Some(arrival), seen: None }
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

    /// It is answered.
    pub(super) fn answered(mut self, seen: Seen, ready_at: Duration) {
        if let Some(arrival) = self.arrival.take() {
            self.gateway.account.sight.answered(self.gateway.region, arrival, seen, ready_at);
        }
    }
}

impl Drop for Pending<'_> {
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
        activity: HeaderValue::from_static(""),
        answerer: None,
        rules: Vec::new(),
    }
}
