//! Slot leases in the container, for dispatchers of several processes.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use perihelion::ContainerClient;
use serde::{Deserialize, Serialize};

use super::lease_provider::LeaseProvider;
use super::lease_table::LeaseTable;
use crate::clock::{self, Millis};
use crate::error::Result;
use crate::ids;
use crate::store::Store;
use crate::telemetry::Telemetry;

/// The partition of the lease document, which is not that of an instance.
const PARTITION: &str = "__leases__";
/// The id of the lease document.
const DOCUMENT: &str = "slots";
/// How often a lost race for the lease document is tried again.
const TRIES: usize = 8;

/// Shares slots out among the dispatchers of several processes, through a document of the container.
///
/// Each caller renews its lease as long as it asks for its slots; a caller that is silent for the lease time loses them to
/// the others. Shares are fair: 256 slots by the number of callers.
#[derive(Debug)]
pub struct CosmosLeaseProvider {
    store: Store,
    lease_time: Millis,
    /// A name that tells the callers of this process from those of others.
    process: String,
    /// The slots of the callers of this process.
    callers: tokio::sync::Mutex<HashMap<u64, CachedLease>>,
}

#[derive(Clone, Debug)]
struct CachedLease {
    slots: Vec<u8>,
    renewed_at: Millis,
}

/// The one document with all leases.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseDocument {
    id: String,
    instance_id: String,
    #[serde(rename = "type")]
    document_type: String,
    #[serde(flatten)]
    table: LeaseTable,
}

impl CosmosLeaseProvider {
    /// Leases in this container, which expire after 15 seconds unless they are renewed.
    pub fn new(container: &ContainerClient) -> CosmosLeaseProvider {
        CosmosLeaseProvider::with_lease_time(container, Duration::from_secs(15))
    }

    /// Leases in this container that expire after this time unless they are renewed. They are renewed three times as often.
    pub fn with_lease_time(container: &ContainerClient, lease_time: Duration) -> CosmosLeaseProvider {
        CosmosLeaseProvider {
            store: Store::new(container.clone(), Telemetry::default()),
            lease_time: clock::millis(lease_time.max(Duration::from_millis(100))),
            process: ids::unique(),
            callers: tokio::sync::Mutex::default(),
        }
    }

    fn member(&self, caller_id: u64) -> String {
        format!("{}-{caller_id:x}", self.process)
    }

    /// Writes the table after a change of it, unless somebody else keeps being faster.
    async fn update(&self, change: impl Fn(&LeaseTable, Millis) -> LeaseTable) -> Result<LeaseTable> {
        let mut tries = 0;
        loop {
            tries += 1;
            let stored = self.store.read::<LeaseDocument>(PARTITION, DOCUMENT).await?;
            let current = stored.as_ref().map(|stored| stored.document.table.clone()).unwrap_or_default();
            let table = change(&current, clock::now());
            let document = LeaseDocument {
                id: DOCUMENT.to_owned(),
                instance_id: PARTITION.to_owned(),
                document_type: "lease".to_owned(),
                table: table.clone(),
            };
            let written = match &stored {
                Some(stored) => self.store.replace(PARTITION, DOCUMENT, &stored.etag, &document).await,
                None => self.store.create(PARTITION, &document).await,
            };
            match written {
                Ok(_) => return Ok(table),
                Err(error) if error.is_lost_race() && tries < TRIES => {
                    let delay = Duration::from_millis(fastrand::u64(1..20 << tries.min(4)));
                    tokio::time::sleep(delay).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl LeaseProvider for CosmosLeaseProvider {
    async fn acquire_slots(&self, caller_id: u64) -> Vec<u8> {
        // One heartbeat at a time; the others wait for its result.
        let mut callers = self.callers.lock().await;
        let now = clock::now();
        let cached = callers.get(&caller_id).cloned();
        if let Some(cached) = &cached
            && now - cached.renewed_at < self.lease_time / 3.0
        {
            return cached.slots.clone();
        }
        let name = self.member(caller_id);
        let heartbeat =
            self.update(|table, now| table.apply_heartbeat(&name, now, now + self.lease_time)).await;
        match heartbeat {
            Ok(table) => {
                let slots = table.members.get(&name).map(|member| member.slots.clone()).unwrap_or_default();
                callers.insert(caller_id, CachedLease { slots: slots.clone(), renewed_at: now });
                slots
            }
            Err(error) => {
                tracing::warn!(%error, "slot leases cannot be renewed now");
                match cached {
                    Some(cached) if now - cached.renewed_at < self.lease_time => cached.slots,
                    _ => Vec::new(),
                }
            }
        }
    }

    async fn release_slots(&self, caller_id: u64) {
        self.callers.lock().await.remove(&caller_id);
        let name = self.member(caller_id);
        if let Err(error) = self.update(|table, _| table.without(&name)).await {
            tracing::debug!(%error, "slot leases were not released and will expire");
        }
    }
}
