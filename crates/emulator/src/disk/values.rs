//! The values of items and of the log.
//!
//! A version of an item is written as it is in memory, its text included, so that reading it back makes
//! the same bytes. The log names the item of each change and holds the version that the change took
//! away; the version it made is found by walking the log backwards from the newest one.

use bytes::Bytes;
use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;

use super::coding::{Malformed, Reader, put_bytes, put_number};
use crate::store::{ChangeKind, Item, Kept, Ordinal};

/// Appends a version of an item. Its ordinal is in the key.
pub(super) fn put_item(to: &mut Vec<u8>, item: &Item) {
    let Kept { id, epk, lsn, modified_at, ttl, text, body_length, .. } = item.kept();
    put_number(to, lsn.0);
    put_number(to, modified_at);
    // Nothing, or one more than the value's own bits.
    put_number(to, ttl.map_or(0, |ttl| u64::from(ttl as u32) + 1));
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
    let ttl = match reader.number()? {
        0 => None,
        bits => Some(u32::try_from(bits - 1).map_err(|_| Malformed)? as i32),
    };
    let id = reader.text()?;
    let epk = EffectivePartitionKey::from_bytes(reader.bytes()?);
    let body_length: usize = reader.small()?;
    let text = reader.rest();
    // The entity tag follows the body, in quotes.
    let etag = text.get(body_length..).ok_or(Malformed)?;
    if !etag.is_ascii() || body_length == 0 {
        return Err(Malformed);
    }
    let text: &Bytes = &Bytes::copy_from_slice(text);
    Ok(Item::from_kept(Kept { ordinal, id, epk: &epk, lsn, modified_at, ttl, text, body_length }))
}

/// What one commit did, as the log keeps it.
#[derive(Debug, PartialEq)]
pub(super) struct Logged<'a> {
    /// When, in seconds since the epoch.
    pub(super) at: u64,
    /// Changes up to here were no longer known then.
    pub(super) forgotten: Lsn,
    /// The ordinal the container's next item gets.
    pub(super) next_ordinal: u64,
    pub(super) changes: Vec<LoggedChange<'a>>,
}

/// One change of a commit.
#[derive(Debug, PartialEq)]
pub(super) struct LoggedChange<'a> {
    pub(super) kind: ChangeKind,
    pub(super) ordinal: Ordinal,
    /// The version that is no longer the newest: the one replaced or removed.
    pub(super) superseded: Option<&'a [u8]>,
}

/// Appends what a commit did.
pub(super) fn put_log(to: &mut Vec<u8>, commit: &super::Commit<'_>) {
    let at = commit.changes.first().map_or(0, |change| change.at);
    for number in [at, commit.forgotten.0, commit.next_ordinal, commit.changes.len() as u64] {
        put_number(to, number);
    }
    for change in commit.changes {
        to.push(kind_byte(change.kind));
        put_number(to, change.item.ordinal.0);
        let superseded = if change.kind.removes() { Some(&change.item) } else { change.previous.as_ref() };
        if let Some(item) = superseded {
            let at = to.len();
            to.extend_from_slice(&[0; 4]);
            put_item(to, item);
            let length = (to.len() - at - 4) as u32;
            to[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// Reads what a commit did.
pub(super) fn read_log(bytes: &[u8]) -> Result<Logged<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let (at, forgotten, next_ordinal) = (reader.number()?, Lsn(reader.number()?), reader.number()?);
    let count: usize = reader.small()?;
    if count > reader.left() {
        return Err(Malformed);
    }
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = read_kind(reader.byte()?)?;
        let ordinal = Ordinal(reader.number()?);
        let superseded = match kind {
            ChangeKind::Create => None,
            ChangeKind::Replace | ChangeKind::Delete | ChangeKind::Expire => Some(reader.long_bytes()?),
        };
        changes.push(LoggedChange { kind, ordinal, superseded });
    }
    reader.end()?;
    Ok(Logged { at, forgotten, next_ordinal, changes })
}

/// Where the log of a line now begins, which is all that trimming it needs.
pub(super) fn read_forgotten(bytes: &[u8]) -> Result<Lsn, Malformed> {
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
