//! `peri durable list`, `show`, `history` and `why`.

use durable::perihelion::Patch;
use serde_json::json;

use super::Workflows;
use crate::binary::text;

#[test]
fn instances_are_listed_by_status_name_parent_and_time() {
    let workflows = Workflows::started();
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    workflows.start("broken-1", "Broken", "no money");
    workflows.end("broken-1");
    let ids = |arguments: &[&str]| -> Vec<String> {
        let rows = workflows.json(&[&["list"], arguments].concat());
        let mut ids: Vec<String> =
            rows.iter().map(|row| row["instanceId"].as_str().expect("an id").to_owned()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&[]), ["broken-1", "order-1", "order-1::sub::8"]);
    assert_eq!(ids(&["--status", "failed"]), ["broken-1"]);
    assert_eq!(ids(&["--status", "running", "--status", "Failed"]), ["broken-1", "order-1"]);
    assert_eq!(ids(&["--name", "Ord"]), ["order-1"]);
    assert_eq!(ids(&["--id", "order-1:"]), ["order-1::sub::8"]);
    assert_eq!(ids(&["--parent", "order-1"]), ["order-1::sub::8"]);
    assert_eq!(ids(&["--created-since", "1h", "--updated-since", "1h", "--limit", "1"]), ["broken-1"]);
    assert!(ids(&["--created-since", "2100-01-01"]).is_empty());
    assert_eq!(ids(&["--ended-before", "0s", "--status", "completed"]), ["order-1::sub::8"]);
    let output = workflows.account.expect(0, &["durable", "list", "--name", "Broken"]);
    let shown = text(&output.stdout);
    assert!(shown.starts_with("INSTANCE"), "{shown}");
    assert!(shown.contains("Failed") && shown.contains("no money"), "{shown}");
    assert!(text(&output.stderr).starts_with("1 instance, "), "{}", text(&output.stderr));
}

#[test]
fn an_instance_that_no_runtime_takes_is_pending_and_why_says_so() {
    let workflows = Workflows::stopped();
    workflows.start("order-1", "Order", "ada");
    assert!(workflows.json(&["list"]).is_empty());
    let pending = &workflows.json(&["list", "--status", "pending"])[0];
    assert_eq!((&pending["instanceId"], &pending["orchestrationName"]), (&json!("order-1"), &json!("Order")));
    let why = workflows.durable(&["why", "order-1"]);
    assert!(why.contains("order-1 is Pending") && why.contains("StartOrchestration Order"), "{why}");
    assert!(workflows.durable(&["show", "order-1"]).contains("StartOrchestration"));
}

#[test]
fn show_has_the_family_sizes_and_the_timeline() {
    let workflows = Workflows::started();
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    let shown = workflows.durable(&["show", "order-1", "--timeline"]);
    for part in [
        "orchestration  Order 1.0.0",
        "waits for approval (set 2 times)",
        "1 key, 3 B",
        "sub-orchestrations\n",
        "order-1::sub::8",
        "activity charge",
        "timer 20 ms",
        "sub-orchestration Ship",
        "event Approved",
        "░→",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let json = &workflows.json(&["show", "order-1", "--timeline"])[0];
    assert_eq!(json["status"], "Running");
    assert_eq!(json["children"][0]["instanceId"], "order-1::sub::8");
    assert_eq!(json["keyValues"], json!({"keys": 1, "bytes": 3}));
    assert_eq!(json["timeline"]["spans"].as_array().map(Vec::len), Some(4));
    assert!(json["historyBytes"].as_u64() > Some(100), "{json}");
    let child = &workflows.json(&["show", "order-1::sub::8"])[0];
    assert_eq!(
        (&child["parentInstanceId"], &child["fullOutput"]),
        (&json!("order-1"), &json!("charged ada"))
    );
}

#[test]
fn histories_are_shown_by_execution_and_as_they_are_stored() {
    let workflows = Workflows::started();
    workflows.start("twice", "Twice", "first");
    workflows.end("twice");
    let first = workflows.json(&["history", "twice", "--execution", "1"]);
    let kinds: Vec<_> = first.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
    let current = workflows.durable(&["history", "twice"]);
    assert!(current.contains("OrchestrationCompleted") && current.contains("output=second"), "{current}");
    let executions = workflows.durable(&["show", "twice"]);
    assert!(executions.contains("ContinuedAsNew"), "{executions}");
    workflows.account.fails_with(&["durable", "history", "twice", "--execution", "9"], 6, "[1, 2]");
    // An event of a newer release does not hide the others.
    let document = workflows.document("twice", "twice:history:2:1").expect("a history document");
    let mut events = document["eventData"].as_array().expect("events").clone();
    events[0]["type"] = json!("Unheard");
    workflows.patch("twice", "twice:history:2:1", Patch::new().set("/eventData", events));
    let output = workflows.account.expect(1, &["durable", "history", "twice"]);
    assert!(text(&output.stdout).contains("Unheard (unreadable)"), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("OrchestrationCompleted"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("cannot be read"), "{}", text(&output.stderr));
}

#[test]
fn why_names_what_an_instance_waits_for_and_the_last_error() {
    let workflows = Workflows::started();
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    let why = workflows.durable(&["why", "order-1"]);
    assert!(why.contains("It waits for the event \"Approved\""), "{why}");
    assert!(why.contains("peri durable raise order-1 Approved DATA"), "{why}");
    workflows.start("broken-1", "Broken", "no money");
    workflows.end("broken-1");
    let why = workflows.durable(&["why", "broken-1"]);
    assert!(why.contains("It has failed: no money"), "{why}");
    assert!(why.contains("LAST ERROR") && why.contains("peri durable retry --failed"), "{why}");
    let failed = workflows.json(&["why", "broken-1"]);
    assert_eq!(failed[0]["lastError"]["message"], "no money");
}

#[test]
fn why_names_the_holder_of_a_lock_and_its_attempts() {
    let mut workflows = Workflows::started();
    workflows.start("order-1", "Order", "ada");
    workflows.waits_for("order-1", "Approved");
    workflows.stop_runtime();
    workflows.durable(&["raise", "order-1", "Approved", "yes"]);
    let message = workflows.json(&["why", "order-1"])[0]["messages"][0]["id"].clone();
    let message = message.as_str().expect("the event").to_owned();
    let lock = |until: f64| {
        Patch::new()
            .set("/lockToken", "0815@web-7:4711|order-1")
            .set("/lockedUntil", until)
            .set("/lockedMessages", [&message])
            .set("/attempts", json!({ message.as_str(): 4 }))
    };
    workflows.patch("order-1", "order-1:instance", lock(9e12));
    let why = workflows.durable(&["why", "order-1"]);
    assert!(why.contains("web-7:4711 processes a turn of it (attempt 4)"), "{why}");
    assert!(why.contains("in a turn") && why.contains("ExternalRaised"), "{why}");
    workflows.patch("order-1", "order-1:instance", lock(1e12));
    let why = workflows.durable(&["why", "order-1"]);
    assert!(why.contains("has not ended it; its lock expired"), "{why}");
    let lock = &workflows.json(&["why", "order-1"])[0]["lock"];
    assert_eq!(
        (&lock["holder"], &lock["expired"], &lock["attempts"]),
        (&json!("web-7:4711"), &json!(true), &json!(4))
    );
}
