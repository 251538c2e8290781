//! The keys of everything on disk.
//!
//! Numbers are big-endian, so that keys are in the order of what they stand for: items in order of creation
//! within their container, the log in order of LSN within its version chain.

use protocol::lsn::Lsn;
use protocol::resource_id::{
    ChildKind, ChildRid, ClientEncryptionKeyRid, ContainerRid, DatabaseRid, OfferRid, PermissionRid, UserRid,
};

use super::encoding::Malformed;
use crate::items::Ordinal;

/// A version chain on disk: a physical partition, in one write region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ChainKey {
    /// The container of the partition.
    pub(crate) container: ContainerRid,
    /// The number of the chain: 0 in an account where one region writes.
    pub(crate) chain: u8,
    /// The partition key range id.
    pub(crate) partition: u32,
}

/// The prefix of all keys of one container.
pub(super) fn container_prefix(rid: ContainerRid) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&rid.database.0.to_be_bytes());
    key[4..].copy_from_slice(&rid.container.to_be_bytes());
    key
}

/// The first key after all keys with this prefix.
pub(super) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            return key;
        }
    }
    vec![0xFF; prefix.len() + 1]
}

/// The key of an item's newest version.
pub(super) fn item(container: ContainerRid, chain: u8, ordinal: Ordinal) -> [u8; 17] {
    let mut key = [0; 17];
    key[..8].copy_from_slice(&container_prefix(container));
    key[8] = chain;
    key[9..].copy_from_slice(&ordinal.0.to_be_bytes());
    key
}

/// Parses the key of an item.
pub(super) fn read_item(key: &[u8]) -> Result<(ContainerRid, u8, Ordinal), Malformed> {
    let key: &[u8; 17] = key.try_into().map_err(|_| Malformed)?;
    Ok((read_container(key), key[8], Ordinal(read_u64(&key[9..]))))
}

/// The prefix of all keys of one chain number of a container, items and log alike.
pub(super) fn container_chain_prefix(container: ContainerRid, chain: u8) -> [u8; 9] {
    let mut key = [0; 9];
    key[..8].copy_from_slice(&container_prefix(container));
    key[8] = chain;
    key
}

/// The prefix of the log of a version chain.
pub(super) fn chain_prefix(chain: ChainKey) -> [u8; 13] {
    let mut key = [0; 13];
    key[..8].copy_from_slice(&container_prefix(chain.container));
    key[8] = chain.chain;
    key[9..].copy_from_slice(&chain.partition.to_be_bytes());
    key
}

/// The key of a commit of a version chain.
pub(super) fn log(chain: ChainKey, lsn: Lsn) -> [u8; 21] {
    let mut key = [0; 21];
    key[..13].copy_from_slice(&chain_prefix(chain));
    key[13..].copy_from_slice(&lsn.0.to_be_bytes());
    key
}

/// Parses the key of a commit.
pub(super) fn read_log(key: &[u8]) -> Result<(ChainKey, Lsn), Malformed> {
    let key: &[u8; 21] = key.try_into().map_err(|_| Malformed)?;
    let chain = ChainKey { container: read_container(key), chain: key[8], partition: read_u32(&key[9..13]) };
    Ok((chain, Lsn(read_u64(&key[13..]))))
}

/// The key of something stored about a partition's replicas, where every region writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplicationKey {
    pub(crate) container: ContainerRid,
    /// The partition key range id.
    pub(crate) partition: u32,
    pub(crate) what: ReplicationEntry,
}

/// What such a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplicationEntry {
    /// The progress of a region's replica.
    Replica(u8),
    /// A replication message: its sender, and its number among those of the sender.
    Message(u8, u64),
    /// A conflict, by its number.
    Conflict(u64),
}

/// The prefix of everything stored about one partition's replicas.
pub(super) fn replication_prefix(container: ContainerRid, partition: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&container_prefix(container));
    key[8..].copy_from_slice(&partition.to_be_bytes());
    key
}

impl ReplicationKey {
    pub(crate) fn to_bytes(self) -> [u8; 22] {
        let (kind, region, number) = match self.what {
            ReplicationEntry::Replica(region) => (b'c', region, 0),
            ReplicationEntry::Message(from, number) => (b'l', from, number),
            ReplicationEntry::Conflict(number) => (b'x', 0, number),
        };
        let mut key = [0; 22];
        key[..12].copy_from_slice(&replication_prefix(self.container, self.partition));
        (key[12], key[13]) = (kind, region);
        key[14..].copy_from_slice(&number.to_be_bytes());
        key
    }

    pub(super) fn read(key: &[u8]) -> Result<ReplicationKey, Malformed> {
        let key: &[u8; 22] = key.try_into().map_err(|_| Malformed)?;
        let (region, number) = (key[13], read_u64(&key[14..]));
        let what = match key[12] {
            b'c' => ReplicationEntry::Replica(region),
            b'l' => ReplicationEntry::Message(region, number),
            b'x' => ReplicationEntry::Conflict(number),
            _ => return Err(Malformed),
        };
        Ok(ReplicationKey { container: read_container(key), partition: read_u32(&key[8..12]), what })
    }
}

/// A key of the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CatalogKey {
    /// The counters of the id allocator.
    Allocator,
    /// The properties of a database.
    Database(DatabaseRid),
    Container(ContainerRid),
    /// The partitions of a container.
    Layout(ContainerRid),
    Offer(OfferRid),
    User(UserRid),
    Permission(PermissionRid),
    /// A stored procedure, trigger or user-defined function.
    Script(ChildRid),
    /// A client encryption key of a database.
    ClientEncryptionKey(ClientEncryptionKeyRid),
    /// The newest journal record that has been checkpointed.
    Checkpointed,
    /// The account's regions and their settings.
    Regions,
}

impl CatalogKey {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let (tag, numbers): (u8, &[u32]) = match &self {
            CatalogKey::Allocator => (b'a', &[]),
            CatalogKey::Database(rid) => (b'd', &[rid.0]),
            CatalogKey::Container(rid) => (b'c', &[rid.database.0, rid.container]),
            CatalogKey::Layout(rid) => (b'l', &[rid.database.0, rid.container]),
            CatalogKey::Offer(rid) => (b'o', &[rid.0]),
            CatalogKey::User(rid) => (b'u', &[rid.database.0, rid.user]),
            CatalogKey::Permission(rid) => {
                let (high, low) = ((rid.permission >> 32) as u32, rid.permission as u32);
                (b'p', &[rid.user.database.0, rid.user.user, high, low])
            }
            CatalogKey::Script(rid) => {
                let (high, low) = ((rid.ordinal >> 32) as u32, rid.ordinal as u32);
                let ContainerRid { database, container } = rid.container;
                (b'x', &[database.0, container, rid.kind as u32, high, low])
            }
            CatalogKey::ClientEncryptionKey(rid) => (b'k', &[rid.database.0, rid.key]),
            CatalogKey::Checkpointed => (b's', &[]),
            CatalogKey::Regions => (b'r', &[]),
        };
        let mut key = vec![tag];
        numbers.iter().for_each(|number| key.extend_from_slice(&number.to_be_bytes()));
        key
    }

    pub(crate) fn read(key: &[u8]) -> Result<CatalogKey, Malformed> {
        let (tag, rest) = key.split_first().ok_or(Malformed)?;
        let (numbers, []) = rest.as_chunks::<4>() else { return Err(Malformed) };
        let numbers: Vec<u32> = numbers.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        Ok(match (tag, &numbers[..]) {
            (b'a', []) => CatalogKey::Allocator,
            (b's', []) => CatalogKey::Checkpointed,
            (b'r', []) => CatalogKey::Regions,
            (b'd', [rid]) => CatalogKey::Database(DatabaseRid(*rid)),
            (b'c', [database, container]) => CatalogKey::Container(container_rid(*database, *container)),
            (b'l', [database, container]) => CatalogKey::Layout(container_rid(*database, *container)),
            (b'o', [rid]) => CatalogKey::Offer(OfferRid(*rid)),
            (b'u', [database, user]) => {
                CatalogKey::User(UserRid { database: DatabaseRid(*database), user: *user })
            }
            (b'k', [database, key]) => CatalogKey::ClientEncryptionKey(ClientEncryptionKeyRid {
                database: DatabaseRid(*database),
                key: *key,
            }),
            (b'p', [database, user, high, low]) => {
                let user = UserRid { database: DatabaseRid(*database), user: *user };
                let permission = u64::from(*high) << 32 | u64::from(*low);
                CatalogKey::Permission(PermissionRid { user, permission })
            }
            (b'x', [database, container, kind, high, low]) => {
                let kinds = [ChildKind::StoredProcedure, ChildKind::Trigger, ChildKind::UserDefinedFunction];
                let kind = kinds.into_iter().find(|known| *known as u32 == *kind).ok_or(Malformed)?;
                let ordinal = u64::from(*high) << 32 | u64::from(*low);
                CatalogKey::Script(ChildRid {
                    container: container_rid(*database, *container),
                    kind,
                    ordinal,
                })
            }
            _ => return Err(Malformed),
        })
    }
}

fn container_rid(database: u32, container: u32) -> ContainerRid {
    ContainerRid { database: DatabaseRid(database), container }
}

fn read_container(key: &[u8]) -> ContainerRid {
    container_rid(read_u32(&key[..4]), read_u32(&key[4..8]))
}

fn read_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes of a key whose length was checked"))
}

fn read_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes of a key whose length was checked"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_round_trip_and_keep_their_order(database: u32, container: u32, chain: u8, partition: u32, n: u64) {
            let rid = container_rid(database, container);
            prop_assert_eq!(read_item(&item(rid, chain, Ordinal(n))), Ok((rid, chain, Ordinal(n))));
            let chain = ChainKey { container: rid, chain, partition };
            prop_assert_eq!(read_log(&log(chain, Lsn(n))), Ok((chain, Lsn(n))));
            prop_assert!(log(chain, Lsn(n / 2)) <= log(chain, Lsn(n)));
            for what in [ReplicationEntry::Replica(chain.chain), ReplicationEntry::Message(chain.chain, n), ReplicationEntry::Conflict(n)] {
                let key = ReplicationKey { container: rid, partition, what };
                prop_assert_eq!(ReplicationKey::read(&key.to_bytes()), Ok(key));
                prop_assert!(key.to_bytes().starts_with(&replication_prefix(rid, partition)));
            }
            let user = UserRid { database: DatabaseRid(database), user: partition };
            for key in [
                CatalogKey::Allocator,
                CatalogKey::Checkpointed,
                CatalogKey::Regions,
                CatalogKey::Database(DatabaseRid(database)),
                CatalogKey::Container(rid),
                CatalogKey::Layout(rid),
                CatalogKey::Offer(OfferRid(database)),
                CatalogKey::User(user),
                CatalogKey::ClientEncryptionKey(ClientEncryptionKeyRid {
                    database: DatabaseRid(database),
                    key: partition,
                }),
                CatalogKey::Permission(PermissionRid { user, permission: n }),
            ] {
                prop_assert_eq!(CatalogKey::read(&key.to_bytes()), Ok(key));
            }
        }

        #[test]
        fn no_bytes_make_reading_a_key_panic(bytes: Vec<u8>) {
            let _ = (read_item(&bytes), read_log(&bytes), CatalogKey::read(&bytes), ReplicationKey::read(&bytes));
        }

        #[test]
        fn all_keys_with_a_prefix_are_below_its_end(prefix: Vec<u8>, rest: Vec<u8>) {
            let key = [prefix.clone(), rest].concat();
            prop_assume!(prefix.iter().any(|byte| *byte != 0xFF));
            prop_assert!(key < prefix_end(&prefix) && prefix < prefix_end(&prefix));
        }
    }
}
