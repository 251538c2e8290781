//! Checks that recorded histories still fit today's orchestration code, before that code meets them in production.
//!
//! An orchestration continues by running its code from the start over its history. Code that decides otherwise than the
//! code that recorded the history makes the instance fail. A [`ReplayCheck`] runs the code over a recorded history, one
//! turn after the other, and reports the first event that differs. Nothing is written and no activity runs: their results
//! are those of the history.
//!
//! ```
//! use perihelion_durable::replay::{ReplayCheck, history_from_json};
//! # use perihelion_durable::duroxide::{OrchestrationContext, OrchestrationRegistry};
//! # let registry = OrchestrationRegistry::builder()
//! #     .register("Greet", |_: OrchestrationContext, name: String| async move { Ok(format!("Hello, {name}!")) })
//! #     .build();
//! # let text = r#"[
//! #   {"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":1,"duroxide_version":"0.1.32",
//! #    "type":"OrchestrationStarted","name":"Greet","version":"1.0.0","input":"Ada","parent_instance":null,"parent_id":null},
//! #   {"event_id":2,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":2,"duroxide_version":"0.1.32",
//! #    "type":"OrchestrationCompleted","output":"Hello, Ada!"}]"#;
//!
//! let history = history_from_json(text)?;
//! let report = ReplayCheck::new(&registry).run(&history)?;
//! assert_eq!(report.difference, None);
//! # Ok::<(), perihelion_durable::replay::ReplayError>(())
//! ```
//!
//! What counts as a difference is what duroxide compares: times of timers, values of custom statuses and instance ids of
//! sub-orchestrations may change. Beyond that, an event too many or too few and another result are reported.
//!
//! Not part of a history, and so not checked: the key-value store at the start of an execution, unless
//! [`ReplayCheck::key_values`] brings it, and turns in which duroxide itself has ended the instance, because a message was
//! poisoned or code was not registered.

mod compare;
mod error;
mod recorded_turns;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use duroxide::providers::KvEntry;
use duroxide::runtime::OrchestrationHandler;
use duroxide::runtime::replay_engine::{ReplayEngine, TurnResult};
use duroxide::{AppErrorKind, ErrorDetails, Event, EventKind, OrchestrationRegistry};
use semver::Version;

use compare::{first_difference, is_end_by_runtime};
use recorded_turns::{RecordedTurn, recorded_turns};

pub use error::ReplayError;

/// Runs recorded histories against the orchestrations of a registry.
#[derive(Clone)]
pub struct ReplayCheck<'a> {
    registry: &'a OrchestrationRegistry,
    key_values: HashMap<String, KvEntry>,
}

/// The result of running a history against orchestration code.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayReport {
    /// The number of recorded turns that were run.
    pub turns: usize,
    /// The number of recorded events that the code has produced as well.
    pub events: usize,
    /// The first event that differs; none if the code fits the history.
    pub difference: Option<ReplayDifference>,
}

/// The first event of a history that today's code does not produce.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplayDifference {
    /// The number of the event.
    pub event_id: u64,
    /// What the history has; none if it ends before.
    pub recorded: Option<EventKind>,
    /// What the code does; none if it does nothing more.
    pub produced: Option<EventKind>,
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplayDifference { event_id, recorded, produced } = self;
        write!(f, "event {event_id} differs: the history has ")?;
        match recorded {
            Some(recorded) => write!(f, "{recorded:?}")?,
            None => write!(f, "no such event")?,
        }
        match produced {
            Some(produced) => write!(f, ", the code produces {produced:?}"),
            None => write!(f, ", the code produces nothing"),
        }
    }
}

impl<'a> ReplayCheck<'a> {
    /// A check against the orchestrations of this registry.
    pub fn new(registry: &'a OrchestrationRegistry) -> ReplayCheck<'a> {
        ReplayCheck { registry, key_values: HashMap::new() }
    }

    /// The key-value store of the instance when the execution began. Only needed if earlier executions have stored values
    /// that the code reads.
    pub fn key_values(mut self, entries: HashMap<String, KvEntry>) -> ReplayCheck<'a> {
        self.key_values = entries;
        self
    }

    /// Runs the code of the orchestration, in the version that the history names, over the history of one execution.
    ///
    /// The time grows with the square of the number of turns: each is run from the start, as it is in production.
    pub fn run(&self, history: &[Event]) -> Result<ReplayReport, ReplayError> {
        let orchestration = self.orchestration(history)?;
        let mut report = ReplayReport { turns: 0, events: 0, difference: None };
        for turn in recorded_turns(history) {
            if turn.produced(history).iter().any(|event| is_end_by_runtime(&event.kind)) {
                break;
            }
            let produced = self.produce(&orchestration, history, &turn);
            report.turns += 1;
            let (same, difference) = first_difference(turn.produced(history), &produced);
            report.events += same;
            if let Some((recorded, produced)) = difference {
                let last = history[..turn.produced_from].last().map_or(0, Event::event_id);
                let next = last + 1 + same as u64;
                report.difference = Some(ReplayDifference {
                    event_id: recorded.map_or(next, Event::event_id),
                    recorded: recorded.map(|event| event.kind.clone()),
                    produced: produced.map(|event| event.kind.clone()),
                });
                break;
            }
        }
        Ok(report)
    }

    fn orchestration(&self, history: &[Event]) -> Result<Orchestration, ReplayError> {
        let first = history.first().ok_or(ReplayError::Empty)?;
        let EventKind::OrchestrationStarted { name, version, input, .. } = &first.kind else {
            return Err(ReplayError::NotFromTheStart { event_id: first.event_id() });
        };
        let unknown = || ReplayError::NotRegistered { name: name.clone(), version: version.clone() };
        let number = Version::parse(version).map_err(|_| unknown())?;
        let handler = self.registry.resolve_handler_exact(name, &number).ok_or_else(unknown)?;
        Ok(Orchestration { handler, name: name.clone(), version: version.clone(), input: input.clone() })
    }

    /// Runs the code up to the end of a turn and returns the events that the turn produces.
    fn produce(&self, orchestration: &Orchestration, history: &[Event], turn: &RecordedTurn) -> Vec<Event> {
        let first = &history[0];
        let (instance, execution) = (first.instance_id.clone(), first.execution_id);
        let known = history[..turn.produced_from].to_vec();
        let mut engine = ReplayEngine::new(instance.clone(), execution, known)
            .with_persisted_history_len(turn.received_from)
            .with_kv_snapshot(self.key_values.clone());
        let Orchestration { handler, name, version, input } = orchestration;
        let result = engine.execute_orchestration(
            Arc::clone(handler),
            input.clone(),
            name.clone(),
            version.clone(),
            "replay check",
        );
        let mut produced = engine.history_delta().to_vec();
        if let Some(kind) = end_of_execution(result) {
            let id = produced
                .last()
                .or(history[..turn.produced_from].last())
                .map_or(1, |event| event.event_id() + 1);
            produced.push(Event::with_event_id(id, instance, execution, None, kind));
        }
        produced
    }
}

impl fmt::Debug for ReplayCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayCheck")
            .field("orchestrations", &self.registry.list_names())
            .finish_non_exhaustive()
    }
}

/// Code of an orchestration, and what it was started with.
struct Orchestration {
    handler: Arc<dyn OrchestrationHandler>,
    name: String,
    version: String,
    input: String,
}

/// The event that a result of a turn ends the execution with; none if it goes on.
fn end_of_execution(result: TurnResult) -> Option<EventKind> {
    match result {
        TurnResult::Continue => None,
        TurnResult::Completed(output) => Some(EventKind::OrchestrationCompleted { output }),
        TurnResult::Failed(details) => Some(EventKind::OrchestrationFailed { details }),
        TurnResult::ContinueAsNew { input, .. } => Some(EventKind::OrchestrationContinuedAsNew { input }),
        TurnResult::Cancelled(reason) => Some(EventKind::OrchestrationFailed {
            details: ErrorDetails::Application {
                kind: AppErrorKind::Cancelled { reason },
                message: String::new(),
                retryable: false,
            },
        }),
    }
}

/// Reads the history of an execution from JSON: an array of events, or one event after the other as
/// `peri durable history --json` prints them.
pub fn history_from_json(text: &str) -> Result<Vec<Event>, ReplayError> {
    let unreadable = |number: usize, error: &serde_json::Error| ReplayError::Unreadable {
        number,
        message: error.to_string(),
    };
    if text.trim_start().starts_with('[') {
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(text).map_err(|error| unreadable(1, &error))?;
        let read = |(at, row)| serde_json::from_value(row).map_err(|error| unreadable(at + 1, &error));
        return rows.into_iter().enumerate().map(read).collect();
    }
    let events = serde_json::Deserializer::from_str(text).into_iter::<Event>();
    events.enumerate().map(|(at, event)| event.map_err(|error| unreadable(at + 1, &error))).collect()
}
