//! Random numbers of a rule, repeatable from a seed.
//!
//! The n-th request that a rule matches gets a random source of its own, made from the seed of the set, the id of
//! the rule and n. So the same seed gives the same decisions, whatever other rules and other requests do.

use std::f64::consts::TAU;

use fastrand::Rng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seed of one rule in a set of rules.
pub(crate) fn rule_seed(seed: u64, rule_id: &str) -> u64 {
    xxh3_64_with_seed(rule_id.as_bytes(), seed)
}

/// The random source for the n-th request that a rule matched, counted from 0.
pub(crate) fn rng_of_request(rule_seed: u64, number: u64) -> Rng {
    // Hashed once more: sources with neighbouring seeds would begin with related numbers.
    Rng::with_seed(xxh3_64_with_seed(&number.to_le_bytes(), rule_seed))
}

/// A number from the standard normal distribution (Box and Muller).
pub(crate) fn standard_normal(rng: &mut Rng) -> f64 {
    // `1.0 - x` is above 0, so the logarithm is finite.
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u64 = 20_000;

    fn rng(number: u64) -> Rng {
        rng_of_request(rule_seed(1, "rule"), number)
    }

    #[test]
    fn equal_seed_rule_and_number_give_equal_sources_and_any_other_differs() {
        let first = |seed, rule, number| rng_of_request(rule_seed(seed, rule), number).u64(..);
        let number = first(7, "a", 3);
        assert_eq!(number, first(7, "a", 3));
        for other in [first(8, "a", 3), first(7, "b", 3), first(7, "a", 4)] {
            assert_ne!(number, other);
        }
    }

    #[test]
    fn first_numbers_of_consecutive_requests_are_spread_evenly_over_zero_to_one() {
        let mut tenths = [0_u64; 10];
        for number in 0..SAMPLES {
            let value = rng(number).f64();
            assert!((0.0..1.0).contains(&value), "{value}");
            tenths[(value * 10.0) as usize] += 1;
        }
        for count in tenths {
            assert!((1_800..2_200).contains(&count), "{tenths:?}");
        }
    }

    #[test]
    fn normal_numbers_have_their_mean_and_deviation() {
        let values: Vec<f64> = (0..SAMPLES).map(|number| standard_normal(&mut rng(number))).collect();
        let mean = values.iter().sum::<f64>() / SAMPLES as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / SAMPLES as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
