//! Which shard takes the next request. Pure.
//!
//! In: the load of each shard, oldest first. Out: the shard to use, or that all are full. The oldest shards
//! that are not suspect form the *active set*; new requests go to the least busy of them. Only when they
//! are full does a request spill over to the next shard in line, so that after a spike the newest shards
//! see nothing, drain and can be closed. A suspect shard is used when nothing else has room.

#![warn(clippy::wildcard_enum_match_arm)]

/// What selection needs to know about one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Requests it carries now.
    pub in_flight: u32,
    /// Failures since its last success.
    pub consecutive_failures: u32,
}

/// The limits of shard selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectionLimits {
    /// Requests a shard takes.
    pub streams_max: u32,
    /// Failures in a row that make a shard suspect.
    pub suspect_at_failures: u32,
    /// The size of the active set in thousandths of all shards.
    pub active_per_mille: u32,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// To this shard, which had room.
    Use {
        /// Its place in the list.
        index: usize,
        /// Requests on all shards together, before this one.
        total_in_flight: u32,
    },
    /// No shard has room.
    Full {
        /// The one with the fewest requests; `None` if there is no shard to use at all.
        least_busy: Option<usize>,
    },
}

/// Chooses a shard out of `count`, never the one at `excluded`.
///
/// Cost: linear in the shards, one pass, without an allocation.
pub fn select(
    candidates: impl Iterator<Item = Candidate>,
    count: usize,
    limits: &SelectionLimits,
    excluded: Option<usize>,
) -> Selection {
    let active_count = active_count(count, limits.active_per_mille);
    let (mut active, mut spill, mut suspect, mut least_busy) = (None, None, None, None);
    let mut total_in_flight = 0_u32;
    let mut rank = 0;
    for (index, candidate) in candidates.enumerate() {
        let load = candidate.in_flight;
        total_in_flight = total_in_flight.saturating_add(load);
        let is_suspect = candidate.consecutive_failures >= limits.suspect_at_failures;
        let rank_here = rank;
        // The shard that is passed over keeps its place: what one request avoids is still active.
        rank += usize::from(!is_suspect);
        if excluded == Some(index) {
            continue;
        }
        keep_less_busy(&mut least_busy, index, load);
        if load >= limits.streams_max {
            continue;
        }
        if is_suspect {
            keep_less_busy(&mut suspect, index, load);
        } else if rank_here < active_count {
            keep_less_busy(&mut active, index, load);
        } else if spill.is_none() {
            spill = Some((index, load));
        }
    }
    match active.or(spill).or(suspect) {
        Some((index, _)) => Selection::Use { index, total_in_flight },
        None => Selection::Full { least_busy: least_busy.map(|(index, _)| index) },
    }
}

/// How many of `count` shards are active: rounded up, and at least one.
pub(crate) fn active_count(count: usize, active_per_mille: u32) -> usize {
    (count * active_per_mille as usize).div_ceil(1000).clamp(1, count.max(1))
}

/// Of two equally busy shards the older one stays: load gathers at the front of the list.
fn keep_less_busy(best: &mut Option<(usize, u32)>, index: usize, load: u32) {
    if best.is_none_or(|(_, least)| load < least) {
        *best = Some((index, load));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: SelectionLimits =
        SelectionLimits { streams_max: 16, suspect_at_failures: 5, active_per_mille: 500 };

    fn shards(loads: &[u32]) -> Vec<Candidate> {
        loads.iter().map(|load| Candidate { in_flight: *load, consecutive_failures: 0 }).collect()
    }

    fn choose(shards: &[Candidate], excluded: Option<usize>) -> Option<usize> {
        match select(shards.iter().copied(), shards.len(), &LIMITS, excluded) {
            Selection::Use { index, .. } => Some(index),
            Selection::Full { .. } => None,
        }
    }

    #[test]
    fn new_requests_gather_on_the_least_busy_of_the_active_set() {
        let cases: &[(&[u32], Option<usize>, &str)] = &[
            (&[0], Some(0), "one shard takes all"),
            (&[3, 0], Some(0), "half of two is one: the second drains"),
            (&[3, 2, 0], Some(1), "half of three is two"),
            (&[10, 9, 2, 0], Some(1), "after a spike the newest see nothing"),
            (&[4, 4, 0, 0], Some(0), "of equals, the older"),
            (&[16, 15, 0, 0], Some(1), "while there is room"),
            (&[16, 16, 3, 0], Some(2), "then the next in line, not the emptiest"),
            (&[16, 16, 16, 0], Some(3), "then the last"),
            (&[16, 16, 16, 16], None, "then all are full"),
            (&[], None, "none at all"),
        ];
        for (loads, expected, why) in cases {
            assert_eq!(choose(&shards(loads), None), *expected, "{why}: {loads:?}");
        }
    }

    #[test]
    fn a_suspect_shard_is_the_last_resort() {
        let mut list = shards(&[0, 9, 0]);
        list[0].consecutive_failures = 5;
        assert_eq!(choose(&list, None), Some(2), "the active set closes up behind it");
        list[2].consecutive_failures = 7;
        assert_eq!(choose(&list, None), Some(1));
        list[1].in_flight = 16;
        assert_eq!(choose(&list, None), Some(0), "rather a suspect one than none");
    }

    #[test]
    fn a_retry_goes_to_another_shard() {
        assert_eq!(choose(&shards(&[0, 5]), Some(0)), Some(1), "even one that drains");
        assert_eq!(choose(&shards(&[0]), Some(0)), None, "there is no other");
        let only = select(shards(&[0]).into_iter(), 1, &LIMITS, Some(0));
        assert_eq!(only, Selection::Full { least_busy: None });
    }

    #[test]
    fn a_full_list_names_its_least_busy_shard() {
        let choice = select(shards(&[30, 17, 18]).into_iter(), 3, &LIMITS, None);
        assert_eq!(choice, Selection::Full { least_busy: Some(1) });
    }

    #[test]
    fn the_active_set_is_rounded_up() {
        for (count, per_mille, expected) in
            [(0, 500, 1), (1, 500, 1), (3, 500, 2), (4, 500, 2), (10, 500, 5), (10, 1000, 10), (10, 1, 1)]
        {
            assert_eq!(active_count(count, per_mille), expected, "{count} at {per_mille}");
        }
    }

    fn any_shards() -> impl Strategy<Value = Vec<Candidate>> {
        let shard = (0_u32..20, 0_u32..8)
            .prop_map(|(in_flight, consecutive_failures)| Candidate { in_flight, consecutive_failures });
        prop::collection::vec(shard, 0..40)
    }

    proptest! {
        #[test]
        fn a_shard_with_room_is_found_whenever_there_is_one(
            list in any_shards(),
            active_per_mille in 1_u32..=1000,
            excluded in prop::option::of(0_usize..40),
        ) {
            let limits = SelectionLimits { active_per_mille, ..LIMITS };
            let usable = |index: usize| excluded != Some(index) && list[index].in_flight < limits.streams_max;
            match select(list.iter().copied(), list.len(), &limits, excluded) {
                Selection::Use { index, total_in_flight } => {
                    prop_assert!(usable(index));
                    prop_assert_eq!(total_in_flight, list.iter().map(|shard| shard.in_flight).sum::<u32>());
                    if list[index].consecutive_failures >= limits.suspect_at_failures {
                        let healthy = (0..list.len())
                            .find(|i| usable(*i) && list[*i].consecutive_failures < limits.suspect_at_failures);
                        prop_assert_eq!(healthy, None, "a suspect one was chosen over a healthy one");
                    }
                }
                Selection::Full { least_busy } => {
                    prop_assert!((0..list.len()).all(|index| !usable(index)));
                    let least = (0..list.len())
                        .filter(|index| excluded != Some(*index))
                        .min_by_key(|index| list[*index].in_flight);
                    prop_assert_eq!(least_busy, least);
                }
            }
        }
    }
}
