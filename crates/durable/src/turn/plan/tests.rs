use std::sync::Arc;

use duroxide::providers::{ExecutionMetadata, WorkItem};
use duroxide::{Event, EventKind};

use super::*;
use crate::ids::TurnToken;
use crate::store::Versioned;

fn held(change: impl FnOnce(&mut InstanceDocument)) -> HeldTurn {
    let token = TurnToken::new("order");
    let mut document = InstanceDocument::new("order", 1000.0);
    document.lock(&token.text, 9000.0, &["m1", "outbox:m2"]);
    change(&mut document);
    HeldTurn {
        token,
        version: Versioned { document, etag: "e".to_owned() },
        history: Some(Arc::default()),
        key_values: Arc::default(),
        locked_at: 0.0,
        ended: false,
    }
}

fn ack(execution_id: u64, events: Vec<EventKind>) -> Ack {
    let history_delta = events
        .into_iter()
        .enumerate()
        .map(|(at, kind)| Event::with_event_id(at as u64 + 1, "order", execution_id, None, kind))
        .collect();
    Ack {
        execution_id,
        history_delta,
        worker_items: Vec::new(),
        orchestrator_items: Vec::new(),
        metadata: ExecutionMetadata::default(),
        cancelled: Vec::new(),
    }
}

fn continued() -> EventKind {
    EventKind::OrchestrationContinuedAsNew { input: "x".to_owned() }
}

fn planned(held: &HeldTurn, ack: &Ack) -> AckPlan {
    let mut time = 5000.0;
    plan(held, ack, 5000.0, || {
        time += 1.0;
        time
    })
    .expect("a plan")
}

#[test]
fn a_turn_releases_its_lock_and_forgets_its_messages() {
    let plan = planned(&held(|_| {}), &ack(1, vec![continued()]));
    assert_eq!(plan.processed, ["m1", "outbox:m2"]);
    assert_eq!((plan.instance.turns, plan.instance.last_event_id), (1, 1));
    assert!(plan.instance.lock_token.is_none() && plan.instance.attempts.is_empty());
    assert_eq!(plan.instance.status.as_deref(), Some("Running"));
    assert!(plan.earlier_execution.is_none());
}

#[test]
fn messages_to_other_instances_go_through_the_outbox_with_ids_of_their_own() {
    let mut ack = ack(1, Vec::new());
    for instance in ["order", "child", "child"] {
        ack.orchestrator_items
            .push(WorkItem::CancelInstance { instance: instance.to_owned(), reason: "r".to_owned() });
    }
    let plan = planned(&held(|_| {}), &ack);
    assert_eq!(plan.messages.len(), 1);
    let ids: Vec<&str> = plan.intents.iter().map(|intent| intent.payload.id.as_str()).collect();
    assert_eq!(ids, ["outbox:order:1000:1:0", "outbox:order:1000:1:1"]);
    assert_eq!(plan.intents[0].id, "intent:order:1000:1:0");
}

#[test]
fn a_timer_is_visible_when_it_fires() {
    let mut ack = ack(1, Vec::new());
    let instance = "order".to_owned();
    ack.orchestrator_items.push(WorkItem::TimerFired {
        instance,
        execution_id: 1,
        id: 2,
        fire_at_ms: 77_000,
    });
    assert_eq!(planned(&held(|_| {}), &ack).messages[0].visible_at, 77_000.0);
}

#[test]
fn a_new_execution_follows_the_one_before() {
    let held = held(|document| {
        document.turns = 3;
        document.last_event_id = 9;
        document.history_events = 9;
        document.status = Some("ContinuedAsNew".to_owned());
    });
    let plan = planned(&held, &ack(2, vec![continued()]));
    let earlier = plan.earlier_execution.expect("execution 1");
    assert_eq!((earlier.execution_id, earlier.history_events), (1, 9));
    assert_eq!((plan.instance.current_execution_id, plan.instance.history_events), (2, 1));
    assert_eq!(plan.history[0].id, "order:history:2:1");
}

#[test]
fn an_event_that_exists_is_refused() {
    let held = held(|document| document.last_event_id = 1);
    let error = plan(&held, &ack(1, vec![continued()]), 0.0, || 0.0).expect_err("event 1 exists");
    assert!(error.to_string().contains("event 1 of execution 1"), "{error}");
}

#[test]
fn large_events_take_documents_of_their_own_and_too_large_ones_are_refused() {
    let event = |size: usize| EventKind::OrchestrationCompleted { output: "x".repeat(size) };
    let plan = planned(&held(|_| {}), &ack(1, vec![event(200 << 10), event(200 << 10), event(10)]));
    assert_eq!(plan.history.iter().map(|part| part.event_data.len()).collect::<Vec<_>>(), [1, 2]);
    let too_large = ack(1, vec![event(2 << 20)]);
    let error = super::plan(&held(|_| {}), &too_large, 0.0, || 0.0).expect_err("too large");
    assert!(error.to_string().contains("event 1 of instance \"order\" has"), "{error}");
}

#[test]
fn the_key_value_store_is_written_when_an_execution_ends() {
    let set = EventKind::KeyValueSet { key: "k".into(), value: "v".into(), last_updated_at_ms: 1 };
    let mut running = ack(1, vec![set.clone()]);
    assert!(planned(&held(|_| {}), &running).key_values.is_empty());
    running.metadata.status = Some("Completed".to_owned());
    let plan =
        planned(&held(|document| (document.kv_execution_id, document.kv_documents) = (7, 1)), &running);
    assert_eq!(plan.key_values[0].values["k"].value, "v");
    assert_eq!((plan.instance.kv_execution_id, plan.instance.kv_documents), (1, 1));
    assert_eq!(plan.old_key_values, ["order:kv:7:0"]);
}
