//! The trait of slot leases, and sets of slots.

use async_trait::async_trait;

use super::SLOTS;

/// Shares the dispatch slots out among dispatchers.
///
/// Slots keep dispatchers out of each other's way; they do not protect anything. Two dispatchers that believe to hold
/// the same slot for a moment compete for the locks of its instances, and one of them wins each.
#[async_trait]
pub trait LeaseProvider: Send + Sync {
    /// The slots of this caller, now. A caller that asks for the first time joins the others, and slots are rebalanced;
    /// a caller that has not asked for a while is considered gone.
    async fn acquire_slots(&self, caller_id: u64) -> Vec<u8>;

    /// Gives up the slots of a caller that ends.
    async fn release_slots(&self, caller_id: u64);
}

/// A set of dispatch slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotSet([u64; SLOTS / 64]);

impl SlotSet {
    /// Every slot.
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
}
