//! Dispatch slots: 256 parts of all instances, which dispatchers share out among themselves.

use xxhash_rust::xxh3::xxh3_64;

/// The number of dispatch slots.
pub const SLOTS: usize = 256;

/// The dispatch slot of an instance. It is stored with every message, so the hash never changes: XXH3 of the id, modulo
/// 256.
pub fn dispatch_slot(instance: &str) -> u8 {
    (xxh3_64(instance.as_bytes()) % SLOTS as u64) as u8
}

/// A set of dispatch slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; SLOTS / 64]);

impl SlotSet {
    /// The set of every slot.
    pub(crate) const ALL: SlotSet = SlotSet([u64::MAX; SLOTS / 64]);

    pub(crate) fn contains(self, slot: u8) -> bool {
        self.0[slot as usize / 64] & (1 << (slot % 64)) != 0
    }

    pub(crate) fn is_all(self) -> bool {
        self == SlotSet::ALL
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == [0; SLOTS / 64]
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |slot| self.contains(*slot))
    }
}

impl FromIterator<u8> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u8>>(slots: I) -> SlotSet {
        let mut set = [0; SLOTS / 64];
        for slot in slots {
            set[slot as usize / 64] |= 1 << (slot % 64);
        }
        SlotSet(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let set: SlotSet = [0, 63, 64, 255].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 255]);
        assert!(!set.is_all() && !set.is_empty());
        assert!((0..=255).collect::<SlotSet>().is_all());
    }

    #[test]
    fn slots_of_known_ids_never_change() {
        let pinned: Vec<u8> =
            ["", "a", "order-1", "order-2", "parent::sub::1", "ordre é"].map(dispatch_slot).to_vec();
        assert_eq!(pinned, [194, 31, 118, 92, 240, 147]);
    }

    #[test]
    fn ids_are_spread_over_all_slots() {
        let mut counts = [0; SLOTS];
        for n in 0..25_600 {
            counts[dispatch_slot(&format!("order-{n}")) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }
}
