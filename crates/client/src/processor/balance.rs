//! Decides which leases an instance acquires, so that all instances get about the same number. Pure.
//!
//! Each instance decides for itself, from the leases it reads: it acquires free leases up to its fair share, and
//! requests more from the instances that own more than it does. An owner whose lease is requested finishes its batch,
//! writes its checkpoint and releases the lease. When two instances choose the same lease, the write with the current
//! ETag wins.
#![warn(clippy::wildcard_enum_match_arm, reason = "a new case must be decided on")]

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The owner of a lease, and who requests it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseOwnership<'a> {
    pub(super) lease: &'a str,
    /// The instance that owns it; none if the lease is free or has expired.
    pub(super) owner: Option<&'a str>,
    /// The instance that requested it; none if there is no request or it has expired.
    pub(super) requested_by: Option<&'a str>,
}

/// What an instance does next to balance the leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BalanceActions<'a> {
    /// The ids of the leases to acquire.
    pub(super) acquire: Vec<&'a str>,
    /// The ids of the leases to request from their owners.
    pub(super) request: Vec<&'a str>,
}

/// What the instance `me` does about these leases. It never owns more than `leases_max`; `start_offset` decides with
/// which lease it begins, so that instances that start together do not all try the same one.
pub(super) fn balance<'a>(
    leases: &[LeaseOwnership<'a>],
    me: &str,
    leases_max: usize,
    start_offset: usize,
) -> BalanceActions<'a> {
    // A lease that is requested counts for the instance that will get it.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::from([(me, 0)]);
    for owner in leases.iter().filter_map(|lease| lease.requested_by.or(lease.owner)) {
        *counts.entry(owner).or_default() += 1;
    }
    let fair_share = leases.len().div_ceil(counts.len()).min(leases_max);
    let mut mine = counts.remove(me).unwrap_or_default();
    let mut actions = BalanceActions::default();
    let begin = if leases.is_empty() { 0 } else { start_offset % leases.len() };
    let from_offset = || leases[begin..].iter().chain(&leases[..begin]);
    // A lease that this instance requested and that was released is counted as its own already.
    let is_free = |lease: &&LeaseOwnership<'_>| lease.owner.is_none();
    let released = from_offset().filter(is_free).filter(|lease| lease.requested_by == Some(me));
    actions.acquire.extend(released.map(|lease| lease.lease));
    for lease in from_offset().filter(is_free).filter(|lease| lease.requested_by.is_none()) {
        if mine >= fair_share {
            break;
        }
        actions.acquire.push(lease.lease);
        mine += 1;
    }
    while mine < leases_max {
        // Moving one lease helps only where its owner has at least two more than this instance.
        let count = |lease: &&LeaseOwnership<'_>| lease.owner.and_then(|owner| counts.get(owner)).copied();
        let from_largest = from_offset()
            .filter(|lease| lease.requested_by.is_none() && !actions.request.contains(&lease.lease))
            .filter(|lease| count(lease).is_some_and(|count| count >= mine + 2))
            .min_by_key(|lease| Reverse(count(lease)));
        let Some(LeaseOwnership { lease, owner: Some(owner), .. }) = from_largest else { break };
        actions.request.push(lease);
        mine += 1;
        counts.entry(owner).and_modify(|count| *count -= 1);
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

    /// `"x"` is owned by x, `"-"` has no owner, `"x>y"` is owned by x and requested by y.
    fn ownerships(text: &'static str) -> Vec<LeaseOwnership<'static>> {
        let name = |text: &'static str| (text != "-").then_some(text);
        let ownership = |(lease, text): (&&'static str, &'static str)| match text.split_once('>') {
            Some((owner, wanted)) => LeaseOwnership { lease, owner: name(owner), requested_by: name(wanted) },
            None => LeaseOwnership { lease, owner: name(text), requested_by: None },
        };
        LEASES.iter().zip(text.split_whitespace()).map(ownership).collect()
    }

    #[test]
    fn free_leases_are_acquired_up_to_the_fair_share_and_the_rest_is_requested() {
        for (owners, leases_max, acquire, request) in [
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
            // Requested already, by this instance and by another.
            ("x>me x>me x x", 9, "", ""),
            ("x>y x>y x x", 9, "", "c"),
            ("->me x x x", 9, "a", "b"),
            ("->y x x me", 9, "", ""),
        ] {
            let actions = balance(&ownerships(owners), "me", leases_max, 0);
            let found = (actions.acquire.join(" "), actions.request.join(" "));
            assert_eq!(found, (acquire.into(), request.into()), "{owners}");
        }
    }

    #[test]
    fn the_start_offset_decides_which_free_lease_is_acquired_first() {
        assert_eq!(balance(&ownerships("- - x x"), "me", 9, 5).acquire, ["b", "a"]);
    }

    /// Any number of instances that decide one after the other end with lease counts that differ by one at most.
    #[test]
    fn repeated_balancing_ends_with_even_lease_counts() {
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
                    for (start_offset, me) in names.iter().enumerate() {
                        let before = owners.clone();
                        let ownerships: Vec<_> = LEASES
                            .iter()
                            .zip(&before)
                            .map(|(lease, owner)| {
                                let owner = owner.as_deref();
                                LeaseOwnership { lease, owner, requested_by: None }
                            })
                            .collect();
                        let actions = balance(&ownerships, me, usize::MAX, start_offset);
                        for lease in actions.acquire.iter().chain(&actions.request) {
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
