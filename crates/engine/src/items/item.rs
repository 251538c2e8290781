//! One version of an item, as it is stored and served.

use bytes::Bytes;
use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;
use smol_str::SmolStr;

/// The number of an item in its container, in order of creation: the last eight bytes of its `_rid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(pub u64);

/// Whether the server writes this member itself; what a caller sends under its name is dropped.
pub(crate) fn is_system_member(name: &str) -> bool {
    // Most names differ in their first character already.
    name.starts_with('_') && matches!(name, "_rid" | "_self" | "_etag" | "_attachments" | "_ts" | "_lsn")
}

/// One version of one item; never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The number of the item in its container.
    pub ordinal: Ordinal,
    /// The `id` of the item.
    pub id: SmolStr,
    /// The effective partition key of its partition key value.
    pub epk: EffectivePartitionKey,
    /// The write that made this version.
    pub lsn: Lsn,
    /// Seconds since the epoch: `_ts`.
    pub modified_at: u64,
    /// The item's own `ttl`.
    pub ttl: Option<i32>,
    /// Whether its properties are indexed, as far as the indexing policy says so.
    pub is_indexed: bool,
    /// The JSON text with system properties, then the entity tag as a header carries it.
    text: Bytes,
    body_length: usize,
}

/// What a new version is made of.
pub(crate) struct ItemParts<'a> {
    /// The number of the item in its container.
    pub(crate) ordinal: Ordinal,
    /// The `id` of the item.
    pub(crate) id: SmolStr,
    /// The effective partition key of its partition key value.
    pub(crate) epk: EffectivePartitionKey,
    /// The LSN of the commit that makes the version.
    pub(crate) lsn: Lsn,
    /// The write timestamp in seconds since the epoch: `_ts`.
    pub(crate) modified_at: u64,
    /// The item's own `ttl`, if it has one.
    pub(crate) ttl: Option<i32>,
    /// Whether its properties are indexed.
    pub(crate) is_indexed: bool,
    /// The user's members as JSON, with the opening brace and without the closing one.
    pub(crate) user_text: &'a [u8],
    /// The container's self link, `dbs/{rid}/colls/{rid}/`.
    pub(crate) container_link: &'a str,
    /// The `_rid` of the item.
    pub(crate) rid: &'a str,
    /// The entity tag of the version.
    pub(crate) etag: &'a EntityTag,
}

/// A version as the disk stores it: all its parts, to be written or read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredItem<'a> {
    /// The number of the item in its container.
    pub(crate) ordinal: Ordinal,
    /// The `id` of the item.
    pub(crate) id: &'a str,
    /// The effective partition key of its partition key value.
    pub(crate) epk: &'a EffectivePartitionKey,
    /// The LSN of the commit that made the version.
    pub(crate) lsn: Lsn,
    /// The write timestamp in seconds since the epoch: `_ts`.
    pub(crate) modified_at: u64,
    /// The item's own `ttl`, if it has one.
    pub(crate) ttl: Option<i32>,
    /// Whether its properties are indexed.
    pub(crate) is_indexed: bool,
    /// The body, then the entity tag.
    pub(crate) text: &'a Bytes,
    /// The length of the body within the text.
    pub(crate) body_length: usize,
}

/// Distinguishes two versions of anything in the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag(String);

impl EntityTag {
    /// Unique per partition, commit and operation within the commit; readable as a GUID.
    pub(crate) fn new(partition: u32, lsn: Lsn, operation: u32, seconds: u64) -> EntityTag {
        let lsn = lsn.0;
        let mut text = String::with_capacity(36);
        for (number, digits, end) in [
            (lsn as u32, 8, "-"),
            (u32::from((lsn >> 32) as u16), 4, "-"),
            (u32::from(partition as u16), 4, "-"),
            (u32::from(operation as u16), 4, "-"),
            (seconds as u32, 8, ""),
            (partition >> 16, 4, ""),
        ] {
            // Written by hand: every write makes one.
            for digit in (0..digits).rev() {
                let digit = (number >> (4 * digit)) & 0xF;
                text.push(char::from(b"0123456789abcdef"[digit as usize]));
            }
            text.push_str(end);
        }
        EntityTag(text)
    }
}

/// Bytes of the system properties and the entity tag besides their values.
const SYSTEM_LENGTH: usize = 82;

impl Item {
    /// Builds the version's text: the user's members, the system properties, and the entity tag.
    pub(crate) fn new(parts: ItemParts<'_>) -> Item {
        let ItemParts { user_text, container_link, rid, etag: EntityTag(etag), .. } = parts;
        let modified_at = parts.modified_at.to_string();
        // Exactly as long as what follows: an item lives long, and is built once.
        let system =
            SYSTEM_LENGTH + container_link.len() + 2 * rid.len() + 2 * etag.len() + modified_at.len();
        let mut text = Vec::with_capacity(user_text.len() + system);
        text.extend_from_slice(user_text);
        if user_text.len() > 1 {
            text.push(b',');
        }
        for part in ["\"_rid\":\"", rid, "\",\"_self\":\"", container_link, "docs/", rid] {
            text.extend_from_slice(part.as_bytes());
        }
        for part in ["/\",\"_etag\":\"\\\"", etag, "\\\"\",\"_attachments\":\"attachments/\",\"_ts\":"] {
            text.extend_from_slice(part.as_bytes());
        }
        text.extend_from_slice(modified_at.as_bytes());
        text.push(b'}');
        let body_length = text.len();
        for part in ["\"", etag, "\""] {
            text.extend_from_slice(part.as_bytes());
        }
        debug_assert!(text.len() <= user_text.len() + system, "the length was foreseen");
        Item {
            ordinal: parts.ordinal,
            id: parts.id,
            epk: parts.epk,
            lsn: parts.lsn,
            modified_at: parts.modified_at,
            ttl: parts.ttl,
            is_indexed: parts.is_indexed,
            text: Bytes::from(text),
            body_length,
        }
    }

    /// This version with another LSN, as a replica has it that received it by replication.
    pub(crate) fn at_lsn(&self, lsn: Lsn) -> Item {
        Item { lsn, ..self.clone() }
    }

    /// Its parts, as the disk stores them.
    pub(crate) fn stored(&self) -> StoredItem<'_> {
        let Item { ordinal, id, epk, lsn, modified_at, ttl, is_indexed, text, body_length } = self;
        StoredItem {
            ordinal: *ordinal,
            id,
            epk,
            lsn: *lsn,
            modified_at: *modified_at,
            ttl: *ttl,
            is_indexed: *is_indexed,
            text,
            body_length: *body_length,
        }
    }

    /// The version made of stored parts.
    pub(crate) fn from_stored(stored: StoredItem<'_>) -> Item {
        let StoredItem { ordinal, id, epk, lsn, modified_at, ttl, is_indexed, text, body_length } = stored;
        let (id, epk, text) = (id.into(), epk.clone(), text.clone());
        Item { ordinal, id, epk, lsn, modified_at, ttl, is_indexed, text, body_length }
    }

    /// The whole item as JSON, system properties included.
    pub fn body(&self) -> Bytes {
        self.text.slice(..self.body_length)
    }

    /// The body as borrowed bytes.
    pub fn body_bytes(&self) -> &[u8] {
        &self.text[..self.body_length]
    }

    /// The item as JSON without system properties.
    pub fn user_body(&self) -> Vec<u8> {
        let body = self.body_bytes();
        // The server writes its properties last, so that nothing behind them looks like their beginning.
        let name = b"\"_rid\":\"".as_slice();
        let start = body.windows(name.len()).rposition(|window| window == name).unwrap_or(body.len());
        let user = body[..start].strip_suffix(b",").unwrap_or(&body[..start]);
        [user, b"}"].concat()
    }

    /// The entity tag as the `etag` header carries it, quotes included.
    pub fn etag(&self) -> Bytes {
        self.text.slice(self.body_length..)
    }

    /// The entity tag as borrowed text.
    pub fn etag_str(&self) -> &str {
        std::str::from_utf8(&self.text[self.body_length..]).expect("an entity tag is ASCII")
    }

    /// The item as a value: parses its text.
    pub fn value(&self) -> sql::Value {
        sql::value::parse(self.body_bytes()).expect("stored text was made from a parsed document")
    }

    /// Bytes it occupies, as quotas count them.
    pub fn size(&self) -> usize {
        self.body_length
    }

    /// When it expires under the container's default, in seconds since the epoch.
    pub(crate) fn expires_at(&self, default_ttl: Option<i32>) -> Option<u64> {
        let default = default_ttl?;
        match self.ttl.unwrap_or(default) {
            -1 => None,
            seconds => Some(self.modified_at + u64::try_from(seconds).unwrap_or(0)),
        }
    }

    /// Whether a reader at `now` sees it.
    pub(crate) fn is_live(&self, default_ttl: Option<i32>, now: u64) -> bool {
        self.expires_at(default_ttl).is_none_or(|at| now < at)
    }
}
