//! The replication messages in flight to one region, ordered by when they arrive.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::message::ReplicationMessage;
use crate::regions::RegionId;

/// The value of `next_due` while the queue is empty.
const NEVER: u64 = u64::MAX;

/// The replication messages in flight to one region.
pub(in crate::store) struct ReplicationQueue {
    /// When the first message is due, in nanoseconds of uptime.
    next_due: AtomicU64,
    messages: Mutex<QueuedMessages>,
}

/// When a message is due, and its number among those sent to this queue.
pub(in crate::store) type QueuePosition = (Duration, u64);

#[derive(Default)]
struct QueuedMessages {
    by_due: BTreeMap<QueuePosition, ReplicationMessage>,
    sent: u64,
    /// The last due time of each sender: messages of one region arrive in the order in which it sent them.
    last_due: BTreeMap<RegionId, Duration>,
}

impl ReplicationQueue {
    pub(in crate::store) fn new() -> ReplicationQueue {
        ReplicationQueue { next_due: AtomicU64::new(NEVER), messages: Mutex::default() }
    }

    /// Whether a message is due by `uptime`. Takes no lock.
    pub(in crate::store) fn has_due(&self, uptime: Duration) -> bool {
        // Acquire pairs with the release in `update_next_due`: who sees the due time finds the message.
        self.next_due.load(Ordering::Acquire) <= nanoseconds(uptime)
    }

    /// How many messages are queued.
    pub(in crate::store) fn len(&self) -> usize {
        self.messages.lock().by_due.len()
    }

    /// Queues a message of region `from` that is due at `due`, or with the message that it sent before.
    pub(in crate::store) fn send(&self, from: RegionId, due: Duration, message: ReplicationMessage) {
        let mut messages = self.messages.lock();
        let last = messages.last_due.entry(from).or_default();
        *last = due.max(*last);
        let due = *last;
        messages.sent += 1;
        let position = (due, messages.sent);
        messages.by_due.insert(position, message);
        self.update_next_due(&messages);
    }

    /// The first message that is due by `uptime`, and its position. It stays queued.
    pub(in crate::store) fn first_due(
        &self,
        uptime: Duration,
    ) -> Option<(QueuePosition, ReplicationMessage)> {
        let messages = self.messages.lock();
        let (position, message) =
            messages.by_due.first_key_value().filter(|(position, _)| position.0 <= uptime)?;
        Some((*position, message.clone()))
    }

    /// Removes a message once it has been applied.
    pub(in crate::store) fn take(&self, position: QueuePosition) {
        let mut messages = self.messages.lock();
        messages.by_due.remove(&position);
        self.update_next_due(&messages);
    }

    fn update_next_due(&self, messages: &QueuedMessages) {
        let next = messages.by_due.first_key_value().map_or(NEVER, |((due, _), _)| nanoseconds(*due));
        // Release: see `has_due`.
        self.next_due.store(next, Ordering::Release);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}
