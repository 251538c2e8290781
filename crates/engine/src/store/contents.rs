//! Everything a partition holds, while it is taken apart or put together.

use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::EpkRange;

use super::head::Head;
use super::log::Log;
use super::schema::ContainerSchema;
use super::state::PartitionState;
use crate::items::Change;

/// A head and the state behind it.
#[derive(Clone)]
pub(super) struct Contents {
    pub(super) head: Head,
    pub(super) state: PartitionState,
}

impl Contents {
    /// Nothing.
    pub(super) fn empty(schema: &Arc<ContainerSchema>, lsn: Lsn) -> Contents {
        Contents {
            head: Head::new(Arc::clone(schema), lsn),
            state: PartitionState::new(Arc::clone(schema), lsn),
        }
    }

    /// What `parts` hold within `range`, under the rules of the first. Cost grows with the items.
    pub(super) fn of(parts: &[Arc<PartitionState>], range: &EpkRange) -> Contents {
        let schema = Arc::clone(&parts[0].schema);
        let lsn = parts.iter().map(|part| part.lsn).max().unwrap_or_default();
        let logs: Vec<&Log> = parts.iter().map(|part| &part.log).collect();
        let log = Log::joined(&logs, |change| range.contains(&change.item.epk));
        let mut head = Head::new(Arc::clone(&schema), lsn);
        let mut state = PartitionState::with_log(schema, lsn, log);
        for item in parts.iter().flat_map(|part| part.items()).filter(|item| range.contains(&item.epk)) {
            head.insert(item);
            state.insert(item);
        }
        Contents { head, state }
    }

    /// Does again what happened within `range` after it was made, up to `lsn`.
    pub(super) fn follow(&mut self, log: &Log, range: &EpkRange, lsn: Lsn) {
        let since = self.state.lsn;
        let within = |change: &Change| range.contains(&change.item.epk);
        for (_, change) in log.entries_between(since, lsn).filter(|(_, change)| within(change)) {
            self.head.redo(change);
        }
        self.state.go_forward(log, lsn, within);
        self.head.lsn = lsn;
    }

    /// The same where several histories come together: one of them, after one LSN and up to another.
    pub(super) fn follow_one(
        &mut self,
        history: usize,
        log: &Log,
        range: &EpkRange,
        (after, up_to): (Lsn, Lsn),
    ) {
        let (mut lsn, mut index) = (after, 0);
        let within = |change: &Change| range.contains(&change.item.epk);
        for (_, change) in log.entries_between(after, up_to).filter(|(_, change)| within(change)) {
            self.head.redo(change);
            self.state.redo(change);
            index = if change.lsn == lsn { index + 1 } else { 0 };
            lsn = change.lsn;
            self.state.log.append(Log::number(history, index), Arc::clone(change));
        }
        self.state.lsn = self.state.lsn.max(up_to);
        self.head.lsn = self.state.lsn;
    }
}
