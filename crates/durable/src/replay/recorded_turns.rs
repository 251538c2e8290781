//! Where the turns of a history begin and end.
//!
//! A turn records what it has received, then what the code has done about it. So whatever is received after the code has
//! done something belongs to the next turn. Turns in which the code did nothing are counted as part of the next: for the
//! code, they are the same.

use std::ops::Range;

use duroxide::{Event, EventKind};

/// A turn of a history, by positions of its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedTurn {
    /// The first event that the turn has received.
    pub(super) received_from: usize,
    /// The first event that the code has produced.
    pub(super) produced_from: usize,
    /// The end of the turn.
    end: usize,
}

impl RecordedTurn {
    /// The events that the code has produced in this turn.
    pub(super) fn produced<'a>(&self, history: &'a [Event]) -> &'a [Event] {
        &history[Range { start: self.produced_from, end: self.end }]
    }
}

/// The turns of a history, in order.
pub(super) fn recorded_turns(history: &[Event]) -> Vec<RecordedTurn> {
    let mut turns = Vec::new();
    let mut at = 0;
    while at < history.len() {
        let received = history[at..].iter().take_while(|event| is_received(&event.kind)).count();
        let produced_from = at + received;
        let produced = history[produced_from..].iter().take_while(|event| !is_received(&event.kind)).count();
        turns.push(RecordedTurn { received_from: at, produced_from, end: produced_from + produced });
        at = produced_from + produced;
    }
    turns
}

/// Whether an event came to the code, and not from it.
fn is_received(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::OrchestrationStarted { .. }
            | EventKind::ActivityCompleted { .. }
            | EventKind::ActivityFailed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::SubOrchestrationFailed { .. }
            | EventKind::ExternalEvent { .. }
            | EventKind::QueueEventDelivered { .. }
            | EventKind::OrchestrationCancelRequested { .. }
    )
}
