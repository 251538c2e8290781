//! Account discovery: reads the account's properties, above all its regions, from the first endpoint that responds.
//!
//! In: the endpoints that may have them. Out: the properties, or one error that names all endpoints. The next
//! endpoint is tried as soon as the last has failed, and beside it when it has not responded for
//! [`NEXT_ENDPOINT_AFTER`]: an endpoint that never responds delays the others, and does not use up their time.

use crate::diagnostics::ExecutionContext;
use crate::gateway::{AttemptLimits, GatewayOutcome, GatewayRequest};
use crate::transport::HeaderList;
use std::error::Error as _;
use std::future::Future;
use std::sync::Arc;
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
use crate::telemetry::events;

/// How long an endpoint may take before the next one is tried beside it.
const NEXT_ENDPOINT_AFTER: Duration = Duration::from_millis(500);
/// The share of the caller's time that it may take at most, so that a caller in a hurry reaches other endpoints, too.
const NEXT_ENDPOINT_SHARE: u32 = 4;

/// How many preferred regions are asked for an account that is not known yet. A client may prefer all regions of Azure in
/// the order of their distance, and most of them have no endpoint of the account.
const PREFERRED_REGIONS_MAX: usize = 8;

impl Inner {
    /// Reads the account's properties for the first time.
    pub(super) async fn discover_account(&self, deadline: Instant) -> Result<()> {
        let inner = self.shared();
        let time_left = deadline.saturating_duration_since(self.clock.now());
        let next_after = NEXT_ENDPOINT_AFTER.min(time_left / NEXT_ENDPOINT_SHARE);
        let properties = self.properties.get(|| inner.fetch_account(next_after));
        match self.clock.within(Some(deadline), properties).await {
            Some(result) => result.map(|_| ()),
            None => {
                let endpoints = names(&self.discovery_endpoints(&self.account.snapshot()));
                let message = format!(
                    "the deadline passed before the account was known; of its endpoints none responded in time: {endpoints}"
                );
                Err(Error::new(ErrorKind::DeadlineExceeded, message))
            }
        }
    }

    /// Reads the account's properties again.
    pub(super) async fn reload_account(&self) {
        let inner = self.shared();
        // After an error the known properties stay in use, and the next refresh tries again.
        let _result = match self.properties.peek() {
            Some(known) => self.properties.refresh(&known, || inner.fetch_account(NEXT_ENDPOINT_AFTER)).await,
            None => self.properties.get(|| inner.fetch_account(NEXT_ENDPOINT_AFTER)).await,
        };
    }

    /// Whether the account's properties may be read again without doing so too often.
    pub(super) fn may_reload_account(&self) -> bool {
        let refreshes = crate::sync::lock(&self.refreshes);
        refreshes.may_refresh(self.clock.now())
    }

    /// Reads the properties from the first endpoint that responds, and updates the account's state.
    fn fetch_account(
        self: Arc<Inner>,
        next_after: Duration,
    ) -> BoxFuture<'static, Result<Arc<AccountProperties>>> {
        async move {
            let account = self.account.snapshot();
            let endpoints = self.discovery_endpoints(&account);
            let result = first_success(&self.clock, next_after, &endpoints, |endpoint| self.fetch_account_from(endpoint)).await;
            let is_new = match &result {
                Ok(properties) => self.account.update_with(|known| {
                    let next = known.with_properties(properties, &self.settings.operation.regions.preferred);
                    let is_new = !next.same_regions(known);
                    if next.gateway2() != known.gateway2() {
                        tracing::info!(locations = ?next.gateway2(), "the account has Gateway 2.0 endpoints, which are not used");
                    }
                    (next, is_new)
                }),
                Err(_) => false,
            };
            if is_new {
                events::regions_changed(&self.account.snapshot());
            }
            // Discovery does not count as a refresh: the first operation that finds the regions changed may
            // refresh at once.
            if account.is_known() {
                let mut refreshes = crate::sync::lock(&self.refreshes);
                *refreshes = refreshes.after_refresh(self.clock.now(), is_new);
            }
            result.map(Arc::new)
        }
        .boxed()
    }

    /// The endpoints that may have the account's properties, best first: its own, those of its regions, the backup
    /// endpoints. Endpoints of unavailable regions come last.
    fn discovery_endpoints(&self, account: &AccountState) -> Vec<Endpoint> {
        let mut endpoints: Vec<Endpoint> = account.all().cloned().collect();
        let mut add = |endpoint: Endpoint| {
            if endpoints.iter().all(|known| known.authority() != endpoint.authority()) {
                endpoints.push(endpoint);
            }
        };
        self.backup_endpoints.iter().cloned().for_each(&mut add);
        if !account.is_known() {
            // The account's own endpoint leads to one region, which may be the one that is down.
            let preferred = self.settings.operation.regions.preferred.iter().take(PREFERRED_REGIONS_MAX);
            preferred.filter_map(|region| account.global().of_region(region)).for_each(add);
        }
        endpoints.sort_by_key(|endpoint| account.is_unavailable(endpoint.region(), true));
        endpoints
    }

    pub(super) async fn fetch_account_from(&self, endpoint: &Endpoint) -> Result<AccountProperties> {
        let operation = Operation::new(OperationKind::Read, Target::account());
        let limits = AttemptLimits::of(&self.settings.operation, Plane::Metadata);
        let request = GatewayRequest {
            operation: &operation,
            endpoint,
            headers: HeaderList::new(),
            context: ExecutionContext::Initial,
            deadline: self.clock.after(limits.request_timeout),
            progress: None,
        };
        let result = match self.gateway.execute(request, &limits).await.outcome {
            GatewayOutcome::Success(response) => parse_account(&response.body),
            outcome => Err(pipeline::error_of(outcome, self.clock.time_of_day())),
        };
        result.map_err(|error| not_an_account(error, endpoint))
    }
}

/// The first success of `read` over `endpoints`; requests that are still in flight then are dropped. A rejected
/// key ends it, because the others would reject it, too.
async fn first_success<'e, T, F>(
    clock: &Clock,
    next_after: Duration,
    endpoints: &'e [Endpoint],
    read: impl Fn(&'e Endpoint) -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>> + Send,
    T: Send,
{
    let mut waiting = endpoints.iter().enumerate();
    let mut in_flight = FuturesUnordered::new();
    let mut failures: Vec<(usize, Error)> = Vec::new();
    loop {
        if let Some((index, endpoint)) = waiting.next() {
            let result = read(endpoint);
            in_flight.push(async move { (index, result.await) });
        }
        let timer = match waiting.len() {
            0 => Either::Left(pending()),
            _ => Either::Right(clock.sleep(next_after)),
        };
        match select(in_flight.next(), timer).await {
            Either::Left((Some((_, Ok(success))), _)) => return Ok(success),
            Either::Left((Some((_, Err(error))), _)) if error.kind() == ErrorKind::Unauthenticated => {
                return Err(error);
            }
            Either::Left((Some((index, Err(error))), _)) => failures.push((index, error)),
            Either::Left((None, _)) => return Err(all_failed(endpoints, failures)),
            // It takes too long: the next endpoint is tried beside it.
            Either::Right(((), _)) => {}
        }
    }
}

/// One error for all endpoints: its kind is that of the first endpoint's error, and its message names each.
fn all_failed(endpoints: &[Endpoint], mut failures: Vec<(usize, Error)>) -> Error {
    failures.sort_by_key(|(index, _)| *index);
    let messages: Vec<&str> = failures.iter().map(|(_, error)| error.message()).collect();
    let message =
        format!("no endpoint of the account responded ({}): {}", names(endpoints), messages.join("; "));
    match failures.len() {
        0 => Error::new(ErrorKind::Unavailable, "the account has no endpoint"),
        1 => failures.remove(0).1,
        _ => failures.remove(0).1.with_message(message),
    }
}

fn names(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(Endpoint::authority).collect::<Vec<_>>().join(", ")
}

/// Turns an error of reading the account's properties into one about the endpoint.
fn not_an_account(error: Error, endpoint: &Endpoint) -> Error {
    use perihelion_http::ErrorKind::Untrusted;
    let (authority, message) = (endpoint.authority(), error.message());
    let cause =
        error.source().and_then(|cause| perihelion_http::Error::find_in(cause)).map(|cause| cause.kind());
    match (error.kind(), cause) {
        (ErrorKind::Unavailable, Some(Untrusted)) => {
            let message = format!(
                "{message}; trust the certificate of {authority}, or use http where it is on this machine"
            );
            error.with_message(message).with_kind(ErrorKind::Configuration)
        }
        (ErrorKind::NotFound | ErrorKind::BadRequest | ErrorKind::BadResponse, _) => {
            let message = format!("{authority} does not respond as an account: {message}");
            error.with_message(message).with_kind(ErrorKind::BadResponse)
        }
        (ErrorKind::Unavailable, _) => {
            let message = format!("no account can be reached at {authority}; check the endpoint: {message}");
            error.with_message(message)
        }
        _ => error,
    }
}
