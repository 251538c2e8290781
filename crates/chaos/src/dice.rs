//! Chance, from a seed: the same question always has the same answer.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Draws of one seed. A draw is named by what it is for, so that drawing one thing more changes no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The draws for one of many things of a kind.
    pub(crate) fn of(self, what: &str, number: u64) -> Dice {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.extend_from_slice(what.as_bytes());
        Dice(xxh3_64_with_seed(&bytes, self.0))
    }

    /// 0 inclusive to 1 exclusive.
    pub(crate) fn uniform(self) -> f64 {
        // As many bits as a double has digits.
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below `count`, which is at least 1.
    pub(crate) fn below(self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// A seed for somebody else's draws.
    pub(crate) fn seed(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_draw_is_always_the_same_and_different_ones_spread() {
        let dice = Dice::new(7);
        assert_eq!(dice.of("a", 1), dice.of("a", 1));
        assert_ne!(dice.of("a", 1), dice.of("a", 2));
        assert_ne!(dice.of("a", 1), dice.of("b", 1));
        assert_ne!(dice.of("a", 1), Dice::new(8).of("a", 1));
        let mut counts = [0; 4];
        for number in 0..4_000 {
            counts[dice.of("spread", number).below(4)] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        assert_eq!(Dice(u64::MAX).below(3), 2);
        assert_eq!(Dice(0).below(1), 0);
    }
}
