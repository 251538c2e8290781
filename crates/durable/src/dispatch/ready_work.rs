//! Activities that wait for a worker.

use std::collections::VecDeque;
use std::time::Duration;

use duroxide::providers::{TagFilter, WorkItem};

use crate::clock::{self, Millis};
use crate::documents::WorkDocument;
use crate::ids::WorkToken;
use crate::store::Versioned;

/// The largest number of unlocked items that are remembered. Those beyond it are found by polls.
const UNLOCKED_MAX: usize = 4096;
/// The largest number of items that are locked before a worker asks for them.
const PREFETCHED_MAX: usize = 64;
/// How long the items that are locked ahead may take to be started, as far as that can be foreseen.
const PREFETCH_TIME: Duration = Duration::from_millis(200);
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

/// Items that this process knows of: locked for its workers, or free.
#[derive(Debug, Default)]
pub(crate) struct ReadyWork {
    locked: VecDeque<LockedWork>,
    unlocked: VecDeque<Versioned<WorkDocument>>,
    /// The filters of workers that wait.
    waiting: Vec<(u64, WorkFilter)>,
    next_waiter: u64,
    /// What the worker that asked last takes, and for how long it locks items.
    recent: Option<(WorkFilter, Millis)>,
    /// The number of items that are about to be added as locked.
    reserved: usize,
    /// The number of items that workers have.
    executing: usize,
    /// The usual time from a worker's getting an item to its asking for the next.
    usual_time: Option<Millis>,
    overflowed: bool,
}

impl ReadyWork {
    /// Adds an item that nobody has locked, as the container has it.
    pub(crate) fn add_unlocked(&mut self, version: Versioned<WorkDocument>) {
        if self.unlocked.len() >= UNLOCKED_MAX {
            self.overflowed = true;
        } else if !self.unlocked.iter().rev().take(256).any(|known| known.document.id == version.document.id)
        {
            self.unlocked.push_back(version);
        }
    }

    /// Adds an item that a poll has found. Returns whether a worker may take it now.
    pub(crate) fn add_found(&mut self, version: Versioned<WorkDocument>, now: Millis) -> bool {
        let id = &version.document.id;
        if let Some(known) = self.unlocked.iter_mut().find(|known| known.document.id == *id) {
            // What the container has is newer.
            *known = version;
            return false;
        }
        let visible = version.document.visible_at <= now;
        if self.unlocked.len() < UNLOCKED_MAX {
            self.unlocked.push_back(version);
        }
        visible
    }

    /// Puts an item back that another worker has to take.
    pub(crate) fn put_back(&mut self, version: Versioned<WorkDocument>) {
        self.unlocked.push_front(version);
    }

    /// When the next item becomes visible.
    pub(crate) fn next_due(&self, now: Millis) -> Option<Millis> {
        let times = self.unlocked.iter().map(|version| version.document.visible_at);
        times.filter(|at| *at > now).reduce(Millis::min)
    }

    /// Adds an item that was locked for a worker of this process.
    pub(crate) fn add_locked(&mut self, work: LockedWork) {
        self.locked.push_back(work);
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
        let at = self.locked.iter().position(fits)?;
        self.locked.remove(at)
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
        let at = self.unlocked.iter().position(fits)?;
        self.unlocked.remove(at)
    }

    /// Items that were locked ahead and that no worker has taken in time.
    pub(crate) fn take_aged(&mut self, now: Millis) -> Vec<LockedWork> {
        let age_max = clock::millis(PREFETCH_AGE_MAX);
        let (aged, fresh) = std::mem::take(&mut self.locked)
            .into_iter()
            .partition::<VecDeque<_>, _>(|work| now - work.locked_at > age_max);
        self.locked = fresh;
        aged.into()
    }

    /// All items that were locked ahead.
    pub(crate) fn take_all_locked(&mut self) -> Vec<LockedWork> {
        std::mem::take(&mut self.locked).into()
    }

    /// Forgets the items of an instance that was deleted.
    pub(crate) fn forget(&mut self, instance: &str) {
        self.unlocked.retain(|version| version.document.instance_id != instance);
        self.locked.retain(|work| work.token.instance != instance);
    }

    /// Notes that a worker asks for an item.
    pub(crate) fn note_request(&mut self, filter: &WorkFilter, lock_time: Millis) {
        self.recent = Some((filter.clone(), lock_time));
    }

    /// Notes that a worker waits; returns a number to be given to [`ReadyWork::stop_waiting`].
    pub(crate) fn wait(&mut self, filter: &WorkFilter) -> u64 {
        self.next_waiter += 1;
        self.waiting.push((self.next_waiter, filter.clone()));
        self.next_waiter
    }

    pub(crate) fn stop_waiting(&mut self, waiter: u64) {
        self.waiting.retain(|(number, _)| *number != waiter);
    }

    /// Notes that a worker has an item.
    pub(crate) fn started(&mut self) {
        self.executing += 1;
    }

    /// Notes that a worker has finished an item after this time.
    pub(crate) fn finished(&mut self, time: Millis) {
        self.executing = self.executing.saturating_sub(1);
        self.usual_time = Some(self.usual_time.map_or(time, |usual| usual * 0.9 + time * 0.1));
    }

    /// How many items like this one may be locked ahead: one for each worker that waits, and as many as the busy workers
    /// will have started shortly.
    pub(crate) fn prefetch(&self, document: &WorkDocument) -> Prefetch {
        let none = Prefetch { items: 0, lock_time: 0.0 };
        // Which worker may have an item of a session is to be found out first.
        let recent = self.recent.as_ref().filter(|(filter, _)| filter.matches(document));
        let Some((_, lock_time)) = recent.filter(|_| document.session_id.is_none()) else { return none };
        let waiting = self.waiting.iter().filter(|(_, filter)| filter.matches(document)).count();
        let workers = self.executing as Millis;
        let busy = match self.usual_time {
            Some(usual) if self.executing > 0 => {
                (workers * clock::millis(PREFETCH_TIME) / usual.max(0.1)) as usize
            }
            _ => 0,
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
        assert_eq!(ready.prefetch(&item).items, 0, "nobody asked yet");
        ready.note_request(&filter(TagFilter::DefaultOnly), 30_000.0);
        let first = ready.wait(&filter(TagFilter::DefaultOnly));
        ready.wait(&filter(TagFilter::tags(["gpu"])));
        assert_eq!(ready.prefetch(&item), Prefetch { items: 1, lock_time: 30_000.0 });
        ready.started();
        ready.finished(10.0);
        ready.started();
        assert_eq!(ready.prefetch(&item).items, 1 + 20, "activities of 10 ms");
        for _ in 0..200 {
            ready.started();
            ready.finished(3_600_000.0);
        }
        assert_eq!(ready.prefetch(&item).items, 1, "activities of an hour");
        ready.stop_waiting(first);
        assert_eq!(ready.prefetch(&item).items, 0);
    }
}
