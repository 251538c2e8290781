//! HTTP ↔ operations: faults → authorize → route → handle → reply.
//!
//! In: a request whose body has been read. Out: a response; a refusal is a response too. Nothing
//! here knows sockets, and nothing here knows what an operation does: the first is `server`'s, the
//! second `handlers`'.

mod account;
mod activity;
mod authorize;
pub(crate) mod consistency;
mod error;
mod facts;
mod figures;
mod headers;
mod operation;
mod origin;
mod pending;
mod reply;
mod resource_token;
mod route;
mod struck;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use protocol::account::ConsistencyLevel;
use protocol::headers as name;
use protocol::resource_path::ResourcePath;
use protocol::status::{Status, SubStatus};

pub use account::{Account, AccountSettings};
pub(crate) use authorize::Principal;
pub(crate) use error::ServiceError;
pub(crate) use headers::{RequestHeaders, invalid_value};
pub(crate) use operation::{
    ConflictVerb, ContainerIds, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb, OffersVerb, Operation,
    Parent, ResourceVerb, Unsupported, UnsupportedVerb, UserIds, Written,
};
pub(crate) use origin::Origin;
pub(crate) use reply::{Reply, ServedBy};
pub(crate) use resource_token::Grant;

use crate::clock::{Clock, Ticks};
use crate::disk::Ticket;
use crate::handlers;
use crate::regions::{RegionId, Topology, Vantage};
use crate::server::{Handler, Handling};
use crate::sight::{ActivityText, Arrival, Seen};
use activity::activity_id;
use pending::{Begun, Pending};
use reply::Stamp;

/// What is asked for by a request that was refused before anybody looked.
const UNKNOWN: &str = "unknown";

/// How long a strongly consistent write waits for most regions.
const QUORUM_WAIT_MAX: Duration = Duration::from_secs(10);

/// An answer on its way out, and what is to be known about it.
struct Answer {
    response: Response<Bytes>,
    seen: Seen,
    /// The uptime at which it was ready.
    ready_at: Duration,
    /// The uptime at which most regions have what was written; zero if nobody waits for them.
    quorum_at: Duration,
    /// What has to be on the disk first.
    ticket: Option<Ticket>,
}

impl Answer {
    fn has_to_wait(&self) -> bool {
        self.ticket.is_some() || !self.quorum_at.is_zero()
    }
}

/// Answers every request to one region of an account.
#[derive(Debug)]
pub struct Gateway {
    account: Arc<Account>,
    region: RegionId,
    clock: Clock,
    stamp: Stamp,
}

/// One request, understood far enough to be handled.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    /// The account it was sent to.
    pub(crate) account: &'a Arc<Account>,
    /// What it may see of it.
    pub(crate) vantage: Vantage,
    /// The consistency it asks for, or is given.
    pub(crate) level: ConsistencyLevel,
    /// Who sent it.
    pub(crate) principal: Principal,
    /// The request itself: what it says beyond its path and headers.
    pub(crate) parts: &'a Parts,
    /// What it says besides its path.
    pub(crate) headers: &'a RequestHeaders<'a>,
    /// What it carries.
    pub(crate) body: Bytes,
    /// When it arrived.
    pub(crate) now: Ticks,
    /// The same, by the clock that never goes back.
    pub(crate) uptime: Duration,
}

impl<'a> Call<'a> {
    /// How the client reached the account.
    pub(crate) fn origin(&self) -> Origin<'a> {
        Origin::of(self.parts, self.headers)
    }
}

impl Gateway {
    /// A gateway to `account` in one of its regions, which lives by `clock`.
    pub fn new(account: Arc<Account>, region: RegionId, clock: Clock) -> Gateway {
        let stamp = Stamp::new(clock.now().to_system_time());
        Gateway { account, region, clock, stamp }
    }

    /// Nothing a request needs is ever waited for, so this is a plain function: a chain of futures
    /// would carry every state of every operation along, and move it, in each answer. `uptime` is now;
    /// `operation` is named as soon as it is known.
    fn answer(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        body: Bytes,
        uptime: Duration,
        operation: &mut &'static str,
    ) -> Answer {
        let activity = activity_id(headers.activity_id);
        let reply = match self.respond(parts, headers, body, uptime, operation) {
            Ok(reply) => reply,
            Err(refusal) => {
                let shown = String::from_utf8_lossy(activity.as_bytes());
                refusal.into_reply(&shown, parts.uri.path())
            }
        };
        self.finish(reply, activity, operation, uptime)
    }

    /// The answer a reply comes to, to a request that began at `began`.
    fn finish(
        &self,
        mut reply: Reply,
        activity: HeaderValue,
        operation: &'static str,
        began: Duration,
    ) -> Answer {
        let ready_at = self.clock.uptime();
        let seen = Seen {
            operation,
            status: reply.status.0,
            sub_status: reply.sub_status.0,
            charge: reply.charge,
            activity: ActivityText::new(activity.to_str().unwrap_or_default()),
            answerer: reply.answerer.take(),
            rules: Vec::new(),
        };
        let (quorum_at, ticket) = (reply.quorum_at, reply.ticket.take());
        let response = self.stamp.finish(reply, activity, ready_at.saturating_sub(began));
        Answer { response, seen, ready_at, quorum_at, ticket }
    }

    /// Answers when the answer may be given: when what was written is as safe as was promised, and a
    /// strong write's when most regions have it. `uptime` is now.
    async fn answer_in_time(
        &self,
        parts: &Parts,
        body: Bytes,
        uptime: Duration,
        pending: &mut Pending,
    ) -> Answer {
        let headers = RequestHeaders::scan(&parts.headers);
        let answer = self.answer(parts, &headers, body, uptime, pending.operation());
        if !answer.has_to_wait() {
            return answer;
        }
        pending.waits(&answer.seen);
        self.hold(answer, uptime).await
    }

    /// Holds the answer to a write until what was written is as safe as was promised.
    async fn hold(&self, mut answer: Answer, began: Duration) -> Answer {
        if let (Some(ticket), Some(disk)) = (answer.ticket.take(), &self.account.disk)
            && let Err(error) = disk.kept(ticket).await
        {
            return self.instead(&answer, error.into(), began);
        }
        if !answer.quorum_at.is_zero() {
            let reached = self.clock.reached(answer.quorum_at);
            if tokio::time::timeout(QUORUM_WAIT_MAX, reached).await.is_err() {
                let message = "The write was made, but did not reach most regions in time; whether it will is \
                               not known.";
                let refusal = ServiceError::listed(Status::REQUEST_TIMEOUT, message);
                return self.instead(&answer, refusal, began);
            }
        }
        answer.ready_at = self.clock.uptime();
        answer
    }

    /// A refusal in the place of an answer that was made too early.
    fn instead(&self, answer: &Answer, refusal: ServiceError, began: Duration) -> Answer {
        let activity = activity_id(answer.response.headers().get(name::ACTIVITY_ID));
        let reply = refusal.into_reply(answer.seen.activity.as_str(), "");
        self.finish(reply, activity, answer.seen.operation, began)
    }

    fn respond(
        &self,
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        body: Bytes,
        uptime: Duration,
        label: &mut &'static str,
    ) -> Result<Reply, ServiceError> {
        let account = &self.account;
        let times = self.clock.times();
        let path = ResourcePath::parse(parts.uri.path()).map_err(|_| ServiceError::not_found())?;
        let principal = authorize::authorize(&account.key, &parts.method, &path, headers, times)?;
        let operation = route::route(&parts.method, &path, headers)?;
        *label = operation.label();
        let topology = account.regions.current();
        // One client asks for its level on the account read as well, where it means nothing.
        let level = match operation {
            Operation::ReadAccount => topology.consistency,
            _ => consistency::level(headers, topology.consistency)?,
        };
        self.check_place(&topology, &operation, headers)?;
        let multi_write = topology.is_multi_write();
        let vantage = topology.vantage(self.region, level, uptime);
        drop(topology);
        let now = times.account;
        let call = Call { account, vantage, level, principal, parts, headers, body, now, uptime };
        let writes = operation.writes().is_some();
        let mut reply = handlers::handle(call, operation)?;
        if let Some(disk) = &account.disk {
            reply.ticket = match (writes, multi_write) {
                (true, _) => disk.ticket(),
                // Whoever looks takes in what has arrived: what it saw settled has to stay settled.
                (false, true) => disk.ticket_to_look(),
                (false, false) => None,
            };
        }
        Ok(reply)
    }

    /// Refuses what this region may not do: 403/3 sends a client to the region that may.
    fn check_place(
        &self,
        topology: &Topology,
        operation: &Operation<'_>,
        headers: &RequestHeaders<'_>,
    ) -> Result<(), ServiceError> {
        let allowed = match operation.writes() {
            // Where partitions fail over, each of them knows who writes it.
            Some(Written::Items) => {
                topology.takes_item_writes(self.region) || topology.has_partition_failover()
            }
            Some(Written::Resources) => topology.hub() == self.region,
            None => true,
        };
        let hub_only =
            RequestHeaders::flag(headers.hub_region_processing_only, name::HUB_REGION_PROCESSING_ONLY)?;
        if allowed && (!hub_only || topology.hub() == self.region) {
            return Ok(());
        }
        let (here, hub) = (&topology.region(self.region).name, &topology.region(topology.hub()).name);
        let message =
            format!("The requested operation cannot be performed in the region '{here}': '{hub}' writes.");
        Err(ServiceError::listed(Status::FORBIDDEN, &message).with_sub_status(SubStatus::WRITE_FORBIDDEN))
    }
}

impl Handler for Gateway {
    fn handle(self: &Arc<Self>, request: Request<Bytes>) -> Handling {
        let uptime = self.clock.uptime();
        let (parts, body) = request.into_parts();
        if self.account.faults.has_request_rules() {
            let mut pending = Pending::new(self, Arrival::of(&parts, parts.headers.get(USER_AGENT), uptime));
            let gateway = Arc::clone(self);
            return Handling::Later(Box::pin(async move {
                let answer = gateway.answer_under_faults(parts, body, uptime, &mut pending).await;
                pending.answered(answer)
            }));
        }
        let headers = RequestHeaders::scan(&parts.headers);
        let mut begun = Begun::new(self, &parts, uptime);
        let answer = self.answer(&parts, &headers, body, uptime, &mut begun.operation);
        drop(begun);
        let arrival = Arrival::of(&parts, headers.user_agent, uptime);
        if answer.has_to_wait() {
            let mut pending = Pending::new(self, arrival);
            pending.waits(&answer.seen);
            let gateway = Arc::clone(self);
            return Handling::Later(Box::pin(async move {
                let answer = gateway.hold(answer, uptime).await;
                pending.answered(answer)
            }));
        }
        self.account.sight.answered(self.region, arrival, answer.seen, answer.ready_at);
        Handling::Now(answer.response)
    }
}
