//! The keys of everything on disk.
//!
//! Numbers are big-endian, so that keys are in the order of what they stand for: items in order of
//! creation within their container, the log in order of LSN within its line.

use protocol::lsn::Lsn;
use protocol::resource_id::{ContainerRid, DatabaseRid, OfferRid, PermissionRid, UserRid};

use super::coding::Malformed;
use crate::items::Ordinal;

/// Where commits of one order come from: a physical partition, as one writing region sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LineKey {
    /// The container.
    pub(crate) container: ContainerRid,
    /// Which of the partition's sequences: 0 in an account where one region writes.
    pub(crate) line: u8,
    /// The range id.
    pub(crate) partition: u32,
}

/// Whatever belongs to one container begins with this.
pub(super) fn container_prefix(rid: ContainerRid) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&rid.database.0.to_be_bytes());
    key[4..].copy_from_slice(&rid.container.to_be_bytes());
    key
}

/// The first key behind everything with this prefix.
pub(super) fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            return key;
        }
    }
    vec![0xFF; prefix.len() + 1]
}

/// The newest version of an item.
pub(super) fn item(container: ContainerRid, line: u8, ordinal: Ordinal) -> [u8; 17] {
    let mut key = [0; 17];
    key[..8].copy_from_slice(&container_prefix(container));
    key[8] = line;
    key[9..].copy_from_slice(&ordinal.0.to_be_bytes());
    key
}

/// Reads the key of an item.
pub(super) fn read_item(key: &[u8]) -> Result<(ContainerRid, u8, Ordinal), Malformed> {
    let key: &[u8; 17] = key.try_into().map_err(|_| Malformed)?;
    Ok((read_container(key), key[8], Ordinal(read_u64(&key[9..]))))
}

/// Whatever belongs to one line of a container begins with this, items and log alike.
pub(super) fn container_line_prefix(container: ContainerRid, line: u8) -> [u8; 9] {
    let mut key = [0; 9];
    key[..8].copy_from_slice(&container_prefix(container));
    key[8] = line;
    key
}

/// Everything that happened in a line.
pub(super) fn line_prefix(line: LineKey) -> [u8; 13] {
    let mut key = [0; 13];
    key[..8].copy_from_slice(&container_prefix(line.container));
    key[8] = line.line;
    key[9..].copy_from_slice(&line.partition.to_be_bytes());
    key
}

/// What happened in a line at an LSN.
pub(super) fn log(line: LineKey, lsn: Lsn) -> [u8; 21] {
    let mut key = [0; 21];
    key[..13].copy_from_slice(&line_prefix(line));
    key[13..].copy_from_slice(&lsn.0.to_be_bytes());
    key
}

/// Reads the key of a commit.
pub(super) fn read_log(key: &[u8]) -> Result<(LineKey, Lsn), Malformed> {
    let key: &[u8; 21] = key.try_into().map_err(|_| Malformed)?;
    let line = LineKey { container: read_container(key), line: key[8], partition: read_u32(&key[9..13]) };
    Ok((line, Lsn(read_u64(&key[13..]))))
}

/// What is kept of a partition where every region writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeshKey {
    pub(crate) container: ContainerRid,
    /// The range id.
    pub(crate) partition: u32,
    pub(crate) what: MeshEntry,
}

/// One of the things that are kept there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeshEntry {
    /// How far a region's copy is.
    Copy(u8),
    /// Something on its way: from which region, and its number among those.
    Letter(u8, u64),
    /// A version that lost, by its number.
    Conflict(u64),
}

/// Everything that is kept of one partition where every region writes.
pub(super) fn mesh_prefix(container: ContainerRid, partition: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&container_prefix(container));
    key[8..].copy_from_slice(&partition.to_be_bytes());
    key
}

impl MeshKey {
    pub(crate) fn to_bytes(self) -> [u8; 22] {
        let (kind, region, number) = match self.what {
            MeshEntry::Copy(region) => (b'c', region, 0),
            MeshEntry::Letter(from, number) => (b'l', from, number),
            MeshEntry::Conflict(number) => (b'x', 0, number),
        };
        let mut key = [0; 22];
        key[..12].copy_from_slice(&mesh_prefix(self.container, self.partition));
        (key[12], key[13]) = (kind, region);
        key[14..].copy_from_slice(&number.to_be_bytes());
        key
    }

    pub(super) fn read(key: &[u8]) -> Result<MeshKey, Malformed> {
        let key: &[u8; 22] = key.try_into().map_err(|_| Malformed)?;
        let (region, number) = (key[13], read_u64(&key[14..]));
        let what = match key[12] {
            b'c' => MeshEntry::Copy(region),
            b'l' => MeshEntry::Letter(region, number),
            b'x' => MeshEntry::Conflict(number),
            _ => return Err(Malformed),
        };
        Ok(MeshKey { container: read_container(key), partition: read_u32(&key[8..12]), what })
    }
}

/// What the catalog's keys stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CatalogKey {
    /// What the allocator gives out next.
    Allocator,
    Database(DatabaseRid),
    Container(ContainerRid),
    /// The partitions of a container.
    Layout(ContainerRid),
    Offer(OfferRid),
    User(UserRid),
    Permission(PermissionRid),
    /// The newest journal record that is in the base.
    Settled,
    /// The account's regions, and what was set between them.
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
            CatalogKey::Settled => (b's', &[]),
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
            (b's', []) => CatalogKey::Settled,
            (b'r', []) => CatalogKey::Regions,
            (b'd', [rid]) => CatalogKey::Database(DatabaseRid(*rid)),
            (b'c', [database, container]) => CatalogKey::Container(container_rid(*database, *container)),
            (b'l', [database, container]) => CatalogKey::Layout(container_rid(*database, *container)),
            (b'o', [rid]) => CatalogKey::Offer(OfferRid(*rid)),
            (b'u', [database, user]) => {
                CatalogKey::User(UserRid { database: DatabaseRid(*database), user: *user })
            }
            (b'p', [database, user, high, low]) => {
                let user = UserRid { database: DatabaseRid(*database), user: *user };
                let permission = u64::from(*high) << 32 | u64::from(*low);
                CatalogKey::Permission(PermissionRid { user, permission })
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
        fn keys_are_read_back_and_in_order(database: u32, container: u32, line: u8, partition: u32, n: u64) {
            let rid = container_rid(database, container);
            prop_assert_eq!(read_item(&item(rid, line, Ordinal(n))), Ok((rid, line, Ordinal(n))));
            let line = LineKey { container: rid, line, partition };
            prop_assert_eq!(read_log(&log(line, Lsn(n))), Ok((line, Lsn(n))));
            prop_assert!(log(line, Lsn(n / 2)) <= log(line, Lsn(n)));
            for what in [MeshEntry::Copy(line.line), MeshEntry::Letter(line.line, n), MeshEntry::Conflict(n)] {
                let key = MeshKey { container: rid, partition, what };
                prop_assert_eq!(MeshKey::read(&key.to_bytes()), Ok(key));
                prop_assert!(key.to_bytes().starts_with(&mesh_prefix(rid, partition)));
            }
            let user = UserRid { database: DatabaseRid(database), user: partition };
            for key in [
                CatalogKey::Allocator,
                CatalogKey::Settled,
                CatalogKey::Regions,
                CatalogKey::Database(DatabaseRid(database)),
                CatalogKey::Container(rid),
                CatalogKey::Layout(rid),
                CatalogKey::Offer(OfferRid(database)),
                CatalogKey::User(user),
                CatalogKey::Permission(PermissionRid { user, permission: n }),
            ] {
                prop_assert_eq!(CatalogKey::read(&key.to_bytes()), Ok(key));
            }
        }

        #[test]
        fn no_bytes_make_reading_a_key_panic(bytes: Vec<u8>) {
            let _ = (read_item(&bytes), read_log(&bytes), CatalogKey::read(&bytes), MeshKey::read(&bytes));
        }

        #[test]
        fn nothing_with_a_prefix_lies_behind_it(prefix: Vec<u8>, rest: Vec<u8>) {
            let key = [prefix.clone(), rest].concat();
            prop_assume!(prefix.iter().any(|byte| *byte != 0xFF));
            prop_assert!(key < behind(&prefix) && prefix < behind(&prefix));
        }
    }
}
