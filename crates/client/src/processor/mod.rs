//! The change feed processor: calls a handler with every change of a container, at least once and in the order of each
//! logical partition, with the work spread over any number of instances.
//!
//! Instances share *leases*, one per feed range, which are items of a lease container. The owner of a lease reads the
//! changes of its range, calls the handler with each page and writes a checkpoint when the handler has succeeded:
//!
//! - `lease`, `lease_observations`, `balance`, `delivery`, `change_metadata` and `settings` decide, and are pure;
//! - `store` reads and writes the lease container, `start` creates and rewinds leases, `delete` deletes them;
//! - `owned_lease` is a lease that this instance owns, `worker` processes it, `lease_manager` acquires and renews it;
//! - `worker_context` is the state they share, `running` is the caller's handle;
//! - `lag`, `status` and `stored_processors` report on processors.

mod balance;
mod change_metadata;
mod delivery;
mod lease;
mod lease_observations;
mod settings;

mod delete;
mod start;
mod store;

mod lease_manager;
mod owned_lease;
mod worker;
mod worker_context;

mod handler;
mod lag;
mod running;
mod status;
mod stored_processors;

use std::fmt;
use std::future::Future;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use driver::Clock;
use driver::change_feed::{ChangeFeedMode, ChangeFeedStart, ServiceChanges};
use driver::{Error, ErrorKind};
use serde::de::DeserializeOwned;

pub use self::handler::{BatchContext, DeadLetter, HandlerError};
pub use self::lag::{Lag, RangeLag};
pub use self::running::RunningProcessor;
pub use self::settings::ProcessorStart;
pub use self::status::{LeaseStatus, ProcessorStatus};
pub use self::stored_processors::StoredProcessor;

use self::handler::{DeadLetterHook, Handler};
use self::settings::ProcessorSettings;
use self::store::{LeaseStore, StoredState};
use self::worker_context::{Callbacks, WorkerContext};
use crate::container::ContainerClient;
use crate::{OperationOptions, Result};

impl ContainerClient {
    /// A processor of all changes of the container. Instances with the same name, in this process and in others, share
    /// the work; processors with different names each get every change.
    ///
    /// ```no_run
    /// # use perihelion::{BatchContext, ContainerClient, ProcessorStart, HandlerError};
    /// # #[derive(serde::Deserialize)] struct Order { id: String }
    /// # async fn run(orders: ContainerClient, leases: ContainerClient) -> Result<(), HandlerError> {
    /// let processor = orders
    ///     .change_feed_processor("billing")
    ///     .lease_container(&leases) // partition key: /id
    ///     .from(ProcessorStart::Beginning)
    ///     .on_dead_letter(|letter| async move {
    ///         eprintln!("not handled after {} attempts: {}", letter.attempts, letter.error);
    ///         Ok::<_, HandlerError>(())
    ///     })
    ///     .start(|orders: Vec<Order>, context: BatchContext| async move {
    ///         println!("{} orders, {:?} more to come", orders.len(), context.lag);
    ///         Ok::<_, HandlerError>(())
    ///     })
    ///     .await?;
    /// // …
    /// processor.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn change_feed_processor(&self, name: impl Into<String>) -> ChangeFeedProcessor {
        ChangeFeedProcessor {
            container: self.clone(),
            leases: None,
            name: name.into(),
            settings: ProcessorSettings::default(),
            hook: None,
            options: OperationOptions::new(),
            clock: Clock::machine(),
        }
    }
}

/// A named processor of a container's changes, until an instance of it is [started](ChangeFeedProcessor::start).
///
/// It also inspects and controls instances that run in other processes: [`lag`](ChangeFeedProcessor::lag),
/// [`leases`](ChangeFeedProcessor::leases), [`rewind`](ChangeFeedProcessor::rewind) and
/// [`delete_leases`](ChangeFeedProcessor::delete_leases) need neither a lease nor a handler.
#[derive(Clone)]
#[must_use = "nothing runs before it is started"]
pub struct ChangeFeedProcessor {
    container: ContainerClient,
    leases: Option<ContainerClient>,
    name: String,
    settings: ProcessorSettings,
    hook: Option<DeadLetterHook>,
    options: OperationOptions,
    clock: Clock,
}

impl ChangeFeedProcessor {
    /// Sets the container that stores the leases. Its partition key must be `/id`; it may belong to another account,
    /// and many processors can share one. If its account accepts writes in several regions, let all instances prefer
    /// the same region: otherwise two of them may handle the same changes until replication has caught up.
    pub fn lease_container(mut self, leases: &ContainerClient) -> ChangeFeedProcessor {
        self.leases = Some(leases.clone());
        self
    }

    /// Sets the name of this instance in leases and logs; a random suffix is added to it. Default: `instance`.
    pub fn instance(mut self, name: impl Into<String>) -> ChangeFeedProcessor {
        self.settings.instance = name.into();
        self
    }

    /// Sets where the processor starts if no instance of it has ever run. Default: now.
    pub fn from(mut self, start: ProcessorStart) -> ChangeFeedProcessor {
        self.settings.start = start;
        self
    }

    /// Sets the mode of the change feed. Default: the latest version of each item.
    pub fn mode(mut self, mode: ChangeFeedMode) -> ChangeFeedProcessor {
        self.settings.mode = mode;
        self
    }

    /// Sets the largest number of changes in a batch; the changes of one transaction stay together. Default: 100.
    pub fn page_size(mut self, changes: NonZeroU32) -> ChangeFeedProcessor {
        self.settings.page_items = changes;
        self
    }

    /// Sets how long to wait after a read that found no new changes. Default: one second.
    pub fn poll_interval(mut self, interval: Duration) -> ChangeFeedProcessor {
        self.settings.poll_interval = interval;
        self
    }

    /// Sets after which time a lease expires that its owner does not renew. Default: 30 seconds.
    pub fn lease_expiry(mut self, expiry: Duration) -> ChangeFeedProcessor {
        self.settings.lease_expiry = expiry;
        self
    }

    /// Sets how often this instance renews its leases; at most half of the lease expiry. Default: 10 seconds.
    pub fn renew_interval(mut self, interval: Duration) -> ChangeFeedProcessor {
        self.settings.renew_interval = interval;
        self
    }

    /// Sets how often this instance reads all leases in order to acquire more. Default: 10 seconds.
    pub fn acquire_interval(mut self, interval: Duration) -> ChangeFeedProcessor {
        self.settings.acquire_interval = interval;
        self
    }

    /// Sets the largest number of leases that this instance owns. Default: no limit.
    pub fn max_leases(mut self, leases: NonZeroUsize) -> ChangeFeedProcessor {
        self.settings.leases_max = leases.get();
        self
    }

    /// Sets how many handler calls may run at a time. Default: 64.
    pub fn max_handlers(mut self, handlers: NonZeroUsize) -> ChangeFeedProcessor {
        self.settings.handlers_max = handlers.get();
        self
    }

    /// Sets how long the handler may take for a batch before that counts as a failure. Default: five minutes.
    pub fn handler_timeout(mut self, time: Duration) -> ChangeFeedProcessor {
        self.settings.handler_timeout = time;
        self
    }

    /// Sets how long [`stop`](RunningProcessor::stop) waits for handlers that are running. Default: 30 seconds.
    pub fn stop_timeout(mut self, time: Duration) -> ChangeFeedProcessor {
        self.settings.stop_timeout = time;
        self
    }

    /// Sets how many attempts a handler that fails gets before the dead-letter hook is called; without a hook the batch
    /// is retried until the handler succeeds. The wait between attempts doubles from `first` to `most`. Default: 5
    /// attempts, 200 milliseconds, 30 seconds.
    pub fn retries(mut self, attempts: NonZeroU32, first: Duration, most: Duration) -> ChangeFeedProcessor {
        let failures = &mut self.settings.failures;
        (failures.attempts_max, failures.wait_first, failures.wait_max) = (attempts.get(), first, most);
        self
    }

    /// Sets the hook that receives changes which the handler cannot handle. A batch that fails is halved until the
    /// failing change is alone; the processor continues only after the hook has succeeded.
    pub fn on_dead_letter<F, R, E>(mut self, hook: F) -> ChangeFeedProcessor
    where
        F: Fn(DeadLetter) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<HandlerError>,
    {
        self.hook = Some(DeadLetterHook::new(hook));
        self.settings.failures.has_hook = true;
        self
    }

    /// Sets the options of each request to the feed and to the lease container. A running instance limits requests to
    /// the lease container to a third of the lease expiry, whatever the deadline here.
    pub fn options(mut self, options: OperationOptions) -> ChangeFeedProcessor {
        self.options = options;
        self
    }

    /// Starts an instance. Every change after the start position is delivered to the handler of some instance, at least
    /// once and in the order of its logical partition.
    pub async fn start<T, F, R, E>(self, handler: F) -> Result<RunningProcessor>
    where
        T: DeserializeOwned,
        F: Fn(Vec<T>, BatchContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<HandlerError>,
    {
        self.settings.check(&self.name)?;
        let (store, source) = self.open().await?;
        start::initialize(&store, &source, &self.settings, &self.name, &self.clock).await?;
        // From here on a request that takes too long would let a lease expire.
        let store = store.with_timeout(self.settings.lease_request_timeout());
        let callbacks = Callbacks { handler: Handler::new(handler), hook: self.hook.clone() };
        let context = WorkerContext::new(self.settings.clone(), self.clock.clone(), store, source, callbacks);
        Ok(RunningProcessor::start(self, Arc::new(context)))
    }

    /// An estimate of how many changes all instances together have not handled yet.
    pub async fn lag(&self) -> Result<Lag> {
        let (store, source) = self.open().await?;
        let StoredState { record, leases } = store.list().await?;
        let record = record.ok_or_else(|| start::never_started_error(&self.name))?.value;
        // A lease that has not followed the last rewind yet will soon do so.
        let leases: Vec<_> = leases.into_iter().map(|stored| stored.value.rewound(&record)).collect();
        lag::estimate(&source, record.mode.to_feed_mode(), &leases).await
    }

    /// All leases of the processor with their owners and positions, as of the last write to each.
    pub async fn leases(&self) -> Result<Vec<LeaseStatus>> {
        let (store, _) = self.open().await?;
        let StoredState { record, leases } = store.list().await?;
        record.ok_or_else(|| start::never_started_error(&self.name))?;
        Ok(leases.into_iter().map(|stored| LeaseStatus::of_stored(stored.value)).collect())
    }

    /// Moves all instances to another position of the feed, backward or forward, and returns the number of the
    /// generation that starts there. Safe while instances run: a batch that is being handled is finished without a
    /// checkpoint, and the next one starts at the new position.
    pub async fn rewind(&self, to: ChangeFeedStart) -> Result<u64> {
        let (store, source) = self.open().await?;
        start::rewind(&store, &source, &self.name, to, &self.clock).await
    }

    /// Deletes everything that the processor stores in the lease container and returns how many leases there were. Use
    /// it for a processor that is no longer needed; one of the same name that is started later has no stored position.
    ///
    /// Fails with [`Conflict`](crate::ErrorKind::Conflict), and names the instance, while an instance runs. An instance
    /// that crashed looks the same at first, so leases with an owner are observed for the
    /// [lease expiry](ChangeFeedProcessor::lease_expiry): set it to the value that the instances were started with. If
    /// the call fails halfway, or is dropped, call it again; until then do not start an instance.
    ///
    /// ```no_run
    /// # async fn end(orders: perihelion::ContainerClient, leases: perihelion::ContainerClient) -> perihelion::Result<()> {
    /// let billing = orders.change_feed_processor("billing").lease_container(&leases);
    /// for lease in billing.leases().await? {
    ///     println!("{} {:?} at {}", lease.range, lease.owner, lease.continuation);
    /// }
    /// println!("{} leases deleted", billing.delete_leases().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete_leases(&self) -> Result<usize> {
        let (store, _) = self.open().await?;
        delete::wait_until_unowned(&store, &self.name, self.settings.lease_expiry, &self.clock).await?;
        delete::delete_all(&store, &self.name).await
    }

    /// Deletes everything that the processor stores at once, also while instances run, and returns how many leases there
    /// were. An instance that still runs loses its leases with its next write, and reports in its
    /// [status](RunningProcessor::status) that the processor was deleted.
    pub async fn force_delete_leases(&self) -> Result<usize> {
        let (store, _) = self.open().await?;
        delete::delete_all(&store, &self.name).await
    }

    /// Opens the lease container and the feed; fails if either does not exist.
    async fn open(&self) -> Result<(LeaseStore, ServiceChanges)> {
        let Some(leases) = &self.leases else {
            let message = format!(
                "the processor {} has no lease container: name one with lease_container, whose partition key is /id",
                self.name
            );
            return Err(Error::new(ErrorKind::Configuration, message));
        };
        let source = self.container.driver().changes_of(self.container.name(), &self.options).await?;
        let store = LeaseStore::open(leases, &self.name, source.container_rid(), &self.options).await?;
        Ok((store, source))
    }
}

impl fmt::Debug for ChangeFeedProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let container = self.container.name();
        let mut text = f.debug_struct("ChangeFeedProcessor");
        text.field("name", &self.name).field("container", container).field("settings", &self.settings);
        text.finish_non_exhaustive()
    }
}
