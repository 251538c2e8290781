//! What happened in a partition, by LSN.
//!
//! Every committed change has an entry with the version it made and the one it replaced. Entries
//! of live versions share them with the state; only superseded versions cost memory, so these are
//! kept for a bounded time and up to a bounded size, and the log says where it now begins.

use std::sync::Arc;

use imbl::OrdMap;
use protocol::lsn::Lsn;

use crate::items::Change;

/// How long superseded versions stay readable.
pub(crate) const LOG_SECONDS_MAX: u64 = 60 * 60;
/// How many bytes of superseded versions a partition keeps.
pub(crate) const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Entries dropped per change at the most, so that no single one pays for all.
const TRIM_STEPS_MAX: usize = 8;

/// The changes of one partition.
#[derive(Clone)]
pub(crate) struct Log {
    entries: OrdMap<(Lsn, u32), Arc<Change>>,
    superseded_bytes: u64,
    /// Changes up to here are no longer known.
    forgotten: Lsn,
    /// What happened between two LSNs where something else was put in the place of everything: a history
    /// that was given up, of which nothing is known here.
    gaps: Vec<(Lsn, Lsn)>,
}

impl Log {
    pub(super) fn starting_after(lsn: Lsn) -> Log {
        Log { entries: OrdMap::new(), superseded_bytes: 0, forgotten: lsn, gaps: Vec::new() }
    }

    /// What is known of a history that was read back: `entries` in order, and nothing up to
    /// `forgotten`.
    pub(super) fn restored(entries: impl Iterator<Item = (Lsn, u32, Arc<Change>)>, forgotten: Lsn) -> Log {
        let entries: OrdMap<(Lsn, u32), Arc<Change>> =
            entries.map(|(lsn, operation, change)| ((lsn, operation), change)).collect();
        let superseded_bytes = entries.values().map(|change| superseded(change)).sum();
        Log { entries, superseded_bytes, forgotten, gaps: Vec::new() }
    }

    /// Notes that what happened after one LSN and before another was given up.
    pub(super) fn give_up(&mut self, after: Lsn, before: Lsn) {
        self.gaps.push((after, before));
    }

    /// The LSN of the last change before `lsn` that is known.
    pub(super) fn last_before(&self, lsn: Lsn) -> Option<Lsn> {
        self.entries.range(..(lsn, 0)).next_back().map(|((last, _), _)| *last)
    }

    /// Changes up to here are no longer known.
    pub(super) fn forgotten(&self) -> Lsn {
        self.forgotten
    }

    /// Forgets every change up to `lsn`. Costs grow with how many those are.
    pub(super) fn forget(&mut self, lsn: Lsn) {
        while let Some(first) = self.entries.get_min().map(|(key, _)| *key).filter(|(first, _)| *first <= lsn)
        {
            if let Some(change) = self.entries.remove(&first) {
                self.superseded_bytes -= superseded(&change);
            }
        }
        self.forgotten = self.forgotten.max(lsn);
        self.gaps.retain(|(_, before)| *before > lsn);
    }

    pub(super) fn append(&mut self, operation: u32, change: Arc<Change>) {
        self.superseded_bytes += superseded(&change);
        self.entries.insert((change.lsn, operation), change);
    }

    /// The changes after `lsn`, in order; `None` when some of them are no longer known.
    pub(crate) fn after(&self, lsn: Lsn) -> Option<impl Iterator<Item = &Arc<Change>>> {
        (lsn >= self.forgotten).then(|| self.entries.range((Lsn(lsn.0 + 1), 0)..).map(|(_, change)| change))
    }

    /// Whether every change after `lsn` is still known.
    pub(super) fn reaches(&self, lsn: Lsn) -> bool {
        lsn >= self.forgotten
    }

    /// The same, and `lsn` is part of the history that the changes tell.
    pub(super) fn holds(&self, lsn: Lsn) -> bool {
        self.reaches(lsn) && !self.gaps.iter().any(|(after, before)| (after.0 + 1..before.0).contains(&lsn.0))
    }

    /// Changes after one LSN, up to and with another, each with its place in its transaction.
    pub(super) fn entries_between(
        &self,
        after: Lsn,
        up_to: Lsn,
    ) -> impl DoubleEndedIterator<Item = (u32, &Arc<Change>)> {
        let range = (Lsn(after.0 + 1), 0)..(Lsn(up_to.0 + 1), 0);
        self.entries.range(range).map(|((_, operation), change)| (*operation, change))
    }

    /// The LSN of the newest change, or of the last one forgotten.
    pub(super) fn newest_lsn(&self) -> Lsn {
        self.entries.get_max().map_or(self.forgotten, |((lsn, _), _)| *lsn)
    }

    /// Takes the newest change away, if it is newer than `lsn`.
    pub(super) fn pop_newest(&mut self, lsn: Lsn) -> Option<Arc<Change>> {
        let key = self.entries.get_max().map(|(key, _)| *key).filter(|(newest, _)| *newest > lsn)?;
        let change = self.entries.remove(&key)?;
        self.superseded_bytes -= superseded(&change);
        Some(change)
    }

    /// The changes of several logs that `keeps` says. Those with the same LSN stand one log's after
    /// the other's.
    pub(super) fn joined(logs: &[&Log], keeps: impl Fn(&Change) -> bool) -> Log {
        let mut entries: OrdMap<(Lsn, u32), Arc<Change>> = OrdMap::new();
        for (history, log) in logs.iter().enumerate() {
            let (mut last, mut index) = (Lsn(0), 0);
            for ((lsn, operation), change) in log.entries.iter().filter(|(_, change)| keeps(change)) {
                // Numbered anew: logs that were joined before have numbers of every size.
                index = if *lsn == last { index + 1 } else { 0 };
                last = *lsn;
                let number = if logs.len() == 1 { *operation } else { Log::number(history, index) };
                entries.insert((*lsn, number), Arc::clone(change));
            }
        }
        let superseded_bytes = entries.values().map(|change| superseded(change)).sum();
        let forgotten = logs.iter().map(|log| log.forgotten).max().unwrap_or_default();
        let gaps = logs.iter().flat_map(|log| log.gaps.iter().copied()).collect();
        Log { entries, superseded_bytes, forgotten, gaps }
    }

    /// The place among those with its LSN of a change that was the `index`th with it in one of several
    /// histories.
    pub(super) fn number(history: usize, index: u32) -> u32 {
        debug_assert!(history < 1 << 16 && index < 1 << 16, "more than a container has, or a commit");
        (history as u32) << 16 | index
    }

    /// Forgets what is too old at `now`, or too much, after so many changes.
    pub(super) fn trim(&mut self, now: u64, changes: usize) {
        for _ in 0..TRIM_STEPS_MAX.saturating_mul(changes) {
            let Some((_, oldest)) = self.entries.get_min() else { return };
            let too_old = oldest.at + LOG_SECONDS_MAX < now;
            if !too_old && self.superseded_bytes <= LOG_BYTES_MAX {
                return;
            }
            let (key, change) = (oldest.lsn, Arc::clone(oldest));
            self.superseded_bytes -= superseded(&change);
            self.forgotten = key;
            let first = self.entries.get_min().map(|(key, _)| *key).expect("the oldest is still there");
            self.entries.remove(&first);
        }
    }
}

fn superseded(change: &Change) -> u64 {
    let removed = change.kind.removes().then_some(&change.item);
    removed.or(change.previous.as_ref()).map_or(0, |item| item.size() as u64)
}
