//! Lists the change feed processors that store their leases in a container, also those whose monitored container was
//! deleted.

use std::time::Duration;

use driver::Clock;

use super::delete;
use super::status::LeaseStatus;
use super::store::LeaseStore;
use crate::Result;
use crate::container::ContainerClient;

/// A processor that stores its leases in a container: see [`ContainerClient::list_processors`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredProcessor {
    /// The name it was given in [`ContainerClient::change_feed_processor`].
    pub name: String,
    /// The `_rid` of the container whose changes it processes. A container that is deleted and created again under
    /// the same name has another `_rid`.
    pub container_rid: String,
    /// Its leases with their owners and positions, as of the last write to each.
    pub leases: Vec<LeaseStatus>,
    store: LeaseStore,
}

impl ContainerClient {
    /// The processors that store their leases in this container, sorted by name: those that run, those that do not,
    /// and those whose monitored container was deleted, which can be found in no other way.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn clean_up(leases: perihelion::ContainerClient) -> perihelion::Result<()> {
    /// for processor in leases.list_processors().await? {
    ///     println!("{} of {}: {} leases", processor.name, processor.container_rid, processor.leases.len());
    ///     if processor.name == "billing-2019" {
    ///         processor.delete_leases(Duration::from_secs(30)).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_processors(&self) -> Result<Vec<StoredProcessor>> {
        let processors = LeaseStore::list_all(self).await?.into_iter().map(|(store, state)| {
            let leases = state.leases.into_iter().map(|stored| LeaseStatus::of_stored(stored.value));
            // A `_rid` has no dots; a name may have some.
            let (name, rid) = store.id().rsplit_once('.').unwrap_or((store.id(), ""));
            StoredProcessor {
                name: name.to_owned(),
                container_rid: rid.to_owned(),
                leases: leases.collect(),
                store,
            }
        });
        Ok(processors.collect())
    }
}

impl StoredProcessor {
    /// Deletes everything the processor stores and returns how many leases there were.
    ///
    /// Fails while an instance runs, as
    /// [`ChangeFeedProcessor::delete_leases`](super::ChangeFeedProcessor::delete_leases) does. Leases that have an
    /// owner are observed for `lease_expiry`: give the value that the instances were started with, which is 30
    /// seconds unless [`lease_expiry`](super::ChangeFeedProcessor::lease_expiry) was called.
    pub async fn delete_leases(&self, lease_expiry: Duration) -> Result<usize> {
        delete::wait_until_unowned(&self.store, &self.name, lease_expiry, &Clock::machine()).await?;
        delete::delete_all(&self.store, &self.name).await
    }

    /// Deletes everything the processor stores at once, also while instances run. Returns how many leases there
    /// were.
    pub async fn force_delete_leases(&self) -> Result<usize> {
        delete::delete_all(&self.store, &self.name).await
    }
}
