//! Seeds of random sources, derived from one seed by name. Pure.
//!
//! Each decision has a seed of its own, derived from what it decides. One more decision therefore changes none of the
//! others, and the same seed always makes the same schedule.

use fastrand::Rng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed for the `number`-th thing of a kind, such as the third fault.
pub(crate) fn derive_seed(seed: u64, kind: &str, number: u64) -> u64 {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.extend_from_slice(kind.as_bytes());
    xxh3_64_with_seed(&bytes, seed)
}

/// A random source for one decision.
pub(crate) fn rng_for(seed: u64, decision: &str) -> Rng {
    Rng::with_seed(derive_seed(seed, decision, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_has_the_same_seed_and_different_names_have_different_ones() {
        assert_eq!(derive_seed(7, "a", 1), derive_seed(7, "a", 1));
        assert_ne!(derive_seed(7, "a", 1), derive_seed(7, "a", 2));
        assert_ne!(derive_seed(7, "a", 1), derive_seed(7, "b", 1));
        assert_ne!(derive_seed(7, "a", 1), derive_seed(8, "a", 1));
    }

    #[test]
    fn values_of_derived_seeds_are_evenly_distributed() {
        let mut counts = [0; 4];
        for number in 0..4_000 {
            counts[rng_for(derive_seed(7, "spread", number), "value").usize(0..4)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}
