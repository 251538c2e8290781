//! The stored layout of a container's partitions.

use protocol::lsn::Lsn;
use protocol::partition::{EffectivePartitionKey, EpkRange};

use super::encoding::{Malformed, Reader, put_bytes, put_number};

/// The partitions of a container, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredLayout {
    /// The id that the next range gets.
    pub(crate) next_range_id: u32,
    /// The ordinal that the next item gets, when this was written.
    pub(crate) next_ordinal: u64,
    /// The partitions in EPK order.
    pub(crate) partitions: Vec<StoredPartition>,
    /// How often the account's writes had moved when this was written. Every failover moves all ranges along,
    /// so after another one no range has a write region of its own, whatever is stored here.
    pub(crate) failover_count: u64,
}

/// A partition, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPartition {
    pub(crate) id: u32,
    pub(crate) token_version: i64,
    pub(crate) range: EpkRange,
    /// The ids of the ranges it descends from, oldest first.
    pub(crate) parents: Vec<u32>,
    /// Where each of its version chains begins.
    pub(crate) origins: Vec<ChainOrigin>,
    /// The name of its own write region, where partitions fail over one by one.
    pub(crate) write_region: Option<String>,
}

/// Where a version chain begins: with a new partition, or with a restored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainOrigin {
    /// The LSN it begins with.
    pub(crate) lsn_at_start: Lsn,
    /// Its log had been trimmed up to this LSN.
    pub(crate) trimmed_to: Lsn,
}

impl StoredPartition {
    /// Where one of its version chains begins.
    pub(crate) fn origin(&self, chain: u8) -> ChainOrigin {
        let first = self.origins.first().copied();
        let origin = self.origins.get(usize::from(chain)).copied().or(first);
        origin.unwrap_or(ChainOrigin { lsn_at_start: Lsn(0), trimmed_to: Lsn(0) })
    }
}

impl StoredLayout {
    /// Appends the encoded layout.
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
            partition.origin(0).put(to);
        }
        // The first version of the format ended here.
        put_number(to, self.next_ordinal);
        for partition in &self.partitions {
            put_number(to, partition.origins.len().saturating_sub(1) as u64);
            partition.origins.iter().skip(1).for_each(|origin| origin.put(to));
        }
        // Nearly always no partition has a write region of its own.
        if self.partitions.iter().all(|partition| partition.write_region.is_none()) {
            return;
        }
        put_number(to, self.failover_count);
        for partition in &self.partitions {
            put_bytes(to, partition.write_region.as_deref().unwrap_or_default().as_bytes());
        }
    }

    /// Reads an encoded layout.
    pub(crate) fn read(bytes: &[u8]) -> Result<StoredLayout, Malformed> {
        let mut reader = Reader::new(bytes);
        let next_range_id = reader.number_as()?;
        let count: usize = reader.number_as()?;
        let mut partitions = Vec::new();
        for _ in 0..count {
            let (id, token_version) = (reader.number_as()?, reader.number()? as i64);
            let min = EffectivePartitionKey::from_bytes(reader.bytes()?);
            let max = EffectivePartitionKey::from_bytes(reader.bytes()?);
            let count: usize = reader.number_as()?;
            let mut parents = Vec::new();
            for _ in 0..count {
                parents.push(reader.number_as()?);
            }
            let (origins, range) = (vec![ChainOrigin::read(&mut reader)?], EpkRange::new(min, max));
            partitions.push(StoredPartition {
                id,
                token_version,
                range,
                parents,
                origins,
                write_region: None,
            });
        }
        let mut next_ordinal = 0;
        if reader.remaining() > 0 {
            next_ordinal = reader.number()?;
            for partition in &mut partitions {
                let count: usize = reader.number_as()?;
                for _ in 0..count {
                    partition.origins.push(ChainOrigin::read(&mut reader)?);
                }
            }
        }
        let mut failover_count = 0;
        if reader.remaining() > 0 {
            failover_count = reader.number()?;
            for partition in &mut partitions {
                partition.write_region = Some(reader.text()?.to_owned()).filter(|name| !name.is_empty());
            }
        }
        reader.end()?;
        let whole = partitions.first().is_some_and(|first| first.range.min == EpkRange::FULL.min)
            && partitions.last().is_some_and(|last| last.range.max == EpkRange::FULL.max)
            && partitions.windows(2).all(|pair| pair[0].range.max == pair[1].range.min);
        if whole {
            Ok(StoredLayout { next_range_id, next_ordinal, partitions, failover_count })
        } else {
            Err(Malformed)
        }
    }
}

impl ChainOrigin {
    fn put(self, to: &mut Vec<u8>) {
        put_number(to, self.lsn_at_start.0);
        put_number(to, self.trimmed_to.0);
    }

    fn read(reader: &mut Reader<'_>) -> Result<ChainOrigin, Malformed> {
        Ok(ChainOrigin { lsn_at_start: Lsn(reader.number()?), trimmed_to: Lsn(reader.number()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(id: u32, min: &str, max: &str, parents: &[u32]) -> StoredPartition {
        let at = |hex: &str| EffectivePartitionKey::from_hex(hex).unwrap();
        StoredPartition {
            id,
            token_version: i64::from(id) - 1,
            range: EpkRange::new(at(min), at(max)),
            parents: parents.to_vec(),
            origins: (0..=id % 3).map(|chain| origin(id + chain)).collect(),
            write_region: None,
        }
    }

    fn written_in(write_region: &str, partition: StoredPartition) -> StoredPartition {
        StoredPartition { write_region: Some(write_region.to_owned()), ..partition }
    }

    fn origin(number: u32) -> ChainOrigin {
        ChainOrigin { lsn_at_start: Lsn(u64::from(number) + 1), trimmed_to: Lsn(u64::from(number)) }
    }

    #[test]
    fn a_layout_round_trips_and_must_cover_the_epk_space() {
        let cases = [
            (vec![partition(0, "", "FF", &[])], true),
            (vec![partition(3, "", "1F", &[0, 1]), partition(4, "1F", "FF", &[])], true),
            (vec![partition(3, "", "1F", &[]), written_in("East US", partition(4, "1F", "FF", &[]))], true),
            (vec![partition(3, "", "1F", &[0]), partition(4, "20", "FF", &[])], false),
            (vec![partition(3, "01", "FF", &[0])], false),
            (vec![], false),
        ];
        for (partitions, good) in cases {
            let failover_count =
                partitions.iter().filter(|partition| partition.write_region.is_some()).count() as u64;
            let layout = StoredLayout { next_range_id: 5, next_ordinal: 300, partitions, failover_count };
            let mut bytes = Vec::new();
            layout.put(&mut bytes);
            assert_eq!(StoredLayout::read(&bytes).ok(), good.then_some(layout));
            assert_eq!(StoredLayout::read(&bytes[..bytes.len() - 1]), Err(Malformed));
        }
    }

    #[test]
    fn a_layout_of_format_1_is_read() {
        let partitions = vec![partition(0, "", "FF", &[])];
        let layout = StoredLayout { next_range_id: 1, next_ordinal: 7, partitions, failover_count: 0 };
        let mut bytes = Vec::new();
        layout.put(&mut bytes);
        // Without the ordinal and the other chains.
        bytes.truncate(bytes.len() - 2);
        assert_eq!(StoredLayout::read(&bytes), Ok(StoredLayout { next_ordinal: 0, ..layout }));
    }
}
