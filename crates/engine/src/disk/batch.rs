//! Batches: the keys that one commit sets and removes on disk.
//!
//! A batch is the payload of one journal record, so it is applied as a whole or not at all, in the order in
//! which it was built. Keys belong to four keyspaces, each a tree of its own after the checkpoint.

use bytes::Bytes;

use super::encoding::{Malformed, Reader, put_bytes, put_number};
use super::record;

/// A keyspace: which tree a key belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Keyspace {
    /// The resources of the account.
    Catalog,
    /// The newest version of every item.
    Items,
    /// The change logs, by LSN, with the superseded versions.
    Log,
    /// Where every region writes: messages in flight, the progress of each replica, and conflicts.
    Replication,
}

impl Keyspace {
    /// All keyspaces, by their number in a record.
    pub(crate) const ALL: [Keyspace; 4] =
        [Keyspace::Catalog, Keyspace::Items, Keyspace::Log, Keyspace::Replication];

    /// The keyspace whose tree has this folder.
    pub(super) fn named(name: &str) -> Option<Keyspace> {
        Keyspace::ALL.into_iter().find(|space| space.name() == name)
    }

    /// The folder of its tree. The names are part of the directory's format.
    pub(super) fn name(self) -> &'static str {
        match self {
            Keyspace::Catalog => "catalog",
            Keyspace::Items => "items",
            Keyspace::Log => "log",
            Keyspace::Replication => "mesh",
        }
    }
}

/// One operation on a key, or on a range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyChange {
    pub(super) space: Keyspace,
    pub(super) key: Bytes,
    pub(super) operation: KeyOperation,
}

/// What happens to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyOperation {
    /// The key gets this value.
    Put(Bytes),
    /// The key is removed.
    Remove,
    /// Every key from this one up to the given one, which stays, is removed.
    RemoveRange(Bytes),
}

/// The payload of a journal record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// The changes of one commit.
    Changes(Vec<KeyChange>),
    /// A sync mark: every record up to this one has reached the disk.
    Synced(u64),
}

const KIND_CHANGES: u8 = 1;
const KIND_SYNCED: u8 = 2;
/// Set in the byte of the keyspace when the key is removed.
const REMOVED: u8 = 0x80;
/// Set in the byte of the keyspace when a range of keys is removed.
const REMOVED_RANGE: u8 = 0x40;

/// A batch under construction, in the form of a journal record.
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

    /// Reserves capacity for `bytes` more.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.frame.reserve(bytes);
    }

    /// Gives `key` a value, which `write` appends.
    pub(crate) fn put(&mut self, space: Keyspace, key: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        self.frame.push(space as u8);
        put_bytes(&mut self.frame, key);
        // The length comes first and is known last, so four bytes are reserved for it.
        let at = self.frame.len();
        self.frame.extend_from_slice(&[0; 4]);
        write(&mut self.frame);
        let length = (self.frame.len() - at - 4) as u32;
        self.frame[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Removes one key from a keyspace.
    pub(crate) fn remove(&mut self, space: Keyspace, key: &[u8]) {
        self.frame.push(space as u8 | REMOVED);
        put_bytes(&mut self.frame, key);
    }

    /// Removes every key in `[from, to)`.
    pub(crate) fn remove_range(&mut self, space: Keyspace, from: &[u8], to: &[u8]) {
        self.frame.push(space as u8 | REMOVED_RANGE);
        put_bytes(&mut self.frame, from);
        put_bytes(&mut self.frame, to);
    }

    /// Whether the batch changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.frame.len() == record::HEADER_LENGTH + 1
    }

    pub(super) fn into_frame(self) -> Vec<u8> {
        self.frame
    }
}

/// The frame of a sync mark: everything up to `sequence` has reached the disk.
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

fn read_changes(payload: &Bytes, mut reader: Reader<'_>) -> Result<Vec<KeyChange>, Malformed> {
    let mut changes = Vec::new();
    while reader.remaining() > 0 {
        let tag = reader.byte()?;
        let space = usize::from(tag & !(REMOVED | REMOVED_RANGE));
        let space = *Keyspace::ALL.get(space).ok_or(Malformed)?;
        let key = payload.slice_ref(reader.bytes()?);
        let operation = match tag & (REMOVED | REMOVED_RANGE) {
            0 => KeyOperation::Put(payload.slice_ref(reader.long_bytes()?)),
            REMOVED => KeyOperation::Remove,
            REMOVED_RANGE => KeyOperation::RemoveRange(payload.slice_ref(reader.bytes()?)),
            _ => return Err(Malformed),
        };
        changes.push(KeyChange { space, key, operation });
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
        fn a_batch_round_trips(wanted: Vec<(u8, Vec<u8>, u8, Vec<u8>)>) {
            let mut batch = Batch::new(0);
            prop_assert!(batch.is_empty());
            let space = |space: &u8| Keyspace::ALL[usize::from(space % 4)];
            for (of, key, operation, value) in &wanted {
                match operation % 3 {
                    0 => batch.put(space(of), key, |to| to.extend_from_slice(value)),
                    1 => batch.remove(space(of), key),
                    _ => batch.remove_range(space(of), key, value),
                }
            }
            let Ok(Payload::Changes(changes)) = read(&payload_of(&batch.into_frame())) else {
                panic!("a batch is changes");
            };
            prop_assert_eq!(changes.len(), wanted.len());
            for (change, (of, key, operation, value)) in changes.into_iter().zip(wanted) {
                let expected = match operation % 3 {
                    0 => KeyOperation::Put(value.into()),
                    1 => KeyOperation::Remove,
                    _ => KeyOperation::RemoveRange(value.into()),
                };
                prop_assert_eq!(change, KeyChange { space: space(&of), key: key.into(), operation: expected });
            }
        }

        #[test]
        fn no_payload_makes_the_reader_panic(bytes: Vec<u8>) {
            let _ = read(&Bytes::from(bytes));
        }
    }

    #[test]
    fn a_sync_mark_round_trips() {
        assert_eq!(read(&payload_of(&mark(77))), Ok(Payload::Synced(77)));
    }
}
