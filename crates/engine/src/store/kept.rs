//! What a disk keeps of a partition where every region writes, besides items and logs: how far each copy
//! is, what is on its way between them, and what lost.
//!
//! Letters are numbered by the region that sends them. One from the hub is for all others, and stays
//! until each of them has taken it in; one to the hub stays until that has. So what was on its way when
//! a process ended is what is there when the next one begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use protocol::partition::EffectivePartitionKey;

use super::conflicts::Conflict;
use super::inbox::{Key, Letter};
use super::reach::VersionVector;
use crate::disk::{Malformed, MeshEntry, Reader, put_bytes, put_number, put_version, read_version};
use crate::regions::RegionId;

/// Operations of conflicts, by their number on disk.
const OPERATIONS: [&str; 3] = ["create", "replace", "delete"];

/// How far a region's copy is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeptCopy {
    /// The number of the last letter it sent.
    pub(super) sent: u64,
    /// The number of the last of the hub's letters that it has taken in.
    pub(super) taken: u64,
    /// The number of the last conflict, of the hub.
    pub(super) conflicts: u64,
    pub(super) progress: VersionVector,
}

/// Everything that is kept of the copies of one partition.
#[derive(Default)]
pub(super) struct KeptMesh {
    pub(super) copies: BTreeMap<u8, KeptCopy>,
    /// By sender and number.
    pub(super) letters: BTreeMap<(u8, u64), Letter>,
    /// By number, which is that under which each is found.
    pub(super) conflicts: Vec<Conflict>,
}

impl KeptCopy {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        for number in [self.sent, self.taken, self.conflicts] {
            put_number(to, number);
        }
        let progress: Vec<u64> = self.progress.regions().map(|(_, commits)| commits).collect();
        put_number(to, progress.len() as u64);
        progress.into_iter().for_each(|commits| put_number(to, commits));
    }

    fn read(bytes: &[u8]) -> Result<KeptCopy, Malformed> {
        let mut reader = Reader::new(bytes);
        let (sent, taken, conflicts) = (reader.number()?, reader.number()?, reader.number()?);
        let count: usize = reader.small()?;
        let mut progress = Vec::new();
        for _ in 0..count {
            progress.push(reader.number()?);
        }
        reader.end()?;
        Ok(KeptCopy { sent, taken, conflicts, progress: VersionVector::of_regions(progress) })
    }
}

impl Letter {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        to.push(self.origin.0);
        put_number(to, self.commit);
        put_number(to, self.at);
        put_bytes(to, self.key.epk.as_bytes());
        put_bytes(to, self.key.id.as_bytes());
        // An entity tag is never empty.
        put_bytes(to, self.base.as_deref().unwrap_or_default());
        put_version(to, self.item.as_deref());
    }

    fn read(number: u64, bytes: &[u8]) -> Result<Letter, Malformed> {
        let mut reader = Reader::new(bytes);
        let origin = RegionId(reader.byte()?);
        let (commit, at) = (reader.number()?, reader.number()?);
        let epk = EffectivePartitionKey::from_bytes(reader.bytes()?);
        let key = Key { epk, id: reader.text()?.into() };
        let base = Some(reader.bytes()?).filter(|base| !base.is_empty()).map(Bytes::copy_from_slice);
        let item = read_version(&mut reader)?.map(Arc::new);
        reader.end()?;
        Ok(Letter { origin, commit, number, key, base, item, at })
    }
}

impl Conflict {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
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

impl KeptMesh {
    /// Reads what was kept of a partition's copies in `regions` regions.
    pub(super) fn read(entries: &[(MeshEntry, Bytes)], regions: usize) -> Result<KeptMesh, Malformed> {
        let known = |region: u8| if usize::from(region) < regions { Ok(region) } else { Err(Malformed) };
        let mut kept = KeptMesh::default();
        for (entry, value) in entries {
            match *entry {
                MeshEntry::Copy(region) => {
                    kept.copies.insert(known(region)?, KeptCopy::read(value)?);
                }
                MeshEntry::Letter(from, number) => {
                    let letter = Letter::read(number, value)?;
                    known(letter.origin.0)?;
                    kept.letters.insert((known(from)?, number), letter);
                }
                // In order of their numbers, as keys are.
                MeshEntry::Conflict(number) => kept.conflicts.push(Conflict::read(number, value)?),
            }
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_letters_and_conflicts_are_read_back_and_never_when_cut_short() {
        let copy = KeptCopy {
            sent: 3,
            taken: 300,
            conflicts: 1,
            progress: VersionVector::of_regions(vec![7, 0, 900]),
        };
        let epk = EffectivePartitionKey::from_bytes(&[1, 2]);
        let letter = Letter {
            origin: RegionId(2),
            commit: 9,
            number: 4,
            key: Key { epk, id: "x".into() },
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
            (MeshEntry::Copy(1), written(&|to| copy.put(to))),
            (MeshEntry::Letter(2, 4), written(&|to| letter.put(to))),
            (MeshEntry::Conflict(8), written(&|to| conflict.put(to))),
        ];
        let kept = KeptMesh::read(&entries, 3).unwrap();
        assert_eq!(kept.copies[&1], copy);
        assert_eq!(format!("{:?}", kept.letters[&(2, 4)]), format!("{letter:?}"));
        assert_eq!(format!("{:?}", kept.conflicts), format!("{:?}", [conflict]));
        for (entry, value) in entries {
            let cut = [(entry, value.slice(..value.len() - 1))];
            assert!(KeptMesh::read(&cut, 3).is_err(), "{entry:?}");
        }
        let other = [(MeshEntry::Copy(1), written(&|to| copy.put(to)))];
        assert!(KeptMesh::read(&other, 1).is_err(), "a region that is not there");
    }
}
