//! The session tokens of one container, by partition key range.

use std::collections::HashMap;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use protocol::partition_range::RangeId;
use protocol::session_token::PartitionToken;

use super::SessionScope;

/// Tokens kept of one container. Beyond it those with the lowest numbers go: ranges are numbered as
/// they come to be, so these are the ones most likely split away long ago.
pub(super) const TOKENS_MAX: usize = 4096;

/// The session of one container: the newest token of each range.
#[derive(Debug, Default)]
pub struct ContainerSession {
    tokens: RwLock<Tokens>,
}

type Tokens = HashMap<RangeId, SeenToken, foldhash::fast::RandomState>;

/// One range's token, and its text, ready to be sent.
#[derive(Clone, Debug)]
struct SeenToken {
    token: PartitionToken,
    text: String,
}

impl ContainerSession {
    /// A session that has seen nothing.
    pub fn new() -> ContainerSession {
        ContainerSession::default()
    }

    /// Remembers the token of a response: usually one range's, possibly several. What cannot be read
    /// is ignored; the response it came with is good all the same.
    ///
    /// Cost: a look-up and a comparison when nothing is new; parsing and one allocation when it is.
    pub fn record(&self, header: &str) {
        for part in header.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if self.is_known(part) {
                continue;
            }
            if let Ok(token) = PartitionToken::parse(part) {
                let mut tokens = self.write();
                merge(&mut tokens, token, part);
                forget_oldest(&mut tokens);
            }
        }
    }

    /// Whether this is the stored token of its range.
    fn is_known(&self, part: &str) -> bool {
        let Some(id) = part.split_once(':').and_then(|(id, _)| id.parse().ok()) else { return false };
        self.read().get(&id).is_some_and(|seen| seen.text == part)
    }

    /// The token of a request about this part of the container; none when there is none for it.
    pub fn token(&self, scope: SessionScope<'_>) -> Option<String> {
        let tokens = self.read();
        match scope {
            SessionScope::Range { id, parents } => {
                let own = tokens.get(&id);
                // Children continue where their parents stopped, so a child's token says more, unless a
                // response of the parent came in after the split.
                let mut inherited = parents.iter().filter_map(|parent| tokens.get(parent)).peekable();
                if inherited.peek().is_none() {
                    return own.map(|seen| seen.text.clone());
                }
                let mut all = own.into_iter().chain(inherited).map(|seen| &seen.token);
                let first = PartitionToken { range: id, ..all.next()?.clone() };
                Some(all.fold(first, |known, token| combined(&known, token)).to_string())
            }
            SessionScope::Unknown => {
                let mut texts: Vec<(&RangeId, &str)> =
                    tokens.iter().map(|(id, seen)| (id, seen.text.as_str())).collect();
                texts.sort_unstable();
                let mut joined = String::with_capacity(texts.iter().map(|(_, text)| text.len() + 1).sum());
                for (_, text) in texts {
                    if !joined.is_empty() {
                        joined.push(',');
                    }
                    joined.push_str(text);
                }
                (!joined.is_empty()).then_some(joined)
            }
        }
    }

    /// The container has these ranges now, each with the ranges it came from: what was seen of a range
    /// that is gone is known of those that took its place, and only of them. Ranges are numbered as they come to be,
    /// so a token with a number above all of these is newer than the listing, and stays.
    pub fn adopt<'a>(&self, live: impl IntoIterator<Item = (RangeId, &'a [RangeId])>) {
        let mut tokens = self.write();
        if tokens.is_empty() {
            return;
        }
        let mut kept = Tokens::default();
        let mut newest = RangeId(0);
        for (id, parents) in live {
            newest = newest.max(id);
            if let Some(seen) = tokens.get(&id) {
                merge(&mut kept, seen.token.clone(), &seen.text);
            }
            for parent in parents {
                if let Some(seen) = tokens.get(parent) {
                    let token = PartitionToken { range: id, ..seen.token.clone() };
                    let text = token.to_string();
                    merge(&mut kept, token, &text);
                }
            }
        }
        kept.extend(tokens.drain().filter(|(id, _)| *id > newest));
        *tokens = kept;
    }

    /// Forgets all tokens of the container.
    pub fn clear(&self) {
        self.write().clear();
    }

    fn read(&self) -> RwLockReadGuard<'_, Tokens> {
        crate::sync::read(&self.tokens)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tokens> {
        crate::sync::write(&self.tokens)
    }
}

/// Adds a token, whose text is at hand, to what is known of its range.
fn merge(tokens: &mut Tokens, token: PartitionToken, text: &str) {
    match tokens.get_mut(&token.range) {
        None => {
            tokens.insert(token.range, SeenToken { token, text: text.to_owned() });
        }
        Some(seen) => {
            let both = combined(&seen.token, &token);
            if both == token {
                text.clone_into(&mut seen.text);
                seen.token = token;
            } else if both != seen.token {
                *seen = SeenToken { text: both.to_string(), token: both };
            }
        }
    }
}

/// What was seen by either. Tokens of one version that name different regions cannot both be right; the
/// one that has seen more is the safer request.
fn combined(known: &PartitionToken, other: &PartitionToken) -> PartitionToken {
    known.merge(other).unwrap_or_else(|_| {
        let newer = if other.lsn >= known.lsn { other } else { known };
        PartitionToken { range: known.range, ..newer.clone() }
    })
}

fn forget_oldest(tokens: &mut Tokens) {
    while tokens.len() > TOKENS_MAX {
        let Some(oldest) = tokens.keys().min().copied() else { return };
        tokens.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::lsn::Lsn;

    use super::*;

    fn range(id: u32, parents: &[RangeId]) -> SessionScope<'_> {
        SessionScope::Range { id: RangeId(id), parents }
    }

    fn session(tokens: &[&str]) -> ContainerSession {
        let session = ContainerSession::new();
        tokens.iter().for_each(|token| session.record(token));
        session
    }

    #[test]
    fn the_furthest_that_was_seen_is_sent() {
        for (tokens, id, expected) in [
            (&["0:-1#5", "0:-1#7", "0:-1#6"][..], 0, Some("0:-1#7")),
            (&["0:1#5#1=9#2=-1", "0:1#7#1=3#2=4"], 0, Some("0:1#7#1=9#2=4")),
            (&["0:1#9#1=9", "0:2#7#1=3#2=4"], 0, Some("0:2#9#1=9#2=4")),
            (&["0:1#5,1:1#8"], 1, Some("1:1#8")),
            (&["0:1#5"], 1, None),
            (&[], 0, None),
            // Regions that cannot both be right: the one that has seen more.
            (&["0:1#5#1=9", "0:1#6#2=9"], 0, Some("0:1#6#2=9")),
            (&["0:1#6#1=9", "0:1#5#2=9"], 0, Some("0:1#6#1=9")),
            // What cannot be read is ignored.
            (&["0:1#5", "nonsense", "0:", "0:x#1", ""], 0, Some("0:1#5")),
        ] {
            let token = session(tokens).token(range(id, &[]));
            assert_eq!(token.as_deref(), expected, "{tokens:?}");
        }
    }

    #[test]
    fn after_a_split_children_ask_for_what_was_seen_of_their_parents() {
        let parents = [RangeId(0)];
        let split = session(&["0:1#10"]);
        assert_eq!(split.token(range(1, &parents)).as_deref(), Some("1:1#10"));
        split.record("1:1#12");
        assert_eq!(split.token(range(1, &parents)).as_deref(), Some("1:1#12"));
        assert_eq!(split.token(range(2, &parents)).as_deref(), Some("2:1#10"));
        assert_eq!(split.token(range(3, &[])).as_deref(), None);
    }

    #[test]
    fn a_merged_range_asks_for_what_was_seen_of_both() {
        let parents = [RangeId(1), RangeId(2)];
        let merged = session(&["1:1#10", "2:1#20"]);
        assert_eq!(merged.token(range(3, &parents)).as_deref(), Some("3:1#20"));
        merged.record("3:2#21");
        assert_eq!(merged.token(range(3, &parents)).as_deref(), Some("3:2#21"));
    }

    #[test]
    fn an_unknown_partition_gets_all_that_was_seen() {
        let all = session(&["2:1#7", "0:1#5", "10:1#1"]);
        assert_eq!(all.token(SessionScope::Unknown).as_deref(), Some("0:1#5,2:1#7,10:1#1"));
        assert_eq!(ContainerSession::new().token(SessionScope::Unknown), None);
    }

    #[test]
    fn ranges_that_are_gone_live_on_in_their_children_only() {
        let adopted = session(&["0:1#10", "3:1#1", "4:1#4"]);
        let parents = [RangeId(0)];
        adopted.adopt([(RangeId(1), &parents[..]), (RangeId(2), &parents[..]), (RangeId(4), &[][..])]);
        assert_eq!(adopted.token(SessionScope::Unknown).as_deref(), Some("1:1#10,2:1#10,4:1#4"));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_ranges_go_first() {
        let full = ContainerSession::new();
        for id in 0..TOKENS_MAX as u32 + 10 {
            full.record(&format!("{id}:1#1"));
        }
        assert_eq!(full.read().len(), TOKENS_MAX);
        assert_eq!(full.token(range(9, &[])), None);
        assert!(full.token(range(10, &[])).is_some());
        full.clear();
        assert_eq!(full.token(SessionScope::Unknown), None);
    }

    #[test]
    fn a_listing_does_not_drop_tokens_of_partitions_that_are_newer_than_it() {
        let session = ContainerSession::new();
        session.record("0:1#5,3:1#9,4:1#7");
        // Range 0 was split into 1 and 2; that 1 was split into 3 and 4 is not in this listing yet.
        let parents = [RangeId(0)];
        session.adopt([(RangeId(1), &parents[..]), (RangeId(2), &parents[..])]);
        assert_eq!(session.token(SessionScope::Unknown).as_deref(), Some("1:1#5,2:1#5,3:1#9,4:1#7"));
        let (three, four) = ([RangeId(0), RangeId(1)], [RangeId(0), RangeId(1)]);
        session.adopt([(RangeId(2), &parents[..]), (RangeId(3), &three[..]), (RangeId(4), &four[..])]);
        assert_eq!(session.token(SessionScope::Unknown).as_deref(), Some("2:1#5,3:1#9,4:1#7"));
    }

    proptest! {
        /// Whatever the order of responses and the moment the split is noticed, a child is asked for at
        /// least as much as was ever seen of it or of its parent.
        #[test]
        fn nothing_that_was_seen_is_forgotten(
            tokens in prop::collection::vec((0u32..2, 1u64..50), 1..20),
            adopt_at in 0usize..20,
        ) {
            let session = ContainerSession::new();
            let parents = [RangeId(0)];
            for (at, (id, lsn)) in tokens.iter().enumerate() {
                if at == adopt_at {
                    session.adopt([(RangeId(1), &parents[..])]);
                }
                session.record(&format!("{id}:1#{lsn}"));
            }
            let furthest = tokens.iter().map(|(_, lsn)| *lsn).max().unwrap_or_default();
            let token = session.token(range(1, &parents)).expect("something was seen");
            prop_assert_eq!(PartitionToken::parse(&token).expect("a token").lsn, Lsn(furthest));
        }
    }
}
