//! One attempt at one endpoint: headers, signature, sending, throttling.
//!
//! [`Transport::execute`] carries one attempt out. It repeats a request only where the operation need not
//! know: after 429, as long as the service asks for patience and the limits allow; over another
//! connection after one failed, where that cannot do harm; and once with a new token after 401. Everything
//! else is an outcome, and what to do about it is the pipeline's decision.

pub mod adaptive;
pub mod authorization;
pub mod carrier;
#[cfg(feature = "connections")]
mod connections; // the product's own
pub mod connectivity;
pub mod gateway;
pub mod header_list;
pub mod headers;
pub mod outcome;
pub mod request;
pub mod throttle;
mod token; // a principal's, kept and replaced

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use protocol::status::Status;

use self::adaptive::{AdaptiveTransport, Delivery, Undelivered};
use self::authorization::{Authorizer, Credential};
use self::connectivity::{Failure, Trouble, try_another_shard};
use self::headers::CommonHeaders;
use self::outcome::{Answer, SendRecord, Sent, TransportOutcome, TransportResult};
use self::request::{Outgoing, TransportRequest};
use self::throttle::{ThrottleAction, ThrottleLimits, ThrottleState};
use crate::clock::Clock;
use crate::operation::Plane;
use crate::options::OperationSettings;

/// How long one attempt may take and how patient it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimits {
    /// For one request, from connecting to the last byte.
    pub request_timeout: Duration,
    /// For repeating after 429.
    pub throttling: ThrottleLimits,
}

impl AttemptLimits {
    /// What the settings say for a plane.
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
pub struct Transport {
    headers: CommonHeaders,
    authorizer: Authorizer,
    adaptive: Arc<AdaptiveTransport>,
    dice: Dice,
    clock: Clock,
}

impl Transport {
    /// For the account at `endpoint`, over connections that other accounts share.
    pub fn new(
        adaptive: Arc<AdaptiveTransport>,
        credential: Credential,
        endpoint: &azure_core::http::Url,
        application: Option<&str>,
        clock: Clock,
    ) -> Transport {
        Transport {
            headers: CommonHeaders::new(application),
            authorizer: Authorizer::new(credential, endpoint, clock.clone()),
            adaptive,
            dice: Dice::new(),
            clock,
        }
    }

    /// The connections.
    pub fn adaptive(&self) -> &Arc<AdaptiveTransport> {
        &self.adaptive
    }

    /// Carries out one attempt. Ends at the request's deadline at the latest.
    pub async fn execute(&self, request: TransportRequest<'_>, limits: &AttemptLimits) -> TransportResult {
        let mut attempt = Attempt {
            endpoint: request.endpoint,
            deadline: request.deadline,
            idempotent: request.is_idempotent(),
            limits,
            throttling: ThrottleState::default(),
            tries_elsewhere: 0,
            signed_anew: false,
            except: None,
            sent: Sent::NotSent,
            waited: Duration::ZERO,
            last: None,
            earlier: Vec::new(),
        };
        let context = request.authorization();
        let mut outgoing = Outgoing {
            endpoint: request.endpoint.url(),
            path: request.operation.target().path(),
            method: request.method(),
            body: request.body(),
            headers: request.headers,
        };
        self.headers.add(&mut outgoing.headers, !outgoing.body.is_empty());
        loop {
            let begun = self.clock.now();
            if begun >= attempt.deadline {
                return attempt.deadline_exceeded();
            }
            self.headers.identify(&mut outgoing.headers);
            if !self.authorizer.authorize(&mut outgoing.headers, &context) {
                match self.clock.within(Some(attempt.deadline), self.authorizer.ready()).await {
                    // Signed with what is there now; it counts as a new try only to the clock.
                    Some(Ok(())) => continue,
                    Some(Err(error)) => return attempt.not_authorized(error),
                    None => return attempt.deadline_exceeded(),
                }
            }
            let until = attempt.deadline.min(begun + limits.request_timeout);
            let delivery =
                self.adaptive.send(attempt.endpoint, &outgoing, attempt.except, begun, until).await;
            match attempt.judge(delivery, begun, self.dice.draw()) {
                Next::Done(outcome)
                    if is_unauthorized(&outcome)
                        && !attempt.signed_anew
                        && self.authorizer.refused(&outgoing.headers) =>
                {
                    attempt.signed_anew = true;
                }
                Next::Done(outcome) => return attempt.done(outcome),
                Next::Again => {}
                Next::Wait(delay) => {
                    attempt.waited = delay;
                    self.clock.sleep(delay).await;
                }
            }
        }
    }
}

/// One attempt under way.
struct Attempt<'a> {
    endpoint: &'a crate::routing::Endpoint,
    deadline: Instant,
    idempotent: bool,
    limits: &'a AttemptLimits,
    throttling: ThrottleState,
    tries_elsewhere: u32,
    /// Whether the token was replaced because the service refused it.
    signed_anew: bool,
    /// The shard that failed last.
    except: Option<u64>,
    /// The most that may have happened with any request so far.
    sent: Sent,
    /// Before the request that is under way.
    waited: Duration,
    last: Option<SendRecord>,
    earlier: Vec<SendRecord>,
}

/// What to do after a request.
enum Next {
    Done(TransportOutcome),
    Again,
    Wait(Duration),
}

impl Attempt<'_> {
    /// Takes in what became of a request and decides what is next.
    fn judge(&mut self, delivery: Delivery, begun: Instant, dice: f64) -> Next {
        let Delivery { result, exchange, shard, ended } = delivery;
        let took = ended.saturating_duration_since(begun);
        let (status, charged, sent, failure) = match &result {
            Ok(answer) => {
                (Some((answer.status, answer.sub_status)), answer.headers.charge(), Sent::Sent, None)
            }
            Err(Undelivered::Failed(error)) => {
                let failure = Failure::of(error, &exchange);
                (None, 0.0, failure.sent, Some(failure))
            }
            Err(Undelivered::TimedOut) => {
                let sent = if exchange.safe_to_repeat() { Sent::NotSent } else { exchange.sent };
                (None, 0.0, sent, Some(Failure { sent, trouble: Trouble::TimedOut }))
            }
        };
        let waited = std::mem::take(&mut self.waited);
        let record =
            SendRecord { started: begun, took, status, charge: charged, sent, shard, waited, exchange };
        self.earlier.extend(self.last.replace(record));
        self.sent = most(self.sent, sent);
        match (result, failure) {
            (Ok(answer), _) => self.judge_answer(answer, ended, dice),
            (Err(undelivered), Some(failure)) => self.judge_failure(undelivered, failure, shard, took, ended),
            (Err(undelivered), None) => Next::Done(self.no_answer(undelivered)),
        }
    }

    fn judge_answer(&mut self, answer: Answer, now: Instant, dice: f64) -> Next {
        let time_left = self.deadline.saturating_duration_since(now);
        match throttle::decide(&answer, self.throttling, &self.limits.throttling, time_left, dice) {
            ThrottleAction::Retry { delay, state } => {
                self.throttling = state;
                self.except = None;
                Next::Wait(delay)
            }
            ThrottleAction::Propagate
                if answer.status.is_success() || answer.status == Status::NOT_MODIFIED =>
            {
                Next::Done(TransportOutcome::Success(answer))
            }
            // A redirection is none of the service's: whoever gave it stands in between.
            ThrottleAction::Propagate => Next::Done(TransportOutcome::ServiceError(answer)),
        }
    }

    fn judge_failure(
        &mut self,
        undelivered: Undelivered,
        failure: Failure,
        shard: Option<u64>,
        took: Duration,
        now: Instant,
    ) -> Next {
        if now >= self.deadline && failure.trouble == Trouble::TimedOut {
            return Next::Done(TransportOutcome::DeadlineExceeded { sent: self.sent });
        }
        if try_another_shard(failure, self.idempotent, self.tries_elsewhere, took) {
            self.tries_elsewhere += 1;
            self.except = shard;
            return Next::Again;
        }
        Next::Done(self.no_answer(undelivered))
    }

    fn no_answer(&self, undelivered: Undelivered) -> TransportOutcome {
        let error = match undelivered {
            Undelivered::Failed(error) => error,
            Undelivered::TimedOut => azure_core::Error::with_message(
                azure_core::error::ErrorKind::Io,
                format!(
                    "no answer from {} within {:?}; allow more time per attempt, or another region",
                    self.endpoint.authority(),
                    self.limits.request_timeout
                ),
            ),
        };
        TransportOutcome::NoAnswer { error, sent: self.sent }
    }

    fn deadline_exceeded(self) -> TransportResult {
        let sent = self.sent;
        self.done(TransportOutcome::DeadlineExceeded { sent })
    }

    fn not_authorized(self, error: azure_core::Error) -> TransportResult {
        let sent = self.sent;
        self.done(TransportOutcome::NoAnswer { error, sent })
    }

    fn done(self, outcome: TransportOutcome) -> TransportResult {
        TransportResult { outcome, last: self.last, earlier: self.earlier }
    }
}

fn is_unauthorized(outcome: &TransportOutcome) -> bool {
    matches!(outcome, TransportOutcome::ServiceError(answer) if answer.status == Status::UNAUTHORIZED)
}

/// The one of the two that allows less.
fn most(one: Sent, other: Sent) -> Sent {
    match (one, other) {
        (Sent::Sent, _) | (_, Sent::Sent) => Sent::Sent,
        (Sent::MaybeSent, _) | (_, Sent::MaybeSent) => Sent::MaybeSent,
        (Sent::NotSent, Sent::NotSent) => Sent::NotSent,
    }
}

/// Draws for jitter: quick, shared by all requests, and good enough for that.
#[derive(Debug)]
struct Dice(AtomicU64);

impl Dice {
    fn new() -> Dice {
        Dice(AtomicU64::new(headers::random()))
    }

    /// A number in `0.0..1.0`.
    fn draw(&self) -> f64 {
        // A Weyl sequence, of which the upper bits are even enough.
        let x = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        (x >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
