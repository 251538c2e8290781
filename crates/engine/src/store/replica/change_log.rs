//! The change log of a replica: its changes, by LSN.
//!
//! Every committed change has an entry with the version it made and the one it replaced. Entries of live
//! versions share them with the state; only superseded versions cost memory, so these are retained for a
//! bounded time and up to a bounded size, and the log knows where it begins.

use std::sync::Arc;

use imbl::OrdMap;
use protocol::lsn::Lsn;

use crate::items::Change;

/// How long superseded versions stay readable.
pub(crate) const LOG_SECONDS_MAX: u64 = 60 * 60;
/// Bytes of superseded versions that a replica retains.
pub(crate) const LOG_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Entries trimmed per change, at most, so that no single commit pays for all.
const TRIM_STEPS_MAX: usize = 8;

/// The changes of one replica, in the order of their LSNs.
#[derive(Clone)]
pub(crate) struct ChangeLog {
    entries: OrdMap<(Lsn, u32), Arc<Change>>,
    superseded_bytes: u64,
    /// Changes up to this LSN have been trimmed.
    trimmed_to: Lsn,
    /// Gaps between two LSNs where a snapshot was restored: the history that it gave up is not in the log.
    gaps: Vec<(Lsn, Lsn)>,
}

impl ChangeLog {
    pub(in crate::store) fn starting_after(lsn: Lsn) -> ChangeLog {
        ChangeLog { entries: OrdMap::new(), superseded_bytes: 0, trimmed_to: lsn, gaps: Vec::new() }
    }

    /// A log that was read from disk: `entries` in order, and nothing up to `trimmed_to`.
    pub(in crate::store) fn restored(
        entries: impl Iterator<Item = (Lsn, u32, Arc<Change>)>,
        trimmed_to: Lsn,
    ) -> ChangeLog {
        let entries: OrdMap<(Lsn, u32), Arc<Change>> =
            entries.map(|(lsn, operation, change)| ((lsn, operation), change)).collect();
        let superseded_bytes = entries.values().map(|change| superseded(change)).sum();
        ChangeLog { entries, superseded_bytes, trimmed_to, gaps: Vec::new() }
    }

    /// Records a gap: the commits after one LSN and before another were given up.
    pub(in crate::store) fn add_gap(&mut self, after: Lsn, before: Lsn) {
        self.gaps.push((after, before));
    }

    /// The LSN of the last change before `lsn` that is in the log.
    pub(in crate::store) fn last_before(&self, lsn: Lsn) -> Option<Lsn> {
        self.entries.range(..(lsn, 0)).next_back().map(|((last, _), _)| *last)
    }

    /// Changes up to this LSN have been trimmed.
    pub(in crate::store) fn trimmed_to(&self) -> Lsn {
        self.trimmed_to
    }

    /// Trims every change up to `lsn`. Cost grows with their number.
    pub(in crate::store) fn trim_to(&mut self, lsn: Lsn) {
        while let Some(first) = self.entries.get_min().map(|(key, _)| *key).filter(|(first, _)| *first <= lsn)
        {
            if let Some(change) = self.entries.remove(&first) {
                self.superseded_bytes -= superseded(&change);
            }
        }
        self.trimmed_to = self.trimmed_to.max(lsn);
        self.gaps.retain(|(_, before)| *before > lsn);
    }

    pub(in crate::store) fn append(&mut self, operation: u32, change: Arc<Change>) {
        self.superseded_bytes += superseded(&change);
        self.entries.insert((change.lsn, operation), change);
    }

    /// The changes after `lsn`, in order; `None` when some of them have been trimmed.
    pub(crate) fn after(&self, lsn: Lsn) -> Option<impl Iterator<Item = &Arc<Change>>> {
        (lsn >= self.trimmed_to).then(|| self.entries.range((Lsn(lsn.0 + 1), 0)..).map(|(_, change)| change))
    }

    /// Whether every change after `lsn` is in the log.
    pub(in crate::store) fn covers(&self, lsn: Lsn) -> bool {
        lsn >= self.trimmed_to
    }

    /// Whether every change after `lsn` is in the log, and `lsn` itself is not in a gap.
    pub(in crate::store) fn contains_lsn(&self, lsn: Lsn) -> bool {
        self.covers(lsn) && !self.gaps.iter().any(|(after, before)| (after.0 + 1..before.0).contains(&lsn.0))
    }

    /// Changes after one LSN, up to and including another, each with its number in its transaction.
    pub(in crate::store) fn entries_between(
        &self,
        after: Lsn,
        up_to: Lsn,
    ) -> impl DoubleEndedIterator<Item = (u32, &Arc<Change>)> {
        let range = (Lsn(after.0 + 1), 0)..(Lsn(up_to.0 + 1), 0);
        self.entries.range(range).map(|((_, operation), change)| (*operation, change))
    }

    /// The LSN of the newest change, or of the last one trimmed.
    pub(in crate::store) fn newest_lsn(&self) -> Lsn {
        self.entries.get_max().map_or(self.trimmed_to, |((lsn, _), _)| *lsn)
    }

    /// Removes the newest change, if it is newer than `lsn`.
    pub(in crate::store) fn pop_newest(&mut self, lsn: Lsn) -> Option<Arc<Change>> {
        let key = self.entries.get_max().map(|(key, _)| *key).filter(|(newest, _)| *newest > lsn)?;
        let change = self.entries.remove(&key)?;
        self.superseded_bytes -= superseded(&change);
        Some(change)
    }

    /// Merges the changes of several logs that `keeps` selects. Those with the same LSN follow each other log
    /// by log.
    pub(in crate::store) fn joined(logs: &[&ChangeLog], keeps: impl Fn(&Change) -> bool) -> ChangeLog {
        let mut entries: OrdMap<(Lsn, u32), Arc<Change>> = OrdMap::new();
        for (history, log) in logs.iter().enumerate() {
            let (mut last, mut index) = (Lsn(0), 0);
            for ((lsn, operation), change) in log.entries.iter().filter(|(_, change)| keeps(change)) {
                // Numbered anew: logs that were merged before have numbers of every size.
                index = if *lsn == last { index + 1 } else { 0 };
                last = *lsn;
                let number = if logs.len() == 1 { *operation } else { ChangeLog::number(history, index) };
                entries.insert((*lsn, number), Arc::clone(change));
            }
        }
        let superseded_bytes = entries.values().map(|change| superseded(change)).sum();
        let trimmed_to = logs.iter().map(|log| log.trimmed_to).max().unwrap_or_default();
        let gaps = logs.iter().flat_map(|log| log.gaps.iter().copied()).collect();
        ChangeLog { entries, superseded_bytes, trimmed_to, gaps }
    }

    /// The number, among changes with the same LSN, of the `index`th one of the `history`th merged log.
    pub(in crate::store) fn number(history: usize, index: u32) -> u32 {
        debug_assert!(history < 1 << 16 && index < 1 << 16, "more than a container has, or a commit");
        (history as u32) << 16 | index
    }

    /// Trims entries that are too old at `now`, or too many, after this number of changes.
    pub(in crate::store) fn trim(&mut self, now: u64, changes: usize) {
        for _ in 0..TRIM_STEPS_MAX.saturating_mul(changes) {
            let Some((_, oldest)) = self.entries.get_min() else { return };
            let too_old = oldest.at + LOG_SECONDS_MAX < now;
            if !too_old && self.superseded_bytes <= LOG_BYTES_MAX {
                return;
            }
            let (key, change) = (oldest.lsn, Arc::clone(oldest));
            self.superseded_bytes -= superseded(&change);
            self.trimmed_to = key;
            let first = self.entries.get_min().map(|(key, _)| *key).expect("the oldest is still there");
            self.entries.remove(&first);
        }
    }
}

fn superseded(change: &Change) -> u64 {
    let removed = change.kind.removes().then_some(&change.item);
    removed.or(change.previous.as_ref()).map_or(0, |item| item.size() as u64)
}
