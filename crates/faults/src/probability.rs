//! How likely a rule is to apply to a request that it matches.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// A probability above 0 and at most 1. Checked when the rule is added, like everything else in a rule.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(pub f64);

impl Probability {
    /// Decides for one request, with one number of `rng`.
    pub fn decide(self, rng: &mut Rng) -> bool {
        rng.f64() < self.0
    }

    /// What is wrong with the number, if anything.
    pub(crate) fn problem(self) -> Option<String> {
        let Probability(share) = self;
        let is_possible = share > 0.0 && share <= 1.0;
        (!is_possible)
            .then(|| format!("a share of {share} is impossible; expected more than 0 and at most 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_decides_for_its_share_of_the_requests() {
        let mut rng = Rng::with_seed(1);
        let mut count =
            |probability: f64| (0..10_000).filter(|_| Probability(probability).decide(&mut rng)).count();
        assert!((2_800..3_200).contains(&count(0.3)));
        assert_eq!(count(1.0), 10_000);
    }

    #[test]
    fn numbers_that_are_no_probability_are_named() {
        for share in [0.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            let problem = Probability(share).problem().unwrap_or_else(|| panic!("{share} is possible"));
            assert!(problem.contains(&share.to_string()), "{problem}");
        }
        assert_eq!(Probability(1.0).problem(), None);
    }
}
