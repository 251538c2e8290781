//! Deletes instances with everything that belongs to them.

use super::{InstanceSelector, InstanceSummary, Operator, OperatorError, PENDING};
use crate::documents::DELETING;
use crate::error::Result;

/// What was deleted with an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgedInstances {
    /// The instance and its sub-orchestrations.
    pub instances: u64,
    /// Events of their histories.
    pub events: u64,
    /// Messages and activities that waited.
    pub messages: u64,
}

impl Operator {
    /// The instances that [`purge`](Operator::purge) can be called with: those that a selector selects and that are no
    /// sub-orchestrations, which go with their parents. Without `force` these are instances that have ended, and those
    /// whose deletion was interrupted.
    pub async fn purgeable(
        &self,
        selector: &InstanceSelector,
        force: bool,
    ) -> Result<Vec<InstanceSummary>, OperatorError> {
        let mut selector = selector.clone();
        selector.roots_only |= selector.ids.is_empty();
        if selector.statuses.is_empty() {
            let ended = ["Completed", "Failed", "ContinuedAsNew", DELETING];
            let all = [&ended[..], &["Running", PENDING]].concat();
            let statuses = if force { &all[..] } else { &ended[..] };
            selector.statuses = statuses.iter().map(|&status| status.to_owned()).collect();
        }
        self.list(&selector).await
    }

    /// Deletes an instance and its sub-orchestrations, with their histories and messages. Without `force`, one that runs is
    /// an error, and nothing is deleted.
    pub async fn purge(&self, instance: &str, force: bool) -> Result<PurgedInstances, OperatorError> {
        let parent = self.summary(instance).await?.and_then(|summary| summary.parent_instance_id);
        if let Some(parent) = parent
            && self.summary(&parent).await?.is_some()
        {
            return Err(OperatorError::Refused(format!(
                "instance {instance:?} is a sub-orchestration of {parent:?}: purge that one"
            )));
        }
        let tree = self.core.instance_tree(instance).await?;
        for member in &tree.all_ids {
            let status = self.summary(member).await?.map(|summary| summary.status);
            if !force && status.as_deref().is_some_and(|status| status == "Running" || status == PENDING) {
                return Err(OperatorError::Refused(format!("instance {member:?} is still running")));
            }
        }
        let deleted = self.core.delete_instances(&tree.all_ids, force).await?;
        Ok(PurgedInstances {
            instances: deleted.instances_deleted,
            events: deleted.events_deleted,
            messages: deleted.queue_messages_deleted,
        })
    }
}
