//! What the disk stores of a partition where every region writes, besides items and logs: the progress of
//! each replica, the messages in flight, and the conflicts.
//!
//! Messages are numbered by the region that sends them. One from the hub is for all others, and stays stored
//! until each of them has applied it; one to the hub stays until the hub has. So the messages that were in
//! flight when a process ended are there when the next one begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use protocol::partition::EffectivePartitionKey;

use crate::disk::{Malformed, Reader, ReplicationEntry, put_bytes, put_number, put_version, read_version};
use crate::regions::RegionId;
use crate::store::replica::progress::VersionVector;
use crate::store::replication::conflicts::Conflict;
use crate::store::replication::message::{ItemKey, ReplicationMessage};

/// The operations of conflicts; their index is stored on disk.
const OPERATIONS: [&str; 3] = ["create", "replace", "delete"];

/// The stored progress of a region's replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct StoredReplica {
    /// The number of the last message it sent.
    pub(in crate::store) sent: u64,
    /// The number of the last of the hub's messages that it has applied.
    pub(in crate::store) applied: u64,
    /// The number of the last conflict; only of the hub.
    pub(in crate::store) conflicts: u64,
    pub(in crate::store) versions: VersionVector,
}

/// Everything stored about the replicas of one partition.
#[derive(Default)]
pub(in crate::store) struct StoredReplicas {
    pub(in crate::store) replicas: BTreeMap<u8, StoredReplica>,
    /// The messages in flight, by sender and number.
    pub(in crate::store) messages: BTreeMap<(u8, u64), ReplicationMessage>,
    /// In the order of their numbers.
    pub(in crate::store) conflicts: Vec<Conflict>,
}

impl StoredReplica {
    pub(in crate::store) fn put(&self, to: &mut Vec<u8>) {
        for number in [self.sent, self.applied, self.conflicts] {
            put_number(to, number);
        }
        let versions: Vec<u64> = self.versions.regions().map(|(_, commits)| commits).collect();
        put_number(to, versions.len() as u64);
        versions.into_iter().for_each(|commits| put_number(to, commits));
    }

    fn read(bytes: &[u8]) -> Result<StoredReplica, Malformed> {
        let mut reader = Reader::new(bytes);
        let (sent, applied, conflicts) = (reader.number()?, reader.number()?, reader.number()?);
        let count: usize = reader.number_as()?;
        let mut versions = Vec::new();
        for _ in 0..count {
            versions.push(reader.number()?);
        }
        reader.end()?;
        Ok(StoredReplica { sent, applied, conflicts, versions: VersionVector::of_regions(versions) })
    }
}

impl ReplicationMessage {
    pub(in crate::store) fn put(&self, to: &mut Vec<u8>) {
        to.push(self.origin.0);
        put_number(to, self.commit);
        put_number(to, self.at);
        put_bytes(to, self.key.epk.as_bytes());
        put_bytes(to, self.key.id.as_bytes());
        // An entity tag is never empty.
        put_bytes(to, self.base.as_deref().unwrap_or_default());
        put_version(to, self.item.as_deref());
    }

    fn read(number: u64, bytes: &[u8]) -> Result<ReplicationMessage, Malformed> {
        let mut reader = Reader::new(bytes);
        let origin = RegionId(reader.byte()?);
        let (commit, at) = (reader.number()?, reader.number()?);
        let epk = EffectivePartitionKey::from_bytes(reader.bytes()?);
        let key = ItemKey { epk, id: reader.text()?.into() };
        let base = Some(reader.bytes()?).filter(|base| !base.is_empty()).map(Bytes::copy_from_slice);
        let item = read_version(&mut reader)?.map(Arc::new);
        reader.end()?;
        Ok(ReplicationMessage { origin, commit, number, key, base, item, at })
    }
}

impl Conflict {
    pub(in crate::store) fn put(&self, to: &mut Vec<u8>) {
        let operation = OPERATIONS.iter().position(|operation| *operation == self.operation);
        to.push(operation.unwrap_or_default() as u8);
        put_version(to, self.item.as_deref());
        put_version(to, self.winner.as_deref());
    }

    fn read(number: u64, bytes: &[u8]) -> Result<Conflict, Malformed> {
        let mut reader = Reader::new(bytes);
        let operation = OPERATIONS.get(usize::from(reader.byte()?)).ok_or(Malformed)?;
        let item = read_version(&mut reader)?.map(Arc::new);
        let present = read_version(&mut reader)?.map(Arc::new);
        reader.end()?;
        Ok(Conflict { operation, item, winner: present, number })
    }
}

impl StoredReplicas {
    /// Reads what was stored about a partition's replicas in `regions` regions.
    pub(in crate::store) fn read(
        entries: &[(ReplicationEntry, Bytes)],
        regions: usize,
    ) -> Result<StoredReplicas, Malformed> {
        let known = |region: u8| if usize::from(region) < regions { Ok(region) } else { Err(Malformed) };
        let mut stored = StoredReplicas::default();
        for (entry, value) in entries {
            match *entry {
                ReplicationEntry::Replica(region) => {
                    stored.replicas.insert(known(region)?, StoredReplica::read(value)?);
                }
                ReplicationEntry::Message(from, number) => {
                    let message = ReplicationMessage::read(number, value)?;
                    known(message.origin.0)?;
                    stored.messages.insert((known(from)?, number), message);
                }
                // In order of their numbers, as keys are.
                ReplicationEntry::Conflict(number) => stored.conflicts.push(Conflict::read(number, value)?),
            }
        }
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_messages_and_conflicts_round_trip_and_reject_truncation() {
        let replica = StoredReplica {
            sent: 3,
            applied: 300,
            conflicts: 1,
            versions: VersionVector::of_regions(vec![7, 0, 900]),
        };
        let epk = EffectivePartitionKey::from_bytes(&[1, 2]);
        let message = ReplicationMessage {
            origin: RegionId(2),
            commit: 9,
            number: 4,
            key: ItemKey { epk, id: "x".into() },
            base: Some(Bytes::from_static(b"\"tag\"")),
            item: None,
            at: 77,
        };
        let conflict = Conflict { operation: "delete", item: None, winner: None, number: 8 };
        let written = |put: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            put(&mut bytes);
            Bytes::from(bytes)
        };
        let entries = [
            (ReplicationEntry::Replica(1), written(&|to| replica.put(to))),
            (ReplicationEntry::Message(2, 4), written(&|to| message.put(to))),
            (ReplicationEntry::Conflict(8), written(&|to| conflict.put(to))),
        ];
        let stored = StoredReplicas::read(&entries, 3).unwrap();
        assert_eq!(stored.replicas[&1], replica);
        assert_eq!(format!("{:?}", stored.messages[&(2, 4)]), format!("{message:?}"));
        assert_eq!(format!("{:?}", stored.conflicts), format!("{:?}", [conflict]));
        for (entry, value) in entries {
            let cut = [(entry, value.slice(..value.len() - 1))];
            assert!(StoredReplicas::read(&cut, 3).is_err(), "{entry:?}");
        }
        let other = [(ReplicationEntry::Replica(1), written(&|to| replica.put(to)))];
        assert!(StoredReplicas::read(&other, 1).is_err(), "a region that is not there");
    }
}
