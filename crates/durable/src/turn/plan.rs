//! What a turn writes. Pure: the turn, what it has done and the time are arguments.

use duroxide::providers::{ExecutionMetadata, WorkItem};
use duroxide::{Event, EventKind};
use serde_json::value::to_raw_value;

use crate::clock::Millis;
use crate::documents::{
    ExecutionDocument, HistoryDocument, InstanceDocument, IntentDocument, KeyValuesDocument, MessageDocument,
    PinnedVersion, WorkDocument, is_terminal,
};
use crate::error::{Failure, Result};
use crate::held::HeldTurn;
use crate::ids;
use crate::key_values;

/// The largest size of a document of events, unless one event alone is larger. Larger documents cost more per byte.
const HISTORY_BYTES_MAX: usize = 256 << 10;
/// The largest event. The service takes documents of up to 2 MB.
const EVENT_BYTES_MAX: usize = 1_700_000;
/// Outputs beyond this size are not repeated in the document of the instance, which is written with every turn.
const OUTPUT_BYTES_MAX: usize = 32 << 10;

/// What a turn has done.
#[derive(Debug)]
pub(crate) struct Ack {
    pub(crate) execution_id: u64,
    pub(crate) history_delta: Vec<Event>,
    pub(crate) worker_items: Vec<WorkItem>,
    pub(crate) orchestrator_items: Vec<WorkItem>,
    pub(crate) metadata: ExecutionMetadata,
    /// Activities of this execution whose work items are to be deleted, by execution.
    pub(crate) cancelled: Vec<(u64, u64)>,
}

/// What a turn writes.
#[derive(Debug)]
pub(super) struct AckPlan {
    /// The document of the instance, without the lock.
    pub(super) instance: InstanceDocument,
    /// Messages that were processed.
    pub(super) processed: Vec<String>,
    pub(super) history: Vec<HistoryDocument>,
    pub(super) work: Vec<WorkDocument>,
    /// Messages to the instance itself.
    pub(super) messages: Vec<MessageDocument>,
    /// Messages to other instances.
    pub(super) intents: Vec<IntentDocument>,
    /// The execution that this turn's execution follows.
    pub(super) earlier_execution: Option<ExecutionDocument>,
    pub(super) key_values: Vec<KeyValuesDocument>,
    /// Documents of the key-value store that others replace.
    pub(super) old_key_values: Vec<String>,
}

/// Plans what a turn writes. `timestamp` is called for each thing that is enqueued.
pub(super) fn plan(
    held: &HeldTurn,
    ack: &Ack,
    now: Millis,
    mut timestamp: impl FnMut() -> Millis,
) -> Result<AckPlan> {
    let token = &held.token;
    let name = token.instance.as_str();
    let mut instance = held.version.document.clone();
    let processed = instance.locked_messages.clone();
    let earlier_execution = begin_execution(&mut instance, ack.execution_id, now);
    let history = append_history(&mut instance, ack)?;
    apply_metadata(&mut instance, &ack.metadata, ack.execution_id, now);
    apply_custom_status(&mut instance, &ack.history_delta);
    let (key_values, old_key_values) = merge_key_values(&mut instance, held, ack);

    instance.turns += 1;
    instance.last_turn = Some(token.text.clone());
    instance.staging = None;
    instance.forget_locked();
    instance.unlock(false);
    instance.updated_at = now as u64;

    let mut work = ack
        .worker_items
        .iter()
        .map(|item| WorkDocument::new(item, timestamp()))
        .collect::<Result<Vec<_>>>()?;
    // An activity that is scheduled and cancelled in one turn is never executed.
    work.retain(|work| {
        let activity = work.execution_id.zip(work.activity_id);
        activity.is_none_or(|activity| !ack.cancelled.contains(&activity))
    });
    if let Some(other) = work.iter().find(|work| work.instance_id != name) {
        return Err(Failure::invalid(format!(
            "a turn of instance {name:?} cannot schedule an activity of {:?}",
            other.instance_id
        )));
    }
    let (mut messages, mut intents) = (Vec::new(), Vec::new());
    for item in &ack.orchestrator_items {
        let target = target_instance(item)?;
        let visible_at = match item {
            WorkItem::TimerFired { fire_at_ms, .. } => Some(*fire_at_ms as Millis),
            _ => None,
        };
        let message = MessageDocument::new(target, item, timestamp(), visible_at)?;
        if target == name {
            messages.push(message);
        } else {
            ids::check_instance_id(target)?;
            // The time of creation tells an instance from an earlier one with its id.
            let key = format!("{name}:{}:{}:{}", instance.created_at, instance.turns, intents.len());
            intents.push(IntentDocument::new(name, key, message));
        }
    }
    Ok(AckPlan {
        instance,
        processed,
        history,
        work,
        messages,
        intents,
        earlier_execution,
        key_values,
        old_key_values,
    })
}

/// Makes an execution the current one, if it is newer. Returns the summary of the one before.
fn begin_execution(
    instance: &mut InstanceDocument,
    execution_id: u64,
    now: Millis,
) -> Option<ExecutionDocument> {
    if execution_id <= instance.current_execution_id {
        return None;
    }
    let earlier = (instance.turns > 0).then(|| ExecutionDocument::current(instance));
    instance.current_execution_id = execution_id;
    instance.status = None;
    instance.output = None;
    instance.pinned_duroxide_version = None;
    instance.started_at = now as u64;
    instance.completed_at = None;
    instance.last_event_id = 0;
    instance.history_events = 0;
    instance.history_bytes = 0;
    instance.carried_events = 0;
    earlier
}

/// Puts the new events into documents, and counts them.
fn append_history(instance: &mut InstanceDocument, ack: &Ack) -> Result<Vec<HistoryDocument>> {
    let documents = history_documents(&instance.instance_id, ack.execution_id, &ack.history_delta)?;
    if ack.execution_id == instance.current_execution_id {
        count_events(instance, &ack.history_delta, &documents)?;
    }
    Ok(documents)
}

/// Counts events that follow those of an instance.
pub(crate) fn count_events(
    instance: &mut InstanceDocument,
    events: &[Event],
    documents: &[HistoryDocument],
) -> Result<()> {
    let mut last = instance.last_event_id;
    for event in events {
        if event.event_id() <= last {
            return Err(Failure::invalid(format!(
                "event {} of execution {} of instance {:?} exists already: the history ends with event {last}",
                event.event_id(),
                instance.current_execution_id,
                instance.instance_id,
            )));
        }
        last = event.event_id();
        if let EventKind::OrchestrationStarted { carry_forward_events: Some(carried), .. } = &event.kind {
            instance.carried_events = carried.len() as u64;
        }
    }
    instance.last_event_id = last;
    instance.history_events += events.len() as u64;
    let bytes =
        |document: &HistoryDocument| document.event_data.iter().map(|data| data.get().len()).sum::<usize>();
    instance.history_bytes += documents.iter().map(bytes).sum::<usize>() as u64;
    Ok(())
}

/// Puts events into documents of a bounded size.
pub(crate) fn history_documents(
    instance: &str,
    execution_id: u64,
    events: &[Event],
) -> Result<Vec<HistoryDocument>> {
    let mut documents: Vec<HistoryDocument> = Vec::new();
    let mut bytes = 0;
    for event in events {
        if event.event_id() == 0 {
            return Err(Failure::invalid("event_id must be set by runtime"));
        }
        let data = to_raw_value(event)?;
        let size = data.get().len();
        if size > EVENT_BYTES_MAX {
            return Err(Failure::invalid(format!(
                "event {} of instance {instance:?} has {size} bytes, and {EVENT_BYTES_MAX} can be stored: pass large payloads \
                 by reference",
                event.event_id()
            )));
        }
        match documents.last_mut() {
            Some(document) if bytes + size <= HISTORY_BYTES_MAX => {
                bytes += size;
                document.event_data.push(data);
            }
            _ => {
                bytes = size;
                let mut document = HistoryDocument::new(instance, execution_id, event.event_id());
                document.event_data.push(data);
                documents.push(document);
            }
        }
    }
    Ok(documents)
}

fn apply_metadata(
    instance: &mut InstanceDocument,
    metadata: &ExecutionMetadata,
    execution_id: u64,
    now: Millis,
) {
    if let (Some(name), Some(version)) = (&metadata.orchestration_name, &metadata.orchestration_version) {
        if instance.orchestration_name.is_none() {
            // The parent never changes afterwards.
            instance.parent_instance_id.clone_from(&metadata.parent_instance_id);
        }
        instance.orchestration_name = Some(name.clone());
        instance.orchestration_version = Some(version.clone());
    }
    if let Some(pinned) = &metadata.pinned_duroxide_version {
        instance.pinned_duroxide_version = Some(PinnedVersion::from(pinned));
    }
    if execution_id != instance.current_execution_id {
        return;
    }
    match &metadata.status {
        Some(status) => {
            instance.output = metadata.output.clone().filter(|output| output.len() <= OUTPUT_BYTES_MAX);
            instance.completed_at = is_terminal(status).then_some(now as u64);
            instance.status = Some(status.clone());
        }
        None => {
            instance.status.get_or_insert_with(|| "Running".to_owned());
        }
    }
}

/// Takes over the last custom status among the new events.
fn apply_custom_status(instance: &mut InstanceDocument, events: &[Event]) {
    let last = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status } => Some(status.clone()),
        _ => None,
    });
    if let Some(status) = last {
        instance.custom_status = status;
        instance.custom_status_version += 1;
    }
}

/// The key-value store after an execution that ends with this turn, if the execution has changed it: its documents, and
/// those that they replace.
fn merge_key_values(
    instance: &mut InstanceDocument,
    held: &HeldTurn,
    ack: &Ack,
) -> (Vec<KeyValuesDocument>, Vec<String>) {
    let unchanged = (Vec::new(), Vec::new());
    let Some(history) = held.history.as_deref() else { return unchanged };
    let is_current = ack.execution_id == instance.current_execution_id;
    if !is_current || !instance.is_terminal() {
        return unchanged;
    }
    // The history of the turn is that of the execution before, if this turn begins a new one.
    let continues = held.version.document.current_execution_id == ack.execution_id;
    let earlier: &[Event] = if continues { history } else { &[] };
    let changes = || earlier.iter().chain(&ack.history_delta).filter(|event| key_values::is_change(event));
    if changes().next().is_none() {
        return unchanged;
    }
    let mut values = (*held.key_values).clone();
    key_values::apply(&mut values, changes());
    let documents = key_values::to_documents(&instance.instance_id, ack.execution_id, &values);
    let old = (0..instance.kv_documents)
        .map(|chunk| ids::key_values_document(&instance.instance_id, instance.kv_execution_id, chunk))
        .filter(|id| documents.iter().all(|document| document.id != *id))
        .collect();
    instance.kv_execution_id = if documents.is_empty() { 0 } else { ack.execution_id };
    instance.kv_documents = documents.len();
    (documents, old)
}

/// The instance that a message is for.
pub(crate) fn target_instance(item: &WorkItem) -> Result<&str> {
    Ok(match item {
        WorkItem::StartOrchestration { instance, .. }
        | WorkItem::ActivityCompleted { instance, .. }
        | WorkItem::ActivityFailed { instance, .. }
        | WorkItem::TimerFired { instance, .. }
        | WorkItem::ExternalRaised { instance, .. }
        | WorkItem::QueueMessage { instance, .. }
        | WorkItem::CancelInstance { instance, .. }
        | WorkItem::ContinueAsNew { instance, .. } => instance,
        WorkItem::SubOrchCompleted { parent_instance, .. }
        | WorkItem::SubOrchFailed { parent_instance, .. } => parent_instance,
        WorkItem::ActivityExecute { instance, .. } => {
            return Err(Failure::invalid(format!(
                "an activity of instance {instance:?} is no message to an orchestration"
            )));
        }
    })
}

#[cfg(test)]
mod tests;
