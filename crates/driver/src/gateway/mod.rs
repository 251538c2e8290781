//! One attempt at one gateway endpoint: headers, signature, sending, throttling.
//!
//! [`GatewayClient::execute`] carries one attempt out. It repeats a request only where the operation need not
//! know: after 429, as long as the service asks for it and the limits allow; over another connection after one
//! failed, where that cannot do harm; and once with a new token after 401. Everything else is an outcome, and
//! what follows it is the pipeline's decision.

mod connectivity;
mod headers;
mod outcome;
mod request;
mod throttle;
mod token;

use std::sync::Arc;
use std::time::{Duration, Instant};

use perihelion_http::trace::Sent;
use protocol::headers as names;
use protocol::status::Status;
use tracing::Instrument;

use self::connectivity::{Failure, FailureKind, try_another_shard};
pub use self::headers::Credential;
use self::headers::{Authorizer, CommonHeaders};
pub use self::outcome::{GatewayOutcome, GatewayResult};
pub(crate) use self::request::AttemptProgress;
pub use self::request::GatewayRequest;
use self::throttle::{ThrottleDecision, ThrottleLimits, ThrottleState};
use crate::clock::{Clock, after};
use crate::diagnostics::SendRecord;
use crate::operation::Plane;
use crate::options::OperationSettings;
use crate::routing::Endpoint;
use crate::sharding::{SendError, SendResult, ShardedTransport};
use crate::telemetry::{AttemptSpan, ClientIdentity, events};
use crate::transport::{TransportRequest, TransportResponse};

/// How long one attempt may take and how often it repeats a throttled request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimits {
    /// For one request, from connecting to the last byte.
    pub request_timeout: Duration,
    /// For repeating after 429.
    pub throttling: ThrottleLimits,
}

impl AttemptLimits {
    /// The limits of the settings for a plane.
    pub fn of(settings: &OperationSettings, plane: Plane) -> AttemptLimits {
        let request_timeout = match plane {
            Plane::Data => settings.timeouts.attempt,
            Plane::Metadata => settings.timeouts.metadata_attempt,
        };
        let throttling = ThrottleLimits {
            retries_max: settings.retry.throttle_retries_max,
            wait_max: settings.retry.throttle_wait_max,
        };
        AttemptLimits { request_timeout, throttling }
    }
}

/// Sends the requests of one account's driver.
#[derive(Debug)]
pub struct GatewayClient {
    headers: CommonHeaders,
    authorizer: Authorizer,
    connections: Arc<ShardedTransport>,
    clock: Clock,
}

impl GatewayClient {
    /// A client of the account at `endpoint`, over connections that other accounts share.
    pub fn new(
        connections: Arc<ShardedTransport>,
        credential: Credential,
        endpoint: &azure_core::http::Url,
        application: Option<&str>,
        clock: Clock,
    ) -> GatewayClient {
        GatewayClient {
            headers: CommonHeaders::new(application),
            authorizer: Authorizer::new(credential, endpoint, clock.clone()),
            connections,
            clock,
        }
    }

    /// The connections that all accounts of the process share.
    pub fn connections(&self) -> &Arc<ShardedTransport> {
        &self.connections
    }

    /// How spans and metrics name this client, whose account has its own endpoint at `endpoint`.
    pub(crate) fn identity(&self, endpoint: Endpoint) -> ClientIdentity {
        self.headers.identity(endpoint)
    }

    /// Carries out one attempt. Ends at the request's deadline at the latest.
    pub async fn execute(&self, request: GatewayRequest<'_>, limits: &AttemptLimits) -> GatewayResult {
        let mut attempt = Attempt {
            endpoint: request.endpoint,
            progress: request.progress,
            deadline: request.deadline,
            idempotent: request.is_idempotent(),
            limits,
            throttling: ThrottleState::default(),
            other_shards_tried: 0,
            token_replaced: false,
            excluded_shard: None,
            sent: Sent::NotSent,
            waited: Duration::ZERO,
            last: None,
            earlier: Vec::new(),
        };
        let context = request.authorization();
        let mut outgoing = TransportRequest {
            endpoint: request.endpoint.url(),
            path: request.operation.target().path(),
            method: request.method(),
            body: request.body(),
            headers: request.headers,
        };
        self.headers.set_constant(&mut outgoing.headers, !outgoing.body.is_empty());
        loop {
            let begun = self.clock.now();
            if begun >= attempt.deadline {
                return attempt.deadline_exceeded();
            }
            self.headers.set_activity_id(&mut outgoing.headers);
            if !self.authorizer.authorize(&mut outgoing.headers, &context) {
                match self.clock.within(Some(attempt.deadline), self.authorizer.ready()).await {
                    // There is a token now: the loop starts over and reads the clock again.
                    Some(Ok(())) => continue,
                    Some(Err(error)) => return attempt.not_authorized(error),
                    None => return attempt.deadline_exceeded(),
                }
            }
            attempt.progress.inspect(|progress| progress.requested());
            let until = attempt.deadline.min(after(begun, limits.request_timeout));
            let resends = attempt.earlier.len() + usize::from(attempt.last.is_some());
            let activity_id = || outgoing.headers.get(names::ACTIVITY_ID);
            let span = AttemptSpan::start(request.context, attempt.endpoint, resends, activity_id);
            let send =
                || self.connections.send(attempt.endpoint, &outgoing, attempt.excluded_shard, begun, until);
            let sent = match &span {
                None => send().await,
                // On the heap, so that a request without a span pays nothing for it.
                Some(span) => Box::pin(send().instrument(span.span())).await,
            };
            let next = attempt.evaluate(sent, begun);
            if let (Some(span), Some(record)) = (span, &attempt.last) {
                span.end(record);
            }
            match next {
                Next::Done(outcome)
                    if is_unauthorized(&outcome)
                        && !attempt.token_replaced
                        && self.authorizer.rejected(&outgoing.headers) =>
                {
                    attempt.token_replaced = true;
                }
                Next::Done(outcome) => return attempt.done(outcome),
                Next::SendAgain => {}
                Next::Wait(delay) => {
                    attempt.waited = delay;
                    self.clock.sleep(delay).await;
                }
            }
        }
    }
}

/// The state of one attempt.
struct Attempt<'a> {
    endpoint: &'a Endpoint,
    progress: Option<&'a AttemptProgress>,
    deadline: Instant,
    idempotent: bool,
    limits: &'a AttemptLimits,
    throttling: ThrottleState,
    other_shards_tried: u32,
    /// Whether the token was replaced because the service rejected it.
    token_replaced: bool,
    /// The shard that failed last.
    excluded_shard: Option<u64>,
    /// The most that may have happened with any request that got no response. A response decides its request: what
    /// was throttled or not authorized was not executed.
    sent: Sent,
    /// How long the attempt waited before the request in flight.
    waited: Duration,
    last: Option<SendRecord>,
    earlier: Vec<SendRecord>,
}

/// What follows a request.
enum Next {
    Done(GatewayOutcome),
    SendAgain,
    Wait(Duration),
}

impl Attempt<'_> {
    /// Records what became of a request and decides what follows.
    fn evaluate(&mut self, sent: SendResult, begun: Instant) -> Next {
        let SendResult { result, exchange, shard, ended } = sent;
        let took = ended.saturating_duration_since(begun);
        let (status, charge, sent, failure) = match &result {
            Ok(response) => {
                self.endpoint.last_response().record(ended);
                self.progress.inspect(|progress| progress.responded());
                (Some((response.status, response.sub_status)), response.headers.charge(), Sent::Sent, None)
            }
            Err(SendError::Failed(error)) => {
                let failure = Failure::of(error, &exchange);
                (None, 0.0, failure.sent, Some(failure))
            }
            Err(SendError::TimedOut) => {
                let sent = if exchange.safe_to_repeat() { Sent::NotSent } else { exchange.sent };
                (None, 0.0, sent, Some(Failure { sent, kind: FailureKind::TimedOut }))
            }
        };
        let waited = std::mem::take(&mut self.waited);
        let record = SendRecord { started: begun, took, status, charge, sent, shard, waited, exchange };
        self.earlier.extend(self.last.replace(record));
        if failure.is_some() {
            self.sent = most_certain(self.sent, sent);
        }
        match (result, failure) {
            (Ok(response), _) => self.evaluate_response(response, ended),
            (Err(error), Some(failure)) => self.evaluate_failure(error, failure, shard, took, ended),
            (Err(error), None) => Next::Done(self.no_response(error)),
        }
    }

    fn evaluate_response(&mut self, response: TransportResponse, now: Instant) -> Next {
        if response.status.is_success() || response.status == Status::NOT_MODIFIED {
            return Next::Done(GatewayOutcome::Success(response));
        }
        let time_left = self.deadline.saturating_duration_since(now);
        let limits = &self.limits.throttling;
        match throttle::decide(&response, self.throttling, limits, time_left, fastrand::f64()) {
            ThrottleDecision::Retry { delay, state } => {
                let status = (response.status, response.sub_status);
                events::throttled(self.endpoint, status, state.retries, delay);
                self.throttling = state;
                self.excluded_shard = None;
                Next::Wait(delay)
            }
            // A redirect is an error as well: it comes from a proxy in between, never from the service.
            ThrottleDecision::Propagate => Next::Done(GatewayOutcome::ServiceError(response)),
        }
    }

    fn evaluate_failure(
        &mut self,
        error: SendError,
        failure: Failure,
        shard: Option<u64>,
        took: Duration,
        now: Instant,
    ) -> Next {
        if now >= self.deadline && failure.kind == FailureKind::TimedOut {
            return Next::Done(GatewayOutcome::DeadlineExceeded { sent: self.sent });
        }
        if try_another_shard(failure, self.idempotent, self.other_shards_tried, took) {
            self.other_shards_tried += 1;
            self.excluded_shard = shard;
            return Next::SendAgain;
        }
        Next::Done(self.no_response(error))
    }

    fn no_response(&self, error: SendError) -> GatewayOutcome {
        let error = match error {
            SendError::Failed(error) => error,
            SendError::TimedOut => azure_core::Error::with_message(
                azure_core::error::ErrorKind::Io,
                format!(
                    "no response from {} within {:?}; allow more time per attempt, or another region",
                    self.endpoint.authority(),
                    self.limits.request_timeout
                ),
            ),
        };
        GatewayOutcome::NoResponse { error, sent: self.sent }
    }

    fn deadline_exceeded(self) -> GatewayResult {
        let sent = self.sent;
        self.done(GatewayOutcome::DeadlineExceeded { sent })
    }

    fn not_authorized(self, error: azure_core::Error) -> GatewayResult {
        let sent = self.sent;
        self.done(GatewayOutcome::NoResponse { error, sent })
    }

    fn done(self, outcome: GatewayOutcome) -> GatewayResult {
        GatewayResult { outcome, last: self.last, earlier: self.earlier }
    }
}

fn is_unauthorized(outcome: &GatewayOutcome) -> bool {
    matches!(outcome, GatewayOutcome::ServiceError(response) if response.status == Status::UNAUTHORIZED)
}

/// Of two requests of an attempt, whether one of them was sent, or may have been.
fn most_certain(one: Sent, other: Sent) -> Sent {
    match (one, other) {
        (Sent::Sent, _) | (_, Sent::Sent) => Sent::Sent,
        (Sent::MaybeSent, _) | (_, Sent::MaybeSent) => Sent::MaybeSent,
        (Sent::NotSent, Sent::NotSent) => Sent::NotSent,
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
