//! The provider: each method of duroxide's traits is one call into the modules below.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::{Event, SystemStats};
use perihelion::{ContainerClient, CosmosClient};
use tokio::task::JoinHandle;

use crate::admin::named;
use crate::container;
use crate::core::Core;
use crate::leases::{InMemoryLeaseProvider, LeaseProvider};
use crate::options::ProviderOptions;
use crate::outbox;
use crate::store::Store;
use crate::turn::Ack;

/// Stores orchestrations in a container of Azure Cosmos DB.
///
/// ```no_run
/// use std::sync::Arc;
/// use duroxide::runtime::Runtime;
/// use perihelion_durable::CosmosProvider;
///
/// # async fn run(
/// #     activities: duroxide::runtime::registry::ActivityRegistry,
/// #     orchestrations: duroxide::OrchestrationRegistry,
/// # ) -> Result<(), duroxide::providers::ProviderError> {
/// let connection = std::env::var("COSMOS_CONNECTION_STRING").expect("a connection string");
/// let provider = Arc::new(CosmosProvider::from_connection_string(&connection).await?);
/// let runtime = Runtime::start_with_store(provider, activities, orchestrations).await;
/// # runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
pub struct CosmosProvider {
    core: Arc<Core>,
    reconciler: JoinHandle<()>,
}

impl CosmosProvider {
    /// A provider on the account of a connection string, with the default database and container, which are created if
    /// they do not exist.
    pub async fn from_connection_string(text: &str) -> Result<CosmosProvider, ProviderError> {
        let client = CosmosClient::from_connection_string(text);
        let client = named("connect", client.map_err(Into::into))?;
        CosmosProvider::new(&client, ProviderOptions::new()).await
    }

    /// A provider on the account at `COSMOSDB_ENDPOINT` with the key `COSMOSDB_KEY`. `COSMOSDB_DATABASE` and
    /// `COSMOSDB_CONTAINER` name the container, if it is not the default one.
    pub async fn from_env() -> Result<CosmosProvider, ProviderError> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                let message =
                    format!("the environment variable {name} is not set: it is needed to find the account");
                ProviderError::permanent("connect", message)
            })
        };
        let (endpoint, key) = (variable("COSMOSDB_ENDPOINT")?, variable("COSMOSDB_KEY")?);
        let client = named("connect", CosmosClient::with_key(&endpoint, &key).map_err(Into::into))?;
        CosmosProvider::new(&client, ProviderOptions::from_env()).await
    }

    /// A provider with options. Dispatchers of this process alone share the work; see
    /// [`with_leases`](CosmosProvider::with_leases) for several processes.
    pub async fn new(
        client: &CosmosClient,
        options: ProviderOptions,
    ) -> Result<CosmosProvider, ProviderError> {
        CosmosProvider::with_leases(client, options, |_| Arc::new(InMemoryLeaseProvider::new())).await
    }

    /// A provider whose dispatch slots are shared out by these leases: with
    /// [`CosmosLeaseProvider`](crate::CosmosLeaseProvider), several processes do not search for the same work.
    pub async fn with_leases(
        client: &CosmosClient,
        options: ProviderOptions,
        leases: impl FnOnce(&ContainerClient) -> Arc<dyn LeaseProvider>,
    ) -> Result<CosmosProvider, ProviderError> {
        let container = named("open_container", container::open(client, &options).await)?;
        let leases = leases(&container);
        let interval = options.reconciler_interval;
        let core = Arc::new(Core::new(Store::new(container, options.telemetry.clone()), options, leases));
        let reconciler = tokio::spawn(outbox::run_reconciler(Arc::downgrade(&core), interval));
        Ok(CosmosProvider { core, reconciler })
    }

    /// The client of the container.
    pub fn container(&self) -> &ContainerClient {
        self.core.store.container()
    }

    /// The number of requests of this provider so far, and the request units they have cost.
    pub fn usage(&self) -> (u64, f64) {
        self.core.store.usage()
    }

    /// Gives back what this provider has locked ahead, and its slots, so that others need not wait until these expire.
    /// Call it after the runtime was shut down.
    pub async fn close(&self) {
        let locked = self.core.work.ready.lock().take_all_locked();
        self.core.release_locked(locked).await;
        self.core.release_slots().await;
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for CosmosProvider {
    fn drop(&mut self) {
        self.reconciler.abort();
    }
}

impl std::fmt::Debug for CosmosProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CosmosProvider").field("core", &self.core).finish_non_exhaustive()
    }
}

#[async_trait]
impl Provider for CosmosProvider {
    fn name(&self) -> &str {
        "perihelion"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        named("fetch_orchestration_item", self.core.fetch_turn(lock_timeout, poll_timeout, filter).await)
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let cancelled =
            cancelled_activities.into_iter().map(|activity| (activity.execution_id, activity.activity_id));
        let ack = Ack {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled: cancelled.collect(),
        };
        named("ack_orchestration_item", self.core.ack_turn(lock_token, ack).await)
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let abandoned = self.core.abandon_turn(lock_token, delay, ignore_attempt).await;
        named("abandon_orchestration_item", abandoned)
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        named("renew_orchestration_item_lock", self.core.renew_turn(token, extend_for).await)
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        named("read", self.core.read_current_history(instance).await)
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        named("read_with_execution", self.core.read_execution(instance, execution_id).await)
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        named("append_with_execution", self.core.append_events(instance, execution_id, &new_events).await)
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        named("enqueue_for_worker", self.core.enqueue_work(&item).await)
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let fetched = self.core.fetch_work(lock_timeout, poll_timeout, session, tag_filter).await;
        named("fetch_work_item", fetched)
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<(), ProviderError> {
        named("ack_work_item", self.core.ack_work(token, completion).await)
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<(), ProviderError> {
        named("renew_work_item_lock", self.core.renew_work(token, extend_for).await)
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        named("abandon_work_item", self.core.abandon_work(token, delay, ignore_attempt).await)
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        named("renew_session_lock", self.core.renew_sessions(owner_ids, extend_for, idle_timeout).await)
    }

    async fn cleanup_orphaned_sessions(&self, _idle_timeout: Duration) -> Result<usize, ProviderError> {
        named("cleanup_orphaned_sessions", self.core.clean_up_sessions().await)
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        named("enqueue_for_orchestrator", self.core.enqueue_message(&item, delay).await)
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        named("get_custom_status", self.core.custom_status(instance, last_seen_version).await)
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>, ProviderError> {
        let mut values = named("get_kv_value", self.core.key_values(instance).await)?;
        Ok(values.remove(key).map(|stored| stored.value))
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>, ProviderError> {
        let values = named("get_kv_all_values", self.core.key_values(instance).await)?;
        Ok(values.into_iter().map(|(key, stored)| (key, stored.value)).collect())
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        named("get_instance_stats", self.core.instance_stats(instance).await)
    }
}
