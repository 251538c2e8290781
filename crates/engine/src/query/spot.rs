//! A place in a sorted result, as bytes that order as the rows do.
//!
//! It is what the row is sorted by, then what tells it from the rows that are sorted by the same: the item
//! it is of, the value (DISTINCT) or the group (GROUP BY). A page that begins at such a place returns every
//! row that stands there or behind, whatever was written or deleted in front of it since.

use std::cmp::Ordering;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::items::Ordinal;

/// Bytes of the order that fit a token. Rows that share so many are told apart by their number.
const ORDER_MAX: usize = 384;
/// Bytes of what tells rows apart; of longer ones, their beginning and a hash.
const IDENTITY_MAX: usize = 96;

/// In which direction items follow each other that are sorted by the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    /// In order of creation.
    Forwards,
    /// The other way round: as an index has them that is walked from its end.
    Backwards,
}

/// A place in a sorted result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    bytes: Vec<u8>,
    /// The order was longer than a token has room for, so these bytes are where several rows stand.
    cut: bool,
    pub(crate) ties: Ties,
}

impl Spot {
    /// Where a row stands, as far as a token can say.
    pub(crate) fn at(order: &[u8], identity: &[u8], ties: Ties) -> Spot {
        match order.get(..ORDER_MAX) {
            Some(start) if order.len() > ORDER_MAX => Spot { bytes: start.to_vec(), cut: true, ties },
            _ => Spot { bytes: [order, identity].concat(), cut: false, ties },
        }
    }

    /// Where an index entry stands that was met by a walk, which reads the bytes of entries from their
    /// beginning or, `backwards`, from the end of the index.
    pub(crate) fn of_entry(entry: &[u8], backwards: bool, row: usize) -> Spot {
        let mut bytes = entry[8..].to_vec();
        let ties = if backwards { Ties::Backwards } else { Ties::Forwards };
        if backwards {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        bytes.extend_from_slice(&row_number(row));
        Spot { bytes, cut: false, ties }
    }

    /// Where a row with these bytes stands, seen from here.
    pub(crate) fn compare(&self, bytes: &[u8]) -> Ordering {
        let end = if self.cut { bytes.len().min(self.bytes.len()) } else { bytes.len() };
        bytes[..end].cmp(&self.bytes)
    }

    /// Several rows stand here: how many of them were returned is told by their number.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// A letter and what [`Spot::parse`] reads.
    pub(crate) fn to_text(&self) -> String {
        let kind = match (self.cut, self.ties) {
            (false, Ties::Forwards) => 'K',
            (false, Ties::Backwards) => 'k',
            (true, Ties::Forwards) => 'C',
            (true, Ties::Backwards) => 'c',
        };
        format!("{kind}{}", URL_SAFE_NO_PAD.encode(&self.bytes))
    }

    /// Reads what [`Spot::to_text`] wrote.
    pub(crate) fn parse(kind: &str, value: &str) -> Option<Spot> {
        let (cut, ties) = match kind {
            "K" => (false, Ties::Forwards),
            "k" => (false, Ties::Backwards),
            "C" => (true, Ties::Forwards),
            "c" => (true, Ties::Backwards),
            _ => return None,
        };
        let bytes = URL_SAFE_NO_PAD.decode(value).ok()?;
        (!cut || bytes.len() == ORDER_MAX).then_some(Spot { bytes, cut, ties })
    }
}

/// What tells the rows of one item from all others.
pub(super) fn identity_of_item(Ordinal(ordinal): Ordinal, row: usize, ties: Ties) -> [u8; 12] {
    let mut identity = [0; 12];
    let ordinal = if ties == Ties::Backwards { !ordinal } else { ordinal };
    identity[..8].copy_from_slice(&ordinal.to_be_bytes());
    identity[8..].copy_from_slice(&row_number(row));
    identity
}

fn row_number(row: usize) -> [u8; 4] {
    u32::try_from(row).unwrap_or(u32::MAX).to_be_bytes()
}

/// Short enough for a token, and as good at telling values apart.
pub(super) fn shortened(mut identity: Vec<u8>) -> Vec<u8> {
    if identity.len() > IDENTITY_MAX {
        let hash = fnv(&identity);
        identity.truncate(IDENTITY_MAX - 16);
        identity.extend_from_slice(&hash.to_be_bytes());
    }
    identity
}

/// FNV-1a of 128 bits: the same in every process, as tokens are.
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_that_begin_alike_are_told_apart() {
        let of = |tail: u8| shortened([vec![b'a'; 500], vec![tail]].concat());
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).len(), IDENTITY_MAX);
        assert_eq!(shortened(vec![1, 2]), [1, 2]);
    }

    #[test]
    fn rows_stand_before_at_or_behind_a_spot() {
        let identity = |ordinal, row| identity_of_item(Ordinal(ordinal), row, Ties::Forwards);
        let row = |order: &[u8], ordinal, row| [order, &identity(ordinal, row)].concat();
        let spot = Spot::at(b"b", &identity(5, 1), Ties::Forwards);
        for (bytes, expected) in [
            (row(b"a", 9, 9), Ordering::Less),
            (row(b"b", 4, 9), Ordering::Less),
            (row(b"b", 5, 0), Ordering::Less),
            (row(b"b", 5, 1), Ordering::Equal),
            (row(b"b", 6, 0), Ordering::Greater),
            (row(b"c", 1, 0), Ordering::Greater),
        ] {
            assert_eq!(spot.compare(&bytes), expected, "{bytes:?}");
        }
        let long = [b'x'; ORDER_MAX + 1];
        let group = Spot::at(&long, &identity(5, 0), Ties::Forwards);
        assert!(group.is_cut());
        assert_eq!(group.compare(&row(&long, 1, 0)), Ordering::Equal);
        assert_eq!(group.compare(&row(b"x", 1, 0)), Ordering::Less);
        assert_eq!(group.compare(&row(b"y", 1, 0)), Ordering::Greater);
    }

    #[test]
    fn a_walk_from_the_end_stands_where_its_entry_does() {
        let entry = [b"spacespa".as_slice(), b"value", &7_u64.to_be_bytes()].concat();
        let spot = Spot::of_entry(&entry, true, 0);
        let inverted: Vec<u8> = b"value".iter().map(|byte| !byte).collect();
        let row = [inverted.as_slice(), &identity_of_item(Ordinal(7), 0, Ties::Backwards)].concat();
        assert_eq!(spot.compare(&row), Ordering::Equal);
    }
}
