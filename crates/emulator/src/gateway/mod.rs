//! The gateway of one region, or of the account's own endpoint: turns HTTP requests into operations and their replies into responses.
//!
//! Steps: injected faults → authorize → route → handle → reply → response. Input: a request whose body has
//! been read. Output: a response, also for an error. The `server` crate owns the sockets; `handlers` decides
//! what an operation does.

mod destination;
mod evaluation;
mod in_flight;
mod injected_faults;
mod request_description;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LOCATION, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use protocol::headers as name;
use protocol::resource_path::ResourcePath;
use protocol::status::{Status, SubStatus};

use clock::{Clock, ClockReading};
use engine::account::Account;
use engine::catalog::ContainerEntry;
use engine::disk::SyncSequence;
use engine::regions::{RegionId, Topology};
use faults::PortState;
use server::{Handler, HandlerResponse};

use crate::access::{AccessControl, ForeignRequest};
use crate::advertised_hosts::AdvertisedHosts;
use crate::evaluation_pool::EvaluationPool;
use crate::faults::AccountFaults;
use crate::handlers;
use crate::hosted::HostedAccount;
use crate::request::{
    self, Call, ContainerIds, EvaluationClass, Operation, Origin, Principal, RequestHeaders, RequestLine,
    WriteTarget, activity_id,
};
use crate::request_log::{ActivityText, RequestArrival, RequestForm, RequestLog, ResponseSummary};
use crate::response::{CommonHeaders, Reply, ServiceError};
use destination::{Destination, Endpoint};
use in_flight::{InFlightRequest, PanicRecorder};

/// The operation label of a request that failed before it was routed.
const UNKNOWN_OPERATION: &str = "unknown";

/// How long a strongly consistent write waits for a quorum of regions.
const QUORUM_WAIT_MAX: Duration = Duration::from_secs(10);

/// A response, its summary for the request log, and what it has to wait for.
struct GatewayResponse {
    response: Response<Bytes>,
    summary: ResponseSummary,
    /// The uptime at which the response was ready.
    ready_at: Duration,
    /// The uptime at which a quorum of regions has the write; zero if it is not waited for.
    quorum_at: Duration,
    /// The write to disk that has to be durable before the response is sent.
    durability_ticket: Option<SyncSequence>,
}

impl GatewayResponse {
    fn must_wait(&self) -> bool {
        self.durability_ticket.is_some() || !self.quorum_at.is_zero()
    }
}

/// A request evaluates more than it may where it was handled, and nothing has been changed.
struct Interrupted;

/// Where, when and within which limits a request is handled.
#[derive(Clone, Copy)]
struct Handling {
    region: RegionId,
    /// The uptime of its arrival.
    uptime: Duration,
    class: EvaluationClass,
}

/// Handles every request to one region of an account, or to the account's own endpoint.
#[derive(Debug)]
pub struct Gateway {
    account: Arc<Account>,
    account_faults: Arc<AccountFaults>,
    request_log: Arc<RequestLog>,
    advertised_hosts: Arc<AdvertisedHosts>,
    evaluation_pool: Arc<EvaluationPool>,
    endpoint: Endpoint,
    access: Arc<AccessControl>,
    clock: Clock,
    common_headers: CommonHeaders,
}

/// What is known of an operation besides its reply or error.
struct HandledOperation<'a> {
    /// The label of the operation in the request log.
    label: &'a mut &'static str,
    /// What the response has to wait for on the disk.
    pending_sync: Option<SyncSequence>,
}

impl Gateway {
    /// Makes the gateway of one region of an account.
    pub fn new(hosted: &HostedAccount, region: RegionId, clock: Clock) -> Gateway {
        Gateway::at(hosted, Endpoint::Region(region), clock)
    }

    /// Makes the gateway of the account's own endpoint, which leads to the write region.
    pub fn for_account(hosted: &HostedAccount, clock: Clock) -> Gateway {
        Gateway::at(hosted, Endpoint::Account, clock)
    }

    fn at(hosted: &HostedAccount, endpoint: Endpoint, clock: Clock) -> Gateway {
        let common_headers = CommonHeaders::new(clock.now().to_system_time());
        let HostedAccount { account, account_faults, request_log, advertised_hosts, evaluation_pool, access } =
            hosted.clone();
        Gateway {
            account,
            account_faults,
            request_log,
            advertised_hosts,
            evaluation_pool,
            endpoint,
            access,
            clock,
            common_headers,
        }
    }

    /// The region that serves a request which arrived at `uptime`.
    fn destination(&self, parts: &Parts, uptime: Duration) -> Destination {
        let topology = self.account.regions.current();
        Destination::of(self.endpoint, parts, &topology, &self.account_faults, uptime)
    }

    /// Responds without waiting for anything, so this is a plain function: a chain of futures would store
    /// the state of every operation and move it with each response. `uptime` is now; `operation` is set as
    /// soon as it is known.
    fn respond(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        body: Bytes,
        handling: Handling,
        operation: &mut &'static str,
    ) -> Result<GatewayResponse, Interrupted> {
        let activity = activity_id(headers.activity_id);
        let mut outcome = HandledOperation { label: operation, pending_sync: None };
        let handled = self.handle_operation(parts, headers, body, handling, &mut outcome);
        let HandledOperation { label: operation, pending_sync } = outcome;
        let mut reply = match handled {
            Ok(reply) => reply,
            Err(error) if error.is_interruption => return Err(Interrupted),
            Err(error) => {
                let activity_text = String::from_utf8_lossy(activity.as_bytes());
                error.into_reply(&activity_text, parts.uri.path())
            }
        };
        if !reply.body.is_empty()
            && let Ok(location) = HeaderValue::try_from(Origin::of(parts, headers).location(parts.uri.path()))
        {
            reply.headers.insert(CONTENT_LOCATION, location);
        }
        reply.sync_sequence = pending_sync;
        Ok(self.build_response(reply, activity, operation, handling.uptime))
    }

    /// Records a request that is refused before it is handled, and makes the error response.
    fn refuse(&self, parts: &Parts, error: ServiceError, uptime: Duration) -> Response<Bytes> {
        let headers = RequestHeaders::scan(&parts.headers);
        let activity = activity_id(headers.activity_id);
        let reply = error.into_reply(&String::from_utf8_lossy(activity.as_bytes()), parts.uri.path());
        let response = self.build_response(reply, activity, UNKNOWN_OPERATION, uptime);
        let arrival = RequestArrival::from_parts(parts, headers.user_agent, uptime);
        let region = self.destination(parts, uptime).region;
        self.request_log.record(region, arrival, response.summary, response.ready_at);
        response.response
    }

    /// Makes the response of `reply`, to a request that arrived at `began`.
    fn build_response(
        &self,
        mut reply: Reply,
        activity: HeaderValue,
        operation: &'static str,
        began: Duration,
    ) -> GatewayResponse {
        let ready_at = self.clock.uptime();
        let summary = ResponseSummary {
            operation,
            status: reply.status.0,
            sub_status: reply.sub_status.0,
            charge: reply.charge,
            activity: ActivityText::new(activity.to_str().unwrap_or_default()),
            partition: reply.partition.take(),
            rules: Vec::new(),
        };
        let (quorum_at, durability_ticket) = (reply.quorum_at, reply.sync_sequence.take());
        let response = self.common_headers.to_response(reply, activity, ready_at.saturating_sub(began));
        GatewayResponse { response, summary, ready_at, quorum_at, durability_ticket }
    }

    /// Responds once the response may be sent: when the write is durable and, for a strong write, when a
    /// quorum of regions has it. `uptime` is now.
    async fn respond_when_durable(
        self: &Arc<Self>,
        parts: Parts,
        body: Bytes,
        (region, uptime): (RegionId, Duration),
        in_flight: &mut InFlightRequest,
    ) -> GatewayResponse {
        let response = {
            let headers = RequestHeaders::scan(&parts.headers);
            let handling = Handling { region, uptime, class: EvaluationClass::Quick };
            self.respond(&parts, &headers, body.clone(), handling, in_flight.operation())
        };
        let response = match response {
            Ok(response) => response,
            Err(Interrupted) => self.respond_in_pool(parts, body, (region, uptime), in_flight).await,
        };
        if !response.must_wait() {
            return response;
        }
        in_flight.set_summary(&response.summary);
        self.wait_until_durable(response, uptime).await
    }

    /// Holds the response to a write until the write is durable and has its quorum.
    async fn wait_until_durable(&self, mut response: GatewayResponse, began: Duration) -> GatewayResponse {
        if let (Some(ticket), Some(disk)) = (response.durability_ticket.take(), &self.account.disk)
            && let Err(error) = disk.wait_durable(ticket).await
        {
            return self.replace_with_error(&response, error.into(), began);
        }
        if !response.quorum_at.is_zero() {
            let reached = self.clock.wait_for_uptime(response.quorum_at);
            if tokio::time::timeout(QUORUM_WAIT_MAX, reached).await.is_err() {
                let message = "The write was made, but did not reach most regions in time; whether it will is \
                               not known.";
                let error = ServiceError::backend(Status::REQUEST_TIMEOUT, message);
                return self.replace_with_error(&response, error, began);
            }
        }
        response.ready_at = self.clock.uptime();
        response
    }

    /// Makes the error response that replaces `response`.
    fn replace_with_error(
        &self,
        response: &GatewayResponse,
        error: ServiceError,
        began: Duration,
    ) -> GatewayResponse {
        let activity = activity_id(response.response.headers().get(name::ACTIVITY_ID));
        let reply = error.into_reply(response.summary.activity.as_str(), "");
        self.build_response(reply, activity, response.summary.operation, began)
    }

    fn handle_operation(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        body: Bytes,
        Handling { region, uptime, class: evaluation }: Handling,
        outcome: &mut HandledOperation<'_>,
    ) -> Result<Reply, ServiceError> {
        let account = &self.account;
        let times = self.clock.read();
        // The signature of this request covers what it resolves and not its path. Everybody gets the same refusal, so
        // it is not checked.
        if handlers::addresses::is_address_request(parts.uri.path()) {
            return Err(handlers::addresses::refuse_direct_mode());
        }
        let path = request::resource_path(&parts.uri).map_err(|_| ServiceError::not_found())?;
        let (principal, operation) = self.authorize(parts, &path, headers, times)?;
        headers.check_version()?;
        *outcome.label = operation.label();
        let topology = account.regions.current();
        // One SDK sends its consistency level with the account read as well, where it means nothing.
        let level = match operation {
            Operation::ReadAccount => topology.consistency,
            _ => request::consistency::level(headers, topology.consistency)?,
        };
        if evaluation == EvaluationClass::Quick {
            let asks = headers.consistency_level.is_some() || headers.read_consistency_strategy.is_some();
            let form =
                RequestForm { wants_binary: headers.wants_binary_json(), level: asks.then_some(level) };
            self.request_log.forms.count(form, &body);
        }
        check_region(region, &topology, &operation, headers)?;
        let read_context = topology.read_context(region, level, uptime);
        drop(topology);
        let now = times.account;
        let advertised_hosts = &self.advertised_hosts;
        let call = Call {
            account,
            advertised_hosts,
            read_context,
            level,
            principal,
            parts,
            headers,
            body,
            now,
            uptime,
            evaluation,
        };
        let writes = operation.write_target().is_some();
        let Some(disk) = &account.disk else { return handlers::handle(call, operation) };
        let container = match &operation {
            Operation::Items(ids, _) if disk.syncs_before_responses() => find_container_entry(account, ids),
            _ => None,
        };
        let handled = handlers::handle(call, operation);
        // Reads and errors show what others wrote, and may not show what is not durable either. That a write
        // could not be stored shows nothing.
        let not_stored = matches!(&handled, Err(error) if error.status == Status::SERVICE_UNAVAILABLE);
        if !not_stored {
            let shown = container.as_ref().map(|container| container.store.newest_record());
            outcome.pending_sync = disk.pending_sync(shown, writes && handled.is_ok());
        }
        handled
    }

    /// Rejects a request whose sender is unknown or may not use its operation, as far as its head shows.
    fn check_sender(&self, head: &Parts) -> Result<(), ServiceError> {
        self.access.host_names.check(head).map_err(refuse_foreign)?;
        let path = request::resource_path(&head.uri).map_err(|_| ServiceError::not_found())?;
        let headers = RequestHeaders::scan(&head.headers);
        self.authorize(head, &path, &headers, self.clock.read()).map(|_| ())
    }

    /// The sender and the operation of a request, if the sender may use it at all.
    fn authorize<'a>(
        &self,
        parts: &Parts,
        path: &ResourcePath<'a>,
        headers: &RequestHeaders<'_>,
        times: ClockReading,
    ) -> Result<(Principal, Operation<'a>), ServiceError> {
        let (account, method) = (&self.account, &parts.method);
        let principal = request::authorize(account, &self.access, method, path, headers, times)?;
        let operation = request::route(method, path, headers)?;
        let line = RequestLine { account: &account.name, method, path: parts.uri.path() };
        principal.check_operation(&operation, line)?;
        Ok((principal, operation))
    }
}

/// Rejects what a region may not do: 403/3 sends a client to the write region.
fn check_region(
    region: RegionId,
    topology: &Topology,
    operation: &Operation<'_>,
    headers: &RequestHeaders<'_>,
) -> Result<(), ServiceError> {
    let allowed = match operation.write_target() {
        // With per-partition failover, the partition knows its write region.
        Some(WriteTarget::Items) => topology.takes_item_writes(region) || topology.has_partition_failover(),
        Some(WriteTarget::Resources) => topology.hub() == region,
        None => true,
    };
    let hub_only =
        RequestHeaders::flag(headers.hub_region_processing_only, name::HUB_REGION_PROCESSING_ONLY)?;
    if allowed && (!hub_only || topology.hub() == region) {
        return Ok(());
    }
    let (own, hub) = (&topology.region(region).name, &topology.region(topology.hub()).name);
    let message =
        format!("The requested operation cannot be performed in the region '{own}': '{hub}' writes.");
    Err(ServiceError::backend(Status::FORBIDDEN, &message).with_sub_status(SubStatus::WRITE_FORBIDDEN))
}

/// The container of an operation on items, if it exists.
fn find_container_entry(account: &Account, ids: &ContainerIds<'_>) -> Option<Arc<ContainerEntry>> {
    account.catalog.snapshot().container(&ids.database, &ids.container).ok().map(Arc::clone)
}

/// 403: a web page of somebody else may have sent the request.
fn refuse_foreign(error: ForeignRequest) -> ServiceError {
    ServiceError::new(Status::FORBIDDEN, format!("The request is refused: {error}."))
}

impl Handler for Gateway {
    fn refuse_unread(self: &Arc<Self>, head: &Parts) -> Option<Response<Bytes>> {
        let uptime = self.clock.uptime();
        let error = self.check_sender(head).err()?;
        Some(self.refuse(head, error, uptime))
    }

    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> HandlerResponse {
        let uptime = self.clock.uptime();
        let (parts, body) = request.into_parts();
        // Before anything else: what somebody else's page sends must not even use up a fault rule.
        if let Err(foreign) = self.access.host_names.check(&parts) {
            return HandlerResponse::Ready(self.refuse(&parts, refuse_foreign(foreign), uptime));
        }
        let destination = self.destination(&parts, uptime);
        let region = destination.region;
        if self.account_faults.has_request_rules() || destination.port != PortState::Open {
            let arrival = RequestArrival::from_parts(&parts, parts.headers.get(USER_AGENT), uptime);
            let mut in_flight = InFlightRequest::new(self, region, arrival);
            let gateway = Arc::clone(self);
            return HandlerResponse::Pending(Box::pin(async move {
                let response =
                    gateway.respond_with_faults(parts, body, (destination, uptime), &mut in_flight).await;
                in_flight.complete(response)
            }));
        }
        let headers = RequestHeaders::scan(&parts.headers);
        let mut panic_recorder = PanicRecorder::new(self, region, &parts, uptime);
        let quick = Handling { region, uptime, class: EvaluationClass::Quick };
        let response = self.respond(&parts, &headers, body.clone(), quick, &mut panic_recorder.operation);
        drop(panic_recorder);
        let arrival = RequestArrival::from_parts(&parts, headers.user_agent, uptime);
        let Ok(response) = response else {
            let mut in_flight = InFlightRequest::new(self, region, arrival);
            let gateway = Arc::clone(self);
            return HandlerResponse::Pending(Box::pin(async move {
                let response = gateway.respond_in_pool(parts, body, (region, uptime), &mut in_flight).await;
                in_flight.set_summary(&response.summary);
                let response = gateway.wait_until_durable(response, uptime).await;
                in_flight.complete(response)
            }));
        };
        if response.must_wait() {
            let mut in_flight = InFlightRequest::new(self, region, arrival);
            in_flight.set_summary(&response.summary);
            let gateway = Arc::clone(self);
            return HandlerResponse::Pending(Box::pin(async move {
                let response = gateway.wait_until_durable(response, uptime).await;
                in_flight.complete(response)
            }));
        }
        self.request_log.record(region, arrival, response.summary, response.ready_at);
        HandlerResponse::Ready(response.response)
    }
}
