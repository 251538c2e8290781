//! `CosmosDriver`: wires the parts, holds no rules.
//!
//! Everything between an operation and its answer is elsewhere: the loop in `pipeline`, where to send in
//! `routing`, what is known of containers in `cache`, one attempt in `transport`. Here they meet.

mod asking;
mod failback;
mod meeting;
mod surroundings;

use crate::gateway::GatewayClient;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, Once, Weak};

use crate::account::Account;
use crate::background::Background;
use crate::cache::{AccountCache, Container, ContainerCache, PartitionRanges};
use crate::clock::Clock;
use crate::diagnostics::Diagnostics;
use crate::diagnostics::metrics::{Metrics, MetricsSnapshot, SeriesKey};
use crate::error::{Error, ErrorKind, Result};
use crate::hedging::budget::Budget;
use crate::operation::{ContainerName, Operation, Scope};
use crate::options::{DriverSettings, OperationOptions};
use crate::pipeline;
use crate::response::Response;
use crate::routing::refresh::{REFRESH_EVERY, RefreshHistory};
use crate::routing::{AccountState, Endpoint, PartitionState, StateCell, look_every};

/// The way to one account. Cheap to clone; background tasks and caches end with the last clone.
///
/// Made by [`CosmosRuntime::driver`](crate::CosmosRuntime::driver).
#[derive(Clone)]
pub struct CosmosDriver(Arc<Inner>);

/// What the clones of a driver share.
#[derive(Debug)]
pub(crate) struct Inner {
    /// Itself, for work that outlives the call that began it.
    this: Weak<Inner>,
    pub(crate) settings: DriverSettings,
    pub(crate) gateway: GatewayClient,
    pub(crate) account: StateCell<AccountState>,
    /// Endpoints beside the account's own to meet it at.
    backup_endpoints: Vec<Endpoint>,
    pub(crate) partitions: StateCell<PartitionState>,
    properties: AccountCache,
    refreshes: Mutex<RefreshHistory>,
    containers: ContainerCache,
    hedges: Budget,
    metrics: Metrics,
    pub(crate) clock: Clock,
    begun: Once,
    background: Background,
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
            hedges: Budget::default(),
            metrics: Metrics::new(),
            clock,
            begun: Once::new(),
            background: Background::new(),
        }))
    }

    /// Carries out one operation: in the best region, in another one if that fails, beside it if that is slow.
    ///
    /// Gives one answer (2xx, or 304 of a feed with nothing new) or one error, whose kind says what the caller
    /// can do next, before the deadline of the options. Dropping the future ends the operation: requests in
    /// flight are cancelled and nothing is left behind. Both results carry what was tried.
    ///
    /// `options` fill what the driver was made with; [`OperationOptions::new`] says nothing and costs nothing.
    pub async fn execute_operation(
        &self,
        operation: &Operation,
        options: &OperationOptions,
    ) -> Result<Response> {
        let inner = &*self.0;
        let settings = inner.settings.for_operation(Some(options))?;
        let started = inner.clock.now();
        inner.begin();
        if !inner.account.peek(AccountState::is_known) {
            inner.meet_account(started + settings.timeouts.end_to_end).await?;
        }
        let result = pipeline::execute(inner, operation, &settings, started).await;
        inner.count(operation, &result);
        result
    }

    /// What is known of a container: its `_rid` and its partition key. Asked for if it is not known.
    pub async fn container(&self, name: &ContainerName) -> Result<Arc<Container>> {
        let deadline = self.0.clock.now() + self.0.settings.operation.timeouts.end_to_end;
        self.ready().await?;
        self.0.container(name, deadline).await
    }

    /// The container its name leads to now, when what is known of it does not fit. Many who ask at once ask once.
    pub async fn container_after(&self, known: &Arc<Container>) -> Result<Arc<Container>> {
        let deadline = self.0.clock.now() + self.0.settings.operation.timeouts.end_to_end;
        self.0.refreshed_container(known, deadline).await
    }

    /// The physical partitions of a container, in the order of the ring. Asked for if they are not known.
    pub async fn partitions(&self, container: &Arc<Container>) -> Result<Arc<PartitionRanges>> {
        let deadline = self.0.clock.now() + self.0.settings.operation.timeouts.end_to_end;
        self.0.ranges(container, deadline).await
    }

    /// The same, newer than `known`, which an answer spoke against (410/1002). Many who ask at once ask once.
    pub async fn partitions_after(
        &self,
        container: &Arc<Container>,
        known: &Arc<PartitionRanges>,
    ) -> Result<Arc<PartitionRanges>> {
        let deadline = self.0.clock.now() + self.0.settings.operation.timeouts.end_to_end;
        self.0.refreshed_ranges(container, known, deadline).await
    }

    /// Learns the account and these containers, so that the first operations on them need not.
    pub async fn warm_up(&self, containers: &[ContainerName]) -> Result<()> {
        self.ready().await?;
        let learn = async |name: &ContainerName| {
            let container = self.container(name).await?;
            self.partitions(&container).await
        };
        futures::future::try_join_all(containers.iter().map(learn)).await.map(|_| ())
    }

    /// Where the account is, as far as it is known.
    pub fn account(&self) -> Arc<AccountState> {
        self.0.account.snapshot()
    }

    /// Which partitions are in trouble where.
    pub fn partition_state(&self) -> Arc<PartitionState> {
        self.0.partitions.snapshot()
    }

    /// What all operations add up to.
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// What all operations add up to until now, and how the breakers stand.
    pub fn metrics_snapshot(&self) -> MetricsSnapshot {
        self.0.metrics.snapshot(&self.0.partitions.snapshot())
    }

    /// How many second attempts run beside slow ones right now.
    pub fn open_hedges(&self) -> u32 {
        self.0.hedges.open()
    }

    /// How many requests to this account are under way over HTTP/2, those of other drivers included.
    pub fn in_flight(&self) -> u32 {
        let account = self.0.account.snapshot();
        self.0.gateway.connections().in_flight(account.all().chain(&self.0.backup_endpoints))
    }

    /// Asks the account where it is now, unless that was done a moment ago.
    pub async fn refresh_account(&self) {
        use crate::pipeline::Surroundings;
        let deadline = self.0.clock.now() + self.0.settings.operation.timeouts.end_to_end;
        self.0.refresh_account(deadline).await;
    }

    /// Where time comes from.
    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// A value in `0.0..1.0`.
    pub(crate) fn draw(&self) -> f64 {
        self.0.random()
    }

    /// Waits until the account has been asked once.
    async fn ready(&self) -> Result<()> {
        let inner = &*self.0;
        inner.begin();
        if inner.account.peek(AccountState::is_known) {
            return Ok(());
        }
        let deadline = inner.clock.now() + inner.settings.operation.timeouts.end_to_end;
        inner.meet_account(deadline).await
    }
}

/// Where it leads; what it keeps is asked for by name.
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
    /// Starts what runs in the background, with the first call, because that is within a runtime.
    fn begin(&self) {
        self.begun.call_once(|| {
            let (clock, this) = (&self.clock, &self.this);
            self.background.repeat(clock, REFRESH_EVERY, this.clone(), |inner| async move {
                inner.ask_account().await;
            });
            let period = look_every(&self.settings.circuit_breaker);
            self.background.repeat(clock, period, this.clone(), failback::look);
        });
    }

    /// What `work` gives, or that the time is up.
    async fn within<T>(
        &self,
        deadline: std::time::Instant,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match self.clock.within(Some(deadline), work).await {
            Some(result) => result,
            None => Err(Error::new(
                ErrorKind::DeadlineExceeded,
                "the deadline passed while the container was looked up",
            )),
        }
    }

    fn count(&self, operation: &Operation, result: &Result<Response>) {
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

    /// A value in `0.0..1.0`. Drawn only when something went wrong, so it need not be fast.
    fn random(&self) -> f64 {
        // The standard library's hasher is seeded anew each time, by the operating system.
        let bits = RandomState::new().build_hasher().finish();
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }
}
