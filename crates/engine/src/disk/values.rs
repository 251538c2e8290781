//! The encoded values of items and of the log.
//!
//! A version of an item is written as it is in memory, its text included, so that reading it back yields the
//! same bytes. The log names the item of each change and holds the version that it superseded; the version it
//! made is found by walking the log backwards from the newest one.

use bytes::Bytes;
use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;

use super::encoding::{Malformed, Reader, put_bytes, put_number};
use crate::items::{ChangeKind, Item, Ordinal, StoredItem};

/// Marks an item that is not indexed, in a bit that no time to live has.
const NOT_INDEXED: u64 = 1 << 40;

/// Appends a version of an item. Its ordinal is in the key.
pub(super) fn put_item(to: &mut Vec<u8>, item: &Item) {
    let StoredItem { id, epk, lsn, modified_at, ttl, is_indexed, text, body_length, .. } = item.stored();
    put_number(to, lsn.0);
    put_number(to, modified_at);
    // Zero for none, or one more than the value's own bits.
    let ttl = ttl.map_or(0, |ttl| u64::from(ttl as u32) + 1);
    put_number(to, if is_indexed { ttl } else { ttl | NOT_INDEXED });
    put_bytes(to, id.as_bytes());
    put_bytes(to, epk.as_bytes());
    put_number(to, body_length as u64);
    to.extend_from_slice(text);
}

/// Reads a version of an item.
pub(super) fn read_item(ordinal: Ordinal, bytes: &[u8]) -> Result<Item, Malformed> {
    let mut reader = Reader::new(bytes);
    let lsn = Lsn(reader.number()?);
    let modified_at = reader.number()?;
    let bits = reader.number()?;
    let is_indexed = bits & NOT_INDEXED == 0;
    let ttl = match bits & !NOT_INDEXED {
        0 => None,
        bits => Some(u32::try_from(bits - 1).map_err(|_| Malformed)? as i32),
    };
    let id = reader.text()?;
    let epk = EffectivePartitionKey::from_bytes(reader.bytes()?);
    let body_length: usize = reader.number_as()?;
    let text = reader.rest();
    // The entity tag follows the body, in quotes.
    let etag = text.get(body_length..).ok_or(Malformed)?;
    if !etag.is_ascii() || body_length == 0 {
        return Err(Malformed);
    }
    let text: &Bytes = &Bytes::copy_from_slice(text);
    let epk = &epk;
    Ok(Item::from_stored(StoredItem {
        ordinal,
        id,
        epk,
        lsn,
        modified_at,
        ttl,
        is_indexed,
        text,
        body_length,
    }))
}

/// Appends a version of an item with its ordinal, or that there is none.
pub(crate) fn put_version(to: &mut Vec<u8>, item: Option<&Item>) {
    let Some(item) = item else { return put_number(to, 0) };
    put_number(to, item.ordinal.0.saturating_add(1));
    put_long(to, |to| put_item(to, item));
}

/// Reads what [`put_version`] wrote.
pub(crate) fn read_version(reader: &mut Reader<'_>) -> Result<Option<Item>, Malformed> {
    match reader.number()? {
        0 => Ok(None),
        number => read_item(Ordinal(number - 1), reader.long_bytes()?).map(Some),
    }
}

/// Appends a byte string that `write` writes, its length in four bytes before it.
fn put_long(to: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = to.len();
    to.extend_from_slice(&[0; 4]);
    write(to);
    let length = (to.len() - at - 4) as u32;
    to[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// A commit, as the log stores it.
#[derive(Debug, PartialEq)]
pub(super) struct LoggedCommit<'a> {
    /// When it was made, in seconds since the epoch.
    pub(super) at: u64,
    /// The log had been trimmed up to this LSN.
    pub(super) trimmed_to: Lsn,
    /// The ordinal that the container's next item gets.
    pub(super) next_ordinal: u64,
    pub(super) changes: Vec<LoggedChange<'a>>,
    /// Whether the commit with the LSN before it is missing from this log, because its partition was made or
    /// restored then.
    pub(super) after_gap: bool,
}

/// One change of a logged commit.
#[derive(Debug, PartialEq)]
pub(super) struct LoggedChange<'a> {
    pub(super) kind: ChangeKind,
    pub(super) ordinal: Ordinal,
    /// The superseded version: the one replaced or deleted. Versions of one item that were made in different
    /// regions may have different ordinals.
    pub(super) superseded: Option<(Ordinal, &'a [u8])>,
}

/// The kind of a replacement by a version with another ordinal.
const REPLACE_OTHER: u8 = 5;
/// Marks the end of a commit that comes after a gap.
const AFTER_GAP: u8 = 1;

/// Appends a commit as the log stores it.
pub(super) fn put_log(to: &mut Vec<u8>, commit: &super::CommitRecord<'_>) {
    let at = commit.changes.first().map_or(0, |change| change.at);
    for number in [at, commit.trimmed_to.0, commit.next_ordinal, commit.changes.len() as u64] {
        put_number(to, number);
    }
    for change in commit.changes {
        let superseded = if change.kind.removes() { Some(&change.item) } else { change.previous.as_ref() };
        let other = superseded.map(|item| item.ordinal).filter(|ordinal| *ordinal != change.item.ordinal);
        to.push(if other.is_some() { REPLACE_OTHER } else { kind_byte(change.kind) });
        put_number(to, change.item.ordinal.0);
        if let Some(other) = other {
            put_number(to, other.0);
        }
        if let Some(item) = superseded {
            put_long(to, |to| put_item(to, item));
        }
    }
    if commit.after_gap {
        to.push(AFTER_GAP);
    }
}

/// Reads a commit as the log stores it.
pub(super) fn read_log(bytes: &[u8]) -> Result<LoggedCommit<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let (at, trimmed_to, next_ordinal) = (reader.number()?, Lsn(reader.number()?), reader.number()?);
    let count: usize = reader.number_as()?;
    if count > reader.remaining() {
        return Err(Malformed);
    }
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        let byte = reader.byte()?;
        let kind = if byte == REPLACE_OTHER { ChangeKind::Replace } else { read_kind(byte)? };
        let ordinal = Ordinal(reader.number()?);
        let other = if byte == REPLACE_OTHER { Ordinal(reader.number()?) } else { ordinal };
        let superseded = match kind {
            ChangeKind::Create => None,
            ChangeKind::Replace | ChangeKind::Delete | ChangeKind::Expire => {
                Some((other, reader.long_bytes()?))
            }
        };
        changes.push(LoggedChange { kind, ordinal, superseded });
    }
    let after_gap = reader.remaining() > 0;
    if after_gap && reader.byte()? != AFTER_GAP {
        return Err(Malformed);
    }
    reader.end()?;
    Ok(LoggedCommit { at, trimmed_to, next_ordinal, changes, after_gap })
}

/// The LSN up to which a chain's log is trimmed, which is all that trimming on disk needs.
pub(super) fn read_trimmed_to(bytes: &[u8]) -> Result<Lsn, Malformed> {
    let mut reader = Reader::new(bytes);
    reader.number()?;
    reader.number().map(Lsn)
}

fn kind_byte(kind: ChangeKind) -> u8 {
    match kind {
        ChangeKind::Create => 1,
        ChangeKind::Replace => 2,
        ChangeKind::Delete => 3,
        ChangeKind::Expire => 4,
    }
}

fn read_kind(byte: u8) -> Result<ChangeKind, Malformed> {
    Ok(match byte {
        1 => ChangeKind::Create,
        2 => ChangeKind::Replace,
        3 => ChangeKind::Delete,
        4 => ChangeKind::Expire,
        _ => return Err(Malformed),
    })
}
