//! A request between its arrival and its response.
//!
//! Its future may be dropped before the response: the client disconnects, or the connection is aborted. The
//! request is recorded all the same. So is a request whose handler panics, to which `server` responds with
//! 500.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::USER_AGENT;
use http::request::Parts;
use protocol::status::Status;
use smol_str::SmolStr;

use super::{Gateway, GatewayResponse, UNKNOWN_OPERATION};
use crate::request_log::{ActivityText, RequestArrival, ResponseSummary, STATUS_UNANSWERED};
use engine::regions::RegionId;

/// The status of a request whose handler panics.
const PANIC_STATUS: Status = Status::INTERNAL_SERVER_ERROR;

/// Records a request that is handled synchronously if its handler panics.
pub(super) struct PanicRecorder<'a> {
    gateway: &'a Gateway,
    region: RegionId,
    parts: &'a Parts,
    /// When the request arrived.
    uptime: Duration,
    /// The label of the operation, as far as it is known.
    pub(super) operation: &'static str,
}

impl<'a> PanicRecorder<'a> {
    pub(super) fn new(
        gateway: &'a Gateway,
        region: RegionId,
        parts: &'a Parts,
        uptime: Duration,
    ) -> PanicRecorder<'a> {
        PanicRecorder { gateway, region, parts, uptime, operation: UNKNOWN_OPERATION }
    }
}

impl Drop for PanicRecorder<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Gateway { request_log, clock, .. } = self.gateway;
            let summary = ResponseSummary { status: PANIC_STATUS.0, ..empty_summary(self.operation) };
            let arrival =
                RequestArrival::from_parts(self.parts, self.parts.headers.get(USER_AGENT), self.uptime);
            request_log.record(self.region, arrival, summary, clock.uptime());
        }
    }
}

/// A request without a response so far. Dropping it records the request as unanswered.
pub(super) struct InFlightRequest {
    gateway: Arc<Gateway>,
    region: RegionId,
    /// None once the response is recorded.
    arrival: Option<RequestArrival>,
    /// The summary of a response that has to wait.
    summary: Option<Box<ResponseSummary>>,
    /// The label of the operation, as far as it is known.
    operation: &'static str,
}

impl InFlightRequest {
    pub(super) fn new(gateway: &Arc<Gateway>, region: RegionId, arrival: RequestArrival) -> InFlightRequest {
        let (gateway, arrival) = (Arc::clone(gateway), Some(arrival));
        InFlightRequest { gateway, region, arrival, summary: None, operation: UNKNOWN_OPERATION }
    }

    /// The place to store the operation's label in.
    pub(super) fn operation(&mut self) -> &mut &'static str {
        &mut self.operation
    }

    /// Stores the summary of a response that has to wait.
    pub(super) fn set_summary(&mut self, summary: &ResponseSummary) {
        let mut summary = Box::new(summary.clone());
        if let Some(before) = self.summary.take().filter(|_| summary.rules.is_empty()) {
            summary.rules = before.rules;
        }
        self.summary = Some(summary);
    }

    /// Stores that injected faults delay the request before it is handled.
    pub(super) fn set_injected_faults(&mut self, operation: &'static str, rules: &[SmolStr]) {
        self.summary = Some(Box::new(ResponseSummary { rules: rules.to_vec(), ..empty_summary(operation) }));
    }

    /// Records the response and returns it.
    pub(super) fn complete(mut self, response: GatewayResponse) -> Response<Bytes> {
        if let Some(arrival) = self.arrival.take() {
            self.gateway.request_log.record(self.region, arrival, response.summary, response.ready_at);
        }
        response.response
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        let Some(arrival) = self.arrival.take() else { return };
        let mut summary =
            self.summary.take().map_or_else(|| empty_summary(self.operation), |summary| *summary);
        if summary.operation == UNKNOWN_OPERATION {
            summary.operation = self.operation;
        }
        let status = if std::thread::panicking() { PANIC_STATUS.0 } else { STATUS_UNANSWERED };
        let summary = ResponseSummary { status, sub_status: 0, ..summary };
        self.gateway.request_log.record(self.region, arrival, summary, self.gateway.clock.uptime());
    }
}

/// The summary of a request that has not been handled.
fn empty_summary(operation: &'static str) -> ResponseSummary {
    ResponseSummary {
        operation,
        status: STATUS_UNANSWERED,
        sub_status: 0,
        charge: 0.0,
        activity: ActivityText::new(""),
        partition: None,
        rules: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use http::Request;
    use protocol::account::ConsistencyLevel;
    use protocol::authorization::{AccountKey, EMULATOR_KEY, sign};

    use super::*;
    use crate::faults::FaultRule;
    use crate::hosted::HostedAccount;
    use clock::Clock;
    use engine::account::{Account, AccountSettings};
    use engine::charge::RequestUnitMode;
    use engine::regions::{Lag, Region, RegionSource, Topology};
    use server::{Handler, HandlerResponse};

    /// A gateway to a region that does not exist, so that looking it up panics.
    fn gateway_to_missing_region() -> Arc<Gateway> {
        let regions = vec![Region::new("West US", 0)];
        let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
        let account = Account::new(AccountSettings {
            key: AccountKey::from_base64(EMULATOR_KEY).unwrap(),
            topology,
            region_source: RegionSource::Configured,
            partitions: None,
            partition_bytes_max: u64::MAX,
            request_units: RequestUnitMode::Off,
            seed: 1,
        });
        Arc::new(Gateway::new(&HostedAccount::new(account, 1), RegionId(9), Clock::system()))
    }

    #[tokio::test]
    async fn a_request_whose_handler_panics_is_recorded_with_status_500() {
        for under_faults in [false, true] {
            let gateway = gateway_to_missing_region();
            if under_faults {
                let rule = FaultRule::status(503, 0).in_container("another", "one");
                gateway.account_faults.add(rule, Duration::ZERO).unwrap();
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
            if let Some(HandlerResponse::Pending(response)) = handled {
                assert!(panicked.is_ok() && tokio::spawn(response).await.unwrap_err().is_panic());
            } else {
                assert!(panicked.is_err(), "there is no such region");
            }
            let (count, summary) = gateway.request_log.latest(10, |_| true);
            assert_eq!((count, summary.len()), (1, 1), "under faults: {under_faults}");
            assert_eq!((summary[0].status, summary[0].operation), (500, "read_item"));
            assert_eq!(summary[0].path(), "/dbs/d/colls/c/docs/1");
        }
    }
}
