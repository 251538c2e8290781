//! Activities that wait for a worker.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use duroxide::providers::{TagFilter, WorkItem};

use crate::clock::{self, Millis, OrderedTime};
use crate::documents::WorkDocument;
use crate::ids::WorkToken;
use crate::store::Versioned;

/// The largest number of unlocked items that are remembered. Those beyond it are found by polls.
const UNLOCKED_MAX: usize = 4096;
/// The largest number of items that are locked before a worker asks for them.
const PREFETCHED_MAX: usize = 256;
/// How long the items that are locked ahead may take to be started, as far as that can be foreseen.
const PREFETCH_TIME: Duration = Duration::from_millis(400);
/// The largest number of items that are being locked ahead at once.
const LOCKING_MAX: usize = 16;
/// The longest time that a result waits for others of its instance.
const GATHERING_TIME_MAX: Duration = Duration::from_millis(5);
/// How long an item that was locked ahead may wait before it is released for others.
const PREFETCH_AGE_MAX: Duration = Duration::from_secs(1);

/// Which items a worker takes.
#[derive(Clone, Debug)]
pub(crate) struct WorkFilter {
    pub(crate) tags: TagFilter,
    /// Whether it takes items of sessions.
    pub(crate) sessions: bool,
}

impl WorkFilter {
    pub(crate) fn matches(&self, document: &WorkDocument) -> bool {
        (self.sessions || document.session_id.is_none()) && self.tags.matches(document.tag.as_deref())
    }
}

/// An item that is locked for a worker of this process.
#[derive(Debug)]
pub(crate) struct LockedWork {
    pub(crate) token: WorkToken,
    pub(crate) item: WorkItem,
    pub(crate) version: Versioned<WorkDocument>,
    pub(crate) locked_at: Millis,
}

/// How many items may be locked ahead, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prefetch {
    pub(crate) items: usize,
    pub(crate) lock_time: Millis,
}

impl Prefetch {
    const NONE: Prefetch = Prefetch { items: 0, lock_time: 0.0 };
}

/// Items that this process knows of: locked for its workers, or free.
#[derive(Debug, Default)]
pub(crate) struct ReadyWork {
    /// By age, as below.
    locked: BTreeMap<(OrderedTime, String), LockedWork>,
    /// By age: the oldest is taken first, however it became known.
    unlocked: BTreeMap<(OrderedTime, String), Versioned<WorkDocument>>,
    /// The filters of workers that wait.
    waiting: Vec<(u64, WorkFilter)>,
    next_waiter: u64,
    /// What the worker that asked last takes, and for how long it locks items.
    recent: Option<(WorkFilter, Millis)>,
    /// The number of items that are about to be added as locked.
    reserved: usize,
    /// The number of items that workers have.
    executing: usize,
    /// The largest number of workers seen lately.
    workers: usize,
    /// The number of items that workers have, by instance.
    executing_of: HashMap<String, usize>,
    /// The usual time from a worker's getting an item to its asking for the next.
    usual_time: Option<Millis>,
    overflowed: bool,
}

impl ReadyWork {
    /// Adds an item that nobody has locked, as the container has it.
    pub(crate) fn add_unlocked(&mut self, version: Versioned<WorkDocument>) {
        if self.unlocked.len() >= UNLOCKED_MAX {
            self.overflowed = true;
        } else {
            self.unlocked.insert(age(&version.document), version);
        }
    }

    /// Adds an item that a poll has found. Returns whether a worker may take it now that could not before.
    pub(crate) fn add_found(&mut self, version: Versioned<WorkDocument>, now: Millis) -> bool {
        let visible = version.document.visible_at <= now;
        let key = age(&version.document);
        if let Some(known) = self.unlocked.get_mut(&key) {
            // What the container has is newer.
            *known = version;
            return false;
        }
        if self.unlocked.len() < UNLOCKED_MAX {
            self.unlocked.insert(key, version);
        }
        visible
    }

    /// Puts an item back that another worker has to take.
    pub(crate) fn put_back(&mut self, version: Versioned<WorkDocument>) {
        self.unlocked.insert(age(&version.document), version);
    }

    /// When the next item becomes visible.
    pub(crate) fn next_due(&self, now: Millis) -> Option<Millis> {
        let times = self.unlocked.values().map(|version| version.document.visible_at);
        times.filter(|at| *at > now).reduce(Millis::min)
    }

    /// Adds an item that was locked for a worker of this process.
    pub(crate) fn add_locked(&mut self, work: LockedWork) {
        self.locked.insert(age(&work.version.document), work);
    }

    /// Takes an item that is locked already, and whose lock lasts long enough.
    pub(crate) fn take_locked(
        &mut self,
        filter: &WorkFilter,
        lock_time: Millis,
        now: Millis,
    ) -> Option<LockedWork> {
        let fits = |work: &LockedWork| {
            let document = &work.version.document;
            filter.matches(document)
                && document.locked_until.is_some_and(|until| until - now >= lock_time * 0.75)
        };
        let key = self.locked.iter().find(|(_, work)| fits(work))?.0.clone();
        self.locked.remove(&key)
    }

    /// Takes an item that has to be locked.
    pub(crate) fn take_unlocked(
        &mut self,
        filter: &WorkFilter,
        now: Millis,
    ) -> Option<Versioned<WorkDocument>> {
        let fits = |version: &Versioned<WorkDocument>| {
            filter.matches(&version.document) && version.document.visible_at <= now
        };
        let key = self.unlocked.iter().find(|(_, version)| fits(version))?.0.clone();
        self.unlocked.remove(&key)
    }

    /// Takes the oldest item that may be locked ahead, with the filter it was chosen by and the time to lock it for. Call
    /// [`ReadyWork::unreserve`] when it is locked, or is not after all.
    pub(crate) fn take_to_lock_ahead(
        &mut self,
        now: Millis,
    ) -> Option<(Versioned<WorkDocument>, WorkFilter, Millis)> {
        if self.reserved >= LOCKING_MAX {
            return None;
        }
        let (filter, _) = self.recent.clone()?;
        let ahead = WorkFilter { sessions: false, ..filter.clone() };
        let version = self.take_unlocked(&ahead, now)?;
        let allowance = self.allowance(&version.document);
        if allowance.items == 0 {
            self.put_back(version);
            return None;
        }
        self.reserved += 1;
        Some((version, filter, allowance.lock_time))
    }

    /// Items that were locked ahead and that no worker has taken in time.
    pub(crate) fn take_aged(&mut self, now: Millis) -> Vec<LockedWork> {
        let age_max = clock::millis(PREFETCH_AGE_MAX);
        let is_aged = |work: &LockedWork| now - work.locked_at > age_max;
        let keys: Vec<_> =
            self.locked.iter().filter(|(_, work)| is_aged(work)).map(|(key, _)| key.clone()).collect();
        let aged: Vec<LockedWork> = keys.iter().filter_map(|key| self.locked.remove(key)).collect();
        if !aged.is_empty() {
            // There may be fewer workers than there were.
            self.workers = self.executing + self.waiting.len();
        }
        aged
    }

    /// All items that were locked ahead.
    pub(crate) fn take_all_locked(&mut self) -> Vec<LockedWork> {
        std::mem::take(&mut self.locked).into_values().collect()
    }

    /// Forgets the items of an instance that was deleted.
    pub(crate) fn forget(&mut self, instance: &str) {
        self.unlocked.retain(|_, version| version.document.instance_id != instance);
        self.locked.retain(|_, work| work.token.instance != instance);
    }

    /// Notes that a worker asks for an item.
    pub(crate) fn note_request(&mut self, filter: &WorkFilter, lock_time: Millis) {
        self.recent = Some((filter.clone(), lock_time));
    }

    /// Notes that a worker waits; returns a number to be given to [`ReadyWork::stop_waiting`].
    pub(crate) fn wait(&mut self, filter: &WorkFilter) -> u64 {
        self.next_waiter += 1;
        self.waiting.push((self.next_waiter, filter.clone()));
        self.workers = self.workers.max(self.executing + self.waiting.len());
        self.next_waiter
    }

    pub(crate) fn stop_waiting(&mut self, waiter: u64) {
        self.waiting.retain(|(number, _)| *number != waiter);
    }

    /// Notes that a worker has an item of an instance.
    pub(crate) fn started(&mut self, instance: &str) {
        self.executing += 1;
        self.workers = self.workers.max(self.executing + self.waiting.len());
        *self.executing_of.entry(instance.to_owned()).or_default() += 1;
    }

    /// Notes that a worker has finished an item of an instance after this time.
    pub(crate) fn finished(&mut self, instance: &str, time: Millis) {
        self.executing = self.executing.saturating_sub(1);
        if let Some(executing) = self.executing_of.get_mut(instance) {
            *executing -= 1;
            if *executing == 0 {
                self.executing_of.remove(instance);
            }
        }
        self.usual_time = Some(self.usual_time.map_or(time, |usual| usual * 0.9 + time * 0.1));
    }

    /// How long to wait for further results of an instance, so that one turn takes them together: not at all unless its
    /// other activities are about to end.
    pub(crate) fn gathering_time(&self, instance: &str) -> Option<Millis> {
        let usual = self.usual_time.filter(|usual| *usual <= clock::millis(GATHERING_TIME_MAX))?;
        let expected = self.executing_of.contains_key(instance)
            || self.locked.values().any(|work| work.token.instance == instance);
        expected.then_some(usual)
    }

    /// How many new items like this one may be locked ahead. Older ones that nobody has locked come first.
    pub(crate) fn prefetch(&self, document: &WorkDocument, now: Millis) -> Prefetch {
        let Some((filter, _)) = &self.recent else { return Prefetch::NONE };
        let waits = |older: &&Versioned<WorkDocument>| {
            older.document.session_id.is_none()
                && older.document.visible_at <= now
                && filter.matches(&older.document)
        };
        let older = self.unlocked.values().filter(waits).take(PREFETCHED_MAX).count();
        let Prefetch { items, lock_time } = self.allowance(document);
        Prefetch { items: items.saturating_sub(older), lock_time }
    }

    /// How many items like this one may be locked ahead: one for each worker that waits, and as many as the busy workers
    /// will have started shortly.
    fn allowance(&self, document: &WorkDocument) -> Prefetch {
        // Which worker may have an item of a session is to be found out first.
        let recent = self.recent.as_ref().filter(|(filter, _)| filter.matches(document));
        let Some((_, lock_time)) = recent.filter(|_| document.session_id.is_none()) else {
            return Prefetch::NONE;
        };
        let waiting = self.waiting.iter().filter(|(_, filter)| filter.matches(document)).count();
        let busy = match self.usual_time {
            Some(usual) => {
                let busy = self.workers.saturating_sub(self.waiting.len()) as Millis;
                (busy * clock::millis(PREFETCH_TIME) / usual.max(0.1)) as usize
            }
            None => 0,
        };
        let items = (waiting + busy).min(PREFETCHED_MAX).saturating_sub(self.locked.len() + self.reserved);
        Prefetch { items, lock_time: *lock_time }
    }

    /// Notes that an item is being locked ahead.
    pub(crate) fn reserve(&mut self) {
        self.reserved += 1;
    }

    /// Notes that items that were being locked ahead were added, or were not locked after all.
    pub(crate) fn unreserve(&mut self, items: usize) {
        self.reserved = self.reserved.saturating_sub(items);
    }

    /// The number of items that wait.
    pub(crate) fn len(&self) -> usize {
        self.locked.len() + self.unlocked.len()
    }

    /// Whether an item was left out since this was last asked.
    pub(crate) fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflowed)
    }
}

/// The place of an item among the others: by age.
fn age(document: &WorkDocument) -> (OrderedTime, String) {
    (OrderedTime(document.enqueued_at), document.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(tag: Option<&str>) -> WorkDocument {
        let item = WorkItem::ActivityExecute {
            instance: "i".to_owned(),
            execution_id: 1,
            id: 2,
            name: "a".to_owned(),
            input: String::new(),
            session_id: None,
            tag: tag.map(str::to_owned),
        };
        WorkDocument::new(&item, 1.0).expect("serializable")
    }

    fn filter(tags: TagFilter) -> WorkFilter {
        WorkFilter { tags, sessions: true }
    }

    #[test]
    fn a_worker_gets_the_first_item_that_fits_it() {
        let mut ready = ReadyWork::default();
        for tag in [Some("gpu"), None] {
            ready.add_unlocked(Versioned { document: document(tag), etag: String::new() });
        }
        let untagged = ready.take_unlocked(&filter(TagFilter::DefaultOnly), 5.0).expect("one");
        assert_eq!(untagged.document.tag, None);
        assert!(ready.take_unlocked(&filter(TagFilter::DefaultOnly), 5.0).is_none());
        assert!(ready.take_unlocked(&filter(TagFilter::tags(["gpu"])), 0.5).is_none(), "not visible yet");
        assert!(ready.take_unlocked(&filter(TagFilter::tags(["gpu"])), 5.0).is_some());
    }

    #[test]
    fn items_are_locked_ahead_for_workers_that_wait_or_will_soon() {
        let mut ready = ReadyWork::default();
        let item = document(None);
        assert_eq!(ready.prefetch(&item, 5.0).items, 0, "nobody asked yet");
        ready.note_request(&filter(TagFilter::DefaultOnly), 30_000.0);
        let first = ready.wait(&filter(TagFilter::DefaultOnly));
        ready.wait(&filter(TagFilter::tags(["gpu"])));
        assert_eq!(ready.prefetch(&item, 5.0), Prefetch { items: 1, lock_time: 30_000.0 });
        ready.started("i");
        ready.finished("i", 10.0);
        ready.started("i");
        assert_eq!(ready.prefetch(&item, 5.0).items, 1 + 40, "activities of 10 ms");
        for _ in 0..200 {
            ready.started("i");
            ready.finished("i", 3_600_000.0);
        }
        assert_eq!(ready.prefetch(&item, 5.0).items, 1, "activities of an hour");
        ready.stop_waiting(first);
        assert_eq!(ready.prefetch(&item, 5.0).items, 0);
    }

    #[test]
    fn older_items_are_locked_ahead_first() {
        let mut ready = ReadyWork::default();
        ready.note_request(&filter(TagFilter::DefaultOnly), 30_000.0);
        for _ in 0..4 {
            ready.wait(&filter(TagFilter::DefaultOnly));
        }
        let at = |enqueued_at| {
            let mut document = document(None);
            (document.enqueued_at, document.visible_at) = (enqueued_at, enqueued_at);
            document
        };
        let unlocked = |document| Versioned { document, etag: String::new() };
        assert_eq!(ready.prefetch(&at(9.0), 9.0).items, 4);
        ready.add_unlocked(unlocked(at(3.0)));
        // One that was locked before and given back.
        ready.put_back(unlocked(at(2.0)));
        assert!(ready.add_found(unlocked(at(1.0)), 9.0));
        assert_eq!(ready.prefetch(&at(9.0), 9.0).items, 1, "three of four places are theirs");
        let order: Vec<Millis> = std::iter::from_fn(|| ready.take_to_lock_ahead(9.0))
            .map(|(version, _, _)| version.document.enqueued_at)
            .collect();
        assert_eq!(order, [1.0, 2.0, 3.0]);
        assert_eq!(ready.prefetch(&at(9.0), 9.0).items, 1, "three of four are being locked");
        ready.unreserve(3);
        ready.add_unlocked(unlocked(at(100.0)));
        assert_eq!(ready.prefetch(&at(9.0), 9.0).items, 4, "one that is not visible yet holds up none");
    }

    #[test]
    fn items_of_sessions_and_of_other_tags_are_not_locked_ahead() {
        let mut ready = ReadyWork::default();
        ready.note_request(&filter(TagFilter::DefaultOnly), 30_000.0);
        ready.wait(&filter(TagFilter::DefaultOnly));
        let mut of_session = document(None);
        of_session.session_id = Some("s".to_owned());
        for document in [of_session, document(Some("gpu"))] {
            ready.add_unlocked(Versioned { document, etag: String::new() });
        }
        assert!(ready.take_to_lock_ahead(5.0).is_none());
        assert_eq!(ready.prefetch(&document(None), 5.0).items, 1, "they hold up no others");
    }
}
