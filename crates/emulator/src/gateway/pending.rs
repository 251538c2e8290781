//! A request between its arrival and its answer.
//!
//! Who waits may not live to see it: a client that leaves, or a connection that is cut, takes the
//! request's future along. What is known by then is written down all the same. So is a request whose
//! handler panics, which `server` answers with 500.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::USER_AGENT;
use http::request::Parts;
use protocol::status::Status;
use smol_str::SmolStr;

use super::{Answer, Gateway, UNKNOWN};
use crate::sight::{ActivityText, Arrival, Seen, UNANSWERED};

/// What a request is answered with whose handler panics.
const PANICKED: Status = Status::INTERNAL_SERVER_ERROR;

/// A request that is being answered at once. Written down only if that panics.
pub(super) struct Begun<'a> {
    gateway: &'a Gateway,
    parts: &'a Parts,
    /// When it began.
    uptime: Duration,
    /// What is asked for, as far as that is known.
    pub(super) operation: &'static str,
}

impl<'a> Begun<'a> {
    pub(super) fn new(gateway: &'a Gateway, parts: &'a Parts, uptime: Duration) -> Begun<'a> {
        Begun { gateway, parts, uptime, operation: UNKNOWN }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Gateway { account, region, clock, .. } = self.gateway;
            let seen = Seen { status: PANICKED.0, ..nothing(self.operation) };
            let arrival = Arrival::of(self.parts, self.parts.headers.get(USER_AGENT), self.uptime);
            account.sight.answered(*region, arrival, seen, clock.uptime());
        }
    }
}

/// A request that is not answered yet. Dropped as such, it is written down as one that never was.
pub(super) struct Pending {
    gateway: Arc<Gateway>,
    /// None once it is answered.
    arrival: Option<Arrival>,
    /// What is known of the answer, if it has to wait.
    seen: Option<Box<Seen>>,
    /// What is asked for, as far as that is known.
    operation: &'static str,
}

impl Pending {
    pub(super) fn new(gateway: &Arc<Gateway>, arrival: Arrival) -> Pending {
        let gateway = Arc::clone(gateway);
        Pending { gateway, arrival: Some(arrival), seen: None, operation: UNKNOWN }
    }

    /// Where to say what is asked for.
    pub(super) fn operation(&mut self) -> &mut &'static str {
        &mut self.operation
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
        let mut seen = self.seen.take().map_or_else(|| nothing(self.operation), |seen| *seen);
        if seen.operation == UNKNOWN {
            seen.operation = self.operation;
        }
        let status = if std::thread::panicking() { PANICKED.0 } else { UNANSWERED };
        let seen = Seen { status, sub_status: 0, ..seen };
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
        activity: ActivityText::new(""),
        answerer: None,
        rules: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use http::Request;
    use protocol::account::ConsistencyLevel;
    use protocol::authorization::{EMULATOR_KEY, Key, sign};

    use super::*;
    use crate::charge::RequestUnits;
    use crate::clock::Clock;
    use crate::faults::FaultRule;
    use crate::gateway::{Account, AccountSettings};
    use crate::regions::{Lag, Region, RegionId, Topology};
    use crate::server::{Handler, Handling};

    /// A gateway to a region that is not there, so that whoever looks for it panics.
    fn broken() -> Arc<Gateway> {
        let regions = vec![Region::new("West US", 0)];
        let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
        let account = Account::new(AccountSettings {
            key: Key::from_base64(EMULATOR_KEY).unwrap(),
            topology,
            partitions: None,
            partition_bytes_max: u64::MAX,
            request_units: RequestUnits::Off,
            seed: 1,
        });
        Arc::new(Gateway::new(Arc::new(account), RegionId(9), Clock::system()))
    }

    #[tokio::test]
    async fn a_request_whose_handler_panics_is_written_down_as_answered_with_500() {
        for under_faults in [false, true] {
            let gateway = broken();
            if under_faults {
                let rule = FaultRule::status(503, 0).in_container("another", "one");
                gateway.account.faults.add(rule, Duration::ZERO).unwrap();
            }
            let date = httpdate::fmt_http_date(gateway.clock.now().to_system_time());
            let signature = sign(&gateway.account.key, "GET", "docs", "dbs/d/colls/c/docs/1", &date);
            let request = Request::get("/dbs/d/colls/c/docs/1")
                .header("authorization", signature)
                .header("x-ms-date", date)
                .body(Bytes::new())
                .unwrap();
            let (mut handled, handler) = (None, Arc::clone(&gateway));
            let panicked = catch_unwind(AssertUnwindSafe(|| handled = Some(handler.handle(request))));
            if let Some(Handling::Later(answer)) = handled {
                assert!(panicked.is_ok() && tokio::spawn(answer).await.unwrap_err().is_panic());
            } else {
                assert!(panicked.is_err(), "there is no such region");
            }
            let (count, seen) = gateway.account.sight.last(10, |_| true);
            assert_eq!((count, seen.len()), (1, 1), "under faults: {under_faults}");
            assert_eq!((seen[0].status, seen[0].operation), (500, "read_item"));
            assert_eq!(seen[0].path(), "/dbs/d/colls/c/docs/1");
        }
    }
}
