//! Splitting the EPK space into ranges of equal size.
//!
//! Input: a partition key definition, which determines the form of its effective partition keys, and a
//! range. Output: the boundaries that the service would choose.

use super::definition::{PartitionKeyDefinition, PartitionKeyKind, PartitionKeyVersion};
use super::effective::{EffectivePartitionKey, HASH_V2_MAX, encode_number};
use super::range::EpkRange;

/// `count` ranges (at least one) that cover the EPK space and receive about the same number of keys each.
pub fn even_split(definition: &PartitionKeyDefinition, count: usize) -> Vec<EpkRange> {
    let count = count.max(1) as u128;
    let level_max = level_max(definition);
    // As in the service: each range but the last has the same width, and the last has what is left.
    let boundary = |i: u128| level_max / count * i;
    let mut min = EffectivePartitionKey::MIN;
    let mut ranges = Vec::with_capacity(count as usize);
    for i in 1..count {
        let max = position(definition, &[], boundary(i));
        ranges.push(EpkRange { min, max: max.clone() });
        min = max;
    }
    ranges.push(EpkRange { min, max: EffectivePartitionKey::MAX });
    ranges
}

/// The middle of a range, or `None` if the range cannot be split.
///
/// A range that covers a single first-level value of a hierarchical key is split at the next level.
pub fn split_point(definition: &PartitionKeyDefinition, range: &EpkRange) -> Option<EffectivePartitionKey> {
    let level_max = level_max(definition);
    if is_flat_v1(definition) {
        let low = decode_v1_number(range.min.as_bytes()).unwrap_or(0);
        let high = decode_v1_number(range.max.as_bytes()).unwrap_or(level_max);
        let middle = low + high.saturating_sub(low) / 2;
        return (middle > low).then(|| position(definition, &[], middle)).filter(|at| range.contains(at));
    }
    let mut prefix = Vec::new();
    let mut max = Some(range.max.as_bytes());
    for level in 0..definition.paths.len() {
        let low = level_value(range.min.as_bytes(), level);
        // Once min and max differ, the rest of this level has no upper bound.
        let high = max.map_or(level_max + 1, |bytes| level_value(bytes, level).min(level_max));
        let middle = low + high.saturating_sub(low) / 2;
        if middle > low {
            return Some(position(definition, &prefix, middle)).filter(|at| range.contains(at));
        }
        if high != low {
            max = None;
        }
        prefix.extend_from_slice(&low.to_be_bytes());
    }
    None
}

fn is_flat_v1(definition: &PartitionKeyDefinition) -> bool {
    definition.version() == PartitionKeyVersion::V1 && definition.kind != PartitionKeyKind::MultiHash
}

/// The largest hash of one level.
fn level_max(definition: &PartitionKeyDefinition) -> u128 {
    if is_flat_v1(definition) { u128::from(u32::MAX) } else { HASH_V2_MAX }
}

fn position(definition: &PartitionKeyDefinition, prefix: &[u8], hash: u128) -> EffectivePartitionKey {
    let mut bytes = prefix.to_vec();
    if is_flat_v1(definition) {
        encode_number(hash as f64, &mut bytes);
    } else {
        bytes.extend_from_slice(&hash.to_be_bytes());
    }
    EffectivePartitionKey::from_bytes(&bytes)
}

/// The 16 bytes of one level as a number; missing bytes count as zeros.
fn level_value(bytes: &[u8], level: usize) -> u128 {
    let mut value = [0; 16];
    let part = bytes.get(level * 16..).unwrap_or_default();
    let part = &part[..part.len().min(16)];
    value[..part.len()].copy_from_slice(part);
    u128::from_be_bytes(value)
}

/// The hash at the start of a version 1 EPK; `None` for the ends of the EPK space.
fn decode_v1_number(bytes: &[u8]) -> Option<u128> {
    let (&[mark, first], groups) = bytes.split_first_chunk::<2>()?;
    if mark != 0x05 {
        return None;
    }
    let mut ordered = u64::from(first) << 56;
    let mut shift = 56;
    for group in groups {
        shift -= 7;
        ordered |= u64::from(group >> 1) << shift;
        if group & 1 == 0 || shift == 0 {
            break;
        }
    }
    let value = f64::from_bits(ordered ^ (1 << 63));
    Some(value as u128)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn v1() -> PartitionKeyDefinition {
        PartitionKeyDefinition { stated_version: Some(PartitionKeyVersion::V1), ..v2() }
    }

    fn v2() -> PartitionKeyDefinition {
        PartitionKeyDefinition::hash("/a").expect("a path")
    }

    fn two_levels() -> PartitionKeyDefinition {
        PartitionKeyDefinition::multi_hash(&["/a", "/b"]).expect("paths")
    }

    fn key(hex: &str) -> EffectivePartitionKey {
        EffectivePartitionKey::from_hex(hex).expect("hex")
    }

    #[track_caller]
    fn check(definition: &PartitionKeyDefinition, count: usize, boundaries: &[&str]) {
        let ranges = even_split(definition, count);
        let inner: Vec<String> = ranges.iter().skip(1).map(|range| range.min.to_hex()).collect();
        assert_eq!(inner, boundaries);
        assert_eq!(ranges.len(), count.max(1));
        assert_eq!(ranges[0].min, EffectivePartitionKey::MIN);
        assert_eq!(ranges[ranges.len() - 1].max, EffectivePartitionKey::MAX);
        assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min));
        assert!(ranges.iter().all(|range| !range.is_empty()));
    }

    #[test]
    fn the_epk_space_is_split_where_the_service_splits_it() {
        check(&v2(), 0, &[]);
        check(&v2(), 1, &[]);
        check(&v2(), 2, &["1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"]);
        check(
            &v2(),
            5,
            &[
                "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
                "19999999999999999999999999999998",
                "26666666666666666666666666666664",
                "33333333333333333333333333333330",
            ],
        );
        check(&two_levels(), 2, &["1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"]);
        check(&v1(), 2, &["05C1DFFFFFFFFC"]);
    }

    #[test]
    fn the_split_point_of_the_full_range_is_the_boundary_of_two_ranges() {
        for definition in [v1(), v2(), two_levels()] {
            let middle = split_point(&definition, &EpkRange::FULL).expect("a middle");
            assert_eq!(middle, even_split(&definition, 2)[0].max);
        }
    }

    #[test]
    fn a_single_first_level_value_is_split_at_the_second_level() {
        let tenant = "3A5381E1114EB8D3FCC90795045B49B7";
        let range = EpkRange::new(key(tenant), key(&format!("{tenant}FF")));
        let expected = format!("{tenant}1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
        assert_eq!(split_point(&two_levels(), &range), Some(key(&expected)));
    }

    #[test]
    fn adjacent_values_cannot_be_split() {
        let range =
            EpkRange::new(key("00000000000000000000000000000001"), key("00000000000000000000000000000002"));
        assert_eq!(split_point(&v2(), &range), None);
        let deeper = split_point(&two_levels(), &range).expect("the second level is still whole");
        assert!(range.contains(&deeper));
        let range = EpkRange::new(key("05C1DFFFFFFFFC"), key("05C1E0"));
        assert_eq!(split_point(&v1(), &range), None, "hashes are whole numbers");
    }

    proptest! {
        #[test]
        fn version_1_hashes_are_read_back(hash: u32) {
            let mut bytes = Vec::new();
            encode_number(f64::from(hash), &mut bytes);
            prop_assert_eq!(decode_v1_number(&bytes), Some(u128::from(hash)));
        }

        #[test]
        fn a_split_point_lies_strictly_inside(min in prop::collection::vec(any::<u8>(), 0..48), max in prop::collection::vec(any::<u8>(), 0..48)) {
            let range = EpkRange::new(EffectivePartitionKey::from_bytes(&min), EffectivePartitionKey::from_bytes(&max));
            for definition in [v1(), v2(), two_levels()] {
                if let Some(middle) = split_point(&definition, &range) {
                    prop_assert!(range.contains(&middle) && middle > range.min);
                }
            }
        }

        #[test]
        fn thirty_successive_splits_find_a_split_point(choices in prop::collection::vec(any::<bool>(), 1..30)) {
            for definition in [v1(), v2(), two_levels()] {
                let mut range = EpkRange::FULL;
                for upper in &choices {
                    let middle = split_point(&definition, &range).expect("thirty halvings leave room");
                    range = if *upper { EpkRange::new(middle, range.max) } else { EpkRange::new(range.min, middle) };
                }
            }
        }
    }
}
