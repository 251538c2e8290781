//! The administrative side of the provider.

use async_trait::async_trait;
use duroxide::Event;
use duroxide::providers::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
    ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use crate::admin::named;
use crate::provider::CosmosProvider;

#[async_trait]
impl ProviderAdmin for CosmosProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        named("list_instances", self.core().list_instances(None).await)
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        named("list_instances_by_status", self.core().list_instances(Some(status)).await)
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        named("list_executions", self.core().list_executions(instance).await)
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let events = self.core().read_execution(instance, execution_id).await;
        named("read_history_with_execution_id", events)
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        named("read_history", self.core().read_current_history(instance).await)
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        named("latest_execution_id", self.core().latest_execution(instance).await)
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        named("get_instance_info", self.core().instance_info(instance).await)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        named("get_execution_info", self.core().execution_info(instance, execution_id).await)
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        named("get_system_metrics", self.core().system_metrics().await)
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        named("get_queue_depths", self.core().queue_depths().await)
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        named("list_children", self.core().list_children(instance_id).await)
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let version = named("get_parent_id", self.core().existing_instance(instance_id).await)?;
        Ok(version.document.parent_instance_id)
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        named("get_instance_tree", self.core().instance_tree(instance_id).await)
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        named("delete_instances_atomic", self.core().delete_instances(ids, force).await)
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        named("delete_instance_bulk", self.core().delete_selected(&filter).await)
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        named("prune_executions", self.core().prune(instance_id, &options).await)
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        named("prune_executions_bulk", self.core().prune_selected(&filter, &options).await)
    }
}
