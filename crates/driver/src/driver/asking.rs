//! The driver's own questions: the account, containers, partition ranges.
//!
//! Each is asked by one operation for all that need the answer (`cache`), and goes on for as long as one of
//! them waits, so none of them hangs on the deadline of whoever happened to come first.

use std::error::Error as _;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;
use protocol::account::AccountProperties;
use protocol::headers as names;
use protocol::status::Status;

use super::Inner;
use crate::cache::{
    Container, ContainerDefinition, PartitionRanges, RangeFeed, RangePage, parse_account, parse_ranges,
    read_ranges,
};
use crate::error::{Error, ErrorKind, Result};
use crate::operation::{ContainerName, Operation, OperationKind, Plane, Precondition, Response, Target};
use crate::pipeline;
use crate::routing::Endpoint;
use crate::transport::AttemptLimits;
use crate::transport::headers::with_room;
use crate::transport::outcome::TransportOutcome;
use crate::transport::request::{ExecutionContext, TransportRequest};

impl Inner {
    /// Itself. Whoever calls holds a driver, so it is there.
    fn shared(&self) -> Arc<Inner> {
        self.this.upgrade().expect("whoever calls holds the driver")
    }

    /// Asks the account for the first time.
    pub(super) async fn meet_account(&self) -> Result<()> {
        let inner = self.shared();
        self.properties.get(|| inner.fetch_account()).await.map(|_| ())
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

    /// Asks the endpoints that may know, one after the other, those without trouble first, and takes in what
    /// the first one says.
    fn fetch_account(self: Arc<Inner>) -> BoxFuture<'static, Result<Arc<AccountProperties>>> {
        async move {
            let account = self.account.snapshot();
            let mut endpoints: Vec<Endpoint> = account.all().cloned().collect();
            if !account.is_known() {
                // The account's own name leads to one region, which may be the one that is down.
                let preferred = self.settings.operation.regions.preferred.iter();
                endpoints.extend(preferred.filter_map(|region| account.global().of_region(region)));
            }
            endpoints.sort_by_key(|endpoint| account.is_unavailable(endpoint.region(), true));
            let mut answer = Err(Error::new(ErrorKind::Unavailable, "the account has no endpoint"));
            for endpoint in &endpoints {
                answer = self.fetch_account_from(endpoint).await;
                // Another endpoint would take the same key for wrong.
                if answer.as_ref().map_or_else(|error| error.kind() == ErrorKind::Unauthenticated, |_| true) {
                    break;
                }
            }
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

    pub(crate) async fn fetch_account_from(&self, endpoint: &Endpoint) -> Result<AccountProperties> {
        let operation = Operation::new(OperationKind::Read, Target::account());
        let limits = AttemptLimits::of(&self.settings.operation, Plane::Metadata);
        let request = TransportRequest {
            operation: &operation,
            endpoint,
            url: endpoint.url().clone(),
            headers: with_room(),
            context: ExecutionContext::Initial,
            deadline: self.clock.now() + limits.request_timeout,
        };
        let answer = match self.transport.execute(request, &limits).await.outcome {
            TransportOutcome::Success(answer) => parse_account(&answer.body),
            outcome => Err(pipeline::error_of(outcome, self.clock.time_of_day())),
        };
        answer.map_err(|error| no_account(error, endpoint))
    }

    /// Carries out an operation of the driver's own.
    async fn ask(&self, operation: &Operation) -> Result<Response> {
        pipeline::execute(self, operation, &self.settings.operation, self.clock.now()).await
    }

    /// The container a name leads to.
    pub(super) async fn container(&self, name: &ContainerName, deadline: Instant) -> Result<Arc<Container>> {
        if let Some(container) = self.containers.peek(name) {
            return Ok(container);
        }
        let fetch = || Arc::clone(&self.shared()).fetch_container(name.clone());
        self.within(deadline, self.containers.get(name, fetch)).await
    }

    fn fetch_container(
        self: Arc<Inner>,
        name: ContainerName,
    ) -> BoxFuture<'static, Result<ContainerDefinition>> {
        async move {
            let operation = Operation::new(OperationKind::Read, Target::container(&name));
            let response = self.ask(&operation).await?;
            ContainerDefinition::parse(response.body())
        }
        .boxed()
    }

    /// The container that the name of `known` leads to now.
    pub(super) async fn refreshed_container(
        &self,
        known: &Arc<Container>,
        deadline: Instant,
    ) -> Result<Arc<Container>> {
        let fetch = || Arc::clone(&self.shared()).fetch_container(known.name().clone());
        self.within(deadline, self.containers.refresh(known, fetch)).await
    }

    /// Forgets a container that its name no longer leads to.
    pub(super) fn forget(&self, known: &Arc<Container>) {
        self.containers.forget(known);
    }

    /// The physical partitions of a container.
    pub(super) async fn ranges(
        &self,
        container: &Arc<Container>,
        deadline: Instant,
    ) -> Result<Arc<PartitionRanges>> {
        if let Some(ranges) = container.ranges().peek() {
            return Ok(ranges);
        }
        let read = || self.shared().read_ranges(container.name().clone(), None);
        self.within(deadline, container.ranges().get(read)).await
    }

    /// The physical partitions of a container, newer than `known`.
    pub(super) async fn refreshed_ranges(
        &self,
        container: &Arc<Container>,
        known: &Arc<PartitionRanges>,
        deadline: Instant,
    ) -> Result<Arc<PartitionRanges>> {
        let read = || self.shared().read_ranges(container.name().clone(), Some(Arc::clone(known)));
        let ranges = self.within(deadline, container.ranges().refresh(known, read)).await?;
        if !Arc::ptr_eq(&ranges, known) {
            let live = ranges.map().partitions().iter();
            container.session().adopt(live.map(|partition| (partition.id, &*partition.parents)));
        }
        Ok(ranges)
    }

    fn read_ranges(
        self: Arc<Inner>,
        name: ContainerName,
        known: Option<Arc<PartitionRanges>>,
    ) -> BoxFuture<'static, Result<PartitionRanges>> {
        let feed = Ranges { inner: self, name };
        async move { read_ranges(known.as_deref(), &feed).await }.boxed()
    }
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

/// The `pkranges` feed of one container.
struct Ranges {
    inner: Arc<Inner>,
    name: ContainerName,
}

impl RangeFeed for Ranges {
    async fn page(&self, etag: Option<&str>, continuation: Option<&str>) -> Result<RangePage> {
        let mut operation = Operation::new(OperationKind::ReadFeed, Target::partition_key_ranges(&self.name))
            .with_header(names::A_IM, names::A_IM_INCREMENTAL);
        if let Some(etag) = etag {
            operation = operation.with_precondition(Precondition::IfNoneMatch(etag.to_owned()));
        }
        if let Some(continuation) = continuation {
            operation = operation.with_header(names::CONTINUATION, continuation.to_owned());
        }
        let response = self.inner.ask(&operation).await?;
        if response.status() == Status::NOT_MODIFIED {
            return Ok(RangePage::NotModified);
        }
        Ok(RangePage::Ranges {
            ranges: parse_ranges(response.body())?,
            etag: response.etag().map(str::to_owned),
            continuation: response.continuation().map(str::to_owned),
        })
    }
}
