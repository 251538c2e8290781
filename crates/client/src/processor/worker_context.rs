//! The state that all workers of one processor instance share: settings, lease container, change feed, callbacks,
//! owned leases, counters and the stop signal.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use driver::Background;
use driver::Clock;
use driver::change_feed::ServiceChanges;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::delivery::Failure;
use super::handler::{BatchContext, DeadLetter, DeadLetterHook, Handler, HandlerFailure};
use super::lease::Lease;
use super::owned_lease::{OwnedLease, OwnedLeases};
use super::settings::ProcessorSettings;
use super::store::{LeaseStore, Versioned};
use super::worker::Worker;

/// The state that all workers of one processor instance share.
pub(super) struct WorkerContext {
    /// The name of this instance with a random suffix: unique among all instances, also those of the same name.
    pub(super) instance: String,
    /// With which lease this instance starts to look for free ones, so that instances do not all try the same lease.
    pub(super) start_offset: usize,
    pub(super) settings: ProcessorSettings,
    pub(super) clock: Clock,
    pub(super) store: LeaseStore,
    pub(super) source: ServiceChanges,
    handler: Handler,
    hook: Option<DeadLetterHook>,
    /// Limits how many handlers run at a time.
    handlers: Semaphore,
    leases: OwnedLeases,
    background: Background,
    stopping: watch::Sender<bool>,
    /// The number of tasks that must end before the instance counts as stopped.
    active: watch::Sender<usize>,
    counters: ProcessorCounters,
}

/// Counters of an instance since its start, and its last error.
#[derive(Debug, Default)]
pub(super) struct ProcessorCounters {
    pub(super) handled: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) dead_letters: AtomicU64,
    pub(super) last_error: Mutex<Option<String>>,
}

/// The functions of the caller that receive changes and dead letters.
pub(super) struct Callbacks {
    pub(super) handler: Handler,
    pub(super) hook: Option<DeadLetterHook>,
}

impl WorkerContext {
    pub(super) fn new(
        settings: ProcessorSettings,
        clock: Clock,
        store: LeaseStore,
        source: ServiceChanges,
        callbacks: Callbacks,
    ) -> WorkerContext {
        WorkerContext {
            instance: format!("{}-{:08x}", settings.instance, fastrand::u32(..)),
            start_offset: fastrand::usize(..),
            handlers: Semaphore::new(settings.handlers_max.min(Semaphore::MAX_PERMITS)),
            settings,
            clock,
            store,
            source,
            handler: callbacks.handler,
            hook: callbacks.hook,
            leases: OwnedLeases::default(),
            background: Background::new(),
            stopping: watch::Sender::new(false),
            active: watch::Sender::new(0),
            counters: ProcessorCounters::default(),
        }
    }

    /// Starts a task that has to end before the instance counts as stopped.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let active = ActiveTask::new(&self.active);
        self.background.spawn(async move {
            let _active = active;
            task.await;
        });
    }

    /// Starts a task that a stop does not wait for; it is cancelled when the instance is dropped.
    pub(super) fn spawn_unawaited(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn(task);
    }

    /// Starts a worker on a lease that this instance acquired with a write that began at `began`.
    pub(super) fn start_worker(self: Arc<Self>, stored: Versioned<Lease>, began: Instant) {
        let id = stored.value.id.clone();
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let lease = Arc::new(OwnedLease::new(store, clock, self.settings.lease_expiry, stored, began));
        self.lock_leases().insert(id.clone(), Arc::clone(&lease));
        let guard = OwnedLeaseGuard { leases: Arc::clone(&self.leases), lease: Arc::clone(&lease), id };
        let worker = Worker::new(Arc::clone(&self), lease);
        self.spawn(async move {
            let _guard = guard;
            worker.run().await;
        });
    }

    /// All leases that this instance owns.
    pub(super) fn owned_leases(&self) -> Vec<Arc<OwnedLease>> {
        self.lock_leases().values().cloned().collect()
    }

    /// The lease with this id, if this instance owns it.
    pub(super) fn owned_lease(&self, id: &str) -> Option<Arc<OwnedLease>> {
        self.lock_leases().get(id).cloned()
    }

    /// Whether this instance may own one more lease, when `acquiring` leases are not counted yet.
    pub(super) fn has_room_for(&self, acquiring: usize) -> bool {
        // The lease that is being split is still counted and will be deleted, so it leaves room for one.
        self.lock_leases().len() + acquiring <= self.settings.leases_max
    }

    fn lock_leases(&self) -> MutexGuard<'_, BTreeMap<String, Arc<OwnedLease>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until one more handler may run.
    pub(super) async fn handler_permit(&self) -> SemaphorePermit<'_> {
        self.handlers.acquire().await.expect("the semaphore is never closed")
    }

    /// Calls the handler with these changes, within the handler timeout.
    pub(super) async fn handle(
        &self,
        changes: &[Bytes],
        context: BatchContext,
    ) -> Result<(), (Failure, String)> {
        let deadline = self.clock.after(self.settings.handler_timeout);
        let handling = self.handler.handle(changes, context);
        match self.clock.within(Some(deadline), handling).await {
            Some(Ok(())) => Ok(()),
            Some(Err(HandlerFailure { failure, error })) => Err((failure, error.to_string())),
            None => Err((Failure::Handler, self.timeout_message("handler"))),
        }
    }

    /// Calls the dead-letter hook with a change, within the handler timeout.
    pub(super) async fn send_dead_letter(&self, letter: DeadLetter) -> Result<(), (Failure, String)> {
        let hook = self.hook.as_ref().expect("without a hook there are no dead letters");
        let deadline = self.clock.after(self.settings.handler_timeout);
        match self.clock.within(Some(deadline), hook.take(letter)).await {
            Some(Ok(())) => {
                self.counters.dead_letters.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Some(Err(error)) => Err((Failure::Handler, format!("the dead-letter hook failed: {error}"))),
            None => Err((Failure::Handler, self.timeout_message("dead-letter hook"))),
        }
    }

    fn timeout_message(&self, callback: &str) -> String {
        let limit = self.settings.handler_timeout;
        format!("the {callback} took longer than {limit:?}: raise handler_timeout or lower page_size")
    }

    pub(super) fn counters(&self) -> &ProcessorCounters {
        &self.counters
    }

    // The counters are statistics that order nothing else, so relaxed increments are enough.

    pub(super) fn count_handled(&self, changes: usize) {
        self.counters.handled.fetch_add(changes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Records why leases could not be acquired in the last round; `None` if they could.
    pub(super) fn set_last_error(&self, error: Option<String>) {
        *self.counters.last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// A receiver whose value becomes `true` when the instance has to stop.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Asks all workers to finish their current batch and stop.
    pub(super) fn request_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until all tasks that a stop waits for have ended.
    pub(super) async fn wait_stopped(&self) {
        let mut active = self.active.subscribe();
        // An error would mean that the sender is gone, and the sender lives in `self`.
        let _never_closed = active.wait_for(|active| *active == 0).await.map(|_| ());
    }

    /// Cancels all tasks at their next await.
    pub(super) fn abort(&self) {
        self.background.stop();
    }

    /// A random value in `0.0..1.0`.
    pub(super) fn jitter(&self) -> f64 {
        fastrand::f64()
    }
}

/// Counts a task as active until it is dropped.
struct ActiveTask(watch::Sender<usize>);

impl ActiveTask {
    fn new(active: &watch::Sender<usize>) -> ActiveTask {
        active.send_modify(|count| *count += 1);
        ActiveTask(active.clone())
    }
}

impl Drop for ActiveTask {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Removes a lease from the owned leases when its worker ends, also when the worker is cancelled.
struct OwnedLeaseGuard {
    leases: OwnedLeases,
    lease: Arc<OwnedLease>,
    id: String,
}

impl Drop for OwnedLeaseGuard {
    fn drop(&mut self) {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        // The instance may have acquired the same lease again in the meantime; that entry stays.
        if leases.get(&self.id).is_some_and(|lease| Arc::ptr_eq(lease, &self.lease)) {
            leases.remove(&self.id);
        }
    }
}
