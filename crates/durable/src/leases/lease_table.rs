//! Who has which slots, as one document. Pure: the time is an argument.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::Millis;
use crate::slots::SLOTS;

/// The dispatchers of all processes, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LeaseTable {
    pub(super) members: BTreeMap<String, Member>,
}

/// A dispatcher and its slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Member {
    /// When its slots are free again, unless it renews them.
    pub(super) expires_at: Millis,
    pub(super) slots: Vec<u8>,
}

impl LeaseTable {
    /// The table after a heartbeat of one member: those that expired are gone; the member gives up what exceeds its fair
    /// share and takes free slots up to it.
    pub(super) fn apply_heartbeat(&self, name: &str, now: Millis, expires_at: Millis) -> LeaseTable {
        let mut table = self.clone();
        table.members.retain(|member, lease| member == name || lease.expires_at > now);
        table.members.entry(name.to_owned()).or_insert(Member { expires_at, slots: Vec::new() });
        let share = fair_share(table.members.len(), table.position(name));
        let mut free = [true; SLOTS];
        for (member, lease) in &table.members {
            for slot in lease.slots.iter().filter(|_| member != name) {
                free[*slot as usize] = false;
            }
        }
        let own = table.members.get_mut(name).expect("just inserted");
        own.expires_at = expires_at;
        own.slots.truncate(share);
        for slot in own.slots.clone() {
            // Nobody else has it, unless two members once wrote the same table.
            free[slot as usize] = false;
        }
        for slot in 0..=u8::MAX {
            if own.slots.len() < share && free[slot as usize] {
                own.slots.push(slot);
            }
        }
        own.slots.sort_unstable();
        table
    }

    /// The table without a member.
    pub(super) fn without(&self, name: &str) -> LeaseTable {
        let mut table = self.clone();
        table.members.remove(name);
        table
    }

    fn position(&self, name: &str) -> usize {
        self.members.keys().position(|member| member == name).unwrap_or_default()
    }
}

/// The share of one of several members: the first ones have one slot more if it does not come out even.
fn fair_share(members: usize, position: usize) -> usize {
    SLOTS / members.max(1) + usize::from(position < SLOTS % members.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(table: &LeaseTable) -> Vec<usize> {
        table.members.values().map(|lease| lease.slots.len()).collect()
    }

    fn all_slots(table: &LeaseTable) -> Vec<u8> {
        let mut slots: Vec<u8> =
            table.members.values().flat_map(|lease| lease.slots.iter().copied()).collect();
        slots.sort_unstable();
        slots
    }

    #[test]
    fn slots_are_shared_fairly_and_never_twice() {
        let mut table = LeaseTable::default().apply_heartbeat("a", 0.0, 15.0);
        assert_eq!(counts(&table), [256]);
        for round in 0..4 {
            for name in ["a", "b", "c"] {
                table = table.apply_heartbeat(name, f64::from(round), f64::from(round) + 15.0);
                let slots = all_slots(&table);
                assert!(slots.windows(2).all(|pair| pair[0] != pair[1]), "a slot twice");
            }
        }
        assert_eq!(counts(&table), [86, 85, 85]);
        assert_eq!(all_slots(&table), (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn slots_of_a_member_that_is_silent_or_leaves_are_taken_over() {
        let mut table = LeaseTable::default();
        for name in ["a", "b", "a", "b"] {
            table = table.apply_heartbeat(name, 0.0, 15.0);
        }
        assert_eq!(counts(&table), [128, 128]);
        assert_eq!(counts(&table.apply_heartbeat("a", 14.0, 29.0)), [128, 128]);
        assert_eq!(counts(&table.apply_heartbeat("a", 15.0, 30.0)), [256]);
        assert_eq!(counts(&table.without("b").apply_heartbeat("a", 1.0, 16.0)), [256]);
    }

    #[test]
    fn more_members_than_slots_leave_some_without() {
        let mut table = LeaseTable::default();
        for round in 0..3 {
            for n in 0..300 {
                table = table.apply_heartbeat(&format!("m{n:03}"), f64::from(round), 100.0);
            }
        }
        assert_eq!(all_slots(&table).len(), 256);
    }
}
