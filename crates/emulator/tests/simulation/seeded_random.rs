//! The seeded random source of a simulation: one seed, one run.

/// A `fastrand` generator with the draws that the simulation needs.
#[derive(Clone, Debug)]
pub(crate) struct SeededRandom(fastrand::Rng);

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> SeededRandom {
        SeededRandom(fastrand::Rng::with_seed(seed))
    }

    /// The random source of one step: its draws do not depend on the steps before it, so that a step stays
    /// the same when others are left out.
    pub(crate) fn of_step(seed: u64, step: usize) -> SeededRandom {
        // An odd multiplier keeps different seeds apart before the step is mixed in.
        let seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (step as u64 + 1).rotate_left(32);
        let mut rng = fastrand::Rng::with_seed(seed);
        // The first draw of similar seeds is similar.
        rng.u64(..);
        SeededRandom(rng)
    }

    /// A number from zero to below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        self.0.usize(low..=high)
    }

    /// True in this percentage of all draws.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One element of a slice, all equally likely.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One value of a table, each as likely as its weight.
    pub(crate) fn weighted<T: Copy>(&mut self, table: &[(usize, T)]) -> T {
        let mut at = self.below(table.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in table {
            if at < *weight {
                return *value;
            }
            at -= weight;
        }
        table[0].1
    }
}
