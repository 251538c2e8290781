//! Shared access signatures (SAS): rights that the holder of an account key wrote down and signed.
//!
//! Input: the payload of a token and its signature. Output: what it allows and when. The JavaScript SDK makes such
//! tokens and sends them. The payload has eleven lines: a user, a tag, the path of a resource, ranges of partition
//! keys, start and expiry, the key that signed it, and four sets of rights, of which the last two concern items.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use protocol::authorization::{AccountKey, Signature};

use super::operation::ItemOperation;
use crate::access::AccountKeys;

/// What a shared access signature allows, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SasToken {
    /// The path of a container or an item.
    pub(super) resource: String,
    /// The first second in which it is valid, since the epoch.
    pub(super) starts_at: i64,
    /// The second in which it expires, since the epoch.
    pub(super) expires_at: i64,
    pub(super) rights: SasRights,
}

/// The rights to items, as sets of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SasRights {
    reads: u32,
    writes: u32,
}

// Bits of the rights to read.
const EXECUTE_QUERIES: u32 = 0x1;
const READ_FEEDS: u32 = 0x2;
const READ_ITEM: u32 = 0x40;

// Bits of the rights to write: those of a container, and those of a single item.
const CREATE: u32 = 0x1;
const REPLACE: u32 = 0x2 | 0x1_0000;
const UPSERT: u32 = 0x4 | 0x2_0000;
/// The SDK's constant for deletion in a container is 0x80; the protocol's is 0x8.
const DELETE: u32 = 0x8 | 0x80 | 0x4_0000;

impl SasToken {
    /// Verifies and parses a token; `None` for one that no key of the account signed, or that cannot be understood.
    pub(super) fn verify(
        payload: &str,
        signature: &Signature,
        primary: &AccountKey,
        keys: &AccountKeys,
    ) -> Option<SasToken> {
        let bytes = BASE64.decode(payload).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let mut lines = text.split('\n');
        let (_user, _tag) = (lines.next()?, lines.next()?);
        let (resource, partition_ranges) = (lines.next()?, lines.next()?);
        let mut number = |radix| i64::from_str_radix(lines.next()?, radix).ok();
        let (starts_at, expires_at, key) = (number(16)?, number(16)?, number(10)?);
        let (_control_reads, _control_writes) = (number(16)?, number(16)?);
        let (reads, writes) = (number(16)?, number(16)?);
        let (signed_by, may_write) = match key {
            0 | 1 => (primary, true),
            2 => (keys.secondary.as_ref()?, true),
            3 => (keys.read_only.first()?, false),
            4 => (keys.read_only.get(1)?, false),
            _ => return None,
        };
        // The text of the payload is signed, not its bytes. Ranges of partition keys are not understood, and
        // leaving them out would allow more than was meant.
        if signed_by.sign_bytes(payload.as_bytes()) != *signature || !partition_ranges.is_empty() {
            return None;
        }
        let writes = if may_write { u32::try_from(writes).ok()? } else { 0 };
        Some(SasToken {
            resource: resource.trim_matches('/').to_owned(),
            starts_at,
            expires_at,
            rights: SasRights { reads: u32::try_from(reads).ok()?, writes },
        })
    }
}

impl SasRights {
    /// Whether the rights cover an operation.
    pub(super) fn allow(self, operation: &ItemOperation<'_>) -> bool {
        let SasRights { reads, writes } = self;
        match operation {
            ItemOperation::Read(_) => reads & READ_ITEM != 0,
            ItemOperation::ReadFeed | ItemOperation::ChangeFeed => reads & READ_FEEDS != 0,
            ItemOperation::Query | ItemOperation::QueryPlan => reads & EXECUTE_QUERIES != 0,
            ItemOperation::Create => writes & CREATE != 0,
            ItemOperation::Replace(_) | ItemOperation::Patch(_) => writes & REPLACE != 0,
            ItemOperation::Upsert => writes & UPSERT != 0,
            ItemOperation::Delete(_) | ItemOperation::DeletePartition => writes & DELETE != 0,
            // It may contain every operation on items.
            ItemOperation::Batch => {
                reads & READ_ITEM != 0
                    && [CREATE, REPLACE, UPSERT, DELETE].iter().all(|kind| writes & kind != 0)
            }
        }
    }
}
