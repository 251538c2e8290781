//! Executions of an instance.

use duroxide::providers::ExecutionInfo;

use crate::core::Core;
use crate::documents::ExecutionDocument;
use crate::error::{Failure, Result};
use crate::ids;
use crate::queries;
use crate::store::Versioned;

impl Core {
    /// The ids of the executions of an instance, oldest first.
    pub(crate) async fn list_executions(&self, instance: &str) -> Result<Vec<u64>> {
        ids::check_instance_id(instance)?;
        let Some(version) = self.read_instance(instance).await? else { return Ok(Vec::new()) };
        if version.document.turns == 0 {
            return Ok(Vec::new());
        }
        let mut executions: Vec<u64> =
            self.earlier_executions(instance).await?.iter().map(|execution| execution.execution_id).collect();
        executions.push(version.document.current_execution_id);
        executions.sort_unstable();
        executions.dedup();
        Ok(executions)
    }

    /// The executions of an instance before the current one.
    pub(crate) async fn earlier_executions(&self, instance: &str) -> Result<Vec<ExecutionDocument>> {
        let rows = self.store.query_partition(instance, || queries::all_of_type("execution")).await?;
        rows.iter().map(|row| row.read()).collect()
    }

    /// The id of the current execution; 1 before there is any.
    pub(crate) async fn latest_execution(&self, instance: &str) -> Result<u64> {
        ids::check_instance_id(instance)?;
        Ok(self.current_document(instance).await?.map_or(1, |document| document.current_execution_id))
    }

    /// What is known about an execution.
    pub(crate) async fn execution_info(&self, instance: &str, execution_id: u64) -> Result<ExecutionInfo> {
        ids::check_instance_id(instance)?;
        let missing =
            || Failure::invalid(format!("Execution {execution_id} not found for instance {instance}"));
        let current = self.read_instance(instance).await?.ok_or_else(missing)?.document;
        let execution = if current.current_execution_id == execution_id && current.turns > 0 {
            ExecutionDocument::current(&current)
        } else {
            let id = ids::execution_document(instance, execution_id);
            let stored: Option<Versioned<ExecutionDocument>> = self.store.read(instance, &id).await?;
            stored.ok_or_else(missing)?.document
        };
        Ok(ExecutionInfo {
            execution_id,
            status: execution.status,
            output: execution.output,
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            event_count: execution.history_events as usize,
        })
    }
}
