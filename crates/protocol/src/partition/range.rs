//! Ranges of the EPK space.
//!
//! Input and output: half-open ranges of effective partition keys. Which partition owns which range is left
//! to the caller.

use std::fmt;

use super::effective::EffectivePartitionKey;

/// A half-open range of effective partition keys: from `min` up to, but not including, `max`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpkRange {
    /// The smallest key inside the range.
    pub min: EffectivePartitionKey,
    /// The smallest key above the range.
    pub max: EffectivePartitionKey,
}

impl EpkRange {
    /// The range of the whole EPK space.
    pub const FULL: EpkRange = EpkRange { min: EffectivePartitionKey::MIN, max: EffectivePartitionKey::MAX };

    /// The range from `min` up to, but not including, `max`.
    pub fn new(min: EffectivePartitionKey, max: EffectivePartitionKey) -> EpkRange {
        EpkRange { min, max }
    }

    /// The range that holds `key` and no other.
    pub fn point(key: EffectivePartitionKey) -> EpkRange {
        let max = key.followed_by(0);
        EpkRange { min: key, max }
    }

    /// Whether the range holds no key.
    pub fn is_empty(&self) -> bool {
        self.min >= self.max
    }

    /// Whether the range holds `key`.
    pub fn contains(&self, key: &EffectivePartitionKey) -> bool {
        *key >= self.min && *key < self.max
    }

    /// Whether the range holds all of `other`.
    pub fn covers(&self, other: &EpkRange) -> bool {
        self.min <= other.min && other.max <= self.max
    }

    /// Whether the ranges have a key in common.
    pub fn overlaps(&self, other: &EpkRange) -> bool {
        (&self.min).max(&other.min) < (&self.max).min(&other.max)
    }

    /// The keys that both ranges hold, if there are any.
    pub fn intersect(&self, other: &EpkRange) -> Option<EpkRange> {
        let (min, max) = ((&self.min).max(&other.min), (&self.max).min(&other.max));
        (min < max).then(|| EpkRange { min: min.clone(), max: max.clone() })
    }
}

impl fmt::Display for EpkRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{},{})", self.min, self.max)
    }
}

impl fmt::Debug for EpkRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(hex: &str) -> EffectivePartitionKey {
        EffectivePartitionKey::from_hex(hex).expect("hex")
    }

    fn range(min: &str, max: &str) -> EpkRange {
        EpkRange::new(key(min), key(max))
    }

    #[test]
    fn a_range_holds_its_lower_bound_and_not_its_upper() {
        let range = range("10", "20");
        for (hex, inside) in
            [("", false), ("0FFF", false), ("10", true), ("1000", true), ("1FFFFF", true), ("20", false)]
        {
            assert_eq!(range.contains(&key(hex)), inside, "{hex}");
        }
        assert!(EpkRange::FULL.contains(&EffectivePartitionKey::MIN));
        assert!(EpkRange::FULL.contains(&key("3FFF")));
        assert!(!EpkRange::FULL.contains(&EffectivePartitionKey::MAX));
    }

    #[test]
    fn a_point_holds_one_key() {
        let point = EpkRange::point(key("1234"));
        assert!(point.contains(&key("1234")));
        assert!(
            !point.contains(&key("123400")) && !point.contains(&key("1235")) && !point.contains(&key("12"))
        );
    }

    #[test]
    fn neighbours_do_not_overlap() {
        assert!(!range("", "10").overlaps(&range("10", "20")));
        assert!(range("", "11").overlaps(&range("10", "20")));
        assert_eq!(range("", "18").intersect(&range("10", "20")), Some(range("10", "18")));
        assert_eq!(range("", "10").intersect(&range("10", "20")), None);
        assert!(range("10", "10").is_empty());
        assert_eq!(range("10", "20").to_string(), "[10,20)");
    }

    proptest! {
        #[test]
        fn an_intersection_holds_what_both_hold(a in ".{0,3}", b in ".{0,3}", c in ".{0,3}", d in ".{0,3}", probe in ".{0,3}") {
            let key = |text: &str| EffectivePartitionKey::from_bytes(text.as_bytes());
            let (left, right) = (EpkRange::new(key(&a), key(&b)), EpkRange::new(key(&c), key(&d)));
            let probe = key(&probe);
            let both = left.contains(&probe) && right.contains(&probe);
            prop_assert_eq!(left.intersect(&right).is_some_and(|range| range.contains(&probe)), both);
            prop_assert_eq!(left.intersect(&right).is_some(), left.overlaps(&right));
        }
    }
}
