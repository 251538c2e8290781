//! Counts over all instances and queues.

use duroxide::providers::{QueueDepths, SystemMetrics};
use perihelion::Query;
use serde::Deserialize;

use crate::clock;
use crate::core::Core;
use crate::error::{Failure, Result};

impl Core {
    /// Counts of instances, executions and events.
    pub(crate) async fn system_metrics(&self) -> Result<SystemMetrics> {
        #[derive(Deserialize)]
        struct OfStatus {
            status: String,
            instances: u64,
            events: u64,
        }
        let by_status: Vec<OfStatus> = self
            .store
            .values(|| {
                Query::new(
                    "SELECT c.status, COUNT(1) AS instances, SUM(c.historyEvents) AS events FROM c WHERE c.type = \
                     'instance' AND IS_DEFINED(c.status) GROUP BY c.status",
                )
            })
            .await?;
        let earlier: Vec<u64> = self
            .store
            .values(|| Query::new("SELECT VALUE c.historyEvents FROM c WHERE c.type = 'execution'"))
            .await?;
        let of = |status: &str| {
            by_status.iter().filter(|counts| counts.status == status).map(|counts| counts.instances).sum()
        };
        let instances = by_status.iter().map(|counts| counts.instances).sum::<u64>();
        Ok(SystemMetrics {
            total_instances: instances,
            total_executions: instances + earlier.len() as u64,
            running_instances: of("Running"),
            completed_instances: of("Completed"),
            failed_instances: of("Failed"),
            total_events: by_status.iter().map(|counts| counts.events).sum::<u64>()
                + earlier.iter().sum::<u64>(),
        })
    }

    /// The number of messages and activities that nobody has locked.
    pub(crate) async fn queue_depths(&self) -> Result<QueueDepths> {
        let now = clock::now();
        let count = |text: &'static str| async move {
            let counts: Vec<usize> =
                self.store.values(|| Query::new(text).with_parameter("@now", now)).await?;
            Ok::<usize, Failure>(counts.into_iter().sum::<usize>())
        };
        let messages = count("SELECT VALUE COUNT(1) FROM c WHERE c.type = 'orch_queue'").await?;
        let locked: usize = count(
            "SELECT VALUE SUM(ARRAY_LENGTH(c.lockedMessages)) FROM c WHERE c.type = 'instance' AND c.lockedUntil > @now",
        )
        .await?;
        let work = count(
            "SELECT VALUE COUNT(1) FROM c WHERE c.type = 'worker_queue' AND NOT IS_DEFINED(c.lockToken)",
        )
        .await?;
        Ok(QueueDepths {
            orchestrator_queue: messages.saturating_sub(locked),
            worker_queue: work,
            // Timers are delayed messages.
            timer_queue: 0,
        })
    }
}
