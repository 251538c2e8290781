//! What one commit changes on disk: keys that get values, and keys that go.
//!
//! A batch is the payload of one journal record, so it happens as a whole or not at all. Keys live in
//! three spaces, each a tree of its own once it leaves the journal.

use bytes::Bytes;

use super::coding::{Malformed, Reader, put_bytes, put_number};
use super::record;

/// Which tree a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Space {
    /// The account's resources.
    Catalog,
    /// The newest version of every item.
    Items,
    /// What happened, by LSN, with the versions that are no longer the newest.
    Log,
}

impl Space {
    /// All of them.
    pub(crate) const ALL: [Space; 3] = [Space::Catalog, Space::Items, Space::Log];

    /// The folder of its tree.
    pub(super) fn name(self) -> &'static str {
        match self {
            Space::Catalog => "catalog",
            Space::Items => "items",
            Space::Log => "log",
        }
    }
}

/// One key's fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) space: Space,
    pub(super) key: Bytes,
    /// The new value, or `None` when the key goes.
    pub(super) value: Option<Bytes>,
}

/// What a journal record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// A commit.
    Changes(Vec<Change>),
    /// Every record up to this one has reached the disk.
    Synced(u64),
}

const KIND_CHANGES: u8 = 1;
const KIND_SYNCED: u8 = 2;
/// Set in the byte that names the space when the key goes.
const REMOVED: u8 = 0x80;

/// A commit being written down.
#[derive(Debug)]
pub(crate) struct Batch {
    frame: Vec<u8>,
}

impl Batch {
    /// An empty batch with room for `capacity` bytes.
    pub(crate) fn new(capacity: usize) -> Batch {
        let mut frame = record::begin(capacity + 1);
        frame.push(KIND_CHANGES);
        Batch { frame }
    }

    /// Gives `key` a value, which `write` appends.
    pub(crate) fn put(&mut self, space: Space, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.frame.push(space as u8);
        put_bytes(&mut self.frame, key);
        // The length comes first and is known last: four bytes are kept free for it.
        let at = self.frame.len();
        self.frame.extend_from_slice(&[0; 4]);
        write(&mut self.frame);
        let length = (self.frame.len() - at - 4) as u32;
        self.frame[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Takes `key` away.
    pub(crate) fn remove(&mut self, space: Space, key: &[u8]) {
        self.frame.push(space as u8 | REMOVED);
        put_bytes(&mut self.frame, key);
    }

    /// Whether it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.frame.len() == record::HEADER_LENGTH + 1
    }

    pub(super) fn into_frame(self) -> Vec<u8> {
        self.frame
    }
}

/// The frame of a mark: everything up to `sequence` has reached the disk.
pub(super) fn mark(sequence: u64) -> Vec<u8> {
    let mut frame = record::begin(11);
    frame.push(KIND_SYNCED);
    put_number(&mut frame, sequence);
    frame
}

/// Reads a payload back; keys and values are slices of it.
pub(super) fn read(payload: &Bytes) -> Result<Payload, Malformed> {
    let mut reader = Reader::new(payload);
    match reader.byte()? {
        KIND_CHANGES => read_changes(payload, reader).map(Payload::Changes),
        KIND_SYNCED => {
            let sequence = reader.number()?;
            reader.end()?;
            Ok(Payload::Synced(sequence))
        }
        _ => Err(Malformed),
    }
}

fn read_changes(payload: &Bytes, mut reader: Reader<'_>) -> Result<Vec<Change>, Malformed> {
    let mut changes = Vec::new();
    while reader.left() > 0 {
        let tag = reader.byte()?;
        let space = *Space::ALL.get(usize::from(tag & !REMOVED)).ok_or(Malformed)?;
        let key = payload.slice_ref(reader.bytes()?);
        let value = if tag & REMOVED == 0 { Some(payload.slice_ref(reader.long_bytes()?)) } else { None };
        changes.push(Change { space, key, value });
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn payload_of(frame: &[u8]) -> Bytes {
        Bytes::copy_from_slice(&frame[record::HEADER_LENGTH..])
    }

    proptest! {
        #[test]
        fn a_batch_is_read_back(wanted: Vec<(u8, Vec<u8>, Option<Vec<u8>>)>) {
            let mut batch = Batch::new(0);
            prop_assert!(batch.is_empty());
            for (space, key, value) in &wanted {
                let space = Space::ALL[usize::from(space % 3)];
                match value {
                    Some(value) => batch.put(space, key, |to| to.extend_from_slice(value)),
                    None => batch.remove(space, key),
                }
            }
            let Ok(Payload::Changes(changes)) = read(&payload_of(&batch.into_frame())) else {
                panic!("a batch is changes");
            };
            prop_assert_eq!(changes.len(), wanted.len());
            for (change, (space, key, value)) in changes.into_iter().zip(wanted) {
                prop_assert_eq!(change.space, Space::ALL[usize::from(space % 3)]);
                prop_assert_eq!(&change.key[..], &key[..]);
                prop_assert_eq!(change.value.map(|value| value.to_vec()), value);
            }
        }

        #[test]
        fn no_payload_makes_the_reader_panic(bytes: Vec<u8>) {
            let _ = read(&Bytes::from(bytes));
        }
    }

    #[test]
    fn a_mark_is_read_back() {
        assert_eq!(read(&payload_of(&mark(77))), Ok(Payload::Synced(77)));
    }
}
