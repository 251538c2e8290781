//! Meeting the account: whom to ask where its regions are, and when to ask somebody else.
//!
//! In: the endpoints that may know. Out: what the first of them says that answers as the account, or one error
//! that names all of them. The next one is asked as soon as the last has failed, and beside it when it is silent
//! for [`ASK_NEXT_AFTER`]: an endpoint that never answers delays the others, and does not spend their time.

use crate::diagnostics::ExecutionContext;
use crate::gateway::{AttemptLimits, GatewayOutcome, GatewayRequest};
use crate::transport::HeaderList;
use std::error::Error as _;
use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{BoxFuture, Either, pending, select};
use futures::stream::{FuturesUnordered, StreamExt};
use protocol::account::AccountProperties;

use super::Inner;
use crate::cache::parse_account;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{Operation, OperationKind, Plane, Target};
use crate::pipeline;
use crate::routing::{AccountState, Endpoint};

/// How long an endpoint may be silent before the next one is asked beside it.
const ASK_NEXT_AFTER: Duration = Duration::from_millis(500);

impl Inner {
    /// Asks the account for the first time.
    pub(super) async fn meet_account(&self, deadline: Instant) -> Result<()> {
        let inner = self.shared();
        let meeting = self.properties.get(|| inner.fetch_account());
        match self.clock.within(Some(deadline), meeting).await {
            Some(answer) => answer.map(|_| ()),
            None => {
                let asked = names(&self.who_may_know(&self.account.snapshot()));
                let message = format!(
                    "the deadline passed before the account was known; of its endpoints none answered in time: {asked}"
                );
                Err(Error::new(ErrorKind::DeadlineExceeded, message))
            }
        }
    }

    /// Asks the account again.
    pub(super) async fn ask_account(&self) {
        let inner = self.shared();
        // Without an answer everything stays as it is known.
        let _answer = match self.properties.peek() {
            Some(known) => self.properties.refresh(&known, || inner.fetch_account()).await,
            None => self.properties.get(|| inner.fetch_account()).await,
        };
    }

    /// Whether asking the account again would not be too often.
    pub(super) fn may_ask_account(&self) -> bool {
        let refreshes = self.refreshes.lock().unwrap_or_else(PoisonError::into_inner);
        refreshes.may_ask(self.clock.now())
    }

    /// Asks the endpoints that may know, and takes in what the first one says.
    fn fetch_account(self: Arc<Inner>) -> BoxFuture<'static, Result<Arc<AccountProperties>>> {
        async move {
            let account = self.account.snapshot();
            let endpoints = self.who_may_know(&account);
            let answer = first_answer(&self.clock, &endpoints, |endpoint| self.fetch_account_from(endpoint)).await;
            let brought_news = match &answer {
                Ok(properties) => self.account.update_with(|known| {
                    let next = known.with_properties(properties, &self.settings.operation.regions.preferred);
                    let news = !next.same_regions(known);
                    if next.gateway2() != known.gateway2() {
                        tracing::info!(locations = ?next.gateway2(), "where the account has Gateway 2.0, which is not used");
                    }
                    (next, news)
                }),
                Err(_) => false,
            };
            // Meeting the account is not asking again: the first to find it changed may ask at once.
            if account.is_known() {
                let mut refreshes = self.refreshes.lock().unwrap_or_else(PoisonError::into_inner);
                *refreshes = refreshes.asked(self.clock.now(), brought_news);
            }
            answer.map(Arc::new)
        }
        .boxed()
    }

    /// The endpoints that may know the account, best first: its own, those of its regions, those it was given to
    /// begin with. What is in trouble comes last.
    fn who_may_know(&self, account: &AccountState) -> Vec<Endpoint> {
        let mut endpoints: Vec<Endpoint> = account.all().cloned().collect();
        let mut add = |endpoint: Endpoint| {
            if endpoints.iter().all(|known| known.authority() != endpoint.authority()) {
                endpoints.push(endpoint);
            }
        };
        self.backup_endpoints.iter().cloned().for_each(&mut add);
        if !account.is_known() {
            // The account's own name leads to one region, which may be the one that is down.
            let preferred = self.settings.operation.regions.preferred.iter();
            preferred.filter_map(|region| account.global().of_region(region)).for_each(add);
        }
        endpoints.sort_by_key(|endpoint| account.is_unavailable(endpoint.region(), true));
        endpoints
    }

    pub(crate) async fn fetch_account_from(&self, endpoint: &Endpoint) -> Result<AccountProperties> {
        let operation = Operation::new(OperationKind::Read, Target::account());
        let limits = AttemptLimits::of(&self.settings.operation, Plane::Metadata);
        let request = GatewayRequest {
            operation: &operation,
            endpoint,
            headers: HeaderList::new(),
            context: ExecutionContext::Initial,
            deadline: self.clock.now() + limits.request_timeout,
        };
        let answer = match self.gateway.execute(request, &limits).await.outcome {
            GatewayOutcome::Success(answer) => parse_account(&answer.body),
            outcome => Err(pipeline::error_of(outcome, self.clock.time_of_day())),
        };
        answer.map_err(|error| no_account(error, endpoint))
    }
}

/// What the first of `endpoints` says that answers; those that are still silent are left. A refused key ends it,
/// because the others would refuse it too.
async fn first_answer<'e, T, F>(
    clock: &Clock,
    endpoints: &'e [Endpoint],
    ask: impl Fn(&'e Endpoint) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>> + Send,
    T: Send,
{
    let mut waiting = endpoints.iter().enumerate();
    let mut asked = FuturesUnordered::new();
    let mut failures: Vec<(usize, Error)> = Vec::new();
    loop {
        if let Some((index, endpoint)) = waiting.next() {
            let answer = ask(endpoint);
            asked.push(async move { (index, answer.await) });
        }
        let patience = match waiting.len() {
            0 => Either::Left(pending()),
            _ => Either::Right(clock.sleep(ASK_NEXT_AFTER)),
        };
        match select(asked.next(), patience).await {
            Either::Left((Some((_, Ok(answer))), _)) => return Ok(answer),
            Either::Left((Some((_, Err(error))), _)) if error.kind() == ErrorKind::Unauthenticated => {
                return Err(error);
            }
            Either::Left((Some((index, Err(error))), _)) => failures.push((index, error)),
            Either::Left((None, _)) => return Err(all_failed(endpoints, failures)),
            // Silent for too long: the next one is asked beside it.
            Either::Right(((), _)) => {}
        }
    }
}

/// One error for all endpoints: of the kind of the first one's, naming each.
fn all_failed(endpoints: &[Endpoint], mut failures: Vec<(usize, Error)>) -> Error {
    failures.sort_by_key(|(index, _)| *index);
    let told: Vec<&str> = failures.iter().map(|(_, error)| error.message()).collect();
    let message = format!("no endpoint of the account answered ({}): {}", names(endpoints), told.join("; "));
    match failures.len() {
        0 => Error::new(ErrorKind::Unavailable, "the account has no endpoint"),
        1 => failures.remove(0).1,
        _ => failures.remove(0).1.with_message(message),
    }
}

fn names(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(Endpoint::authority).collect::<Vec<_>>().join(", ")
}

/// Why there is no account at an endpoint: what would be about a resource elsewhere is about the endpoint here.
fn no_account(error: Error, endpoint: &Endpoint) -> Error {
    use perihelion_http::ErrorKind::Untrusted;
    let (authority, message) = (endpoint.authority(), error.message());
    let cause = error.source().and_then(|cause| perihelion_http::Error::of(cause)).map(|cause| cause.kind());
    match (error.kind(), cause) {
        (ErrorKind::Unavailable, Some(Untrusted)) => {
            let message = format!(
                "{message}; trust the certificate of {authority}, or use http where it is on this machine"
            );
            error.with_message(message).with_kind(ErrorKind::Configuration)
        }
        (ErrorKind::NotFound | ErrorKind::BadRequest | ErrorKind::BadResponse, _) => {
            let message = format!("{authority} does not answer as an account: {message}");
            error.with_message(message).with_kind(ErrorKind::BadResponse)
        }
        (ErrorKind::Unavailable, _) => {
            let message = format!("no account can be reached at {authority}; check the endpoint: {message}");
            error.with_message(message)
        }
        _ => error,
    }
}
