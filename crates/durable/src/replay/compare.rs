//! Compares what a turn has recorded with what it produces today, by the rules of duroxide's replay.

use duroxide::{ErrorDetails, Event, EventKind};

/// The reason of cancellations that duroxide records at the end of an execution, whatever the code does.
const AT_THE_END: &str = "orchestration_terminal";

/// A recorded and a produced event that are not the same. One is missing if the other side ends before.
pub(super) type Difference<'a> = (Option<&'a Event>, Option<&'a Event>);

/// How many events are the same, and the first that differs.
pub(super) fn first_difference<'a>(
    recorded: &'a [Event],
    produced: &'a [Event],
) -> (usize, Option<Difference<'a>>) {
    let mut produced: Vec<&Event> = produced.iter().collect();
    let mut same = 0;
    for event in recorded {
        if is_cleanup(&event.kind) {
            same += 1;
            continue;
        }
        let at = if matches!(event.kind, EventKind::KeyValueCleared { .. }) {
            // Older releases recorded them in any order.
            let run =
                produced.iter().take_while(|other| matches!(other.kind, EventKind::KeyValueCleared { .. }));
            run.clone().position(|other| is_same(event, other)).unwrap_or(0)
        } else {
            0
        };
        match produced.get(at) {
            Some(other) if is_same(event, other) => {
                produced.remove(at);
                same += 1;
            }
            other => return (same, Some((Some(event), other.copied()))),
        }
    }
    (same, produced.first().map(|extra| (None, Some(*extra))))
}

/// Whether duroxide, and not the code of the orchestration, has ended the execution with this event.
pub(super) fn is_end_by_runtime(kind: &EventKind) -> bool {
    match kind {
        EventKind::OrchestrationFailed { details } => !matches!(details, ErrorDetails::Application { .. }),
        _ => false,
    }
}

/// Whether the event belongs to the end of an execution that waits for nothing any more.
fn is_cleanup(kind: &EventKind) -> bool {
    match kind {
        EventKind::ActivityCancelRequested { reason }
        | EventKind::SubOrchestrationCancelRequested { reason }
        | EventKind::ExternalSubscribedCancelled { reason }
        | EventKind::QueueSubscriptionCancelled { reason } => reason == AT_THE_END,
        _ => false,
    }
}

fn is_same(recorded: &Event, produced: &Event) -> bool {
    use EventKind as E;
    let is_same_kind = match (&recorded.kind, &produced.kind) {
        // Both depend on the time at which the code runs.
        (E::TimerCreated { .. }, E::TimerCreated { .. }) => true,
        (E::KeyValueSet { key, value, .. }, E::KeyValueSet { key: other, value: other_value, .. }) => {
            key == other && value == other_value
        }
        (E::CustomStatusUpdated { .. }, E::CustomStatusUpdated { .. }) => true,
        (
            E::SubOrchestrationScheduled { name, input, .. },
            E::SubOrchestrationScheduled { name: other, input: other_input, .. },
        ) => name == other && input == other_input,
        (recorded, produced) => recorded == produced,
    };
    is_same_kind && recorded.source_event_id == produced.source_event_id
}
