//! Entries of a partition's index: bytes in the order in which they are scanned.
//!
//! An entry is `space (8) · value (any) · ordinal (8)`. The space says what is indexed (a document path, a
//! composite index, a unique key, the effective partition key, the LSN, the expiry time), the value is
//! order-preserving within the space, and the ordinal identifies the item. So one ordered set of such entries
//! serves every lookup by value.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::space::IndexSpace;
use crate::items::Ordinal;

/// Long enough for a number, a short string or an effective partition key, with space and ordinal.
const INLINE_MAX: usize = 38;
/// Bytes that are compared first: the space, and where most values differ.
const HEAD: usize = 16;

/// One entry, or one end of a range of entries. Most fit without an allocation, which matters:
/// a write copies the tree nodes it touches, and with them some dozens of entries.
#[derive(Clone)]
pub enum IndexKey {
    /// Zeros follow the `length` bytes that count.
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    /// The first bytes again, so that most comparisons need not follow the pointer.
    Shared { head: [u8; HEAD], bytes: Arc<[u8]> },
}

impl IndexKey {
    /// The entry of one item under one term.
    pub(crate) fn of_term(term: &[u8], ordinal: Ordinal) -> IndexKey {
        let tail = ordinal.0.to_be_bytes();
        let length = term.len() + tail.len();
        if length <= INLINE_MAX {
            let mut inline = [0; INLINE_MAX];
            inline[..term.len()].copy_from_slice(term);
            inline[term.len()..length].copy_from_slice(&tail);
            IndexKey::Inline { length: length as u8, bytes: inline }
        } else {
            let mut bytes = Vec::with_capacity(length);
            bytes.extend_from_slice(term);
            bytes.extend_from_slice(&tail);
            let head = *bytes.first_chunk().expect("longer than what fits inline");
            IndexKey::Shared { head, bytes: bytes.into() }
        }
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            IndexKey::Inline { length, bytes } => &bytes[..usize::from(*length)],
            IndexKey::Shared { bytes, .. } => bytes,
        }
    }

    /// The first bytes as two numbers, padded with zeros.
    #[inline]
    fn head(&self) -> [u64; 2] {
        let head: &[u8; HEAD] = match self {
            IndexKey::Inline { bytes, .. } => bytes.first_chunk().expect("longer than a head"),
            IndexKey::Shared { head, .. } => head,
        };
        let [a, b, c, d, e, f, g, h, rest @ ..] = *head;
        [u64::from_be_bytes([a, b, c, d, e, f, g, h]), u64::from_be_bytes(rest)]
    }

    /// The item it points at.
    pub fn ordinal(&self) -> Ordinal {
        let bytes = self.bytes();
        let tail = bytes[bytes.len() - 8..].try_into().expect("an entry ends with eight bytes of ordinal");
        Ordinal(u64::from_be_bytes(tail))
    }

    /// The index space of the entry.
    pub(crate) fn space(&self) -> IndexSpace {
        IndexSpace::from_bytes(self.head()[0].to_be_bytes())
    }

    /// Keyspace and value, without the ordinal.
    pub(crate) fn term(&self) -> &[u8] {
        let bytes = self.bytes();
        &bytes[..bytes.len() - 8]
    }
}

impl Borrow<[u8]> for IndexKey {
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}

impl PartialEq for IndexKey {
    fn eq(&self, other: &IndexKey) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for IndexKey {}

impl PartialOrd for IndexKey {
    fn partial_cmp(&self, other: &IndexKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for IndexKey {
    /// Orders as the bytes do, but most entries differ in their heads. Heads order as the bytes do even where
    /// zeros pad them: nothing is below zero, and equal heads decide nothing.
    #[inline]
    fn cmp(&self, other: &IndexKey) -> Ordering {
        let ([space, value], [other_space, other_value]) = (self.head(), other.head());
        if space != other_space {
            return space.cmp(&other_space);
        }
        if value != other_value {
            return value.cmp(&other_value);
        }
        self.bytes().cmp(other.bytes())
    }
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexKey({:02x?})", self.bytes())
    }
}

/// The first bytes that sort after everything that begins with `prefix`; `None` when nothing does.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_order_by_their_bytes_whether_inline_or_shared() {
        let short = IndexKey::of_term(b"abc", Ordinal(7));
        let long = IndexKey::of_term(&[b'a'; 100], Ordinal(7));
        assert!(matches!(short, IndexKey::Inline { .. }) && matches!(long, IndexKey::Shared { .. }));
        assert!(long < short);
        assert_eq!(std::mem::size_of::<IndexKey>(), 40, "what is compared first costs no memory");
        assert_eq!(short.ordinal(), Ordinal(7));
        assert_eq!(long.ordinal(), Ordinal(7));
        assert_eq!(short.term(), b"abc");
    }

    proptest! {
        #[test]
        fn entries_order_as_their_bytes_do(
            left in prop::collection::vec(0..3_u8, 0..50),
            right in prop::collection::vec(0..3_u8, 0..50),
            ordinals in (0..3_u64, 0..3_u64),
        ) {
            let (a, b) = (IndexKey::of_term(&left, Ordinal(ordinals.0)), IndexKey::of_term(&right, Ordinal(ordinals.1)));
            prop_assert_eq!(a.cmp(&b), a.bytes().cmp(b.bytes()));
            let alike = IndexKey::of_term(&left, Ordinal(ordinals.1));
            prop_assert_eq!(a.cmp(&alike), a.bytes().cmp(alike.bytes()));
            prop_assert_eq!(a == alike, ordinals.0 == ordinals.1);
        }
    }

    #[test]
    fn the_end_of_a_prefix_skips_trailing_ff() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xFF, 0xFF]), None);
    }
}
