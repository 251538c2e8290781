//! What a region sees of a partition that another region writes.
//!
//! A region that is 30 ms away sees what the writer had 30 ms ago, and versions are immutable, so it needs
//! no replica of its own: it reads the newest head that is due for it. A read is a comparison and a load;
//! each commit leaves one pointer here, which is dropped once the region has moved on. Queries need the
//! state behind a head; it is derived from the writer's newest state and the change log when it is asked
//! for, at a cost that grows with what was written in between.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use protocol::lsn::Lsn;

use crate::regions::MaxStaleness;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;

/// Heads that wait to be seen, at most. Beyond that, every other one is dropped.
const PENDING_MAX: usize = 16_384;
/// Commits this close to each other become visible together, when the last of them is due.
const COALESCE_WITHIN: Duration = Duration::from_millis(1);
/// The value of `next_due` and `missed_since` when there is nothing to wait for.
const NEVER: u64 = u64::MAX;

/// The view that one region has of another region's version chain.
pub(in crate::store) struct FollowerView {
    visible: ArcSwap<Head>,
    /// When the next head is due, in nanoseconds of uptime.
    next_due: AtomicU64,
    pending: Mutex<VecDeque<PendingHead>>,
    /// When the first commit was made that was not sent here, in nanoseconds of uptime.
    missed_since: AtomicU64,
    /// The state that was derived last.
    cached_state: Mutex<Option<Arc<PartitionState>>>,
}

/// A head that becomes visible when it is due.
struct PendingHead {
    due: Duration,
    committed: Duration,
    head: Arc<Head>,
}

impl FollowerView {
    /// A view that sees `head`.
    pub(in crate::store) fn new(head: Arc<Head>) -> FollowerView {
        FollowerView {
            visible: ArcSwap::new(head),
            next_due: AtomicU64::new(NEVER),
            pending: Mutex::default(),
            missed_since: AtomicU64::new(NEVER),
            cached_state: Mutex::default(),
        }
    }

    /// A view that sees `contents`, and has missed what was committed from `missed` on.
    pub(in crate::store) fn of(contents: ReplicaContents, missed: Option<Duration>) -> FollowerView {
        let view = FollowerView::new(Arc::new(contents.head));
        missed.into_iter().for_each(|committed| view.record_missed(committed));
        *view.cached_state.lock() = Some(Arc::new(contents.state));
        view
    }

    /// The newest head that is due. Never waits for a writer.
    pub(in crate::store) fn head(&self, uptime: Duration) -> Guard<Arc<Head>> {
        // Acquire pairs with the release in `update_next_due`: who sees the due time finds the head.
        if self.next_due.load(Ordering::Acquire) <= nanoseconds(uptime) {
            self.advance(&mut self.pending.lock(), uptime);
        }
        self.visible.load()
    }

    /// The newest head that is due, or a newer one where that would be staler than `bound`.
    pub(in crate::store) fn head_bounded(&self, uptime: Duration, bound: MaxStaleness) -> Guard<Arc<Head>> {
        let mut pending = self.pending.lock();
        self.advance(&mut pending, uptime);
        let newest = pending.back().map_or(Lsn(0), |last| last.head.lsn);
        let too_stale = |next: &PendingHead| {
            next.committed + bound.interval < uptime || next.head.lsn.0 + bound.versions <= newest.0
        };
        while pending.front().is_some_and(too_stale) {
            self.advance_one(&mut pending);
        }
        drop(pending);
        self.visible.load()
    }

    /// Adds a commit of `committed` that is due at `due`, or when those before it are. Heads that are due by
    /// now are dropped on the way.
    pub(in crate::store) fn push(&self, head: &Arc<Head>, committed: Duration, due: Duration) {
        let mut pending = self.pending.lock();
        self.advance(&mut pending, committed);
        let due = pending.back().map_or(due, |last| last.due.max(due));
        if let Some(last) = pending.back_mut().filter(|last| committed <= last.committed + COALESCE_WITHIN) {
            // Freeing the head between them is cheaper now, while its nodes are still in the cache.
            last.head = Arc::clone(head);
            last.due = due;
            self.update_next_due(&pending);
            return;
        }
        if pending.len() >= PENDING_MAX {
            let mut keep = false;
            pending.retain(|_| {
                keep = !keep;
                keep
            });
        }
        pending.push_back(PendingHead { due, committed, head: Arc::clone(head) });
        self.update_next_due(&pending);
    }

    /// Records a commit of `committed` that is not sent here because replication is paused.
    pub(in crate::store) fn record_missed(&self, committed: Duration) {
        // Acquire and release, so that the paused and the resuming thread agree on what was missed.
        self.missed_since.fetch_min(nanoseconds(committed), Ordering::AcqRel);
    }

    /// Sends everything that was missed as one head, which becomes visible at `due`.
    pub(in crate::store) fn catch_up_at(&self, head: &Arc<Head>, uptime: Duration, due: Duration) {
        let missed = self.missed_since.swap(NEVER, Ordering::AcqRel);
        let committed = if missed == NEVER { uptime } else { Duration::from_nanos(missed) };
        self.push(head, committed, due);
    }

    /// When the first commit was made that is not visible at `uptime`.
    pub(in crate::store) fn behind_since(&self, uptime: Duration) -> Option<Duration> {
        let mut pending = self.pending.lock();
        self.advance(&mut pending, uptime);
        // Acquire: see `record_missed`.
        let missed = self.missed_since.load(Ordering::Acquire);
        let missed = (missed != NEVER).then(|| Duration::from_nanos(missed));
        pending.front().map(|next| next.committed).into_iter().chain(missed).min()
    }

    /// Makes `head` visible at once and drops every pending one.
    pub(in crate::store) fn jump_to(&self, head: Arc<Head>) {
        let mut pending = self.pending.lock();
        pending.clear();
        // Release: as in `record_missed` and `update_next_due`.
        self.missed_since.store(NEVER, Ordering::Release);
        self.next_due.store(NEVER, Ordering::Release);
        self.visible.store(head);
    }

    /// The state at `lsn`, or the nearest before it that the log still reaches; `newest` is at or after it.
    pub(in crate::store) fn state(&self, newest: &Arc<PartitionState>, lsn: Lsn) -> Arc<PartitionState> {
        if newest.lsn <= lsn {
            return Arc::clone(newest);
        }
        let mut cached_state = self.cached_state.lock();
        let known = cached_state
            .take()
            .filter(|known| known.lsn <= lsn && Arc::ptr_eq(&known.schema, &newest.schema));
        // The log leads on from it, unless it was trimmed beyond it or a restored snapshot lies between.
        let known = known.filter(|known| known.lsn == lsn || newest.log.contains_lsn(known.lsn));
        let steps_back = newest.lsn.0 - lsn.0;
        let forward = known.filter(|known| lsn.0 - known.lsn.0 <= steps_back || !newest.log.covers(lsn));
        let state = match forward {
            Some(known) if known.lsn == lsn => known,
            Some(mut known) => {
                Arc::make_mut(&mut known).roll_forward(&newest.log, lsn, |_| true);
                known
            }
            None => {
                let mut state = PartitionState::clone(newest);
                state.roll_back(lsn);
                Arc::new(state)
            }
        };
        *cached_state = Some(Arc::clone(&state));
        state
    }

    /// Moves to the newest pending head that is due at `uptime`.
    fn advance(&self, pending: &mut VecDeque<PendingHead>, uptime: Duration) {
        while pending.front().is_some_and(|next| next.due <= uptime) {
            self.advance_one(pending);
        }
    }

    fn advance_one(&self, pending: &mut VecDeque<PendingHead>) {
        if let Some(next) = pending.pop_front() {
            self.visible.store(next.head);
            self.update_next_due(pending);
        }
    }

    fn update_next_due(&self, pending: &VecDeque<PendingHead>) {
        let next = pending.front().map_or(NEVER, |next| nanoseconds(next.due));
        // Release: see `head`.
        self.next_due.store(next, Ordering::Release);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}
