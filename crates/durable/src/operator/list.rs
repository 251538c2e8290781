//! Lists instances by a selector.

use std::collections::HashSet;

use perihelion::Query;
use serde::Deserialize;

use super::instance_summary::PENDING;
use super::{InstanceSelector, InstanceSummary, Operator, OperatorError};
use crate::clock::Millis;
use crate::error::Result;

impl Operator {
    /// The instances that a selector selects, the newest first. Instances that no runtime has begun with are listed only
    /// if the selector names the status `Pending`: there is nothing but their start to find them by.
    pub async fn list(&self, selector: &InstanceSelector) -> Result<Vec<InstanceSummary>, OperatorError> {
        let mut instances: Vec<InstanceSummary> = self.core.store.values(|| selector.query()).await?;
        if selector.statuses.iter().any(|status| status == PENDING) {
            let not_started = self.not_started().await?;
            let known: HashSet<&str> =
                instances.iter().map(|instance| instance.instance_id.as_str()).collect();
            let added: Vec<InstanceSummary> = not_started
                .into_iter()
                .filter(|instance| {
                    selector.matches(instance) && !known.contains(instance.instance_id.as_str())
                })
                .collect();
            instances.extend(added);
            instances.sort_by_key(|instance| std::cmp::Reverse(instance.created_at));
            instances.truncate(selector.limit.unwrap_or(usize::MAX));
        }
        Ok(instances)
    }

    /// What a list says about one instance; none if it has no document.
    pub(super) async fn summary(&self, instance: &str) -> Result<Option<InstanceSummary>> {
        let selector = InstanceSelector::with_ids([instance]);
        let found = self.core.store.values_of_partition(instance, || selector.query()).await?;
        Ok(found.into_iter().next())
    }

    /// Instances whose start waits and that have no document.
    async fn not_started(&self) -> Result<Vec<InstanceSummary>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Start {
            instance_id: String,
            #[serde(default)]
            orchestration: String,
            enqueued_at: Millis,
        }
        let starts: Vec<Start> = self
            .core
            .store
            .values(|| {
                Query::new(
                    "SELECT c.instanceId, c.workItem.StartOrchestration.orchestration, c.enqueuedAt FROM c WHERE c.type \
                     = 'orch_queue' AND IS_DEFINED(c.workItem.StartOrchestration)",
                )
            })
            .await?;
        if starts.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<&str> = starts.iter().map(|start| start.instance_id.as_str()).collect();
        let begun: HashSet<String> = self
            .core
            .store
            .values(|| {
                Query::new(
                    "SELECT VALUE c.instanceId FROM c WHERE c.type = 'instance' AND ARRAY_CONTAINS(@ids, c.instanceId)",
                )
                .with_parameter("@ids", &ids)
            })
            .await?
            .into_iter()
            .collect();
        Ok(starts
            .iter()
            .filter(|start| !begun.contains(&start.instance_id))
            .map(|start| {
                InstanceSummary::not_started(
                    &start.instance_id,
                    &start.orchestration,
                    start.enqueued_at as u64,
                )
            })
            .collect())
    }
}
