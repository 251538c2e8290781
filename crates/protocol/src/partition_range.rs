//! Partition key ranges: physical partitions as the `pkranges` feed describes them.
//!
//! Input and output: ids and bodies. Splitting and serving a range is left to the server.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::lsn::Lsn;
use crate::partition::{EffectivePartitionKey, EpkRange};
use crate::resource::SystemProperties;
use crate::resource_id::{ChildKind, ChildRid, ContainerRid};

/// The id of a physical partition: a decimal number, never reused within a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeId(pub u32);

impl fmt::Display for RangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RangeId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<RangeId, Self::Err> {
        text.parse().map(RangeId)
    }
}

impl Serialize for RangeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RangeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RangeId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A physical partition of a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionKeyRange {
    /// The id of the partition key range.
    pub id: RangeId,
    /// The smallest EPK that the partition owns.
    pub min_inclusive: EffectivePartitionKey,
    /// The smallest EPK above those that the partition owns.
    pub max_exclusive: EffectivePartitionKey,
    /// A number that the service assigns to the partition.
    #[serde(default)]
    pub rid_prefix: u32,
    /// The partition's share of the container's throughput.
    #[serde(default)]
    pub throughput_fraction: f64,
    /// The state of the partition: `online`, or `splitting` before others replace it.
    #[serde(default)]
    pub status: String,
    /// The ids of all ancestors from which it was split.
    #[serde(default)]
    pub parents: Vec<RangeId>,
    /// The LSN at which the partition was created.
    #[serde(rename = "_lsn", default)]
    pub lsn: Lsn,
    /// The system properties of the range.
    #[serde(flatten)]
    pub system: SystemProperties,
}

impl PartitionKeyRange {
    /// An online partition key range of a container.
    pub fn new(container: ContainerRid, id: RangeId, range: EpkRange) -> PartitionKeyRange {
        // The service numbers them from two; ids stay unique across splits.
        let ordinal = u64::from(id.0) + 2;
        let rid = ChildRid { container, kind: ChildKind::PartitionKeyRange, ordinal };
        PartitionKeyRange {
            id,
            min_inclusive: range.min,
            max_exclusive: range.max,
            rid_prefix: id.0,
            throughput_fraction: 1.0,
            status: "online".to_owned(),
            parents: Vec::new(),
            lsn: Lsn(1),
            system: SystemProperties {
                rid: rid.to_string(),
                self_link: rid.self_link(),
                ..Default::default()
            },
        }
    }

    /// The EPK range that the partition owns.
    pub fn range(&self) -> EpkRange {
        EpkRange::new(self.min_inclusive.clone(), self.max_exclusive.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource_id::DatabaseRid;

    #[test]
    fn a_range_has_the_services_members() {
        let container = ContainerRid { database: DatabaseRid(0), container: 0 };
        let mut range = PartitionKeyRange::new(container, RangeId(0), EpkRange::FULL);
        range.system.etag = "\"e\"".into();
        range.system.ts = 1_700_000_000;
        let expected = r#"{"_rid":"AAAAAIAAAAACAAAAAAAAUA==","id":"0","_etag":"\"e\"","minInclusive":"","maxExclusive":"FF",
            "ridPrefix":0,"_self":"dbs/AAAAAA==/colls/AAAAAIAAAAA=/pkranges/AAAAAIAAAAACAAAAAAAAUA==/",
            "throughputFraction":1.0,"status":"online","parents":[],"_ts":1700000000,"_lsn":1}"#;
        let body = serde_json::to_value(&range).expect("plain data");
        assert_eq!(body, serde_json::from_str::<serde_json::Value>(expected).expect("json"));
        assert_eq!(serde_json::from_value::<PartitionKeyRange>(body).expect("what was written"), range);
        assert_eq!(range.range(), EpkRange::FULL);
    }

    #[test]
    fn range_ids_are_decimal_text() {
        assert_eq!(serde_json::to_string(&[RangeId(0), RangeId(12)]).expect("plain data"), r#"["0","12"]"#);
        for bad in ["", "-1", "a", "4294967296", "M"] {
            assert!(bad.parse::<RangeId>().is_err(), "{bad}");
        }
    }
}
