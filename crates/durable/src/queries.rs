//! Every SQL text, in one place.

use perihelion::Query;

use crate::clock::Millis;
use crate::slots::SlotSet;

/// The document of an instance and its visible messages, in one partition.
pub(crate) fn instance_and_messages(now: Millis) -> Query {
    Query::new("SELECT * FROM c WHERE c.type = 'instance' OR (c.type = 'orch_queue' AND c.visibleAt <= @now)")
        .with_parameter("@now", now)
}

/// The events of an execution, in one partition.
pub(crate) fn history(execution_id: u64) -> Query {
    Query::new("SELECT * FROM c WHERE c.type = 'history' AND c.executionId = @execution")
        .with_parameter("@execution", execution_id)
}

/// Messages that become visible until a time, beginning with the oldest: one index range, whatever the depth of the queue.
pub(crate) fn waiting_messages(until: Millis, slots: SlotSet, limit: usize) -> Query {
    waiting("c.instanceId, c.id, c.visibleAt", "orch_queue", "", until, slots, limit)
}

/// Activities that become visible until a time, beginning with the oldest. `condition` limits tags and sessions.
pub(crate) fn waiting_work(until: Millis, condition: &str, slots: SlotSet, limit: usize) -> Query {
    waiting("*", "worker_queue", condition, until, slots, limit)
}

fn waiting(
    columns: &str,
    document_type: &str,
    condition: &str,
    until: Millis,
    slots: SlotSet,
    limit: usize,
) -> Query {
    let of_slots = if slots.is_all() { "" } else { " AND ARRAY_CONTAINS(@slots, c.dispatchSlot)" };
    let query = Query::new(format!(
        "SELECT TOP {limit} {columns} FROM c WHERE c.type = '{document_type}' AND c.visibleAt <= @until{condition}{of_slots} \
         ORDER BY c.type, c.visibleAt"
    ))
    .with_parameter("@until", until);
    if slots.is_all() { query } else { query.with_parameter("@slots", slots.iter().collect::<Vec<_>>()) }
}

/// Work items of activities of an execution, in one partition.
pub(crate) fn work_of_activities(execution_id: u64, activities: &[u64]) -> Query {
    Query::new(
        "SELECT VALUE c.id FROM c WHERE c.type = 'worker_queue' AND c.executionId = @execution AND \
         ARRAY_CONTAINS(@activities, c.activityId)",
    )
    .with_parameter("@execution", execution_id)
    .with_parameter("@activities", activities)
}

/// What a large turn has staged, in one partition.
pub(crate) fn staged() -> Query {
    Query::new("SELECT * FROM c WHERE c.type = 'staged'")
}

/// All documents of a type, in one partition.
pub(crate) fn all_of_type(document_type: &str) -> Query {
    Query::new("SELECT * FROM c WHERE c.type = @type").with_parameter("@type", document_type)
}

/// Ids of the history documents of an execution from an event on, in one partition.
pub(crate) fn history_from(execution_id: u64, event_id: u64) -> Query {
    Query::new(
        "SELECT VALUE c.id FROM c WHERE c.type = 'history' AND c.executionId = @execution AND c.eventId >= @event",
    )
    .with_parameter("@execution", execution_id)
    .with_parameter("@event", event_id)
}

/// Messages to other instances, and large turns, that were left behind before a time.
pub(crate) fn left_behind(before: u64, limit: usize) -> Query {
    Query::new(format!(
        "SELECT TOP {limit} * FROM c WHERE (c.type = 'outbox_intent' OR c.type = 'release') AND c.createdAt < @before"
    ))
    .with_parameter("@before", before)
}

/// Instances whose deletion was left behind before a time.
pub(crate) fn half_deleted(before: u64, limit: usize) -> Query {
    Query::new(format!(
        "SELECT TOP {limit} VALUE c.instanceId FROM c WHERE c.type = 'instance' AND c.status = 'Deleting' AND \
         c.updatedAt < @before"
    ))
    .with_parameter("@before", before)
}
