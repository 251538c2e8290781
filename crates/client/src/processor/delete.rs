//! Deletes everything that a processor stores in the lease container, once no instance runs any more.

use std::time::Duration;

use driver::Clock;
use driver::{Error, ErrorKind};

use super::lease::Lease;
use super::lease_observations::LeaseObservations;
use super::start::never_started_error;
use super::store::{LeaseStore, StoredState, Versioned, WriteOutcome};
use crate::Result;

/// How often leases are listed again because one changed while it was deleted.
const ROUNDS_MAX: u32 = 12;

/// Waits until no lease has an owner that runs. To tell that the owner of a lease has died takes `expiry`; an owner
/// that renews a lease ends the wait with an error that names the instance.
pub(super) async fn wait_until_unowned(
    store: &LeaseStore,
    name: &str,
    expiry: Duration,
    clock: &Clock,
) -> Result<()> {
    let pause = (expiry / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
    let mut observations = LeaseObservations::default();
    let mut before: Option<Vec<Lease>> = None;
    // Ends at the latest after `expiry`: by then every lease was renewed, released or observed without a change.
    loop {
        let leases: Vec<Lease> = store.list().await?.leases.into_iter().map(|stored| stored.value).collect();
        if let Some(renewed) = before.as_deref().and_then(|before| find_renewed_lease(before, &leases)) {
            return Err(still_running_error(name, renewed));
        }
        let now = clock.now();
        observations.record(&leases, now);
        let is_unowned =
            |lease: &Lease| lease.owner.is_none() || observations.is_unchanged_for(&lease.id, now, expiry);
        if leases.iter().all(is_unowned) {
            return Ok(());
        }
        before.get_or_insert(leases);
        clock.sleep(pause).await;
    }
}

/// A lease whose owner has written to it since `before`. Pure.
fn find_renewed_lease<'a>(before: &[Lease], now: &'a [Lease]) -> Option<&'a Lease> {
    now.iter().filter(|lease| lease.owner.is_some()).find(|lease| {
        let known = before.iter().find(|known| known.id == lease.id);
        known.is_none_or(|known| {
            (&known.owner, known.term, known.heartbeat) != (&lease.owner, lease.term, lease.heartbeat)
        })
    })
}

fn still_running_error(name: &str, lease: &Lease) -> Error {
    let owner = lease.owner.as_deref().unwrap_or_default();
    let message = format!(
        "the processor {name} is running: the instance {owner} owns the lease {}; stop all instances first, or call force_delete_leases",
        lease.id
    );
    Error::new(ErrorKind::Conflict, message)
}

/// Deletes everything the processor stores and returns how many leases there were. The processor's record is deleted
/// first, because no instance acquires a lease without it; an owner finds its lease gone with its next write.
pub(super) async fn delete_all(store: &LeaseStore, name: &str) -> Result<usize> {
    let mut deleted = 0;
    for round in 0..ROUNDS_MAX {
        let StoredState { record, leases } = store.list().await?;
        if record.is_none() && leases.is_empty() {
            return if round == 0 { Err(never_started_error(name)) } else { Ok(deleted) };
        }
        if let Some(Versioned { value, etag }) = record {
            store.delete(&value.id, &etag).await?;
        }
        for Versioned { value, etag } in leases {
            // A lease that changed after it was listed is deleted in the next round.
            if let WriteOutcome::Stored(_) = store.delete(&value.id, &etag).await? {
                deleted += 1;
            }
        }
    }
    let message =
        format!("leases of the processor {name} are created again all the time: stop its instances first");
    Err(Error::new(ErrorKind::Unavailable, message))
}

#[cfg(test)]
mod tests {
    use protocol::partition::EpkRange;

    use super::super::lease::{LeasePosition, RangePosition};
    use super::*;

    #[test]
    fn an_owner_runs_if_its_lease_changes_and_not_because_it_is_named() {
        let lease = |owner: Option<&str>, term, heartbeat| {
            let mut lease = Lease::new("p", &RangePosition::new(EpkRange::FULL, LeasePosition::Beginning), 1);
            (lease.owner, lease.term, lease.heartbeat) = (owner.map(str::to_owned), term, heartbeat);
            lease
        };
        let before = [lease(Some("a"), 1, 4)];
        for (now, is_renewed) in [
            (lease(Some("a"), 1, 4), false),
            (lease(Some("a"), 1, 5), true),
            (lease(Some("b"), 2, 5), true),
            (lease(None, 1, 5), false),
        ] {
            let found = find_renewed_lease(&before, std::slice::from_ref(&now));
            assert_eq!(found.is_some(), is_renewed, "{now:?}");
        }
        assert!(find_renewed_lease(&[], &before).is_some(), "a lease that did not exist before");
    }
}
