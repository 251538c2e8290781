//! What an execution has waited for, and how long. Pure: events and the time are arguments.

use duroxide::{Event, EventKind};
use serde::Serialize;

/// What an execution has waited for, in the order in which the waits began. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Timeline {
    /// When the execution began.
    pub started_at: u64,
    /// When the execution ended; none if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// What it has waited for.
    pub spans: Vec<TimelineSpan>,
}

/// Something that an execution has waited for. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TimelineSpan {
    /// The event that has begun the wait.
    pub event_id: u64,
    /// What it is that the execution has waited for.
    pub kind: WaitKind,
    /// The name of the activity, orchestration or event; empty for timers.
    pub name: String,
    /// The instance of a sub-orchestration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_id: Option<String>,
    /// When a timer is to fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fires_at: Option<u64>,
    /// When the wait began.
    pub started_at: u64,
    /// When it ended; none if it goes on, or if the execution ended before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// How the wait ended.
    pub outcome: Outcome,
    /// The error of what failed, or the reason of what was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What it is that an execution waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WaitKind {
    /// An activity, which a worker executes.
    Activity,
    /// A timer of the execution.
    Timer,
    /// Another instance, which the execution has started.
    SubOrchestration,
    /// An event that is raised from outside.
    Event,
    /// A message in a queue of the instance.
    Queue,
}

impl WaitKind {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Activity => "activity",
            WaitKind::Timer => "timer",
            WaitKind::SubOrchestration => "sub-orchestration",
            WaitKind::Event => "event",
            WaitKind::Queue => "queue",
        }
    }
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// The wait goes on.
    Open,
    /// It ended with a result.
    Completed,
    /// It ended with an error.
    Failed,
    /// The execution no longer waits for it.
    Cancelled,
}

impl Timeline {
    /// The timeline of the events of one execution.
    pub fn new<'a>(events: impl IntoIterator<Item = &'a Event>) -> Timeline {
        let mut timeline = Timeline::default();
        let mut early = Vec::new();
        for event in events {
            timeline.add(event, &mut early);
        }
        timeline
    }

    /// What the execution waits for now.
    pub fn open(&self) -> impl Iterator<Item = &TimelineSpan> {
        self.spans.iter().filter(|span| self.ended_at.is_none() && span.outcome == Outcome::Open)
    }

    /// Adds an event; `early` are the events and messages that came before anything waited for them.
    fn add(&mut self, event: &Event, early: &mut Vec<(WaitKind, String)>) {
        let (at, source) = (event.timestamp_ms, event.source_event_id);
        match &event.kind {
            EventKind::OrchestrationStarted { .. } => self.started_at = at,
            EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationFailed { .. }
            | EventKind::OrchestrationContinuedAsNew { .. } => self.ended_at = Some(at),
            EventKind::ActivityScheduled { name, .. } => {
                self.begin(event, WaitKind::Activity, name);
            }
            EventKind::TimerCreated { fire_at_ms } => {
                self.begin(event, WaitKind::Timer, "").fires_at = Some(*fire_at_ms);
            }
            EventKind::SubOrchestrationScheduled { name, instance, .. } => {
                let child = duroxide::build_child_instance_id(&event.instance_id, instance);
                self.begin(event, WaitKind::SubOrchestration, name).instance_id = Some(child);
            }
            EventKind::ExternalSubscribed { name } => self.subscribe(event, WaitKind::Event, name, early),
            EventKind::QueueSubscribed { name } => self.subscribe(event, WaitKind::Queue, name, early),
            EventKind::ActivityCompleted { .. }
            | EventKind::SubOrchestrationCompleted { .. }
            | EventKind::TimerFired { .. } => self.end(source, at, Outcome::Completed, None),
            EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details } => {
                self.end(source, at, Outcome::Failed, Some(details.display_message()));
            }
            EventKind::ActivityCancelRequested { reason }
            | EventKind::SubOrchestrationCancelRequested { reason }
            | EventKind::ExternalSubscribedCancelled { reason }
            | EventKind::QueueSubscriptionCancelled { reason } => {
                self.end(source, at, Outcome::Cancelled, Some(reason.clone()));
            }
            EventKind::ExternalEvent { name, .. } => self.arrive(WaitKind::Event, name, at, early),
            EventKind::QueueEventDelivered { name, .. } => self.arrive(WaitKind::Queue, name, at, early),
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, kind: WaitKind, name: &str) -> &mut TimelineSpan {
        self.spans.push(TimelineSpan {
            event_id: event.event_id,
            kind,
            name: name.to_owned(),
            instance_id: None,
            fires_at: None,
            started_at: event.timestamp_ms,
            ended_at: None,
            outcome: Outcome::Open,
            error: None,
        });
        self.spans.last_mut().expect("it was just added")
    }

    fn end(&mut self, source: Option<u64>, at: u64, outcome: Outcome, error: Option<String>) {
        let span = self.spans.iter_mut().find(|span| Some(span.event_id) == source);
        if let Some(span) = span.filter(|span| span.outcome == Outcome::Open) {
            span.ended_at = Some(at);
            span.outcome = outcome;
            span.error = error;
        }
    }

    /// A subscription takes the oldest event of its name that came before, and otherwise waits for the next.
    fn subscribe(&mut self, event: &Event, kind: WaitKind, name: &str, early: &mut Vec<(WaitKind, String)>) {
        let span = self.begin(event, kind, name);
        if let Some(at) = early.iter().position(|(of, other)| *of == kind && other == name) {
            early.remove(at);
            span.ended_at = Some(event.timestamp_ms);
            span.outcome = Outcome::Completed;
        }
    }

    /// Events and messages name no subscription: they end the oldest that waits for their name.
    fn arrive(&mut self, kind: WaitKind, name: &str, at: u64, early: &mut Vec<(WaitKind, String)>) {
        let waiting = |span: &&mut TimelineSpan| {
            span.kind == kind && span.name == name && span.outcome == Outcome::Open
        };
        match self.spans.iter_mut().find(waiting) {
            Some(span) => {
                span.ended_at = Some(at);
                span.outcome = Outcome::Completed;
            }
            None => early.push((kind, name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u64, source: Option<u64>, kind: EventKind) -> Event {
        let mut event = Event::with_event_id(id, "order-1", 1, source, kind);
        event.timestamp_ms = id * 100;
        event
    }

    #[test]
    fn waits_have_a_beginning_and_an_end() {
        let scheduled = |name: &str| EventKind::ActivityScheduled {
            name: name.to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        let subscribed = || EventKind::ExternalSubscribed { name: "paid".to_owned() };
        let events = [
            event(2, None, scheduled("charge")),
            event(3, None, EventKind::TimerCreated { fire_at_ms: 900 }),
            event(4, None, subscribed()),
            event(5, None, subscribed()),
            event(6, Some(2), EventKind::ActivityCompleted { result: String::new() }),
            event(7, None, EventKind::ExternalEvent { name: "paid".to_owned(), data: String::new() }),
            event(8, Some(5), EventKind::ExternalSubscribedCancelled { reason: "race".to_owned() }),
        ];
        let timeline = Timeline::new(&events);
        let ends: Vec<_> = timeline.spans.iter().map(|span| (span.ended_at, span.outcome)).collect();
        assert_eq!(
            ends,
            [
                (Some(600), Outcome::Completed),
                (None, Outcome::Open),
                (Some(700), Outcome::Completed),
                (Some(800), Outcome::Cancelled),
            ]
        );
        assert_eq!(timeline.open().map(|span| span.event_id).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_message_may_come_before_its_subscription() {
        let delivered = EventKind::QueueEventDelivered { name: "q".to_owned(), data: String::new() };
        let events = [
            event(2, None, delivered),
            event(3, None, EventKind::QueueSubscribed { name: "q".to_owned() }),
            event(4, None, EventKind::QueueSubscribed { name: "q".to_owned() }),
        ];
        let timeline = Timeline::new(&events);
        assert_eq!(timeline.open().map(|span| span.event_id).collect::<Vec<_>>(), [4]);
    }
}
