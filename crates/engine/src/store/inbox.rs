//! Commits of other regions on their way to one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use protocol::partition::EffectivePartitionKey;
use smol_str::SmolStr;

use crate::items::Item;
use crate::regions::RegionId;

/// Nothing waits.
const NEVER: u64 = u64::MAX;

/// Which item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) epk: EffectivePartitionKey,
    pub(super) id: SmolStr,
}

/// One change of one item, as it travels.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    /// Who wrote it, and as which of its commits.
    pub(super) origin: RegionId,
    pub(super) commit: u64,
    /// Which of the letters of whoever sent it.
    pub(super) number: u64,
    pub(super) key: Key,
    /// The entity tag of the version the writer replaced.
    pub(super) base: Option<Bytes>,
    /// The version; none for a deletion.
    pub(super) item: Option<Arc<Item>>,
    /// Seconds since the epoch.
    pub(super) at: u64,
}

/// What is on its way to one region, by when it arrives.
#[derive(Default)]
pub(super) struct Inbox {
    next_due: AtomicU64,
    letters: Mutex<Letters>,
}

/// When a letter arrives, and which of those that arrive then it is.
pub(super) type Place = (Duration, u64);

#[derive(Default)]
struct Letters {
    by_due: BTreeMap<Place, Letter>,
    sent: u64,
    /// Letters of one region arrive in the order in which they were sent.
    last_due: BTreeMap<RegionId, Duration>,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        Inbox { next_due: AtomicU64::new(NEVER), letters: Mutex::default() }
    }

    /// Whether something has arrived by `uptime`. A look, not a lock.
    pub(super) fn has_due(&self, uptime: Duration) -> bool {
        self.next_due.load(Ordering::Acquire) <= nanoseconds(uptime)
    }

    /// How many are on their way.
    pub(super) fn len(&self) -> usize {
        self.letters().by_due.len()
    }

    /// Sends a letter `from` a region that arrives at `due`, or with the one before it.
    pub(super) fn send(&self, from: RegionId, due: Duration, letter: Letter) {
        let mut letters = self.letters();
        let last = letters.last_due.entry(from).or_default();
        *last = due.max(*last);
        let due = *last;
        letters.sent += 1;
        let place = (due, letters.sent);
        letters.by_due.insert(place, letter);
        self.note_next(&letters);
    }

    /// The next letter that has arrived by `uptime`, and where it lies.
    pub(super) fn first_due(&self, uptime: Duration) -> Option<(Place, Letter)> {
        let letters = self.letters();
        let (place, letter) = letters.by_due.first_key_value().filter(|(place, _)| place.0 <= uptime)?;
        Some((*place, letter.clone()))
    }

    /// Takes a letter out, once what it says has been done.
    pub(super) fn take(&self, place: Place) {
        let mut letters = self.letters();
        letters.by_due.remove(&place);
        self.note_next(&letters);
    }

    fn note_next(&self, letters: &Letters) {
        let next = letters.by_due.first_key_value().map_or(NEVER, |((due, _), _)| nanoseconds(*due));
        self.next_due.store(next, Ordering::Release);
    }

    fn letters(&self) -> MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER - 1)
}
