//! Dispatch slots: 256 parts of all instances, which dispatchers share out among themselves.

mod in_memory;
mod lease_provider;
mod lease_table;
mod stored;

pub use in_memory::InMemoryLeaseProvider;
pub use lease_provider::LeaseProvider;
pub(crate) use lease_provider::SlotSet;
pub use stored::CosmosLeaseProvider;

use xxhash_rust::xxh3::xxh3_64;

/// The number of dispatch slots.
pub const SLOTS: usize = 256;

/// The dispatch slot of an instance. It is stored with every message, so the hash never changes: XXH3 of the id, modulo
/// 256.
pub fn dispatch_slot(instance: &str) -> u8 {
    (xxh3_64(instance.as_bytes()) % SLOTS as u64) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

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
