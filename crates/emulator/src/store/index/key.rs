//! Entries of a partition's index: bytes in the order in which they are scanned.
//!
//! An entry is `space (8) · value (any) · ordinal (8)`. The space says what is indexed (a document
//! path, a composite index, a unique key, the position on the ring, the LSN, the expiry time), the
//! value is order-preserving within the space, and the ordinal says which item. One ordered set of
//! such entries therefore answers every question that is asked by value.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::space::Space;
use crate::store::Ordinal;

/// Long enough for a number, a short string or a position on the ring, with space and ordinal.
const INLINE_MAX: usize = 38;

/// One entry, or one end of a range of entries. Most fit without an allocation, which matters:
/// a write copies the tree nodes it touches, and with them some dozens of entries.
#[derive(Clone)]
pub(crate) enum IndexKey {
    Inline { length: u8, bytes: [u8; INLINE_MAX] },
    Shared(Arc<[u8]>),
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
            IndexKey::Shared(bytes.into())
        }
    }

    /// All of its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            IndexKey::Inline { length, bytes } => &bytes[..usize::from(*length)],
            IndexKey::Shared(bytes) => bytes,
        }
    }

    /// The item it points at.
    pub(crate) fn ordinal(&self) -> Ordinal {
        let bytes = self.bytes();
        let tail = bytes[bytes.len() - 8..].try_into().expect("an entry ends with eight bytes of ordinal");
        Ordinal(u64::from_be_bytes(tail))
    }

    /// What it is about.
    pub(crate) fn space(&self) -> Space {
        Space::from_bytes(self.bytes()[..8].try_into().expect("an entry begins with its space"))
    }

    /// Space and value, without the ordinal.
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
    fn cmp(&self, other: &IndexKey) -> Ordering {
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
    use super::*;

    #[test]
    fn entries_order_by_their_bytes_whether_inline_or_shared() {
        let short = IndexKey::of_term(b"abc", Ordinal(7));
        let long = IndexKey::of_term(&[b'a'; 100], Ordinal(7));
        assert!(matches!(short, IndexKey::Inline { .. }) && matches!(long, IndexKey::Shared(_)));
        assert!(long < short);
        assert_eq!(short.ordinal(), Ordinal(7));
        assert_eq!(long.ordinal(), Ordinal(7));
        assert_eq!(short.term(), b"abc");
    }

    #[test]
    fn the_end_of_a_prefix_skips_trailing_ff() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xFF, 0xFF]), None);
    }
}
