//! Partition key ranges as clients know them, and which client reads which EPK range.
//!
//! Pure. A client has a [`Lease`] per range that it reads; when the range is replaced, it reads the ranges again
//! and continues in the new ones, each within the EPK range of the lease.

use protocol::container::PartitionKeyDefinition;
use protocol::partition::{EffectivePartitionKey, EpkRange, PartitionKey, effective_key};
use serde_json::Value;

use crate::failure::{Failure, Guarantee, ensure};

/// A partition key value and its effective partition key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// The value of the partition key header.
    pub(crate) header: String,
    pub(crate) epk: EffectivePartitionKey,
}

impl Key {
    pub(crate) fn new(name: String, definition: &PartitionKeyDefinition) -> Key {
        let epk = effective_key(definition, &PartitionKey::single(name.as_str()));
        Key { header: format!("[\"{name}\"]"), name, epk }
    }
}

/// One physical partition, as `pkranges` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PhysicalRange {
    pub(crate) id: u32,
    pub(crate) epks: EpkRange,
}

/// Parses `pkranges`, which have to cover the EPK space without gaps.
pub(crate) fn read_ranges(body: &Value) -> Result<Vec<PhysicalRange>, Failure> {
    let epk = |value: &Value| EffectivePartitionKey::from_hex(value.as_str().unwrap()).unwrap();
    let mut ranges: Vec<PhysicalRange> = body["PartitionKeyRanges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| PhysicalRange {
            id: range["id"].as_str().unwrap().parse().unwrap(),
            epks: EpkRange::new(epk(&range["minInclusive"]), epk(&range["maxExclusive"])),
        })
        .collect();
    ranges.sort_by(|a, b| a.epks.min.cmp(&b.epks.min));
    let covers = ranges.first().is_some_and(|first| first.epks.min == EffectivePartitionKey::MIN)
        && ranges.last().is_some_and(|last| last.epks.max == EffectivePartitionKey::MAX)
        && ranges.windows(2).all(|pair| pair[0].epks.max == pair[1].epks.min);
    ensure(covers, Guarantee::Layout, || format!("{ranges:?}"))?;
    Ok(ranges)
}

/// The part of the container that a reader selects.
#[derive(Clone, Debug)]
pub(crate) enum ReadScope {
    /// All partitions, without any selection.
    AllPartitions,
    /// One partition key, by its header.
    Key(String),
    /// An EPK range, in whichever partitions it lies.
    EpkRange(EpkRange),
    /// A physical partition, or a part of it.
    Range { id: u32, part: EpkRange },
}

/// A part of the container, and the continuation of its reader.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) scope: ReadScope,
    pub(crate) position: Option<String>,
    /// Whether it was read to its end.
    pub(crate) done: bool,
}

impl Lease {
    pub(crate) fn new(place: ReadScope) -> Lease {
        Lease { scope: place, position: None, done: false }
    }

    /// Makes one lease for each of `ranges`.
    pub(crate) fn per_range(ranges: &[PhysicalRange]) -> Vec<Lease> {
        let lease =
            |range: &PhysicalRange| Lease::new(ReadScope::Range { id: range.id, part: range.epks.clone() });
        ranges.iter().map(lease).collect()
    }

    /// The leases that replace this one over the current ranges.
    pub(crate) fn split_over(&self, ranges: &[PhysicalRange]) -> Vec<Lease> {
        let ReadScope::Range { part, .. } = &self.scope else { return vec![self.clone()] };
        let parts = ranges.iter().filter_map(|range| Some((range.id, range.epks.intersect(part)?)));
        parts.map(|(id, part)| Lease { scope: ReadScope::Range { id, part }, ..self.clone() }).collect()
    }

    /// The headers that select the scope.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        let part = |part: &EpkRange| {
            vec![
                ("x-ms-read-key-type", "EffectivePartitionKeyRange".to_owned()),
                ("x-ms-start-epk", part.min.to_hex()),
                ("x-ms-end-epk", part.max.to_hex()),
            ]
        };
        match &self.scope {
            ReadScope::AllPartitions => Vec::new(),
            ReadScope::Key(header) => vec![("x-ms-documentdb-partitionkey", header.clone())],
            ReadScope::EpkRange(epks) => part(epks),
            ReadScope::Range { id, part: epks } => {
                let mut headers = part(epks);
                headers.push(("x-ms-documentdb-partitionkeyrangeid", id.to_string()));
                headers
            }
        }
    }

    /// Whether the scope contains a key.
    pub(crate) fn covers(&self, key: &Key) -> bool {
        match &self.scope {
            ReadScope::AllPartitions => true,
            ReadScope::Key(header) => *header == key.header,
            ReadScope::EpkRange(part) | ReadScope::Range { part, .. } => part.contains(&key.epk),
        }
    }
}
