//! Who handles which lease. Pure.
//!
//! Each instance decides for itself, from what it sees of the others: it takes what is free up to its fair
//! share, and asks those who have more than it for the difference. Nobody is robbed: the owner finishes its
//! batch, keeps its place and lets go. Two instances that decide at once may want the same lease; the entity tag
//! decides between them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A lease, as far as sharing is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share<'a> {
    pub(super) lease: &'a str,
    /// Who has it; nobody when the owner was silent for too long.
    pub(super) owner: Option<&'a str>,
    /// Who asked for it; nobody when that is too long ago.
    pub(super) wanted: Option<&'a str>,
}

/// What an instance does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves<'a> {
    /// Leases to take.
    pub(super) take: Vec<&'a str>,
    /// Leases to ask their owners for.
    pub(super) ask: Vec<&'a str>,
}

/// What `me` does about these leases. It never has more than `most`; `spread` decides where it begins to
/// look, so that instances that start together begin in different places.
pub(super) fn moves<'a>(shares: &[Share<'a>], me: &str, most: usize, spread: usize) -> Moves<'a> {
    // A lease that somebody has asked for is theirs as good as already.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::from([(me, 0)]);
    for holder in shares.iter().filter_map(|share| share.wanted.or(share.owner)) {
        *counts.entry(holder).or_default() += 1;
    }
    let fair = shares.len().div_ceil(counts.len()).min(most);
    let mut mine = counts.remove(me).unwrap_or_default();
    let mut moves = Moves::default();
    let begin = if shares.is_empty() { 0 } else { spread % shares.len() };
    let around = || shares[begin..].iter().chain(&shares[..begin]);
    // What I asked for and was let go is mine already, and counted.
    let free = |share: &&Share<'_>| share.owner.is_none();
    moves.take.extend(around().filter(free).filter(|s| s.wanted == Some(me)).map(|s| s.lease));
    for share in around().filter(free).filter(|share| share.wanted.is_none()) {
        if mine >= fair {
            break;
        }
        moves.take.push(share.lease);
        mine += 1;
    }
    while mine < most {
        // Moving one lease helps only where the other has at least two more.
        let count = |share: &&Share<'_>| share.owner.and_then(|owner| counts.get(owner)).copied();
        let given = around()
            .filter(|share| share.wanted.is_none() && !moves.ask.contains(&share.lease))
            .filter(|share| count(share).is_some_and(|count| count >= mine + 2))
            .min_by_key(|share| Reverse(count(share)));
        let Some(Share { lease, owner: Some(owner), .. }) = given else { break };
        moves.ask.push(lease);
        mine += 1;
        counts.entry(owner).and_modify(|count| *count -= 1);
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// `"x"` is owned by x, `"-"` by nobody, `"x>y"` by x and wanted by y.
    fn shares(text: &'static str) -> Vec<Share<'static>> {
        let name = |text: &'static str| (text != "-").then_some(text);
        let share = |(lease, text): (&&'static str, &'static str)| match text.split_once('>') {
            Some((owner, wanted)) => Share { lease, owner: name(owner), wanted: name(wanted) },
            None => Share { lease, owner: name(text), wanted: None },
        };
        LEASES.iter().zip(text.split_whitespace()).map(share).collect()
    }

    #[test]
    fn free_leases_are_taken_up_to_the_fair_share_and_the_rest_is_asked_for() {
        for (held, most, take, ask) in [
            ("", 9, "", ""),
            ("- - - -", 9, "a b c d", ""),
            ("- - - -", 3, "a b c", ""),
            ("- - x x", 9, "a b", ""),
            ("- - - x", 9, "a b", ""),
            ("x x x x", 9, "", "a b"),
            ("x x x x", 1, "", "a"),
            ("x x x", 9, "", "a"),
            ("x", 9, "", ""),
            ("x me", 9, "", ""),
            ("x x me", 9, "", ""),
            ("x x x me", 9, "", "a"),
            ("x x x y y me", 9, "", "a"),
            ("x x y y z z", 9, "", "a"),
            ("me me me x", 9, "", ""),
            // Asked for already, by me and by another.
            ("x>me x>me x x", 9, "", ""),
            ("x>y x>y x x", 9, "", "c"),
            ("->me x x x", 9, "a", "b"),
            ("->y x x me", 9, "", ""),
        ] {
            let shares = shares(held);
            let moves = moves(&shares, "me", most, 0);
            assert_eq!((moves.take.join(" "), moves.ask.join(" ")), (take.into(), ask.into()), "{held}");
        }
    }

    #[test]
    fn instances_begin_to_look_in_different_places() {
        let shares = shares("- - x x");
        assert_eq!(moves(&shares, "me", 9, 5).take, ["b", "a"]);
    }

    /// Any number of instances that each decide in turn end with shares that differ by one at most.
    #[test]
    fn shares_even_out_whoever_comes_and_goes() {
        for instances in 1..=5usize {
            for leases in 0..=LEASES.len() {
                let names: Vec<String> = (0..instances).map(|number| format!("i{number}")).collect();
                let mut owners: Vec<Option<String>> = vec![None; leases];
                let mut moved = true;
                let mut rounds = 0;
                while moved {
                    moved = false;
                    rounds += 1;
                    assert!(rounds < 20, "{instances} instances do not come to rest over {leases} leases");
                    for (spread, me) in names.iter().enumerate() {
                        let before = owners.clone();
                        let shares: Vec<_> = LEASES
                            .iter()
                            .zip(&before)
                            .map(|(lease, owner)| Share { lease, owner: owner.as_deref(), wanted: None })
                            .collect();
                        let moves = moves(&shares, me, usize::MAX, spread);
                        for lease in moves.take.iter().chain(&moves.ask) {
                            let at = LEASES.iter().position(|name| name == lease).expect("one of them");
                            owners[at] = Some(me.clone());
                            moved = true;
                        }
                    }
                }
                let count =
                    |name: &String| owners.iter().filter(|owner| owner.as_ref() == Some(name)).count();
                let counts: Vec<usize> = names.iter().map(count).collect();
                assert_eq!(counts.iter().sum::<usize>(), leases);
                let (most, least) = (counts.iter().max(), counts.iter().min());
                assert!(most.expect("some") - least.expect("some") <= 1, "{counts:?}");
            }
        }
    }
}
