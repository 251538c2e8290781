//! The event log of an account: what was done to it, and what that caused.
//!
//! In: one short text per event, from operators' commands, from injected faults, and from what the account does
//! by itself. Out: the last events, numbered, with their times. Each event is also a `tracing` event. The memory
//! is bounded; requests are in the request log, not here.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::Duration;

use clock::Clock;
use parking_lot::Mutex;

/// How many events are remembered.
const EVENTS_MAX: usize = 1_000;
/// Characters of a message that are remembered.
const MESSAGE_CHARACTERS_MAX: usize = 400;

/// What kind of thing happened to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The account was read from its data directory.
    Recovery,
    /// A region was taken down.
    RegionDown,
    /// The fault of a region was ended.
    RegionUp,
    /// A region responds as if the account were being removed from it.
    RegionDraining,
    /// Requests to a region are delayed.
    RegionSlow,
    /// Requests to a region are throttled.
    RegionStorm,
    /// A region was added, or listed again.
    RegionAdded,
    /// A region is listed no longer.
    RegionRemoved,
    /// Another region became the write region.
    Failover,
    /// The writes of one partition moved to another region.
    PartitionFailover,
    /// Replication to a region was paused.
    ReplicationPaused,
    /// Replication to a region was resumed.
    ReplicationResumed,
    /// The replication lag was set.
    ReplicationLag,
    /// A partition was split.
    Split,
    /// Several partitions were merged into one.
    Merge,
    /// A snapshot of the account was saved.
    SnapshotSaved,
    /// The account was restored from a snapshot.
    SnapshotRestored,
    /// A fault rule was added or replaced.
    FaultAdded,
    /// A fault rule was removed.
    FaultRemoved,
    /// A fault ended by itself.
    FaultEnded,
    /// A region's port refuses connections, and those that were open were reset.
    PortClosed,
    /// A region's port swallows connections.
    PortSilent,
    /// A region's port accepts connections again.
    PortOpened,
}

impl EventKind {
    /// The name of the kind, as the control port shows it.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Recovery => "recovery",
            EventKind::RegionDown => "regionDown",
            EventKind::RegionUp => "regionUp",
            EventKind::RegionDraining => "regionDraining",
            EventKind::RegionSlow => "regionSlow",
            EventKind::RegionStorm => "regionStorm",
            EventKind::RegionAdded => "regionAdded",
            EventKind::RegionRemoved => "regionRemoved",
            EventKind::Failover => "failover",
            EventKind::PartitionFailover => "partitionFailover",
            EventKind::ReplicationPaused => "replicationPaused",
            EventKind::ReplicationResumed => "replicationResumed",
            EventKind::ReplicationLag => "replicationLag",
            EventKind::Split => "split",
            EventKind::Merge => "merge",
            EventKind::SnapshotSaved => "snapshotSaved",
            EventKind::SnapshotRestored => "snapshotRestored",
            EventKind::FaultAdded => "faultAdded",
            EventKind::FaultRemoved => "faultRemoved",
            EventKind::FaultEnded => "faultEnded",
            EventKind::PortClosed => "portClosed",
            EventKind::PortSilent => "portSilent",
            EventKind::PortOpened => "portOpened",
        }
    }
}

/// One thing that happened to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counts all events of the account, from 1.
    pub number: u64,
    /// When it happened, by the clock that never goes back.
    pub uptime: Duration,
    /// What kind of thing happened.
    pub kind: EventKind,
    /// The name of the region it happened in, if it is about one.
    pub region: Option<String>,
    /// What happened, as a sentence.
    pub message: String,
}

/// The last events of an account.
#[derive(Debug, Default)]
pub struct EventLog {
    clock: OnceLock<Clock>,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    newest: u64,
    events: VecDeque<Event>,
}

impl EventLog {
    /// Takes the times of events from this clock; events before it have the uptime zero.
    pub fn set_clock(&self, clock: Clock) {
        // Fails only if it was set before, and an account is started once.
        let _ = self.clock.set(clock);
    }

    /// Records an event, about one region or about all.
    pub fn record(&self, kind: EventKind, region: Option<&str>, message: impl Into<String>) {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
            message.truncate(end);
        }
        tracing::info!(event = kind.name(), region, "{message}");
        let uptime = self.clock.get().map_or(Duration::ZERO, Clock::uptime);
        let mut entries = self.entries.lock();
        entries.newest += 1;
        let (number, region) = (entries.newest, region.map(str::to_owned));
        entries.events.push_back(Event { number, uptime, kind, region, message });
        if entries.events.len() > EVENTS_MAX {
            entries.events.pop_front();
        }
    }

    /// The last events after a number that `wanted` accepts, newest first, at most `limit`, and the number of
    /// the newest event.
    pub fn latest(&self, after: u64, limit: usize, wanted: impl Fn(&Event) -> bool) -> (u64, Vec<Event>) {
        let entries = self.entries.lock();
        let newest_first = entries.events.iter().rev().take_while(|event| event.number > after);
        (entries.newest, newest_first.filter(|event| wanted(event)).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_events_are_remembered_and_long_messages_are_cut() {
        let log = EventLog::default();
        for number in 0..EVENTS_MAX + 5 {
            log.record(EventKind::Split, None, number.to_string());
        }
        log.record(EventKind::RegionDown, Some("East US"), "é".repeat(9_000));
        let (newest, all) = log.latest(0, usize::MAX, |_| true);
        assert_eq!((newest, all.len()), (EVENTS_MAX as u64 + 6, EVENTS_MAX));
        assert_eq!(all[0].message.chars().count(), MESSAGE_CHARACTERS_MAX);
        let (_, some) = log.latest(newest - 3, 2, |event| event.kind == EventKind::Split);
        assert_eq!(some.iter().map(|event| event.number).collect::<Vec<_>>(), [newest - 1, newest - 2]);
    }
}
