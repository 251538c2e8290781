//! More partitions where throughput or size asks for them.
//!
//! In: an offer that was changed. Out: the partitions of what it pays for, split one after the other
//! on a thread that may take its time, until none has to carry more than a partition can. Until then
//! the offer is *pending*: the throughput itself applies at once. Partitions never become fewer by
//! themselves.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use protocol::resource_id::OfferRid;

use super::Account;
use crate::catalog::{CatalogSnapshot, ContainerEntry};
use crate::charge::throughput::partition_count_for;
use crate::store::Partition;

/// The offers whose containers are being split.
#[derive(Debug, Default)]
pub struct PendingOffers(Mutex<HashSet<OfferRid>>);

impl PendingOffers {
    /// Whether an offer is not yet carried out.
    pub fn is_pending(&self, offer: OfferRid) -> bool {
        self.pending().contains(&offer)
    }

    fn pending(&self) -> MutexGuard<'_, HashSet<OfferRid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to split what `offer` pays for, if it has to be. Says whether it does.
pub fn start(account: &Arc<Account>, offer: OfferRid, uptime: Duration) -> bool {
    // Whoever fixed the number of partitions wants no other.
    if account.partitions.is_some() || next(&account.catalog.snapshot(), offer).is_none() {
        return false;
    }
    if account.pending_offers.pending().insert(offer) {
        let task = Task { account: Arc::downgrade(account), offer, uptime, over: false };
        match tokio::runtime::Handle::try_current() {
            // It ends by itself, at the latest when the account is gone.
            Ok(runtime) => drop(runtime.spawn_blocking(|| task.run())),
            Err(_) => task.run(),
        }
    }
    // If it was there already, whoever works on it looks at the newest throughput before each step.
    true
}

/// Goes on with what an earlier process has not finished: offers are kept, what is pending is not.
pub fn resume(account: &Arc<Account>, uptime: Duration) {
    let offers: Vec<OfferRid> =
        account.catalog.snapshot().offers_after(None).map(|offer| offer.rid).collect();
    for offer in offers {
        start(account, offer, uptime);
    }
}

/// Splits a range that holds more than a partition should, on a thread that may take its time.
pub fn split_oversized(container: &Arc<ContainerEntry>, range: u32, uptime: Duration) {
    let (store, name) = (Arc::clone(&container.store), container.id.clone());
    let split = move || {
        let mut overfull = vec![range];
        while let Some(range) = overfull.pop() {
            // Whoever was faster has split it already; and a single value cannot be split.
            let Some(middle) = store.middle_of(range) else { continue };
            match store.split(range, Some(&middle), uptime) {
                Ok(halves) => overfull.extend(halves.into_iter().filter(|half| store.is_oversized(*half))),
                Err(error) => {
                    tracing::debug!(container = name.as_str(), "a full partition stays whole: {error}");
                }
            }
        }
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(split)),
        Err(_) => split(),
    }
}

struct Task {
    account: Weak<Account>,
    offer: OfferRid,
    uptime: Duration,
    /// Whether the offer is no longer this task's concern.
    over: bool,
}

impl Task {
    fn run(mut self) {
        while let Some(account) = self.account.upgrade() {
            let snapshot = account.catalog.snapshot();
            let Some((container, range)) = next(&snapshot, self.offer) else {
                let mut pending = account.pending_offers.pending();
                // Somebody who changes the offer either is seen here or finds nothing pending.
                if next(&account.catalog.snapshot(), self.offer).is_none() {
                    self.over = pending.remove(&self.offer);
                    return;
                }
                continue;
            };
            if let Err(error) = container.store.split(range, None, self.uptime) {
                tracing::warn!(
                    container = container.id.as_str(),
                    "no more partitions for more throughput: {error}"
                );
                return;
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let (false, Some(account)) = (self.over, self.account.upgrade()) {
            account.pending_offers.pending().remove(&self.offer);
        }
    }
}

/// The next range to split of what an offer pays for.
fn next(snapshot: &CatalogSnapshot, offer: OfferRid) -> Option<(Arc<ContainerEntry>, u32)> {
    let wanted = partition_count_for(&snapshot.offer(offer)?.throughput);
    snapshot.databases_after(None).find_map(|database| {
        let shares = database.offer == Some(offer);
        let mut paid = database
            .containers_after(None)
            .filter(|container| container.offer == Some(offer) || shares && container.offer.is_none());
        paid.find_map(|container| {
            let partitions = container.store.partitions();
            let range = if partitions.len() < wanted { widest(&partitions)? } else { return None };
            Some((Arc::clone(container), range))
        })
    })
}

/// The range that was split least often, and of those the fullest.
fn widest(partitions: &[Arc<Partition>]) -> Option<u32> {
    let by_splits = |partition: &&Arc<Partition>| {
        (partition.parents.len(), std::cmp::Reverse(partition.latest_head().bytes()))
    };
    partitions.iter().min_by_key(by_splits).map(|partition| partition.identity.id)
}
