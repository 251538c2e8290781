//! What must be true of a container once all orchestrations have ended.

#![expect(clippy::disallowed_methods, reason = "processes are killed, and locks expire, in real time")]

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use duroxide::{Client, EventKind};
use futures::TryStreamExt;
use perihelion::{ContainerClient, Query};
use serde_json::Value;

/// Checks the histories of an instance: events in order, and one completion at most for everything scheduled.
pub(crate) async fn check_histories(client: &Client, instance: &str) {
    for execution in client.list_executions(instance).await.expect("executions") {
        let events = client.read_execution_history(instance, execution).await.expect("a history");
        let mut sources = HashSet::new();
        let (mut last, mut ends) = (0, 0);
        for event in &events {
            assert!(event.event_id() > last, "{instance}: event {} after {last}", event.event_id());
            last = event.event_id();
            ends += usize::from(event.is_terminal());
            let completes = matches!(
                event.kind,
                EventKind::ActivityCompleted { .. }
                    | EventKind::ActivityFailed { .. }
                    | EventKind::TimerFired { .. }
                    | EventKind::SubOrchestrationCompleted { .. }
                    | EventKind::SubOrchestrationFailed { .. }
            );
            if completes {
                assert!(sources.insert(event.source_event_id()), "{instance}: applied twice: {event:?}");
            }
        }
        let starts =
            events.iter().filter(|event| matches!(event.kind, EventKind::OrchestrationStarted { .. }));
        assert_eq!((starts.count(), ends), (1, 1), "{instance}, execution {execution}: {events:#?}");
    }
}

/// Waits until nothing is left of finished work: no messages, activities, intents or staged documents.
pub(crate) async fn check_nothing_left(container: &ContainerClient) {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let left = leftovers(container).await;
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {left:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Documents of unfinished work, by id.
pub(crate) async fn leftovers(container: &ContainerClient) -> BTreeMap<String, String> {
    let query = Query::new(
        "SELECT c.id, c.type, c.instanceId FROM c WHERE c.type IN ('orch_queue', 'worker_queue', 'outbox_intent', 'staged', \
         'release', 'quarantined')",
    );
    let found: Vec<Value> = container.query_items(query).stream().try_collect().await.expect("a query");
    found
        .iter()
        .map(|row| (row["id"].to_string(), format!("{} of {}", row["type"], row["instanceId"])))
        .collect()
}
