//! What all operations of a provider share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cache::InstanceCache;
use crate::clock::{self, Millis, Timestamps};
use crate::dispatch::{PollSchedule, ReadyInstances, ReadyWork};
use crate::documents::{MessageDocument, WorkDocument};
use crate::held::{HeldTurn, HeldWork};
use crate::leases::LeaseProvider;
use crate::options::ProviderOptions;
use crate::slots::SlotSet;
use crate::store::{Store, Versioned};

/// The container, and what this process knows about it.
pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) options: ProviderOptions,
    pub(crate) timestamps: Timestamps,
    pub(crate) cache: InstanceCache,
    pub(crate) instances: Queue<ReadyInstances>,
    pub(crate) work: Queue<ReadyWork>,
    /// The number of attempts to lock an instance whose result no dispatcher has yet.
    pub(crate) attempts: AtomicUsize,
    /// Notifies those that wait for the end of an attempt.
    pub(crate) settled: Notify,
    /// Turns that the runtime has, by lock token.
    pub(crate) turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<HeldTurn>>>>,
    /// Activities that the runtime has, by lock token.
    pub(crate) held_work: Mutex<HashMap<String, HeldWork>>,
    /// Whether this process has claimed a session, so that there is something to renew.
    pub(crate) claimed_sessions: AtomicBool,
    leases: Arc<dyn LeaseProvider>,
    caller_id: u64,
    /// Whether anything was written since the reconciler last asked.
    active: AtomicBool,
}

/// What waits for dispatchers of one kind.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    pub(crate) ready: Mutex<T>,
    /// Wakes a dispatcher for each thing that became ready.
    pub(crate) wake: Notify,
    pub(crate) polls: Mutex<PollSchedule>,
    /// Held by the dispatcher that searches the container.
    pub(crate) polling: tokio::sync::Mutex<()>,
}

impl<T: Default> Queue<T> {
    fn new(options: &ProviderOptions) -> Queue<T> {
        Queue {
            ready: Mutex::default(),
            wake: Notify::new(),
            polls: Mutex::new(PollSchedule::new(options.poll_interval, options.poll_interval_max)),
            polling: tokio::sync::Mutex::default(),
        }
    }
}

impl Core {
    pub(crate) fn new(store: Store, options: ProviderOptions, leases: Arc<dyn LeaseProvider>) -> Core {
        Core {
            cache: InstanceCache::new(options.history_cache_bytes),
            instances: Queue::new(&options),
            work: Queue::new(&options),
            store,
            options,
            timestamps: Timestamps::default(),
            attempts: AtomicUsize::new(0),
            settled: Notify::new(),
            turns: Mutex::default(),
            held_work: Mutex::default(),
            claimed_sessions: AtomicBool::new(true),
            leases,
            caller_id: fastrand::u64(..),
            active: AtomicBool::new(true),
        }
    }

    /// The slots whose messages and activities this process searches for.
    pub(crate) async fn slots(&self) -> SlotSet {
        self.leases.acquire_slots(self.caller_id).await.into_iter().collect()
    }

    /// Gives up the slots of this process.
    pub(crate) async fn release_slots(&self) {
        self.leases.release_slots(self.caller_id).await;
    }

    /// Notes that something was written.
    pub(crate) fn note_activity(&self) {
        self.active.store(true, Ordering::Relaxed);
    }

    /// Whether anything was written since this was last asked.
    pub(crate) fn take_activity(&self) -> bool {
        self.active.swap(false, Ordering::Relaxed)
    }

    /// Makes messages that this process has enqueued known to its dispatchers.
    pub(crate) fn announce_messages(&self, messages: impl IntoIterator<Item = MessageDocument>) {
        let now = clock::now();
        for message in messages {
            let ready_at = message.visible_at;
            self.announce_message(message, ready_at, now);
        }
    }

    /// Makes the result of an activity known to the dispatchers of this process. If other activities of its instance are
    /// about to end, it waits for them, so that one turn takes them together.
    pub(crate) fn announce_result(&self, message: MessageDocument) {
        let now = clock::now();
        let wait = self.work.ready.lock().gathering_time(&message.instance_id).unwrap_or(0.0);
        let ready_at = message.visible_at.max(now + wait);
        self.announce_message(message, ready_at, now);
    }

    fn announce_message(&self, message: MessageDocument, ready_at: Millis, now: Millis) {
        self.instances.ready.lock().add_message(message, ready_at, now);
        // A delayed message wakes a dispatcher too, which then sleeps until it is due.
        self.instances.wake.notify_one();
        self.instances.polls.lock().active(now);
        self.note_activity();
    }

    /// Makes activities that this process has enqueued, and that nobody has locked, known to its workers.
    pub(crate) fn announce_work(&self, work: impl IntoIterator<Item = Versioned<WorkDocument>>) {
        let now = clock::now();
        for version in work {
            self.work.ready.lock().add_unlocked(version);
            self.work.wake.notify_one();
        }
        self.work.polls.lock().active(now);
        self.note_activity();
    }

    /// Ends this process's part in a turn; messages that came meanwhile make the instance ready again.
    pub(crate) fn turn_ended(&self, instance: &str, now: Millis) {
        self.instances.ready.lock().done(instance, now);
        self.instances.wake.notify_one();
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("store", &self.store).finish_non_exhaustive()
    }
}
