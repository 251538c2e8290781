//! Numbers out of numbers.

/// The one in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value below which this share of the sorted `values` is.
pub fn percentile(sorted: &[u32], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(f64::NAN, |value| f64::from(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_medians_are_of_what_was_counted() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(percentile(&sorted, 0.5), 51.0);
        assert_eq!(percentile(&sorted, 0.99), 100.0);
        assert_eq!(percentile(&[7], 0.99), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
    }
}
