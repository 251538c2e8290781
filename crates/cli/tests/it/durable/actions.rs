//! `peri durable cancel`, `raise`, `purge` and `retry`.

use std::time::Duration;

use durable::duroxide::OrchestrationStatus;
use durable::perihelion::Patch;
use emulator::clock::Stopwatch;
use serde_json::{Value, json};

use super::Workflows;
use crate::binary::text;

impl Workflows {
    fn status(&self, instance: &str) -> OrchestrationStatus {
        self.tokio.block_on(self.client.get_orchestration_status(instance)).expect("a status")
    }
}

#[test]
fn an_event_moves_an_instance_on_and_a_cancellation_ends_it() {
    let workflows = Workflows::started();
    for instance in ["order-1", "order-2"] {
        workflows.start(instance, "Order", "ada");
        workflows.waits_for(instance, "Approved");
    }
    assert_eq!(workflows.durable(&["raise", "order-1", "Approved", "\"yes\""]), "order-1: event raised");
    workflows.end("order-1");
    let OrchestrationStatus::Completed { output, .. } = workflows.status("order-1") else {
        panic!("not completed")
    };
    assert_eq!(output, "approved: \"yes\"");
    workflows.durable(&["cancel", "order-2", "--reason", "fraud"]);
    workflows.end("order-2");
    let OrchestrationStatus::Failed { details, .. } = workflows.status("order-2") else {
        panic!("not failed")
    };
    assert_eq!(details.display_message(), "canceled: fraud");
    workflows.account.fails_with(&["durable", "raise", "order-1", "Approved", "1"], 6, "no longer running");
    workflows.account.fails_with(&["durable", "cancel", "order-2"], 6, "no longer running");
}

#[test]
fn a_purge_deletes_what_has_ended_and_with_force_what_runs() {
    let workflows = Workflows::started();
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    for n in 0..3 {
        workflows.start(&format!("broken-{n}"), "Broken", "no");
        workflows.end(&format!("broken-{n}"));
    }
    let all = |workflows: &Workflows| workflows.json(&["list"]).len();
    workflows.account.fails_with(&["durable", "purge", "--yes"], 2, "--all");
    workflows.account.fails_with(&["durable", "purge", "--all"], 2, "--yes");
    let kept =
        workflows.account.expect(7, &["durable", "purge", "order-1", "order-1::sub::8", "broken-0", "--yes"]);
    assert!(text(&kept.stdout).starts_with("purged 1 instance, "), "{}", text(&kept.stdout));
    assert!(text(&kept.stderr).contains("is a sub-orchestration of \"order-1\""), "{}", text(&kept.stderr));
    assert_eq!(all(&workflows), 4);
    let purged = &workflows.json(&["purge", "--all", "--yes"])[0];
    assert_eq!(purged["instances"], 2);
    assert_eq!(all(&workflows), 2, "the order and its shipment");
    let purged = &workflows.json(&["purge", "--name", "Order", "--force", "--yes"])[0];
    assert_eq!(purged["instances"], 2);
    assert_eq!(all(&workflows), 0);
    workflows.account.fails_with(&["durable", "show", "order-1"], 6, "there is no instance");
}

/// A message of a release that this one does not know.
fn unknown_message(instance: &str) -> Value {
    let slot = durable::dispatch_slot(instance);
    json!({
        "id": "strange", "instanceId": instance, "type": "orch_queue", "schemaVersion": 1, "dispatchSlot": slot,
        "visibleAt": 1.0, "enqueuedAt": 1.0, "workItem": { "Unheard": { "name": "of" } },
    })
}

#[test]
fn a_message_that_was_set_aside_is_found_and_comes_back() {
    let workflows = Workflows::started();
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    workflows.create("order-1", &unknown_message("order-1"));
    let is_quarantined = || {
        let document = workflows.document("order-1", "strange").expect("it stays");
        document["type"] == "quarantined"
    };
    for _ in 0..200 {
        if is_quarantined() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let why = workflows.durable(&["why", "order-1"]);
    assert!(why.contains("A message (Unheard) cannot be read and was set aside"), "{why}");
    assert!(why.lines().nth(1).is_some_and(|line| line.starts_with('!')), "problems come first: {why}");
    // As if a release was installed that knows the message.
    let raised =
        json!({ "ExternalRaised": { "instance": "order-1", "name": "Approved", "data": "at last" } });
    workflows.patch("order-1", "strange", Patch::new().set("/workItem", raised));
    let planned = &workflows.json(&["retry", "--dry-run"])[0];
    assert_eq!((&planned["action"], &planned["subject"]), (&json!("restoreQuarantined"), &json!("strange")));
    assert!(is_quarantined());
    assert!(workflows.json(&["retry", "--id", "another"]).is_empty());
    assert_eq!(workflows.json(&["retry", "--id", "order-1"])[0]["result"], "done");
    workflows.end("order-1");
    let OrchestrationStatus::Completed { output, .. } = workflows.status("order-1") else {
        panic!("not completed")
    };
    assert_eq!(output, "approved: at last");
}

#[test]
fn a_retry_releases_expired_locks_only() {
    let mut workflows = Workflows::started();
    for instance in ["order-1", "order-2"] {
        workflows.start(instance, "Order", "ada");
        workflows.waits_for(instance, "Approved");
    }
    workflows.stop_runtime();
    for (instance, until) in [("order-1", 1e12), ("order-2", 9e12)] {
        let lock = Patch::new()
            .set("/lockToken", format!("0815@web-7:4711|{instance}"))
            .set("/lockedUntil", until)
            .set("/attempts", json!({ "gone": 9 }));
        workflows.patch(instance, &format!("{instance}:instance"), lock);
        workflows.create(
            instance,
            &json!({
                "id": "work", "instanceId": instance, "type": "worker_queue", "schemaVersion": 1,
                "dispatchSlot": durable::dispatch_slot(instance), "visibleAt": until, "enqueuedAt": 5.0,
                "lockToken": format!("0815@web-7:4711|work|{instance}"), "lockedUntil": until, "attemptCount": 9,
                "executionId": 1, "activityId": 99, "workItem": { "ActivityExecute": { "instance": instance,
                    "execution_id": 1, "id": 99, "name": "charge", "input": "" } },
            }),
        );
    }
    let why = workflows.durable(&["why", "order-1"]);
    assert!(why.contains("Activity 99 (charge) was executed by web-7:4711, whose lock expired"), "{why}");
    let done = workflows.json(&["retry", "--rate", "100"]);
    let actions: Vec<_> =
        done.iter().map(|item| (item["instanceId"].as_str(), item["result"].as_str())).collect();
    assert_eq!(actions, [(Some("order-1"), Some("done")); 2], "{done:?}");
    let work = workflows.document("order-1", "work").expect("it waits");
    assert_eq!(
        (&work["attemptCount"], work["visibleAt"].as_f64(), work.get("lockToken")),
        (&json!(0), Some(5.0), None)
    );
    let instance = workflows.document("order-1", "order-1:instance").expect("it exists");
    assert_eq!((instance.get("lockToken"), instance.get("attempts")), (None, None));
    let locked = workflows.document("order-2", "work").expect("it is executed");
    assert_eq!(locked["attemptCount"], 9);
    let takes = |arguments: &[&str]| {
        let started = Stopwatch::start();
        workflows.json(arguments);
        started.elapsed()
    };
    // Two items at one per second take a second.
    for id in ["work", "more"] {
        let mut stuck = unknown_message("order-1");
        stuck["id"] = json!(format!("stuck-{id}"));
        stuck["type"] = json!("quarantined");
        workflows.create("order-1", &stuck);
    }
    assert!(takes(&["retry", "--rate", "1"]) >= Duration::from_secs(1));
}

#[test]
fn failed_instances_are_started_once_more_under_a_new_id() {
    let workflows = Workflows::started();
    workflows.start("broken-1", "Broken", "no money");
    workflows.end("broken-1");
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    workflows.durable(&["cancel", "order-1"]);
    workflows.end("order-1");
    assert!(workflows.json(&["retry"]).is_empty(), "only with --failed");
    let mut items = workflows.json(&["retry", "--failed"]);
    items.sort_by_key(|item| item["instanceId"].to_string());
    assert_eq!((&items[0]["subject"], &items[0]["result"]), (&json!("broken-1:retry:1"), &json!("done")));
    assert_eq!(items[1]["result"], "skipped: it was cancelled");
    workflows.end("broken-1:retry:1");
    let history = workflows.json(&["history", "broken-1:retry:1"]);
    assert_eq!(history[0]["input"], "no money");
    // The first has its successor; the successor has failed as well.
    let again = workflows.json(&["retry", "--failed", "--name", "Broken"]);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0]["subject"], "broken-1:retry:2");
}
