//! How a container's partitions are written down.

use protocol::lsn::Lsn;
use protocol::partition::{EffectivePartitionKey, EpkRange};

use super::coding::{Malformed, Reader, put_bytes, put_number};

/// A container's partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptLayout {
    /// The id the next range gets.
    pub(crate) next_range_id: u32,
    /// The ordinal the next item got, when this was written.
    pub(crate) next_ordinal: u64,
    /// In the order of the ring.
    pub(crate) partitions: Vec<KeptPartition>,
    /// How often the account's writes had moved when this was written. Every move brings all ranges along,
    /// so after another one no range has a region of its own, whatever is said here.
    pub(crate) moves: u64,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptPartition {
    pub(crate) id: u32,
    pub(crate) token_version: i64,
    pub(crate) range: EpkRange,
    /// The ranges it came from, oldest first.
    pub(crate) parents: Vec<u32>,
    /// How each of its lines began.
    pub(crate) births: Vec<Birth>,
    /// The region of its own that writes it, where ranges fail over one by one.
    pub(crate) home: Option<String>,
}

/// How a line began: when its partition was made, or made as it had been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    /// Its LSN then.
    pub(crate) born: Lsn,
    /// Changes up to here were no longer known then.
    pub(crate) forgotten: Lsn,
}

impl KeptPartition {
    /// How one of its lines began.
    pub(crate) fn birth(&self, line: u8) -> Birth {
        let first = self.births.first().copied();
        let birth = self.births.get(usize::from(line)).copied().or(first);
        birth.unwrap_or(Birth { born: Lsn(0), forgotten: Lsn(0) })
    }
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
            partition.birth(0).put(to);
        }
        // The first version of the format ended here.
        put_number(to, self.next_ordinal);
        for partition in &self.partitions {
            put_number(to, partition.births.len().saturating_sub(1) as u64);
            partition.births.iter().skip(1).for_each(|birth| birth.put(to));
        }
        // Nearly always there is nothing more to say.
        if self.partitions.iter().all(|partition| partition.home.is_none()) {
            return;
        }
        put_number(to, self.moves);
        for partition in &self.partitions {
            put_bytes(to, partition.home.as_deref().unwrap_or_default().as_bytes());
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
            let (births, range) = (vec![Birth::read(&mut reader)?], EpkRange::new(min, max));
            partitions.push(KeptPartition { id, token_version, range, parents, births, home: None });
        }
        let mut next_ordinal = 0;
        if reader.left() > 0 {
            next_ordinal = reader.number()?;
            for partition in &mut partitions {
                let count: usize = reader.small()?;
                for _ in 0..count {
                    partition.births.push(Birth::read(&mut reader)?);
                }
            }
        }
        let mut moves = 0;
        if reader.left() > 0 {
            moves = reader.number()?;
            for partition in &mut partitions {
                partition.home = Some(reader.text()?.to_owned()).filter(|name| !name.is_empty());
            }
        }
        reader.end()?;
        let whole = partitions.first().is_some_and(|first| first.range.min == EpkRange::FULL.min)
            && partitions.last().is_some_and(|last| last.range.max == EpkRange::FULL.max)
            && partitions.windows(2).all(|pair| pair[0].range.max == pair[1].range.min);
        if whole { Ok(KeptLayout { next_range_id, next_ordinal, partitions, moves }) } else { Err(Malformed) }
    }
}

impl Birth {
    fn put(self, to: &mut Vec<u8>) {
        put_number(to, self.born.0);
        put_number(to, self.forgotten.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Birth, Malformed> {
        Ok(Birth { born: Lsn(reader.number()?), forgotten: Lsn(reader.number()?) })
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
            births: (0..=id % 3).map(|line| birth(id + line)).collect(),
            home: None,
        }
    }

    fn written_in(home: &str, partition: KeptPartition) -> KeptPartition {
        KeptPartition { home: Some(home.to_owned()), ..partition }
    }

    fn birth(number: u32) -> Birth {
        Birth { born: Lsn(u64::from(number) + 1), forgotten: Lsn(u64::from(number)) }
    }

    #[test]
    fn a_layout_is_read_back_and_must_cover_the_ring() {
        let cases = [
            (vec![partition(0, "", "FF", &[])], true),
            (vec![partition(3, "", "1F", &[0, 1]), partition(4, "1F", "FF", &[])], true),
            (vec![partition(3, "", "1F", &[]), written_in("East US", partition(4, "1F", "FF", &[]))], true),
            (vec![partition(3, "", "1F", &[0]), partition(4, "20", "FF", &[])], false),
            (vec![partition(3, "01", "FF", &[0])], false),
            (vec![], false),
        ];
        for (partitions, good) in cases {
            let moves = partitions.iter().filter(|partition| partition.home.is_some()).count() as u64;
            let layout = KeptLayout { next_range_id: 5, next_ordinal: 300, partitions, moves };
            let mut bytes = Vec::new();
            layout.put(&mut bytes);
            assert_eq!(KeptLayout::read(&bytes).ok(), good.then_some(layout));
            assert_eq!(KeptLayout::read(&bytes[..bytes.len() - 1]), Err(Malformed));
        }
    }

    #[test]
    fn a_layout_of_the_first_version_is_read_without_what_it_lacks() {
        let partitions = vec![partition(0, "", "FF", &[])];
        let layout = KeptLayout { next_range_id: 1, next_ordinal: 7, partitions, moves: 0 };
        let mut bytes = Vec::new();
        layout.put(&mut bytes);
        // The ordinal, and no other lines.
        bytes.truncate(bytes.len() - 2);
        assert_eq!(KeptLayout::read(&bytes), Ok(KeptLayout { next_ordinal: 0, ..layout }));
    }
}
