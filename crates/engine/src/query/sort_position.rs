//! A position in a sorted result, as bytes that order as the rows do.
//!
//! It is the row's sort key, then what distinguishes it from rows with the same sort key: the item, the value
//! (DISTINCT) or the group (GROUP BY). A page that begins at such a position returns every row that stands
//! there or after it, whatever was written or deleted in front of it since.

use std::cmp::Ordering;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::items::Ordinal;

/// Bytes of the sort key that fit a token. Rows that share these are distinguished by their number.
const ORDER_MAX: usize = 384;
/// Bytes of the identity that fit a token; longer ones are replaced by their beginning and a hash.
const IDENTITY_MAX: usize = 96;

/// Bytes of the identity of one row of an item: the item's ordinal and the number of the row.
pub(super) const IDENTITY_LENGTH: usize = size_of::<Ordinal>() + ROW_NUMBER_LENGTH;
const ROW_NUMBER_LENGTH: usize = size_of::<u32>();

/// The order of items with the same sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TieOrder {
    /// In order of creation.
    Forwards,
    /// Reversed: as an index has them that is scanned from its end.
    Backwards,
}

/// A position in a sorted result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SortPosition {
    bytes: Vec<u8>,
    /// The sort key was longer than a token has room for, so several rows may stand here.
    truncated: bool,
    pub(crate) ties: TieOrder,
}

impl SortPosition {
    /// The position of a row, as far as a token can state it.
    pub(crate) fn at(order: &[u8], identity: &[u8], ties: TieOrder) -> SortPosition {
        match order.get(..ORDER_MAX) {
            Some(start) if order.len() > ORDER_MAX => {
                SortPosition { bytes: start.to_vec(), truncated: true, ties }
            }
            _ => SortPosition { bytes: [order, identity].concat(), truncated: false, ties },
        }
    }

    /// The position of a row whose sort key is stated in full; for positions that no token has to hold.
    pub(super) fn whole(order: &[u8], identity: &[u8], ties: TieOrder) -> SortPosition {
        SortPosition { bytes: [order, identity].concat(), truncated: false, ties }
    }

    /// The index entry of `space` at this position, for a scan from the beginning of the index or, `backwards`,
    /// from its end: the inverse of [`SortPosition::of_entry`].
    pub(super) fn to_entry(&self, space: &[u8; 8], backwards: bool) -> Vec<u8> {
        // An entry ends with the ordinal of its item, and has no number of a row.
        let end = self.bytes.len().saturating_sub(ROW_NUMBER_LENGTH);
        let mut entry = [space.as_slice(), &self.bytes[..end]].concat();
        if backwards {
            entry[space.len()..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        entry
    }

    /// The position of an index entry that a scan reached, which reads entries from the beginning of the
    /// index or, `backwards`, from its end.
    pub(crate) fn of_entry(entry: &[u8], backwards: bool, row: usize) -> SortPosition {
        let mut bytes = entry[8..].to_vec();
        let ties = if backwards { TieOrder::Backwards } else { TieOrder::Forwards };
        if backwards {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        bytes.extend_from_slice(&row_number(row));
        SortPosition { bytes, truncated: false, ties }
    }

    /// Compares a row with these bytes to this position.
    pub(crate) fn compare(&self, bytes: &[u8]) -> Ordering {
        let end = if self.truncated { bytes.len().min(self.bytes.len()) } else { bytes.len() };
        bytes[..end].cmp(&self.bytes)
    }

    /// Whether several rows may stand here, so that those returned have to be counted.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The text form: a letter and what [`SortPosition::parse`] reads.
    pub(crate) fn to_text(&self) -> String {
        let kind = match (self.truncated, self.ties) {
            (false, TieOrder::Forwards) => 'K',
            (false, TieOrder::Backwards) => 'k',
            (true, TieOrder::Forwards) => 'C',
            (true, TieOrder::Backwards) => 'c',
        };
        format!("{kind}{}", URL_SAFE_NO_PAD.encode(&self.bytes))
    }

    /// Parses what [`SortPosition::to_text`] wrote.
    pub(crate) fn parse(kind: &str, value: &str) -> Option<SortPosition> {
        let (truncated, ties) = match kind {
            "K" => (false, TieOrder::Forwards),
            "k" => (false, TieOrder::Backwards),
            "C" => (true, TieOrder::Forwards),
            "c" => (true, TieOrder::Backwards),
            _ => return None,
        };
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        (!truncated || bytes.len() == ORDER_MAX).then_some(SortPosition { bytes, truncated, ties })
    }
}

/// The identity of one row of an item.
pub(super) fn identity_of_item(
    Ordinal(ordinal): Ordinal,
    row: usize,
    ties: TieOrder,
) -> [u8; IDENTITY_LENGTH] {
    let mut identity = [0; IDENTITY_LENGTH];
    let ordinal = if ties == TieOrder::Backwards { !ordinal } else { ordinal };
    identity[..8].copy_from_slice(&ordinal.to_be_bytes());
    identity[8..].copy_from_slice(&row_number(row));
    identity
}

fn row_number(row: usize) -> [u8; 4] {
    u32::try_from(row).unwrap_or(u32::MAX).to_be_bytes()
}

/// Shortens an identity to what a token has room for, with a hash that keeps it distinct.
pub(super) fn shortened(mut identity: Vec<u8>) -> Vec<u8> {
    if identity.len() > IDENTITY_MAX {
        let hash = fnv(&identity);
        identity.truncate(IDENTITY_MAX - 16);
        identity.extend_from_slice(&hash.to_be_bytes());
    }
    identity
}

/// FNV-1a of 128 bits: the same in every process. By hand, because clients hold tokens with this hash, so it
/// is part of their format.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_with_a_common_prefix_stay_distinct() {
        let of = |tail: u8| shortened([vec![b'a'; 500], vec![tail]].concat());
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).len(), IDENTITY_MAX);
        assert_eq!(shortened(vec![1, 2]), [1, 2]);
    }

    #[test]
    fn rows_compare_to_a_sort_position() {
        let identity = |ordinal, row| identity_of_item(Ordinal(ordinal), row, TieOrder::Forwards);
        let row = |order: &[u8], ordinal, row| [order, &identity(ordinal, row)].concat();
        let sort_position = SortPosition::at(b"b", &identity(5, 1), TieOrder::Forwards);
        for (bytes, expected) in [
            (row(b"a", 9, 9), Ordering::Less),
            (row(b"b", 4, 9), Ordering::Less),
            (row(b"b", 5, 0), Ordering::Less),
            (row(b"b", 5, 1), Ordering::Equal),
            (row(b"b", 6, 0), Ordering::Greater),
            (row(b"c", 1, 0), Ordering::Greater),
        ] {
            assert_eq!(sort_position.compare(&bytes), expected, "{bytes:?}");
        }
        let long = [b'x'; ORDER_MAX + 1];
        let group = SortPosition::at(&long, &identity(5, 0), TieOrder::Forwards);
        assert!(group.is_truncated());
        assert_eq!(group.compare(&row(&long, 1, 0)), Ordering::Equal);
        assert_eq!(group.compare(&row(b"x", 1, 0)), Ordering::Less);
        assert_eq!(group.compare(&row(b"y", 1, 0)), Ordering::Greater);
    }

    #[test]
    fn a_backwards_scan_has_the_position_of_its_entry() {
        let entry = [b"spacespa".as_slice(), b"value", &7_u64.to_be_bytes()].concat();
        let sort_position = SortPosition::of_entry(&entry, true, 0);
        let inverted: Vec<u8> = b"value".iter().map(|byte| !byte).collect();
        let row = [inverted.as_slice(), &identity_of_item(Ordinal(7), 0, TieOrder::Backwards)].concat();
        assert_eq!(sort_position.compare(&row), Ordering::Equal);
        assert_eq!(sort_position.to_entry(b"spacespa", true), entry);
        let forwards = SortPosition::of_entry(&entry, false, 3);
        assert_eq!(forwards.to_entry(b"spacespa", false), entry);
    }
}
