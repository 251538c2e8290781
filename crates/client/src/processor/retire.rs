//! The end of a processor: everything it keeps is removed, once nobody works on it any more.

use std::time::Duration;

use driver::Clock;
use driver::{Error, ErrorKind};

use super::lease::Lease;
use super::plan::never_ran;
use super::sightings::Sightings;
use super::store::{LeaseStore, Listing, Stored, Written};
use crate::Result;

/// How often leases are listed anew because one changed while it was removed.
const ROUNDS_MAX: u32 = 12;

/// Waits until no lease has an owner that lives. That of an instance that died takes `expiry` to tell; a sign of
/// life ends the wait, as an error that names the instance.
pub(super) async fn wait_for_owners(
    store: &LeaseStore,
    name: &str,
    expiry: Duration,
    clock: &Clock,
) -> Result<()> {
    let pause = (expiry / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut sightings = Sightings::default();
    let mut before: Option<Vec<Lease>> = None;
    loop {
        let leases: Vec<Lease> = store.list().await?.leases.into_iter().map(|stored| stored.value).collect();
        if let Some(alive) = before.as_deref().and_then(|before| sign_of_life(before, &leases)) {
            return Err(at_work(name, alive));
        }
        let now = clock.now();
        sightings.note(&leases, now);
        let is_left = |lease: &Lease| lease.owner.is_none() || sightings.is_silent(&lease.id, now, expiry);
        if leases.iter().all(is_left) {
            return Ok(());
        }
        before.get_or_insert(leases);
        clock.sleep(pause).await;
    }
}

/// A lease whose owner has done something since `before`. Pure.
fn sign_of_life<'a>(before: &[Lease], now: &'a [Lease]) -> Option<&'a Lease> {
    now.iter().filter(|lease| lease.owner.is_some()).find(|lease| {
        let known = before.iter().find(|known| known.id == lease.id);
        known.is_none_or(|known| {
            (&known.owner, known.term, known.beat) != (&lease.owner, lease.term, lease.beat)
        })
    })
}

fn at_work(name: &str, lease: &Lease) -> Error {
    let owner = lease.owner.as_deref().unwrap_or_default();
    let message = format!(
        "the processor {name} is at work: the instance {owner} has the lease {}; stop all instances first, or retire it by force",
        lease.id
    );
    Error::new(ErrorKind::Conflict, message)
}

/// Removes everything the processor keeps; says how many leases that were. The plan goes first, because nobody
/// takes a lease without one; whoever has a lease finds it gone with its next write.
pub(super) async fn remove(store: &LeaseStore, name: &str) -> Result<usize> {
    let mut removed = 0;
    for round in 0..ROUNDS_MAX {
        let Listing { plan, leases } = store.list().await?;
        if plan.is_none() && leases.is_empty() {
            return if round == 0 { Err(never_ran(name)) } else { Ok(removed) };
        }
        if let Some(Stored { value, etag }) = plan {
            store.delete(&value.id, &etag).await?;
        }
        for Stored { value, etag } in leases {
            // One that has just changed is there in the next round.
            if let Written::Done(_) = store.delete(&value.id, &etag).await? {
                removed += 1;
            }
        }
    }
    let message = format!("leases of the processor {name} come back all the time: stop its instances first");
    Err(Error::new(ErrorKind::Unavailable, message))
}

#[cfg(test)]
mod tests {
    use protocol::partition::EpkRange;

    use super::super::lease::{Position, Stretch};
    use super::*;

    #[test]
    fn an_owner_lives_if_its_lease_changes_and_not_because_it_is_named() {
        let lease = |owner: Option<&str>, term, beat| {
            let mut lease = Lease::new("p", &Stretch::new(EpkRange::FULL, Position::Beginning), 1);
            (lease.owner, lease.term, lease.beat) = (owner.map(str::to_owned), term, beat);
            lease
        };
        let before = [lease(Some("a"), 1, 4)];
        for (now, lives) in [
            (lease(Some("a"), 1, 4), false),
            (lease(Some("a"), 1, 5), true),
            (lease(Some("b"), 2, 5), true),
            (lease(None, 1, 5), false),
        ] {
            assert_eq!(sign_of_life(&before, std::slice::from_ref(&now)).is_some(), lives, "{now:?}");
        }
        assert!(sign_of_life(&[], &before).is_some(), "a lease that was not there");
    }
}
