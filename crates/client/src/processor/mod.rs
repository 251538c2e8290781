//! A change feed processor: every change of a container goes through a handler, at least once, in the order of
//! its logical partition, spread over any number of instances.
//!
//! Instances share *leases*, one per feed range, that live as items in a container of their own. Whoever has a
//! lease reads its range, hands each page to the handler and keeps the place when the handler has succeeded:
//!
//! - `lease`, `sightings`, `balance`, `delivery` and `settings` decide, and are pure;
//! - `store` reads and writes the lease container, `plan` begins and rewinds, `retire` ends;
//! - `held` is a lease in the hands of this instance, `worker` works on it, `sharing` gets and renews it;
//! - `crew` is what they share, `running` the handle to it, `lag`, `status` and `kept` tell how it goes.

mod balance;
mod delivery;
mod lease;
mod settings;
mod sightings;

mod plan;
mod retire;
mod store;

mod crew;
mod held;
mod sharing;
mod worker;

mod handler;
mod kept;
mod lag;
mod running;
mod status;

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
pub use self::kept::KeptProcessor;
pub use self::lag::{Lag, RangeLag};
pub use self::running::RunningProcessor;
pub use self::settings::ProcessorStart;
pub use self::status::{LeaseStatus, ProcessorStatus};

use self::crew::{Crew, Receivers};
use self::handler::{DeadLetterHook, Handler};
use self::settings::Settings;
use self::store::{LeaseStore, Listing};
use crate::container::ContainerClient;
use crate::{OperationOptions, Result};

impl ContainerClient {
    /// A processor of everything that is written to the container. Instances of the same name, in this
    /// process and others, share the work; different names each see every change.
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
    ///         eprintln!("given up after {} attempts: {}", letter.attempts, letter.error);
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
            settings: Settings::default(),
            hook: None,
            options: OperationOptions::new(),
            clock: Clock::machine(),
        }
    }
}

/// A named processor of a container's changes, until an instance of it is [started](ChangeFeedProcessor::start).
///
/// It can also be asked how far the instances that run are, wherever they do, and be told to go elsewhere:
/// [`lag`](ChangeFeedProcessor::lag), [`leases`](ChangeFeedProcessor::leases),
/// [`rewind`](ChangeFeedProcessor::rewind) and [`retire`](ChangeFeedProcessor::retire) need neither a lease nor a
/// handler.
#[derive(Clone)]
#[must_use = "nothing runs before it is started"]
pub struct ChangeFeedProcessor {
    container: ContainerClient,
    leases: Option<ContainerClient>,
    name: String,
    settings: Settings,
    hook: Option<DeadLetterHook>,
    options: OperationOptions,
    clock: Clock,
}

impl ChangeFeedProcessor {
    /// Where leases are kept: a container whose partition key is `/id`, of the same account or another. Many
    /// processors can share one. Where every region of its account writes, let all instances prefer the same
    /// one, or two of them may handle the same changes for as long as replication takes.
    pub fn lease_container(mut self, leases: &ContainerClient) -> ChangeFeedProcessor {
        self.leases = Some(leases.clone());
        self
    }

    /// What this instance is called in leases and logs; something random is added to it. Default: `instance`.
    pub fn instance(mut self, name: impl Into<String>) -> ChangeFeedProcessor {
        self.settings.instance = name.into();
        self
    }

    /// Where to begin when no instance ever ran. Default: now.
    pub fn from(mut self, start: ProcessorStart) -> ChangeFeedProcessor {
        self.settings.start = start;
        self
    }

    /// Which changes are told. Default: the latest version of each item.
    pub fn mode(mut self, mode: ChangeFeedMode) -> ChangeFeedProcessor {
        self.settings.mode = mode;
        self
    }

    /// The most changes of a batch; those of one transaction stay together. Default: 100.
    pub fn page_size(mut self, changes: NonZeroU32) -> ChangeFeedProcessor {
        self.settings.page_items = changes;
        self
    }

    /// How long to wait where there was nothing new. Default: one second.
    pub fn poll_interval(mut self, interval: Duration) -> ChangeFeedProcessor {
        self.settings.poll_interval = interval;
        self
    }

    /// How long a lease lasts whose instance shows no sign of life. Default: 30 seconds.
    pub fn lease_expiry(mut self, expiry: Duration) -> ChangeFeedProcessor {
        self.settings.lease_expiry = expiry;
        self
    }

    /// How often this instance shows that it lives; at least twice as often as leases expire. Default: 10
    /// seconds.
    pub fn renew_interval(mut self, interval: Duration) -> ChangeFeedProcessor {
        self.settings.renew_interval = interval;
        self
    }

    /// How often this instance looks for leases, its own and those of others. Default: 10 seconds.
    pub fn acquire_interval(mut self, interval: Duration) -> ChangeFeedProcessor {
        self.settings.acquire_interval = interval;
        self
    }

    /// The most leases of this instance. Default: no limit.
    pub fn max_leases(mut self, leases: NonZeroUsize) -> ChangeFeedProcessor {
        self.settings.leases_max = leases.get();
        self
    }

    /// The most batches in the hands of the handler at a time. Default: 64.
    pub fn max_handlers(mut self, handlers: NonZeroUsize) -> ChangeFeedProcessor {
        self.settings.handlers_max = handlers.get();
        self
    }

    /// How long the handler may take with a batch before that counts as a failure. Default: five minutes.
    pub fn handler_timeout(mut self, time: Duration) -> ChangeFeedProcessor {
        self.settings.handler_timeout = time;
        self
    }

    /// How long [`stop`](RunningProcessor::stop) waits for handlers at work. Default: 30 seconds.
    pub fn stop_timeout(mut self, time: Duration) -> ChangeFeedProcessor {
        self.settings.stop_timeout = time;
        self
    }

    /// How often a batch is handed to a handler that fails before the dead-letter hook is asked; without a
    /// hook it is handed out until the handler succeeds. The wait in between doubles from `first` to `most`.
    /// Default: 5 attempts, 200 milliseconds, 30 seconds.
    pub fn retries(mut self, attempts: NonZeroU32, first: Duration, most: Duration) -> ChangeFeedProcessor {
        let failures = &mut self.settings.failures;
        (failures.attempts_max, failures.wait_first, failures.wait_max) = (attempts.get(), first, most);
        self
    }

    /// Who takes a change that the handler cannot handle. A batch that fails is halved until the change that
    /// is to blame is on its own; only when the hook has succeeded does the processor move on.
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

    /// Options of each request to the feed and to the lease container. A running instance gives the latter a third of
    /// the time after which leases expire, whatever the deadline here.
    pub fn options(mut self, options: OperationOptions) -> ChangeFeedProcessor {
        self.options = options;
        self
    }

    /// Starts an instance. What is written from now on, or from where it begins, comes to the handler of some
    /// instance, at least once and in the order of its logical partition.
    pub async fn start<T, F, R, E>(self, handler: F) -> Result<RunningProcessor>
    where
        T: DeserializeOwned,
        F: Fn(Vec<T>, BatchContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<HandlerError>,
    {
        self.settings.check(&self.name)?;
        let (store, source) = self.open().await?;
        plan::begin(&store, &source, &self.settings, &self.name, &self.clock).await?;
        // From here on a request that takes long would cost a lease.
        let store = store.within(self.settings.lease_request_timeout());
        let receivers = Receivers { handler: Handler::new(handler), hook: self.hook.clone() };
        let crew = Crew::new(self.settings.clone(), self.clock.clone(), store, source, receivers);
        Ok(RunningProcessor::start(self, Arc::new(crew)))
    }

    /// How many changes are yet to be handled, about, by whatever instances there are.
    pub async fn lag(&self) -> Result<Lag> {
        let (store, source) = self.open().await?;
        let Listing { plan, leases } = store.list().await?;
        let plan = plan.ok_or_else(|| plan::never_ran(&self.name))?.value;
        // Those that have not heard of a rewind yet will.
        let leases: Vec<_> = leases.into_iter().map(|stored| stored.value.rewound(&plan)).collect();
        lag::estimate(&source, plan.mode.feed(), &leases).await
    }

    /// Every lease of the processor: who has it and how far it is, as of its last write.
    pub async fn leases(&self) -> Result<Vec<LeaseStatus>> {
        let (store, _) = self.open().await?;
        let Listing { plan, leases } = store.list().await?;
        plan.ok_or_else(|| plan::never_ran(&self.name))?;
        Ok(leases.into_iter().map(|stored| LeaseStatus::of_stored(stored.value)).collect())
    }

    /// Sends all instances to another place, back or ahead; says which generation begins there. Safe while
    /// they run: a batch in the hands of the handler is finished and not counted, the next one is from the new
    /// place.
    pub async fn rewind(&self, to: ChangeFeedStart) -> Result<u64> {
        let (store, source) = self.open().await?;
        plan::rewind(&store, &source, &self.name, to, &self.clock).await
    }

    /// Removes everything the processor keeps in the lease container, for one that is no longer wanted; says how
    /// many leases that were. One of the same name that is started later begins anew.
    ///
    /// Refused ([`Conflict`](crate::ErrorKind::Conflict), naming the instance) while an instance is at work. One that
    /// died without a word looks no different at first, so leases that have an owner are watched for as long as
    /// they [last](ChangeFeedProcessor::lease_expiry): say what the instances were told. If the call fails halfway,
    /// or is dropped, call it again; until then do not start an instance.
    ///
    /// ```no_run
    /// # async fn end(orders: perihelion::ContainerClient, leases: perihelion::ContainerClient) -> perihelion::Result<()> {
    /// let billing = orders.change_feed_processor("billing").lease_container(&leases);
    /// for lease in billing.leases().await? {
    ///     println!("{} {:?} at {}", lease.range, lease.owner, lease.continuation);
    /// }
    /// println!("{} leases removed", billing.retire().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retire(&self) -> Result<usize> {
        let (store, _) = self.open().await?;
        retire::wait_for_owners(&store, &self.name, self.settings.lease_expiry, &self.clock).await?;
        retire::remove(&store, &self.name).await
    }

    /// The same at once, whoever is at work: an instance that still runs loses its leases with its next write, and
    /// says in its [status](RunningProcessor::status) that it has been removed.
    pub async fn retire_by_force(&self) -> Result<usize> {
        let (store, _) = self.open().await?;
        retire::remove(&store, &self.name).await
    }

    /// The lease container and the feed, if there are such.
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
