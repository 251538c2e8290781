//! What is kept in the lease container, and what may happen to it. Pure.
//!
//! A processor keeps one [`Plan`] (its mode, and where each stretch of the ring began) and one [`Lease`] per
//! feed range. All of them are items whose id is their partition key, and every write of one names the entity
//! tag it read. Reading and writing them is left to `store`; who takes which lease to `balance`.

use driver::change_feed::ChangeFeedMode;
use driver::change_feed::FeedPosition;
use protocol::partition::{EffectivePartitionKey, EpkRange};
use serde::{Deserialize, Serialize};

/// How far a stretch has been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Position {
    /// Nothing yet.
    Beginning,
    /// Nothing yet, and nothing up to this time is wanted.
    Time(String),
    /// Up to this answer of the feed.
    Etag(String),
}

impl Position {
    /// What is asked of the feed to go on.
    pub(super) fn since(&self) -> FeedPosition {
        match self {
            Position::Beginning => FeedPosition::Beginning,
            Position::Time(time) => FeedPosition::Time(time.clone()),
            Position::Etag(etag) => FeedPosition::Etag(etag.clone()),
        }
    }

    /// As people read it.
    pub(super) fn text(&self) -> String {
        match self {
            Position::Beginning => "beginning".to_owned(),
            Position::Time(time) => format!("after {time}"),
            Position::Etag(etag) => etag.clone(),
        }
    }
}

/// A stretch of the ring, and how far it has been handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stretch {
    min: EffectivePartitionKey,
    max: EffectivePartitionKey,
    pub(super) position: Position,
}

impl Stretch {
    pub(super) fn new(range: EpkRange, position: Position) -> Stretch {
        Stretch { min: range.min, max: range.max, position }
    }

    pub(super) fn range(&self) -> EpkRange {
        EpkRange::new(self.min.clone(), self.max.clone())
    }
}

/// What all instances of a processor agree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) id: String,
    /// Whose it is: the id of the plan itself.
    pub(super) processor: String,
    pub(super) mode: Mode,
    /// Grows with each rewind. A lease of an older one is yet to be rewound.
    pub(super) generation: u64,
    /// Where the ring begins in this generation; all of it.
    pub(super) stretches: Vec<Stretch>,
    /// Whether there is a lease for all of the ring. Until then no lease is taken.
    pub(super) ready: bool,
}

/// A mode, as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Mode {
    LatestVersion,
    AllVersionsAndDeletes,
}

impl Mode {
    pub(super) fn feed(self) -> ChangeFeedMode {
        match self {
            Mode::LatestVersion => ChangeFeedMode::LatestVersion,
            Mode::AllVersionsAndDeletes => ChangeFeedMode::AllVersionsAndDeletes,
        }
    }

    pub(super) fn of(mode: ChangeFeedMode) -> Mode {
        match mode {
            ChangeFeedMode::AllVersionsAndDeletes => Mode::AllVersionsAndDeletes,
            _ => Mode::LatestVersion,
        }
    }
}

/// The right to handle the changes of a feed range, and how far they have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lease {
    pub(super) id: String,
    pub(super) processor: String,
    min: EffectivePartitionKey,
    max: EffectivePartitionKey,
    pub(super) position: Position,
    pub(super) generation: u64,
    /// Who handles it now.
    #[serde(default)]
    pub(super) owner: Option<String>,
    /// Grows each time it changes hands.
    #[serde(default)]
    pub(super) term: u64,
    /// Grows with each sign of life of the owner.
    #[serde(default)]
    pub(super) beat: u64,
    /// Who asks the owner for it.
    #[serde(default)]
    pub(super) wanted: Option<String>,
    /// The leases that take its place; empty unless it is being divided.
    #[serde(default)]
    pub(super) parts: Vec<Stretch>,
    /// What the owner last said about it.
    #[serde(default)]
    pub(super) report: Report,
}

/// What an owner says about its lease, for whoever looks on from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Report {
    /// Changes that are yet to be handled, about.
    pub(super) lag: Option<u64>,
    /// Failures in a row.
    pub(super) failures: u64,
    /// The last of them.
    pub(super) last_error: Option<String>,
}

impl Lease {
    /// A lease nobody has yet.
    pub(super) fn new(processor: &str, stretch: &Stretch, generation: u64) -> Lease {
        let (min, max) = (stretch.min.clone(), stretch.max.clone());
        Lease {
            id: format!("{processor}.{}-{}", min.to_hex(), max.to_hex()),
            processor: processor.to_owned(),
            min,
            max,
            position: stretch.position.clone(),
            generation,
            owner: None,
            term: 0,
            beat: 0,
            wanted: None,
            parts: Vec::new(),
            report: Report::default(),
        }
    }

    pub(super) fn range(&self) -> EpkRange {
        EpkRange::new(self.min.clone(), self.max.clone())
    }

    pub(super) fn is_divided(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The same in new hands, rewound if the plan says so.
    pub(super) fn taken_by(&self, instance: &str, plan: &Plan) -> Lease {
        let mut lease = self.rewound(plan);
        lease.owner = Some(instance.to_owned());
        lease.term += 1;
        lease.beat += 1;
        lease.wanted = None;
        lease.report = Report { lag: lease.report.lag, ..Report::default() };
        lease
    }

    /// The same where the newest generation begins; as it is when it is of that generation already.
    ///
    /// One that is being divided stays as it is: some of its parts may be there already, and are rewound
    /// when they are taken.
    pub(super) fn rewound(&self, plan: &Plan) -> Lease {
        let mut lease = self.clone();
        if lease.generation >= plan.generation || lease.is_divided() {
            return lease;
        }
        lease.generation = plan.generation;
        lease.report = Report::default();
        let mut parts = parts_within(&plan.stretches, &lease.range());
        if parts.len() == 1 {
            lease.position = parts.remove(0).position;
        } else {
            lease.parts = parts;
        }
        lease
    }
}

/// What is left of `stretches` inside `range`.
fn parts_within(stretches: &[Stretch], range: &EpkRange) -> Vec<Stretch> {
    let inside = |stretch: &Stretch| Some((stretch.range().intersect(range)?, stretch.position.clone()));
    stretches.iter().filter_map(inside).map(|(part, position)| Stretch::new(part, position)).collect()
}

/// What has become of a lease that was held, when its entity tag has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Still held; somebody asked for it.
    Held,
    /// Still held, and to be read from another place.
    Rewound,
    /// In other hands.
    Taken,
}

/// Compares a lease as it was written last with how it is found.
pub(super) fn standing(held: &Lease, found: &Lease) -> Standing {
    if (&found.owner, found.term) != (&held.owner, held.term) {
        Standing::Taken
    } else if found.generation != held.generation {
        Standing::Rewound
    } else {
        Standing::Held
    }
}

/// Whether a lease has to wait: it is a part of one whose division is not finished, and taking it before
/// could hand out its changes twice.
pub(super) fn is_waiting<'a>(lease: &Lease, all: impl IntoIterator<Item = &'a Lease>) -> bool {
    let range = lease.range();
    all.into_iter().any(|other| other.is_divided() && other.id != lease.id && other.range().covers(&range))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(min: &str, max: &str, etag: &str) -> Stretch {
        let key = |hex| EffectivePartitionKey::from_hex(hex).expect("hex");
        Stretch::new(EpkRange::new(key(min), key(max)), Position::Etag(etag.to_owned()))
    }

    fn plan(generation: u64, stretches: Vec<Stretch>) -> Plan {
        let (id, mode) = ("p".to_owned(), Mode::LatestVersion);
        Plan { processor: id.clone(), id, mode, generation, stretches, ready: true }
    }

    #[test]
    fn a_lease_survives_its_json_and_leaves_room_for_what_later_versions_add() {
        let lease = Lease::new("p", &stretch("10", "20", "7"), 3).taken_by("i", &plan(3, Vec::new()));
        let mut json = serde_json::to_value(&lease).expect("JSON");
        json["_etag"] = "x".into();
        json["later"] = 1.into();
        assert_eq!(serde_json::from_value::<Lease>(json).expect("a lease"), lease);
        assert_eq!(lease.id, "p.10-20");
    }

    #[test]
    fn a_rewind_moves_a_lease_once_and_divides_it_where_the_new_places_differ() {
        let lease = Lease::new("p", &stretch("10", "30", "old"), 1);
        let whole = plan(2, vec![stretch("", "FF", "new")]);
        let moved = lease.rewound(&whole);
        assert_eq!((moved.generation, &moved.position), (2, &Position::Etag("new".into())));
        let mut ahead = moved.clone();
        ahead.position = Position::Etag("newer".into());
        assert_eq!(ahead.rewound(&whole), ahead, "of this generation already");

        let finer = plan(2, vec![stretch("", "20", "a"), stretch("20", "FF", "b")]);
        let divided = lease.rewound(&finer);
        assert_eq!(divided.parts, [stretch("10", "20", "a"), stretch("20", "30", "b")]);
        assert_eq!(divided.rewound(&plan(3, vec![stretch("", "FF", "c")])), divided, "its parts are rewound");
    }

    #[test]
    fn a_lease_that_changed_is_held_rewound_or_taken() {
        let free = Lease::new("p", &stretch("", "FF", "0"), 1);
        let held = free.taken_by("me", &plan(1, Vec::new()));
        let changed = |change: fn(&mut Lease)| {
            let mut found = held.clone();
            change(&mut found);
            standing(&held, &found)
        };
        for (change, expected) in [
            ((|found| found.wanted = Some("you".into())) as fn(&mut Lease), Standing::Held),
            (|found| found.beat += 1, Standing::Held),
            (|found| found.generation += 1, Standing::Rewound),
            (|found| found.owner = Some("you".into()), Standing::Taken),
            (|found| found.owner = None, Standing::Taken),
            (|found| found.term += 2, Standing::Taken),
        ] {
            assert_eq!(changed(change), expected);
        }
    }

    #[test]
    fn a_part_waits_until_the_whole_is_gone() {
        let mut whole = Lease::new("p", &stretch("10", "30", "0"), 1);
        let part = Lease::new("p", &stretch("10", "20", "0"), 1);
        let beside = Lease::new("p", &stretch("30", "40", "0"), 1);
        assert!(!is_waiting(&part, [&whole, &part, &beside]), "nothing says that it is divided");
        whole.parts = vec![stretch("10", "20", "0"), stretch("20", "30", "0")];
        let all = [&whole, &part, &beside];
        assert!(is_waiting(&part, all));
        assert!(!is_waiting(&whole, all) && !is_waiting(&beside, all));
    }
}
