//! Everything a replica holds, while partitions are built, split or merged.

use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::EpkRange;

use crate::items::Change;
use crate::store::replica::change_log::ChangeLog;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;
use crate::store::schema::ContainerSchema;

/// A head and the state it belongs to.
#[derive(Clone)]
pub(in crate::store) struct ReplicaContents {
    pub(in crate::store) head: Head,
    pub(in crate::store) state: PartitionState,
}

impl ReplicaContents {
    /// The contents of an empty replica.
    pub(in crate::store) fn empty(schema: &Arc<ContainerSchema>, lsn: Lsn) -> ReplicaContents {
        ReplicaContents {
            head: Head::new(Arc::clone(schema), lsn),
            state: PartitionState::new(Arc::clone(schema), lsn),
        }
    }

    /// What `parts` hold within `range`, under the schema of the first. Cost grows with the items.
    pub(in crate::store) fn of(parts: &[Arc<PartitionState>], range: &EpkRange) -> ReplicaContents {
        let schema = Arc::clone(&parts[0].schema);
        let lsn = parts.iter().map(|part| part.lsn).max().unwrap_or_default();
        let logs: Vec<&ChangeLog> = parts.iter().map(|part| &part.log).collect();
        let log = ChangeLog::joined(&logs, |change| range.contains(&change.item.epk));
        let mut head = Head::new(Arc::clone(&schema), lsn);
        let mut state = PartitionState::with_log(schema, lsn, log);
        for item in parts.iter().flat_map(|part| part.items()).filter(|item| range.contains(&item.epk)) {
            head.insert(item);
            state.insert(item);
        }
        ReplicaContents { head, state }
    }

    /// Applies the changes of `log` within `range`, up to `lsn`.
    pub(in crate::store) fn roll_forward(&mut self, log: &ChangeLog, range: &EpkRange, lsn: Lsn) {
        let since = self.state.lsn;
        let within = |change: &Change| range.contains(&change.item.epk);
        for (_, change) in log.entries_between(since, lsn).filter(|(_, change)| within(change)) {
            self.head.redo(change);
        }
        self.state.roll_forward(log, lsn, within);
        self.head.lsn = lsn;
    }

    /// Applies the changes of one of several merged histories: those of `log` within `range`, after one LSN
    /// and up to another.
    pub(in crate::store) fn merge_history(
        &mut self,
        history: usize,
        log: &ChangeLog,
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
            self.state.log.append(ChangeLog::number(history, index), Arc::clone(change));
        }
        self.state.lsn = self.state.lsn.max(up_to);
        self.head.lsn = self.state.lsn;
    }
}
