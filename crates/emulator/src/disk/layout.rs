//! How a container's partitions are written down.

use protocol::lsn::Lsn;
use protocol::partition::{EffectivePartitionKey, EpkRange};

use super::coding::{Malformed, Reader, put_bytes, put_number};

/// A container's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptLayout {
    /// The id the next range gets.
    pub(crate) next_range_id: u32,
    /// In the order of the ring.
    pub(crate) partitions: Vec<KeptPartition>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptPartition {
    pub(crate) id: u32,
    pub(crate) token_version: i64,
    pub(crate) range: EpkRange,
    /// The ranges it came from, oldest first.
    pub(crate) parents: Vec<u32>,
    /// Its LSN when it was made.
    pub(crate) born: Lsn,
    /// Changes up to here were no longer known when it was made.
    pub(crate) forgotten: Lsn,
}

impl KeptLayout {
    /// Appends it.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put_number(to, self.next_range_id.into());
        put_number(to, self.partitions.len() as u64);
        for partition in &self.partitions {
            put_number(to, partition.id.into());
            put_number(to, partition.token_version as u64);
            put_bytes(to, partition.range.min.as_bytes());
            put_bytes(to, partition.range.max.as_bytes());
            put_number(to, partition.parents.len() as u64);
            partition.parents.iter().for_each(|parent| put_number(to, (*parent).into()));
            put_number(to, partition.born.0);
            put_number(to, partition.forgotten.0);
        }
    }

    /// Reads it back.
    pub(crate) fn read(bytes: &[u8]) -> Result<KeptLayout, Malformed> {
        let mut reader = Reader::new(bytes);
        let next_range_id = reader.small()?;
        let count: usize = reader.small()?;
        let mut partitions = Vec::new();
        for _ in 0..count {
            let (id, token_version) = (reader.small()?, reader.number()? as i64);
            let min = EffectivePartitionKey::from_bytes(reader.bytes()?);
            let max = EffectivePartitionKey::from_bytes(reader.bytes()?);
            let count: usize = reader.small()?;
            let mut parents = Vec::new();
            for _ in 0..count {
                parents.push(reader.small()?);
            }
            let (born, forgotten) = (Lsn(reader.number()?), Lsn(reader.number()?));
            let range = EpkRange::new(min, max);
            partitions.push(KeptPartition { id, token_version, range, parents, born, forgotten });
        }
        reader.end()?;
        let whole = partitions.first().is_some_and(|first| first.range.min == EpkRange::FULL.min)
            && partitions.last().is_some_and(|last| last.range.max == EpkRange::FULL.max)
            && partitions.windows(2).all(|pair| pair[0].range.max == pair[1].range.min);
        if whole { Ok(KeptLayout { next_range_id, partitions }) } else { Err(Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(id: u32, min: &str, max: &str, parents: &[u32]) -> KeptPartition {
        let at = |hex: &str| EffectivePartitionKey::from_hex(hex).unwrap();
        KeptPartition {
            id,
            token_version: i64::from(id) - 1,
            range: EpkRange::new(at(min), at(max)),
            parents: parents.to_vec(),
            born: Lsn(u64::from(id) + 1),
            forgotten: Lsn(u64::from(id)),
        }
    }

    #[test]
    fn a_layout_is_read_back_and_must_cover_the_ring() {
        let cases = [
            (vec![partition(0, "", "FF", &[])], true),
            (vec![partition(3, "", "1F", &[0, 1]), partition(4, "1F", "FF", &[])], true),
            (vec![partition(3, "", "1F", &[0]), partition(4, "20", "FF", &[])], false),
            (vec![partition(3, "01", "FF", &[0])], false),
            (vec![], false),
        ];
        for (partitions, good) in cases {
            let layout = KeptLayout { next_range_id: 5, partitions };
            let mut bytes = Vec::new();
            layout.put(&mut bytes);
            assert_eq!(KeptLayout::read(&bytes).ok(), good.then_some(layout));
            assert_eq!(KeptLayout::read(&bytes[..bytes.len() - 1]), Err(Malformed));
        }
    }
}
