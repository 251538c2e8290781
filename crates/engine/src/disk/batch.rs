//! What one commit changes on disk: keys that get values, and keys that go.
//!
//! A batch is the payload of one journal record, so it happens as a whole or not at all, in the order in
//! which it was put together. Keys live in four spaces, each a tree of its own once it leaves the journal.

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
    /// Where every region writes: what is on its way between them, how far each is, and what lost.
    Mesh,
}

impl Space {
    /// All of them.
    pub(crate) const ALL: [Space; 4] = [Space::Catalog, Space::Items, Space::Log, Space::Mesh];

    /// The folder of its tree.
    pub(super) fn name(self) -> &'static str {
        match self {
            Space::Catalog => "catalog",
            Space::Items => "items",
            Space::Log => "log",
            Space::Mesh => "mesh",
        }
    }
}

/// The fate of one key, or of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) space: Space,
    pub(super) key: Bytes,
    pub(super) fate: Fate,
}

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It gets this value.
    Put(Bytes),
    /// It goes.
    Removed,
    /// It goes, and so does every key between it and this one, which stays.
    RemovedUpTo(Bytes),
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
/// The same when others go with it.
const REMOVED_UP_TO: u8 = 0x40;

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

    /// Makes room for `bytes` more.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.frame.reserve(bytes);
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

    /// Takes every key in `[from, to)` away.
    pub(crate) fn remove_range(&mut self, space: Space, from: &[u8], to: &[u8]) {
        self.frame.push(space as u8 | REMOVED_UP_TO);
        put_bytes(&mut self.frame, from);
        put_bytes(&mut self.frame, to);
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
        let space = usize::from(tag & !(REMOVED | REMOVED_UP_TO));
        let space = *Space::ALL.get(space).ok_or(Malformed)?;
        let key = payload.slice_ref(reader.bytes()?);
        let fate = match tag & (REMOVED | REMOVED_UP_TO) {
            0 => Fate::Put(payload.slice_ref(reader.long_bytes()?)),
            REMOVED => Fate::Removed,
            REMOVED_UP_TO => Fate::RemovedUpTo(payload.slice_ref(reader.bytes()?)),
            _ => return Err(Malformed),
        };
        changes.push(Change { space, key, fate });
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
        fn a_batch_is_read_back(wanted: Vec<(u8, Vec<u8>, u8, Vec<u8>)>) {
            let mut batch = Batch::new(0);
            prop_assert!(batch.is_empty());
            let space = |space: &u8| Space::ALL[usize::from(space % 4)];
            for (of, key, fate, value) in &wanted {
                match fate % 3 {
                    0 => batch.put(space(of), key, |to| to.extend_from_slice(value)),
                    1 => batch.remove(space(of), key),
                    _ => batch.remove_range(space(of), key, value),
                }
            }
            let Ok(Payload::Changes(changes)) = read(&payload_of(&batch.into_frame())) else {
                panic!("a batch is changes");
            };
            prop_assert_eq!(changes.len(), wanted.len());
            for (change, (of, key, fate, value)) in changes.into_iter().zip(wanted) {
                let expected = match fate % 3 {
                    0 => Fate::Put(value.into()),
                    1 => Fate::Removed,
                    _ => Fate::RemovedUpTo(value.into()),
                };
                prop_assert_eq!(change, Change { space: space(&of), key: key.into(), fate: expected });
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
