//! What a region sees of a partition that others write to.
//!
//! A region that is 30 ms away sees what the writer had 30 ms ago, and states are immutable: so it
//! need not have a copy of its own. It looks at the newest head that is due for it. Looking is a
//! comparison and a load; commits leave a pointer each, and what everybody is past is let go. The
//! state behind a head, which queries need, is worked out when asked for, from the newest one and the
//! log: at a cost that grows with what was written in between.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use protocol::lsn::Lsn;

use super::contents::Contents;
use super::head::Head;
use super::state::PartitionState;
use crate::regions::MaxStaleness;

/// Heads that wait at the most. Beyond that a region that is far behind sees every other one.
const PENDING_MAX: usize = 16_384;
/// Commits so close to each other are seen together, by when the last of them is due.
const TOGETHER: Duration = Duration::from_millis(1);
/// Nothing waits.
const NEVER: u64 = u64::MAX;

/// One region's view.
pub(super) struct View {
    seen: ArcSwap<Head>,
    /// When the next head is due, in nanoseconds of uptime.
    next_due: AtomicU64,
    pending: Mutex<VecDeque<Pending>>,
    /// When the first commit was made that was never sent here, in nanoseconds of uptime.
    missed_since: AtomicU64,
    /// The state last worked out.
    worked_out: Mutex<Option<Arc<PartitionState>>>,
}

struct Pending {
    due: Duration,
    committed: Duration,
    head: Arc<Head>,
}

impl View {
    /// Sees `head`.
    pub(super) fn new(head: Arc<Head>) -> View {
        View {
            seen: ArcSwap::new(head),
            next_due: AtomicU64::new(NEVER),
            pending: Mutex::default(),
            missed_since: AtomicU64::new(NEVER),
            worked_out: Mutex::default(),
        }
    }

    /// Sees `contents`, and remembers the state. It has missed what was committed from `missed` on.
    pub(super) fn of(contents: Contents, missed: Option<Duration>) -> View {
        let view = View::new(Arc::new(contents.head));
        missed.into_iter().for_each(|committed| view.miss(committed));
        *view.worked_out.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(contents.state));
        view
    }

    /// The newest head that is due. Never waits for a writer.
    pub(super) fn peek(&self, uptime: Duration) -> Guard<Arc<Head>> {
        if self.next_due.load(Ordering::Acquire) <= nanoseconds(uptime) {
            self.advance(&mut self.pending(), uptime);
        }
        self.seen.load()
    }

    /// The same, but no staler than agreed.
    pub(super) fn peek_bounded(&self, uptime: Duration, bound: MaxStaleness) -> Guard<Arc<Head>> {
        let mut pending = self.pending();
        self.advance(&mut pending, uptime);
        let newest = pending.back().map_or(Lsn(0), |last| last.head.lsn);
        let too_stale = |next: &Pending| {
            next.committed + bound.interval < uptime || next.head.lsn.0 + bound.versions <= newest.0
        };
        while pending.front().is_some_and(too_stale) {
            self.take_first(&mut pending);
        }
        drop(pending);
        self.seen.load()
    }

    /// A commit of `committed` that is due at `due`, or when those before it are. What is due by now
    /// is let go on the way.
    pub(super) fn push(&self, head: &Arc<Head>, committed: Duration, due: Duration) {
        let mut pending = self.pending();
        self.advance(&mut pending, committed);
        let due = pending.back().map_or(due, |last| last.due.max(due));
        if let Some(last) = pending.back_mut().filter(|last| committed <= last.committed + TOGETHER) {
            // Letting go of the head between them now is cheaper than in a while.
            last.head = Arc::clone(head);
            last.due = due;
            self.note_next(&pending);
            return;
        }
        if pending.len() >= PENDING_MAX {
            let mut keep = false;
            pending.retain(|_| {
                keep = !keep;
                keep
            });
        }
        pending.push_back(Pending { due, committed, head: Arc::clone(head) });
        self.note_next(&pending);
    }

    /// A commit of `committed` that is not sent here.
    pub(super) fn miss(&self, committed: Duration) {
        self.missed_since.fetch_min(nanoseconds(committed), Ordering::AcqRel);
    }

    /// Everything that was not sent, in one, to be seen at `due`.
    pub(super) fn make_up(&self, head: &Arc<Head>, uptime: Duration, due: Duration) {
        let missed = self.missed_since.swap(NEVER, Ordering::AcqRel);
        let committed = if missed == NEVER { uptime } else { Duration::from_nanos(missed) };
        self.push(head, committed, due);
    }

    /// When the first commit was made that is not seen at `uptime`.
    pub(super) fn behind_since(&self, uptime: Duration) -> Option<Duration> {
        let mut pending = self.pending();
        self.advance(&mut pending, uptime);
        let missed = self.missed_since.load(Ordering::Acquire);
        let missed = (missed != NEVER).then(|| Duration::from_nanos(missed));
        pending.front().map(|next| next.committed).into_iter().chain(missed).min()
    }

    /// Sees `head` at once, whatever was waiting.
    pub(super) fn jump(&self, head: Arc<Head>) {
        let mut pending = self.pending();
        pending.clear();
        self.missed_since.store(NEVER, Ordering::Release);
        self.next_due.store(NEVER, Ordering::Release);
        self.seen.store(head);
    }

    /// The state at `lsn`, or the nearest before it that is still known; `newest` is at or after it.
    pub(super) fn state(&self, newest: &Arc<PartitionState>, lsn: Lsn) -> Arc<PartitionState> {
        if newest.lsn <= lsn {
            return Arc::clone(newest);
        }
        let mut worked_out = self.worked_out.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            worked_out.take().filter(|known| known.lsn <= lsn && Arc::ptr_eq(&known.schema, &newest.schema));
        // The log leads on from it, unless it has forgotten how or tells of another history.
        let known = known.filter(|known| known.lsn == lsn || newest.log.holds(known.lsn));
        let steps_back = newest.lsn.0 - lsn.0;
        let forward = known.filter(|known| lsn.0 - known.lsn.0 <= steps_back || !newest.log.reaches(lsn));
        let state = match forward {
            Some(known) if known.lsn == lsn => known,
            Some(mut known) => {
                Arc::make_mut(&mut known).go_forward(&newest.log, lsn, |_| true);
                known
            }
            None => {
                let mut state = PartitionState::clone(newest);
                state.go_back(lsn);
                Arc::new(state)
            }
        };
        *worked_out = Some(Arc::clone(&state));
        state
    }

    fn advance(&self, pending: &mut VecDeque<Pending>, uptime: Duration) {
        while pending.front().is_some_and(|next| next.due <= uptime) {
            self.take_first(pending);
        }
    }

    fn take_first(&self, pending: &mut VecDeque<Pending>) {
        if let Some(next) = pending.pop_front() {
            self.seen.store(next.head);
            self.note_next(pending);
        }
    }

    fn note_next(&self, pending: &VecDeque<Pending>) {
        let next = pending.front().map_or(NEVER, |next| nanoseconds(next.due));
        self.next_due.store(next, Ordering::Release);
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}
