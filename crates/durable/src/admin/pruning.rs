//! Deletes executions that others followed.

use duroxide::providers::{InstanceFilter, PruneOptions, PruneResult};

use super::deletion::Selection;
use crate::core::Core;
use crate::documents::ExecutionDocument;
use crate::error::Result;
use crate::queries;

impl Core {
    /// Deletes earlier executions of an instance. The current one and those that run stay.
    pub(crate) async fn prune(&self, instance: &str, options: &PruneOptions) -> Result<PruneResult> {
        let current = self.existing_instance(instance).await?.document.current_execution_id;
        let executions = self.earlier_executions(instance).await?;
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        for execution in prunable(executions, current, options) {
            let query = || queries::history_from(execution.execution_id, 0);
            let mut ids: Vec<String> = self.store.values_of_partition(instance, query).await?;
            // The summary goes last: an interrupted deletion can be repeated.
            ids.push(execution.id);
            self.delete_documents(instance, ids).await?;
            result.executions_deleted += 1;
            result.events_deleted += execution.history_events;
        }
        Ok(result)
    }

    /// Deletes earlier executions of the instances that a filter selects.
    pub(crate) async fn prune_selected(
        &self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<PruneResult> {
        let mut total = PruneResult::default();
        for instance in self.select(filter, Selection::All).await? {
            let pruned = self.prune(&instance, options).await?;
            total.instances_processed += pruned.instances_processed;
            total.executions_deleted += pruned.executions_deleted;
            total.events_deleted += pruned.events_deleted;
        }
        Ok(total)
    }
}

/// The executions that the options do not keep. The newest ones count the current execution.
fn prunable(
    mut executions: Vec<ExecutionDocument>,
    current: u64,
    options: &PruneOptions,
) -> Vec<ExecutionDocument> {
    executions.sort_by_key(|execution| std::cmp::Reverse(execution.execution_id));
    executions.retain(|execution| execution.execution_id != current);
    let newest = options.keep_last.map_or(0, |keep| (keep as usize).saturating_sub(1));
    let older = executions.into_iter().skip(newest);
    older
        .filter(|execution| execution.status != "Running")
        .filter(|execution| match (options.completed_before, execution.completed_at) {
            (Some(before), Some(completed)) => completed < before,
            (Some(_), None) => false,
            (None, _) => true,
        })
        .collect()
}
