//! Index spaces: what an entry indexes, as eight bytes.
//!
//! A document path is named by a hash of its steps, so no table of paths is needed, and nothing grows with
//! the variety of documents. Continuation tokens carry these bytes, so the hash is part of their format.

pub(crate) use protocol::container::IndexStep as Step;

/// The first eight bytes of an index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexSpace(u64);

/// FNV-1a's prime and offset. By hand, because the hash is extended step by step while a document is walked.
const PRIME: u64 = 0x0000_0100_0000_01B3;
const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;

impl IndexSpace {
    /// The space of the document itself.
    pub(crate) const ROOT: IndexSpace = IndexSpace(OFFSET);
    /// Items by effective partition key: the partition key index.
    pub const EPK: IndexSpace = IndexSpace(1);
    /// Items by the LSN of their newest version: the change feed.
    pub(crate) const LSN: IndexSpace = IndexSpace(2);
    /// Items by the second at which they expire.
    pub(crate) const EXPIRY: IndexSpace = IndexSpace(3);

    /// The path one member deeper.
    pub(crate) fn member(self, name: &str) -> IndexSpace {
        self.extend(1, name.as_bytes())
    }

    /// The path of any element of the array at this path.
    pub(crate) fn element(self) -> IndexSpace {
        self.extend(2, &[])
    }

    /// A composite index or unique key: its parts joined, each marked with its role.
    pub(crate) fn join(self, role: u8, part: IndexSpace) -> IndexSpace {
        self.extend(role, &part.0.to_be_bytes())
    }

    /// The first bytes of an entry in this space.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// The space an entry begins with.
    pub(crate) fn from_bytes(bytes: [u8; 8]) -> IndexSpace {
        IndexSpace(u64::from_be_bytes(bytes))
    }

    fn extend(self, step: u8, bytes: &[u8]) -> IndexSpace {
        let mut hash = (self.0 ^ u64::from(step)).wrapping_mul(PRIME);
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
        IndexSpace(hash)
    }
}

impl<'a> FromIterator<&'a Step> for IndexSpace {
    fn from_iter<I: IntoIterator<Item = &'a Step>>(steps: I) -> IndexSpace {
        steps.into_iter().fold(IndexSpace::ROOT, |space, step| match step {
            Step::Key(name) => space.member(name),
            Step::Element => space.element(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_paths_are_different_spaces() {
        let spaces = [
            IndexSpace::ROOT.member("a").member("b"),
            IndexSpace::ROOT.member("ab"),
            IndexSpace::ROOT.member("a").element(),
            IndexSpace::ROOT.member("a"),
            IndexSpace::ROOT.element().member("a"),
            IndexSpace::ROOT.join(1, IndexSpace::ROOT.member("a")),
        ];
        for (at, space) in spaces.iter().enumerate() {
            assert!(!spaces[..at].contains(space));
        }
    }
}
