//! Chance that can be repeated. Pure.
//!
//! The n-th request that meets a rule always gets the same draw for the same seed, whatever else
//! happens meanwhile: neither other rules nor other requests use up draws.

use std::f64::consts::TAU;

/// One draw: 64 bits that look random and are a function of what they were made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draw(u64);

impl Draw {
    /// The draw of the `n`-th request that met the rule called `rule`, counted from 0.
    pub(crate) fn of(seed: u64, rule: &str, n: u64) -> Draw {
        let name = rule.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Draw(mix(mix(mix(seed).wrapping_add(name)).wrapping_add(n)))
    }

    /// Another draw from the same one, for another purpose.
    pub(crate) fn another(self) -> Draw {
        Draw(mix(self.0))
    }

    /// A number in `0.0..1.0`.
    pub(crate) fn uniform(self) -> f64 {
        // The upper 53 bits are as many as a float holds exactly.
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number from the standard normal distribution.
    pub(crate) fn normal(self) -> f64 {
        // Never the logarithm of zero.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.another().uniform()).cos()
    }
}

/// SplitMix64: every input bit moves about half of the output's.
fn mix(input: u64) -> u64 {
    let mut z = input.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u64 = 20_000;

    #[test]
    fn the_same_seed_rule_and_turn_draw_the_same_and_any_other_differs() {
        let draw = Draw::of(7, "a", 3);
        assert_eq!(draw, Draw::of(7, "a", 3));
        for other in [Draw::of(8, "a", 3), Draw::of(7, "b", 3), Draw::of(7, "a", 4), draw.another()] {
            assert_ne!(draw, other);
        }
    }

    #[test]
    fn uniform_draws_are_spread_evenly_over_zero_to_one() {
        let mut tenths = [0_u64; 10];
        for n in 0..SAMPLES {
            let value = Draw::of(1, "rule", n).uniform();
            assert!((0.0..1.0).contains(&value), "{value}");
            tenths[(value * 10.0) as usize] += 1;
        }
        for count in tenths {
            assert!((1_800..2_200).contains(&count), "{tenths:?}");
        }
    }

    #[test]
    fn normal_draws_have_their_mean_and_deviation() {
        let values: Vec<f64> = (0..SAMPLES).map(|n| Draw::of(1, "rule", n).normal()).collect();
        let mean = values.iter().sum::<f64>() / SAMPLES as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / SAMPLES as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
