//! What the workers of an instance share: where they read, whom they tell, when to stop.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use driver::Background;
use driver::Clock;
use driver::change_feed::ServiceChanges;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::delivery::Failure;
use super::handler::{BatchContext, DeadLetter, DeadLetterHook, Handler, Refusal};
use super::held::{HeldLease, HeldLeases};
use super::lease::Lease;
use super::settings::Settings;
use super::store::{LeaseStore, Stored};
use super::worker::Worker;

/// What the workers of an instance share.
pub(super) struct Crew {
    /// Unlike any other instance, also of the same name.
    pub(super) instance: String,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) store: LeaseStore,
    pub(super) source: ServiceChanges,
    handler: Handler,
    hook: Option<DeadLetterHook>,
    /// Handlers at work at a time.
    handlers: Semaphore,
    held: HeldLeases,
    background: Background,
    stopping: watch::Sender<bool>,
    /// Tasks that have to end before the instance has stopped.
    active: watch::Sender<usize>,
    counts: Counts,
}

/// What an instance has done.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) handled: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) dead_letters: AtomicU64,
    pub(super) last_error: Mutex<Option<String>>,
}

/// Whom changes go to.
pub(super) struct Receivers {
    pub(super) handler: Handler,
    pub(super) hook: Option<DeadLetterHook>,
}

impl Crew {
    pub(super) fn new(
        settings: Settings,
        clock: Clock,
        store: LeaseStore,
        source: ServiceChanges,
        receivers: Receivers,
    ) -> Crew {
        Crew {
            instance: format!("{}-{:08x}", settings.instance, random() as u32),
            handlers: Semaphore::new(settings.handlers_max.min(Semaphore::MAX_PERMITS)),
            settings,
            clock,
            store,
            source,
            handler: receivers.handler,
            hook: receivers.hook,
            held: HeldLeases::default(),
            background: Background::new(),
            stopping: watch::Sender::new(false),
            active: watch::Sender::new(0),
            counts: Counts::default(),
        }
    }

    /// Starts a task that has to end before the instance has stopped.
    pub(super) fn spawn(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let active = Active::new(&self.active);
        self.background.spawn(async move {
            let _active = active;
            task.await;
        });
    }

    /// Starts a task that ends when the instance has stopped.
    pub(super) fn spawn_beside(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn(task);
    }

    /// Starts a worker on a lease that was taken by a write that began at `began`.
    pub(super) fn put_to_work(self: Arc<Self>, stored: Stored<Lease>, began: Instant) {
        let id = stored.value.id.clone();
        let held =
            HeldLease::new(self.store.clone(), self.clock.clone(), self.settings.lease_expiry, stored, began);
        let held = Arc::new(held);
        self.leases().insert(id.clone(), Arc::clone(&held));
        let place = Place { held: Arc::clone(&self.held), lease: Arc::clone(&held), id };
        let worker = Worker::new(Arc::clone(&self), held);
        self.spawn(async move {
            let _place = place;
            worker.run().await;
        });
    }

    /// The leases in the hands of this instance.
    pub(super) fn held(&self) -> Vec<Arc<HeldLease>> {
        self.leases().values().cloned().collect()
    }

    pub(super) fn holds(&self, lease: &str) -> Option<Arc<HeldLease>> {
        self.leases().get(lease).cloned()
    }

    /// Whether this instance may have one lease more than it has, `more` of which are on their way.
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        // The one that is being divided makes room.
        self.leases().len() + more <= self.settings.leases_max
    }

    fn leases(&self) -> std::sync::MutexGuard<'_, std::collections::BTreeMap<String, Arc<HeldLease>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more handler.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.handlers.acquire().await.expect("it is never closed")
    }

    /// Hands changes to the handler.
    pub(super) async fn handle(
        &self,
        changes: &[Bytes],
        context: BatchContext,
    ) -> Result<(), (Failure, String)> {
        let deadline = self.clock.now() + self.settings.handler_timeout;
        let handling = self.handler.handle(changes, context);
        match self.clock.within(Some(deadline), handling).await {
            Some(Ok(())) => Ok(()),
            Some(Err(Refusal { failure, error })) => Err((failure, error.to_string())),
            None => Err((Failure::Handler, self.took_too_long("handler"))),
        }
    }

    /// Hands a change to the hook.
    pub(super) async fn give_up(&self, letter: DeadLetter) -> Result<(), (Failure, String)> {
        let hook = self.hook.as_ref().expect("nothing is given up without a hook");
        let deadline = self.clock.now() + self.settings.handler_timeout;
        match self.clock.within(Some(deadline), hook.take(letter)).await {
            Some(Ok(())) => {
                self.counts.dead_letters.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Some(Err(error)) => Err((Failure::Handler, format!("the dead-letter hook failed: {error}"))),
            None => Err((Failure::Handler, self.took_too_long("dead-letter hook"))),
        }
    }

    fn took_too_long(&self, who: &str) -> String {
        let limit = self.settings.handler_timeout;
        format!("the {who} took longer than {limit:?}: give it more time, or ask for smaller pages")
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn count_handled(&self, changes: usize) {
        self.counts.handled.fetch_add(changes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_failure(&self) {
        self.counts.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// What stands in the way of sharing leases; none when nothing does.
    pub(super) fn tell(&self, trouble: Option<String>) {
        *self.counts.last_error.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Tells when the instance is to stop.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Asks all workers to finish what they are at.
    pub(super) fn begin_to_stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Waits until they have.
    pub(super) async fn has_ended(&self) {
        let mut active = self.active.subscribe();
        // The sender is in here, so it cannot be closed.
        let _never_closed = active.wait_for(|active| *active == 0).await.map(|_| ());
    }

    /// Ends everything at its next step.
    pub(super) fn abort(&self) {
        self.background.stop();
    }

    /// A value in `0.0..1.0`.
    pub(super) fn dice(&self) -> f64 {
        (random() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number that differs between instances.
    pub(super) fn spread(&self) -> usize {
        self.instance.bytes().fold(0usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
    }
}

/// Without a generator of its own: the standard library seeds its hashers at random.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A task that counts.
struct Active(watch::Sender<usize>);

impl Active {
    fn new(active: &watch::Sender<usize>) -> Active {
        active.send_modify(|count| *count += 1);
        Active(active.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// A lease's place among those that are held; given back however its worker ends.
struct Place {
    held: HeldLeases,
    lease: Arc<HeldLease>,
    id: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(&self.id).is_some_and(|lease| Arc::ptr_eq(lease, &self.lease)) {
            held.remove(&self.id);
        }
    }
}
