//! What a lease container keeps, by processor: also of those whose container is gone.

use std::time::Duration;

use driver::Clock;

use super::retire;
use super::status::LeaseStatus;
use super::store::LeaseStore;
use crate::Result;
use crate::container::ContainerClient;

/// A processor that keeps its leases in a container: see [`ContainerClient::kept_processors`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KeptProcessor {
    /// Its name.
    pub name: String,
    /// The `_rid` of the container whose changes it processes, or did. A container made anew under its name has
    /// another.
    pub container_rid: String,
    /// Its leases: who has each and how far it is, as of its last write.
    pub leases: Vec<LeaseStatus>,
    store: LeaseStore,
}

impl ContainerClient {
    /// The processors that keep their leases in this container, by name: those that run, those that do not, and those
    /// whose container is gone, which nothing else leads to any more.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn tidy(leases: perihelion::ContainerClient) -> perihelion::Result<()> {
    /// for processor in leases.kept_processors().await? {
    ///     println!("{} of {}: {} leases", processor.name, processor.container_rid, processor.leases.len());
    ///     if processor.name == "billing-2019" {
    ///         processor.retire(Duration::from_secs(30)).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn kept_processors(&self) -> Result<Vec<KeptProcessor>> {
        let kept = LeaseStore::all(self).await?.into_iter().map(|(store, listing)| {
            let leases = listing.leases.into_iter().map(|stored| LeaseStatus::of_stored(stored.value));
            // A `_rid` has no dots, and names may.
            let (name, rid) = store.id().rsplit_once('.').unwrap_or((store.id(), ""));
            KeptProcessor {
                name: name.to_owned(),
                container_rid: rid.to_owned(),
                leases: leases.collect(),
                store,
            }
        });
        Ok(kept.collect())
    }
}

impl KeptProcessor {
    /// Removes everything it keeps; says how many leases that were. Refused while an instance is at work, as
    /// [`ChangeFeedProcessor::retire`](super::ChangeFeedProcessor::retire) is: leases that have an owner are watched
    /// for `lease_expiry`, which its instances were told, or 30 seconds if nothing was said.
    pub async fn retire(&self, lease_expiry: Duration) -> Result<usize> {
        retire::wait_for_owners(&self.store, &self.name, lease_expiry, &Clock::machine()).await?;
        retire::remove(&self.store, &self.name).await
    }

    /// The same at once, whoever is at work.
    pub async fn retire_by_force(&self) -> Result<usize> {
        retire::remove(&self.store, &self.name).await
    }
}
