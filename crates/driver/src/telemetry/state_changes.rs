//! Changes of the state that operations share, and the events that tell of them.
//!
//! The events are emitted after the change, without its lock: a subscriber may take its time.

use super::events;
use crate::routing::{AccountState, PartitionRegion, PartitionState, Region, StateCell, Unavailable};

/// Changes the state of the account, and tells which regions became unavailable or available.
pub(crate) fn update_account(
    account: &StateCell<AccountState>,
    change: impl FnOnce(&AccountState) -> AccountState,
) {
    let changes = account.update_with(|before| {
        let next = change(before);
        let changes = region_changes(before, &next);
        (next, changes)
    });
    for (region, now) in changes {
        match now {
            Some(what) => events::region_unavailable(&region, what),
            None => events::region_available(&region),
        }
    }
}

/// The regions that one state has as unavailable in another way than the other: as they are now.
fn region_changes(before: &AccountState, after: &AccountState) -> Vec<(Region, Option<Unavailable>)> {
    if !before.has_unavailable() && !after.has_unavailable() {
        return Vec::new();
    }
    let mut changes: Vec<(Region, Option<Unavailable>)> = Vec::new();
    for region in before.all().map(|endpoint| endpoint.region()) {
        let now = after.unavailability(region);
        if before.unavailability(region) != now && changes.iter().all(|(known, _)| known != region) {
            changes.push((region.clone(), now));
        }
    }
    changes
}

/// Changes the state of the breakers, and tells whether that of `key` opened or closed.
pub(crate) fn update_breaker(
    partitions: &StateCell<PartitionState>,
    key: &PartitionRegion,
    change: impl FnOnce(&PartitionState) -> PartitionState,
) {
    let (before, after) = partitions.update_with(|partitions| {
        let next = change(partitions);
        let states = (partitions.state_of(key), next.state_of(key));
        (next, states)
    });
    events::breaker_changed(key, before, after);
}

/// Changes the state of many breakers, tells which opened or closed, and returns the output of the change. Looks at
/// every breaker.
pub(crate) fn update_breakers<R>(
    partitions: &StateCell<PartitionState>,
    change: impl FnOnce(&PartitionState) -> (PartitionState, R),
) -> R {
    let (changes, output) = partitions.update_with(|partitions| {
        let (next, output) = change(partitions);
        let states = partitions.breakers().map(|(key, breaker)| (key, breaker.state, next.state_of(key)));
        let changed = states.filter(|(_, before, after)| before != after);
        let changes: Vec<_> = changed.map(|(key, before, after)| (key.clone(), before, after)).collect();
        (next, (changes, output))
    });
    for (key, before, after) in changes {
        events::breaker_changed(&key, before, after);
    }
    output
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::routing::test_accounts::account;

    #[test]
    fn a_region_that_changes_is_one_event() {
        let now = Clock::machine().now();
        let all_up = account(&["A"], &["A", "B"]);
        let region = Region::new("A");
        let no_writes = all_up.mark_unavailable(&region, Unavailable::Writes, now);
        let down = no_writes.mark_unavailable(&region, Unavailable::All, now);
        let still_down = down.mark_unavailable(&region, Unavailable::All, now + Duration::from_secs(1));
        for (before, after, expected) in [
            (&all_up, &all_up, vec![]),
            (&all_up, &no_writes, vec![(region.clone(), Some(Unavailable::Writes))]),
            (&no_writes, &down, vec![(region.clone(), Some(Unavailable::All))]),
            (&down, &still_down, vec![]),
            (&still_down, &still_down.mark_available(&region), vec![(region.clone(), None)]),
        ] {
            assert_eq!(region_changes(before, after), expected);
        }
    }
}
