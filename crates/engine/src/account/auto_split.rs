//! Automatic splits: more partitions where throughput or size asks for them.
//!
//! In: an offer that was changed. Out: the partitions it applies to, split one after the other on a blocking
//! thread, until none has to serve more than a partition can. Until then the offer is *pending*; its
//! throughput itself applies at once. Partitions are never merged automatically.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use protocol::resource_id::OfferRid;

use super::Account;
use super::events::EventKind;
use crate::catalog::{CatalogSnapshot, ContainerEntry};
use crate::charge::throughput::partition_count_for;
use crate::store::Partition;

/// The offers whose containers are being split for their throughput.
#[derive(Debug, Default)]
pub struct PendingOffers(Mutex<HashSet<OfferRid>>);

impl PendingOffers {
    /// Whether partitions are still being split for this offer.
    pub fn is_pending(&self, offer: OfferRid) -> bool {
        self.pending().contains(&offer)
    }

    fn pending(&self) -> MutexGuard<'_, HashSet<OfferRid>> {
        self.0.lock()
    }
}

/// Starts splitting the partitions that `offer` applies to, if there are too few. Returns whether there are.
pub fn start(account: &Arc<Account>, offer: OfferRid, uptime: Duration) -> bool {
    // A fixed number of partitions is not changed automatically.
    if account.partitions.is_some() || next(&account.catalog.snapshot(), offer).is_none() {
        return false;
    }
    if account.pending_offers.pending().insert(offer) {
        let task = Task { account: Arc::downgrade(account), offer, uptime, over: false };
        match tokio::runtime::Handle::try_current() {
            // Detached: it ends by itself, at the latest when the account is dropped.
            Ok(runtime) => drop(runtime.spawn_blocking(|| task.run())),
            Err(_) => task.run(),
        }
    }
    // If it was pending already, its task reads the newest throughput before each step.
    true
}

/// Resumes splits that an earlier process has not finished: offers are persisted, what is pending is not.
pub fn resume(account: &Arc<Account>, uptime: Duration) {
    let offers: Vec<OfferRid> =
        account.catalog.snapshot().offers_after(None).map(|offer| offer.rid).collect();
    for offer in offers {
        start(account, offer, uptime);
    }
}

/// Splits a range that holds more bytes than a partition should, on a blocking thread.
pub fn split_oversized(account: &Account, container: &Arc<ContainerEntry>, range: u32, uptime: Duration) {
    let (store, name) = (Arc::clone(&container.store), container.id.clone());
    let events = Arc::clone(&account.events);
    let split = move || {
        let mut oversized = vec![range];
        while let Some(range) = oversized.pop() {
            // None if it was split meanwhile, or holds a single partition key value, which cannot be split.
            let Some(middle) = store.middle_of(range) else { continue };
            match store.split(range, Some(&middle), uptime) {
                Ok(halves) => {
                    let [low, high] = halves;
                    let message =
                        format!("{name}: range {range} was split into {low} and {high}, because it is full");
                    events.record(EventKind::Split, None, message);
                    oversized.extend(halves.into_iter().filter(|half| store.is_oversized(*half)));
                }
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
    /// Whether the offer has been removed from the pending ones.
    over: bool,
}

impl Task {
    fn run(mut self) {
        while let Some(account) = self.account.upgrade() {
            let snapshot = account.catalog.snapshot();
            let Some((container, range)) = next(&snapshot, self.offer) else {
                let mut pending = account.pending_offers.pending();
                // Checked again under the lock: a concurrent change of the offer is either seen here or finds
                // nothing pending and starts a new task.
                if next(&account.catalog.snapshot(), self.offer).is_none() {
                    self.over = pending.remove(&self.offer);
                    return;
                }
                continue;
            };
            match container.store.split(range, None, self.uptime) {
                Ok([low, high]) => {
                    let name = container.id.as_str();
                    let message =
                        format!("{name}: range {range} was split into {low} and {high}, for its throughput");
                    account.events.record(EventKind::Split, None, message);
                }
                Err(error) => {
                    tracing::warn!(
                        container = container.id.as_str(),
                        "no more partitions for more throughput: {error}"
                    );
                    return;
                }
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

/// The next range to split for an offer.
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

/// The range that was split least often, and of those the one that holds most bytes.
fn widest(partitions: &[Arc<Partition>]) -> Option<u32> {
    let by_splits = |partition: &&Arc<Partition>| {
        (partition.parents.len(), std::cmp::Reverse(partition.latest_head().bytes()))
    };
    partitions.iter().min_by_key(by_splits).map(|partition| partition.identity.id)
}
