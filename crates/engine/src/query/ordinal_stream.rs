//! Streams of ordinals that satisfy index conditions, in order of creation.
//!
//! Each stream can be asked for the first match at or after an ordinal. Intersections leap from one
//! member to the next (a member that is far ahead pulls the others along), so their cost follows the
//! rarest condition, and any of them resumes anywhere at the cost of one look-up.

use std::collections::VecDeque;

use crate::items::Ordinal;
use crate::store::PartitionState;
use crate::store::index::KeyRange;

/// Entries read ahead from one term.
const READ_AHEAD: usize = 64;

/// A source of ordinals in ascending order.
#[derive(Debug)]
pub(super) enum OrdinalStream {
    /// Items under exactly one term.
    Term { term: Vec<u8>, ahead: VecDeque<Ordinal>, ahead_from: Option<Ordinal> },
    /// Items already collected, sorted.
    List(Vec<Ordinal>),
    /// Items that all members have.
    All(Vec<OrdinalStream>),
    /// Items that some member has.
    Any(Vec<OrdinalStream>),
}

impl OrdinalStream {
    pub(super) fn term(term: Vec<u8>) -> OrdinalStream {
        OrdinalStream::Term { term, ahead: VecDeque::new(), ahead_from: None }
    }

    /// From ordinals in any order, with repetitions.
    pub(super) fn list(mut ordinals: Vec<Ordinal>) -> OrdinalStream {
        ordinals.sort_unstable();
        ordinals.dedup();
        OrdinalStream::List(ordinals)
    }

    /// The first match at or after `from`.
    pub(super) fn seek(&mut self, state: &PartitionState, from: Ordinal) -> Option<Ordinal> {
        match self {
            OrdinalStream::Term { term, ahead, ahead_from } => {
                let covered = ahead_from.is_some_and(|start| start <= from)
                    && ahead.back().is_some_and(|last| *last >= from);
                if !covered {
                    *ahead = read_ahead(state, term, from);
                    *ahead_from = Some(from);
                }
                while ahead.front().is_some_and(|first| *first < from) {
                    ahead.pop_front();
                }
                // What was read ahead from `from` on and then popped may be asked for again.
                *ahead_from = Some(from);
                ahead.front().copied()
            }
            OrdinalStream::List(ordinals) => {
                ordinals.get(ordinals.partition_point(|ordinal| *ordinal < from)).copied()
            }
            OrdinalStream::Any(members) => {
                members.iter_mut().filter_map(|member| member.seek(state, from)).min()
            }
            OrdinalStream::All(members) => {
                let mut candidate = from;
                loop {
                    let mut furthest = candidate;
                    for member in members.iter_mut() {
                        furthest = furthest.max(member.seek(state, furthest)?);
                    }
                    // One more round confirms that every member has it.
                    if furthest == candidate {
                        return Some(candidate);
                    }
                    candidate = furthest;
                }
            }
        }
    }

    /// How many matches there may be at the most, counted no further than `limit`.
    pub(super) fn estimate(&self, state: &PartitionState, limit: usize) -> usize {
        match self {
            OrdinalStream::Term { term, .. } => {
                state.index.count_up_to(&KeyRange::prefix(term.clone()), limit)
            }
            OrdinalStream::List(ordinals) => ordinals.len().min(limit),
            OrdinalStream::All(members) => {
                members.iter().map(|member| member.estimate(state, limit)).min().unwrap_or(limit)
            }
            OrdinalStream::Any(members) => {
                members.iter().map(|member| member.estimate(state, limit)).sum::<usize>().min(limit)
            }
        }
    }
}

fn read_ahead(state: &PartitionState, term: &[u8], from: Ordinal) -> VecDeque<Ordinal> {
    let mut start = term.to_vec();
    start.extend_from_slice(&from.0.to_be_bytes());
    let range = KeyRange { from: std::ops::Bound::Included(start), ..KeyRange::prefix(term.to_vec()) };
    state.index.range(&range).take(READ_AHEAD).map(|entry| entry.ordinal()).collect()
}
