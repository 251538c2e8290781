//! The items that a processor stores in its lease container, and the changes that may happen to them. Pure.
//!
//! A processor stores one [`ProcessorRecord`] (its mode, and the start position of each EPK range) and one [`Lease`]
//! per feed range. All are items whose id is their partition key, and every write of one has the ETag that was read as
//! its precondition. `store` reads and writes them; `balance` decides which instance acquires which lease.
//!
//! The JSON names are a storage format: where a field has been renamed, serde keeps the stored name.

use driver::change_feed::ChangeFeedMode;
use driver::change_feed::FeedPosition;
use protocol::partition::{EffectivePartitionKey, EpkRange};
use serde::{Deserialize, Serialize};

/// The position in the change feed up to which an EPK range has been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum LeasePosition {
    /// No change has been handled; the first one of all comes next.
    Beginning,
    /// No change has been handled; the first one after this time comes next.
    Time(String),
    /// All changes up to the page of the feed that had this ETag have been handled.
    Etag(String),
}

impl LeasePosition {
    /// The start of the next request to the feed.
    pub(super) fn since(&self) -> FeedPosition {
        match self {
            LeasePosition::Beginning => FeedPosition::Beginning,
            LeasePosition::Time(time) => FeedPosition::Time(time.clone()),
            LeasePosition::Etag(etag) => FeedPosition::Etag(etag.clone()),
        }
    }

    /// The position as a person reads it.
    pub(super) fn display_text(&self) -> String {
        match self {
            LeasePosition::Beginning => "beginning".to_owned(),
            LeasePosition::Time(time) => format!("after {time}"),
            LeasePosition::Etag(etag) => etag.clone(),
        }
    }
}

/// An EPK range and its position in the change feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RangePosition {
    min: EffectivePartitionKey,
    max: EffectivePartitionKey,
    pub(super) position: LeasePosition,
}

impl RangePosition {
    pub(super) fn new(range: EpkRange, position: LeasePosition) -> RangePosition {
        RangePosition { min: range.min, max: range.max, position }
    }

    pub(super) fn range(&self) -> EpkRange {
        EpkRange::new(self.min.clone(), self.max.clone())
    }
}

/// The item that all instances of a processor share: mode, generation and start positions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessorRecord {
    pub(super) id: String,
    /// The id of the processor, which is the id of this item itself.
    pub(super) processor: String,
    pub(super) mode: StoredMode,
    /// Grows with each rewind. A lease of an older generation still has to be rewound.
    pub(super) generation: u64,
    /// Where each EPK range starts in this generation; together the ranges are the whole EPK space.
    #[serde(rename = "stretches")]
    pub(super) start_positions: Vec<RangePosition>,
    /// Whether the whole EPK space has leases. Until then no lease is acquired.
    pub(super) ready: bool,
}

/// A change feed mode as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StoredMode {
    LatestVersion,
    AllVersionsAndDeletes,
}

impl StoredMode {
    pub(super) fn to_feed_mode(self) -> ChangeFeedMode {
        match self {
            StoredMode::LatestVersion => ChangeFeedMode::LatestVersion,
            StoredMode::AllVersionsAndDeletes => ChangeFeedMode::AllVersionsAndDeletes,
        }
    }

    pub(super) fn from_feed_mode(mode: ChangeFeedMode) -> StoredMode {
        match mode {
            ChangeFeedMode::AllVersionsAndDeletes => StoredMode::AllVersionsAndDeletes,
            _ => StoredMode::LatestVersion,
        }
    }
}

/// The right to handle the changes of a feed range, and the position up to which they have been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) id: String,
    pub(super) processor: String,
    min: EffectivePartitionKey,
    max: EffectivePartitionKey,
    pub(super) position: LeasePosition,
    pub(super) generation: u64,
    /// The instance that owns the lease now.
    #[serde(default)]
    pub(super) owner: Option<String>,
    /// Grows each time the lease gets a new owner.
    #[serde(default)]
    pub(super) term: u64,
    /// Grows with each write of the owner.
    #[serde(rename = "beat", default)]
    pub(super) heartbeat: u64,
    /// The instance that asks the owner to release the lease.
    #[serde(rename = "wanted", default)]
    pub(super) requested_by: Option<String>,
    /// The ranges whose leases replace this one; empty unless its range is being split.
    #[serde(default)]
    pub(super) parts: Vec<RangePosition>,
    /// The last report of the owner.
    #[serde(default)]
    pub(super) report: LeaseReport,
}

/// What an owner reports about its lease, for status queries of other processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LeaseReport {
    /// An estimate of how many changes are not handled yet.
    pub(super) lag: Option<u64>,
    /// The number of consecutive failures.
    pub(super) failures: u64,
    /// The message of the last failure.
    pub(super) last_error: Option<String>,
}

impl Lease {
    /// A lease without an owner.
    pub(super) fn new(processor: &str, start: &RangePosition, generation: u64) -> Lease {
        let (min, max) = (start.min.clone(), start.max.clone());
        Lease {
            id: format!("{processor}.{}-{}", min.to_hex(), max.to_hex()),
            processor: processor.to_owned(),
            min,
            max,
            position: start.position.clone(),
            generation,
            owner: None,
            term: 0,
            heartbeat: 0,
            requested_by: None,
            parts: Vec::new(),
            report: LeaseReport::default(),
        }
    }

    pub(super) fn range(&self) -> EpkRange {
        EpkRange::new(self.min.clone(), self.max.clone())
    }

    pub(super) fn is_splitting(&self) -> bool {
        !self.parts.is_empty()
    }

    /// This lease with `instance` as its owner, rewound if the record has a newer generation.
    pub(super) fn acquired_by(&self, instance: &str, record: &ProcessorRecord) -> Lease {
        let mut lease = self.rewound(record);
        lease.owner = Some(instance.to_owned());
        lease.term += 1;
        lease.heartbeat += 1;
        lease.requested_by = None;
        lease.report = LeaseReport { lag: lease.report.lag, ..LeaseReport::default() };
        lease
    }

    /// This lease at the start of the newest generation; unchanged if it is of that generation already.
    ///
    /// A lease that is being split stays unchanged: leases of its parts may exist already, and are rewound when they
    /// are acquired.
    pub(super) fn rewound(&self, record: &ProcessorRecord) -> Lease {
        let mut lease = self.clone();
        if lease.generation >= record.generation || lease.is_splitting() {
            return lease;
        }
        lease.generation = record.generation;
        lease.report = LeaseReport::default();
        let mut parts = parts_within(&record.start_positions, &lease.range());
        if parts.len() == 1 {
            lease.position = parts.remove(0).position;
        } else {
            lease.parts = parts;
        }
        lease
    }
}

/// The parts of `positions` that lie inside `range`.
fn parts_within(positions: &[RangePosition], range: &EpkRange) -> Vec<RangePosition> {
    let inside = |part: &RangePosition| {
        Some(RangePosition::new(part.range().intersect(range)?, part.position.clone()))
    };
    positions.iter().filter_map(inside).collect()
}

/// What other instances did to a lease that this instance owned, when its ETag has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseChange {
    /// The lease is still owned; another instance requested it.
    StillOwned,
    /// The lease is still owned, and a rewind has moved its position.
    Rewound,
    /// Another instance owns the lease.
    Taken,
}

/// Compares an owned lease as this instance wrote it last with the lease as it is found now.
pub(super) fn compare_leases(owned: &Lease, found: &Lease) -> LeaseChange {
    if (&found.owner, found.term) != (&owned.owner, owned.term) {
        LeaseChange::Taken
    } else if found.generation != owned.generation {
        LeaseChange::Rewound
    } else {
        LeaseChange::StillOwned
    }
}

/// Whether a lease must not be acquired yet: it is a part of a lease whose split is not finished, and acquiring it
/// before could deliver its changes twice.
pub(super) fn is_blocked_by_split<'a>(lease: &Lease, all: impl IntoIterator<Item = &'a Lease>) -> bool {
    let range = lease.range();
    all.into_iter().any(|other| other.is_splitting() && other.id != lease.id && other.range().covers(&range))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_position(min: &str, max: &str, etag: &str) -> RangePosition {
        let key = |hex| EffectivePartitionKey::from_hex(hex).expect("hex");
        RangePosition::new(EpkRange::new(key(min), key(max)), LeasePosition::Etag(etag.to_owned()))
    }

    fn record(generation: u64, start_positions: Vec<RangePosition>) -> ProcessorRecord {
        let (id, mode) = ("p".to_owned(), StoredMode::LatestVersion);
        ProcessorRecord { processor: id.clone(), id, mode, generation, start_positions, ready: true }
    }

    #[test]
    fn a_lease_survives_its_json_and_ignores_properties_of_later_versions() {
        let lease =
            Lease::new("p", &range_position("10", "20", "7"), 3).acquired_by("i", &record(3, Vec::new()));
        let mut json = serde_json::to_value(&lease).expect("JSON");
        json["_etag"] = "x".into();
        json["later"] = 1.into();
        assert_eq!(serde_json::from_value::<Lease>(json).expect("a lease"), lease);
        assert_eq!(lease.id, "p.10-20");
    }

    #[test]
    fn the_stored_names_do_not_change() {
        let lease = Lease::new("p", &range_position("10", "20", "7"), 3);
        let lease = serde_json::to_value(&lease).expect("JSON");
        let names: Vec<&str> = lease.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "beat",
                "generation",
                "id",
                "max",
                "min",
                "owner",
                "parts",
                "position",
                "processor",
                "report",
                "term",
                "wanted"
            ]
        );
        let record = serde_json::to_value(record(1, Vec::new())).expect("JSON");
        let names: Vec<&str> = record.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(names, ["generation", "id", "mode", "processor", "ready", "stretches"]);
    }

    #[test]
    fn a_rewind_moves_a_lease_once_and_splits_it_where_start_positions_differ() {
        let lease = Lease::new("p", &range_position("10", "30", "old"), 1);
        let whole = record(2, vec![range_position("", "FF", "new")]);
        let moved = lease.rewound(&whole);
        assert_eq!((moved.generation, &moved.position), (2, &LeasePosition::Etag("new".into())));
        let mut ahead = moved.clone();
        ahead.position = LeasePosition::Etag("newer".into());
        assert_eq!(ahead.rewound(&whole), ahead, "of this generation already");

        let finer = record(2, vec![range_position("", "20", "a"), range_position("20", "FF", "b")]);
        let divided = lease.rewound(&finer);
        assert_eq!(divided.parts, [range_position("10", "20", "a"), range_position("20", "30", "b")]);
        assert_eq!(
            divided.rewound(&record(3, vec![range_position("", "FF", "c")])),
            divided,
            "its parts are rewound"
        );
    }

    #[test]
    fn a_lease_that_changed_is_still_owned_rewound_or_taken() {
        let free = Lease::new("p", &range_position("", "FF", "0"), 1);
        let owned = free.acquired_by("me", &record(1, Vec::new()));
        let changed = |change: fn(&mut Lease)| {
            let mut found = owned.clone();
            change(&mut found);
            compare_leases(&owned, &found)
        };
        for (change, expected) in [
            ((|found| found.requested_by = Some("you".into())) as fn(&mut Lease), LeaseChange::StillOwned),
            (|found| found.heartbeat += 1, LeaseChange::StillOwned),
            (|found| found.generation += 1, LeaseChange::Rewound),
            (|found| found.owner = Some("you".into()), LeaseChange::Taken),
            (|found| found.owner = None, LeaseChange::Taken),
            (|found| found.term += 2, LeaseChange::Taken),
        ] {
            assert_eq!(changed(change), expected);
        }
    }

    #[test]
    fn a_part_is_blocked_until_the_whole_lease_is_deleted() {
        let mut whole = Lease::new("p", &range_position("10", "30", "0"), 1);
        let part = Lease::new("p", &range_position("10", "20", "0"), 1);
        let beside = Lease::new("p", &range_position("30", "40", "0"), 1);
        assert!(!is_blocked_by_split(&part, [&whole, &part, &beside]), "nothing says that it is divided");
        whole.parts = vec![range_position("10", "20", "0"), range_position("20", "30", "0")];
        let all = [&whole, &part, &beside];
        assert!(is_blocked_by_split(&part, all));
        assert!(!is_blocked_by_split(&whole, all) && !is_blocked_by_split(&beside, all));
    }
}
