//! Streams of ordinals that satisfy index conditions, in order of creation.
//!
//! Each stream can be asked for the first match at or after an ordinal. Intersections leap from one
//! member to the next (a member that is far ahead pulls the others along), so their cost follows the
//! rarest condition, and any of them resumes anywhere at the cost of one look-up. Unions keep the next match
//! of each member in a heap, so that a match costs the members that have it and not all of a long list. An
//! ordinal that a stream is asked for is never smaller than the one before.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use crate::items::Ordinal;
use crate::store::PartitionState;
use crate::store::index::KeyRange;

/// Entries read ahead from one term.
const READ_AHEAD: usize = 64;

/// Matches of each member of an intersection that are counted at first.
const COUNTED_FIRST: usize = 4;

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
    Any(Union),
}

/// The union of streams. Each member waits in the heap with its next match, until it has none.
#[derive(Debug)]
pub(super) struct Union {
    members: Vec<OrdinalStream>,
    /// The next match of each member with its index; `None` before the first look-up.
    next: Option<BinaryHeap<Reverse<(Ordinal, usize)>>>,
}

impl Union {
    fn seek(&mut self, state: &PartitionState, from: Ordinal) -> Option<Ordinal> {
        let Union { members, next } = self;
        let heap = next.get_or_insert_with(|| {
            let firsts = members.iter_mut().enumerate();
            firsts.filter_map(|(at, member)| Some(Reverse((member.seek(state, from)?, at)))).collect()
        });
        while let Some(mut first) = heap.peek_mut() {
            let Reverse((ordinal, at)) = *first;
            if ordinal >= from {
                return Some(ordinal);
            }
            match members[at].seek(state, from) {
                Some(ordinal) => *first = Reverse((ordinal, at)),
                None => drop(PeekMut::pop(first)),
            }
        }
        None
    }
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

    /// The items that some of `members` have.
    pub(super) fn any(members: Vec<OrdinalStream>) -> OrdinalStream {
        OrdinalStream::Any(Union { members, next: None })
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
            OrdinalStream::Any(union) => union.seek(state, from),
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
                // A rare member ends the count before a frequent one is counted in full.
                let mut counted = COUNTED_FIRST.min(limit);
                loop {
                    let fewest = members.iter().map(|member| member.estimate(state, counted)).min();
                    match fewest.unwrap_or(limit) {
                        fewest if fewest < counted || counted == limit => return fewest,
                        _ => counted = counted.saturating_mul(8).min(limit),
                    }
                }
            }
            OrdinalStream::Any(union) => union
                .members
                .iter()
                .try_fold(0, |sum, member| match sum + member.estimate(state, limit - sum) {
                    sum if sum < limit => Ok(sum),
                    _ => Err(limit),
                })
                .unwrap_or_else(|limit| limit),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The index look-ups that streams of this thread have made.
    pub(super) static LOOKUPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn read_ahead(state: &PartitionState, term: &[u8], from: Ordinal) -> VecDeque<Ordinal> {
    #[cfg(test)]
    LOOKUPS.set(LOOKUPS.get() + 1);
    let mut start = term.to_vec();
    start.extend_from_slice(&from.0.to_be_bytes());
    let range = KeyRange { from: std::ops::Bound::Included(start), ..KeyRange::prefix(term.to_vec()) };
    state.index.range(&range).take(READ_AHEAD).map(|entry| entry.ordinal()).collect()
}
