//! A provider that notes how long each turn takes, from being fetched to being committed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use driver_bench::clock;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::{Event, SystemStats};

/// A provider and the times of its turns.
pub(crate) struct TimedTurns {
    provider: Arc<dyn Provider>,
    times: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    began: HashMap<String, Instant>,
    turns_ms: Vec<f64>,
}

impl TimedTurns {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> TimedTurns {
        TimedTurns { provider, times: Mutex::default() }
    }

    /// The times of all turns so far, in milliseconds, in ascending order.
    pub(crate) fn turns_ms(&self) -> Vec<f64> {
        let mut turns = self.times.lock().expect("nobody panics with it").turns_ms.clone();
        turns.sort_by(f64::total_cmp);
        turns
    }
}

type Result<T> = std::result::Result<T, ProviderError>;

#[async_trait::async_trait]
impl Provider for TimedTurns {
    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>> {
        let fetched = self.provider.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await?;
        if let Some((_, token, _)) = &fetched {
            let mut times = self.times.lock().expect("nobody panics with it");
            times.began.insert(token.clone(), clock::now());
        }
        Ok(fetched)
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>,
    ) -> Result<()> {
        self.provider
            .ack_orchestration_item(
                lock_token,
                execution_id,
                history_delta,
                worker_items,
                orchestrator_items,
                metadata,
                cancelled,
            )
            .await?;
        let mut times = self.times.lock().expect("nobody panics with it");
        if let Some(began) = times.began.remove(lock_token) {
            times.turns_ms.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(())
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<()> {
        self.provider.abandon_orchestration_item(lock_token, delay, ignore_attempt).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>> {
        self.provider.read(instance).await
    }

    async fn read_with_execution(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>> {
        self.provider.read_with_execution(instance, execution_id).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<()> {
        self.provider.append_with_execution(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<()> {
        self.provider.enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>> {
        self.provider.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter).await
    }

    async fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> Result<()> {
        self.provider.ack_work_item(token, completion).await
    }

    async fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> Result<()> {
        self.provider.renew_work_item_lock(token, extend_for).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize> {
        self.provider.renew_session_lock(owner_ids, extend_for, idle_timeout).await
    }

    async fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> Result<usize> {
        self.provider.cleanup_orphaned_sessions(idle_timeout).await
    }

    async fn abandon_work_item(&self, token: &str, delay: Option<Duration>, ignore_attempt: bool) -> Result<()> {
        self.provider.abandon_work_item(token, delay, ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> Result<()> {
        self.provider.renew_orchestration_item_lock(token, extend_for).await
    }

    async fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> Result<()> {
        self.provider.enqueue_for_orchestrator(item, delay).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.provider.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>> {
        self.provider.get_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(&self, instance: &str, key: &str) -> Result<Option<String>> {
        self.provider.get_kv_value(instance, key).await
    }

    async fn get_kv_all_values(&self, instance: &str) -> Result<HashMap<String, String>> {
        self.provider.get_kv_all_values(instance).await
    }

    async fn get_instance_stats(&self, instance: &str) -> Result<Option<SystemStats>> {
        self.provider.get_instance_stats(instance).await
    }
}
