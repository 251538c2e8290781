//! `CosmosDriver`: the public face of the driver, and the pipeline's context. It wires the parts and holds no rules.
//!
//! The loop over attempts is in `pipeline`, the choice of a region in `routing`, the caches of containers and
//! partition ranges in `cache`, one attempt in `gateway`. What the caches lack is read in `metadata_lookup`, the
//! account's regions in `account_discovery`, and `failback` probes what was unavailable.

mod account_discovery;
mod call_deadline;
mod failback;
mod metadata_lookup;
mod observed;
mod own_task;

pub use self::observed::WeakDriver;

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use protocol::status::{Status, SubStatus};

pub use self::call_deadline::CallDeadline;

use crate::account::Account;
use crate::background::{SupervisedTask, repeat};
use crate::cache::{AccountCache, Container, ContainerCache, PartitionRanges};
use crate::clock::Clock;
use crate::diagnostics::Diagnostics;
use crate::diagnostics::metrics::{Metrics, MetricsSnapshot, SeriesKey};
use crate::error::{Error, ErrorKind, Result};
use crate::gateway::{AttemptLimits, GatewayClient, GatewayRequest, GatewayResult};
use crate::hedging::HedgingBudget;
use crate::operation::{ContainerName, Operation, Plane, Scope};
use crate::options::{DriverSettings, OperationOptions, OperationSettings};
use crate::pipeline::{self, Location, PipelineContext};
use crate::response::Response;
use crate::routing::refresh::{REFRESH_INTERVAL, RefreshHistory};
use crate::routing::{
    AccountState, Endpoint, PartitionId, PartitionState, Placement, StateCell, failback_interval,
};
use crate::telemetry::{ClientIdentity, OperationObserver, OperationSpan};

/// A connection to one account. Cheap to clone; background tasks and caches end with the last clone.
///
/// Made by [`CosmosRuntime::driver`](crate::CosmosRuntime::driver).
#[derive(Clone)]
pub struct CosmosDriver(Arc<Inner>);

/// The state that the clones of a driver share.
#[derive(Debug)]
struct Inner {
    /// A reference to itself, for work that outlives the call that started it.
    this: Weak<Inner>,
    settings: DriverSettings,
    gateway: GatewayClient,
    account: StateCell<AccountState>,
    /// Endpoints besides the account's own at which its properties can be read.
    backup_endpoints: Vec<Endpoint>,
    partitions: StateCell<PartitionState>,
    properties: AccountCache,
    refreshes: Mutex<RefreshHistory>,
    containers: ContainerCache,
    hedging_budget: HedgingBudget,
    metrics: Metrics,
    identity: ClientIdentity,
    observer: OnceLock<Arc<dyn OperationObserver>>,
    clock: Clock,
    /// Reads the account's properties every few minutes.
    account_refresh: SupervisedTask,
    /// Probes regions and partitions that were unavailable.
    failback: SupervisedTask,
}

impl CosmosDriver {
    pub(crate) fn new(
        account: &Account,
        settings: DriverSettings,
        gateway: GatewayClient,
        clock: Clock,
    ) -> CosmosDriver {
        let backup_endpoints = account.backup_endpoints().iter().cloned().map(Endpoint::global).collect();
        let account = AccountState::unknown(Endpoint::global(account.endpoint().clone()));
        let partitions = PartitionState::new(settings.circuit_breaker);
        let identity = gateway.identity(account.global().clone());
        let now = clock.now();
        CosmosDriver(Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            settings,
            gateway,
            account: StateCell::new(account),
            backup_endpoints,
            partitions: StateCell::new(partitions),
            properties: AccountCache::new(),
            refreshes: Mutex::default(),
            containers: ContainerCache::new(),
            hedging_budget: HedgingBudget::default(),
            metrics: Metrics::new(),
            identity,
            observer: OnceLock::new(),
            clock,
            account_refresh: SupervisedTask::new(now),
            failback: SupervisedTask::new(now),
        }))
    }

    /// Carries out one operation: in the best region, in another region if that fails, and with a hedged attempt
    /// if that is slow.
    ///
    /// Returns one response (2xx, or 304 of a feed with nothing new) or one error, whose kind says what the
    /// caller can do next, before the deadline of the options. Dropping the future cancels the operation:
    /// requests in flight are cancelled and nothing is left behind. Both results carry diagnostics.
    ///
    /// `options` override those of the driver; [`OperationOptions::new`] overrides nothing and costs nothing.
    pub async fn execute_operation(
        &self,
        operation: &Operation,
        options: &OperationOptions,
    ) -> Result<Response> {
        let inner = &*self.0;
        let settings = inner.settings.for_operation(Some(options))?;
        let started = inner.clock.now();
        inner.start_background(started);
        let result = inner.execute_traced(operation, &settings, started).await;
        inner.record_metrics(operation, &result);
        inner.tell_observer(operation, &settings, started, &result);
        result
    }

    /// The `_rid` and partition key of a container. Read from the service if they are not cached, before the deadline
    /// of the options; other options do not matter, because callers share the request.
    pub async fn container(
        &self,
        name: &ContainerName,
        options: &OperationOptions,
    ) -> Result<Arc<Container>> {
        let deadline = self.call_deadline(options)?.at();
        self.ready(deadline).await?;
        self.0.container(name, deadline).await
    }

    /// The container that the name of `known` leads to now, for a caller that found `known` out of date. Concurrent
    /// calls share one request, and each waits for it until the deadline of its options.
    pub async fn refresh_container(
        &self,
        known: &Arc<Container>,
        options: &OperationOptions,
    ) -> Result<Arc<Container>> {
        self.0.refreshed_container(known, self.call_deadline(options)?.at()).await
    }

    /// The physical partitions of a container, in EPK order. Read from the service if they are not cached, before the
    /// deadline of the options.
    pub async fn partitions(
        &self,
        container: &Arc<Container>,
        options: &OperationOptions,
    ) -> Result<Arc<PartitionRanges>> {
        self.0.ranges(container, self.call_deadline(options)?.at()).await
    }

    /// The physical partitions of a container, newer than `known`, which a response contradicted (410/1002).
    /// Concurrent calls share one request, and each waits for it until the deadline of its options.
    pub async fn refresh_partitions(
        &self,
        container: &Arc<Container>,
        known: &Arc<PartitionRanges>,
        options: &OperationOptions,
    ) -> Result<Arc<PartitionRanges>> {
        self.0.refreshed_ranges(container, known, self.call_deadline(options)?.at()).await
    }

    /// Reads the properties of the account and of these containers, so that the first operations on them need
    /// not. One deadline covers all of it.
    pub async fn warm_up(&self, containers: &[ContainerName], options: &OperationOptions) -> Result<()> {
        let deadline = self.call_deadline(options)?.at();
        self.ready(deadline).await?;
        let load = async |name: &ContainerName| {
            let container = self.0.container(name, deadline).await?;
            self.0.ranges(&container, deadline).await
        };
        futures::future::try_join_all(containers.iter().map(load)).await.map(|_| ())
    }

    /// The regions of the account, as far as they are known.
    pub fn account(&self) -> Arc<AccountState> {
        self.0.account.snapshot()
    }

    /// The circuit breakers of partitions that failed somewhere.
    pub fn partition_state(&self) -> Arc<PartitionState> {
        self.0.partitions.snapshot()
    }

    /// The metrics of all operations.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// A snapshot of the metrics of all operations, with the state of the circuit breakers.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.0.metrics.snapshot(&self.0.partitions.snapshot())
    }

    /// How many hedged attempts run right now.
    pub fn open_hedges(&self) -> u32 {
        self.0.hedging_budget.open()
    }

    /// How many HTTP/2 requests to this account are in flight, those of other drivers included.
    pub fn in_flight(&self) -> u32 {
        let account = self.0.account.snapshot();
        self.0.gateway.connections().in_flight(account.all().chain(&self.0.backup_endpoints))
    }

    /// Reads the account's properties again, unless that was done a moment ago.
    pub async fn refresh_account(&self) {
        let deadline = self.0.settings.operation.timeouts.deadline_from(self.0.clock.now());
        self.0.refresh_account(deadline).await;
    }

    /// The source of time.
    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Waits until the account's properties were read once.
    async fn ready(&self, deadline: Instant) -> Result<()> {
        let inner = &*self.0;
        inner.start_background(inner.clock.now());
        if inner.account.peek(AccountState::is_known) {
            return Ok(());
        }
        inner.discover_account(deadline).await
    }
}

/// Shows the endpoint and the regions; caches and metrics have methods of their own.
impl fmt::Debug for CosmosDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = self.account();
        let regions: Vec<&str> = account.reads().iter().map(|endpoint| endpoint.region().as_str()).collect();
        let mut text = f.debug_struct("CosmosDriver");
        text.field("endpoint", &account.global().authority());
        if account.is_known() {
            text.field("regions", &regions);
        }
        text.finish_non_exhaustive()
    }
}

impl Inner {
    /// Starts the background tasks on the runtime of the caller, unless they run: with the first call, and after the
    /// runtime they were started on is gone.
    fn start_background(&self, now: Instant) {
        self.account_refresh.ensure_running(now, |heartbeat| {
            let reload = |inner: Arc<Inner>| async move { inner.reload_account().await };
            repeat(heartbeat, self.clock.clone(), REFRESH_INTERVAL, self.this.clone(), reload)
        });
        self.failback.ensure_running(now, |heartbeat| {
            let period = failback_interval(&self.settings.circuit_breaker);
            repeat(heartbeat, self.clock.clone(), period, self.this.clone(), failback::probe_all)
        });
    }

    /// Carries out an operation, in a span if a subscriber wants one. The span is on the heap with everything in it, so
    /// that an operation without a span pays nothing for it.
    async fn execute_traced(
        &self,
        operation: &Operation,
        settings: &OperationSettings,
        started: Instant,
    ) -> Result<Response> {
        let consistency = || self.consistency(operation, settings);
        match OperationSpan::start(operation, &self.identity, consistency) {
            None => self.discover_and_execute(operation, settings, started).await,
            Some(span) => {
                let work = self.discover_and_execute(operation, settings, started);
                Box::pin(span.around(operation, work)).await
            }
        }
    }

    /// Carries out an operation, after the account was discovered.
    async fn discover_and_execute(
        &self,
        operation: &Operation,
        settings: &OperationSettings,
        started: Instant,
    ) -> Result<Response> {
        if !self.account.peek(AccountState::is_known) {
            // Before the first request: a mistake of the caller is not a reason to send anything.
            pipeline::check(operation)?;
            self.discover_account(settings.timeouts.deadline_from(started)).await?;
        }
        pipeline::execute(self, operation, settings, started).await
    }

    fn record_metrics(&self, operation: &Operation, result: &Result<Response>) {
        let diagnostics: Option<&Diagnostics> = match result {
            Ok(response) => Some(response.diagnostics()),
            Err(error) => error.diagnostics(),
        };
        let Some(diagnostics) = diagnostics else { return };
        let Some(last) = diagnostics.attempts().last() else { return };
        let container = operation.target().container_name();
        let key = SeriesKey {
            container: container.cloned(),
            region: last.endpoint.region().clone(),
            range: last.range,
        };
        self.metrics.record(&key, diagnostics, result.is_err());
        if let (Some(container), Scope::Key(_), Some(key)) =
            (container, operation.scope(), operation.key_header())
        {
            self.metrics.record_key(container, key, diagnostics.totals().charge);
        }
    }

    /// The container of this name: from the cache, or read from the service.
    async fn container(&self, name: &ContainerName, deadline: Instant) -> Result<Arc<Container>> {
        match self.containers.peek(name) {
            Some(container) => Ok(container),
            None => self.look_up_container(name, deadline).await,
        }
    }

    /// The partition ranges of a container: from the cache, or read from the service.
    async fn ranges(&self, container: &Arc<Container>, deadline: Instant) -> Result<Arc<PartitionRanges>> {
        match container.ranges().peek() {
            Some(ranges) => Ok(ranges),
            None => self.look_up_ranges(container, deadline).await,
        }
    }
}

impl PipelineContext for Inner {
    fn clock(&self) -> &Clock {
        &self.clock
    }

    fn random(&self) -> f64 {
        fastrand::f64()
    }

    fn account(&self) -> &StateCell<AccountState> {
        &self.account
    }

    fn partitions(&self) -> &StateCell<PartitionState> {
        &self.partitions
    }

    fn hedging_budget(&self) -> &HedgingBudget {
        &self.hedging_budget
    }

    async fn send(&self, request: GatewayRequest<'_>, settings: &OperationSettings) -> GatewayResult {
        let limits = AttemptLimits::of(settings, request.operation.plane());
        self.gateway.execute(request, &limits).await
    }

    async fn probe(&self, endpoint: &Endpoint, until: Instant) -> bool {
        failback::responds(self, endpoint, until).await
    }

    async fn locate(&self, operation: &Operation, deadline: Instant) -> Result<Option<Location>> {
        let Some(name) = operation.target().container_name().filter(|_| operation.plane() == Plane::Data)
        else {
            return Ok(None);
        };
        let container = self.container(name, deadline).await?;
        let scope = operation.scope();
        if *scope == Scope::Container {
            return Ok(Some(Location { container, ranges: None, partition: None, bounds: None }));
        }
        let ranges = self.ranges(&container, deadline).await?;
        let (partition, bounds) = match ranges.map().place(scope, container.partition_key()) {
            Placement::Unresolved => (None, None),
            Placement::Partition(range, bounds) => {
                (Some(PartitionId { container: Arc::clone(container.identity()), range }), bounds)
            }
            Placement::Split => return Err(range_was_split()),
        };
        Ok(Some(Location { container, ranges: Some(ranges), partition, bounds }))
    }

    async fn refresh_account(&self, deadline: Instant) {
        if self.may_reload_account() {
            // A timeout is ignored: the operation itself ends at the same deadline.
            let _in_time = self.clock.within(Some(deadline), self.reload_account()).await;
        }
    }

    async fn refresh_partitions(&self, known: &Location, deadline: Instant) {
        if let Some(ranges) = &known.ranges {
            // An error is ignored: the next attempt gets 410 again and asks for another refresh.
            let _newer = self.refreshed_ranges(&known.container, ranges, deadline).await;
        }
    }

    fn forget_container(&self, known: &Arc<Container>) {
        self.containers.forget(known);
    }
}

/// The error that the service would respond with to a request for a partition that was split.
fn range_was_split() -> Error {
    Error::new(ErrorKind::Unavailable, "the EPK range lies in several partitions; divide it anew")
        .with_status(Status::GONE, SubStatus::PARTITION_KEY_RANGE_GONE)
}
