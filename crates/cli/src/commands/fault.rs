//! `peri fault`: make a rule of what was typed, hand it over, and show what is in force.

use std::io::Read as _;

use emulator::faults::{ConnectionEffect, Delayed, FaultEffect, FaultRule, Probability};
use serde_json::{Value, json};

use crate::arguments::{Fault, FaultAction, Struck, When};
use crate::control::{ControlPort, escaped, list, text};
use crate::exit::Failure;
use crate::output::Table;

/// No rule is longer.
const RULE_BYTES_MAX: u64 = 1024 * 1024;

/// Does what was asked.
pub(crate) fn run(fault: &Fault) -> Result<(), Failure> {
    let port = ControlPort::of(&fault.control)?;
    match &fault.action {
        FaultAction::List => {
            let answer = port.get("/faults")?;
            port.show(&answer, listed);
        }
        FaultAction::Rm { id } => {
            let answer = port.delete(&format!("/faults/{}", escaped(id)))?;
            port.show(&answer, |_| format!("removed '{id}'"));
        }
        FaultAction::Clear => {
            let answer = port.delete("/faults")?;
            port.show(&answer, |answer| match answer["removed"].as_u64() {
                Some(1) => "removed 1 rule".to_owned(),
                count => format!("removed {} rules", count.unwrap_or_default()),
            });
        }
        FaultAction::Seed { seed } => {
            let answer = port.post("/faults/seed", &json!({ "seed": seed }))?;
            port.show(&answer, |_| format!("chance starts from {seed}, and every rule counts from 0"));
        }
        FaultAction::Add { file } => add(&port, &read(file)?)?,
        made => add(&port, &rule(made))?,
    }
    Ok(())
}

fn add(port: &ControlPort, rule: &impl serde::Serialize) -> Result<(), Failure> {
    let answer = port.post("/faults", rule)?;
    port.show(&answer, |answer| table(std::slice::from_ref(answer)).to_string());
    Ok(())
}

/// A rule as somebody wrote it. What is wrong with it, the account says.
fn read(file: &str) -> Result<Value, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read a rule from '{file}': {error}"))
            .hint("a rule is JSON, for example {\"effect\":{\"status\":503},\"for\":\"30s\"}")
    };
    let mut json = Vec::new();
    let taken = if file == "-" {
        std::io::stdin().lock().take(RULE_BYTES_MAX).read_to_end(&mut json)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(RULE_BYTES_MAX).read_to_end(&mut json))
    };
    taken.map_err(|error| unreadable(&error))?;
    serde_json::from_slice(&json).map_err(|error| unreadable(&error))
}

/// The rule that was typed. Commands that make none make one without effect.
fn rule(action: &FaultAction) -> FaultRule {
    let mut effect = FaultEffect::default();
    let struck = match action {
        FaultAction::Status { status, sub_status, retry_after, message, delay, struck } => {
            effect.status = Some(*status);
            effect.sub_status = *sub_status;
            effect.retry_after = *retry_after;
            effect.message.clone_from(message);
            effect.delay = *delay;
            struck
        }
        FaultAction::Delay { delay, answer, struck } => {
            effect.delay = Some(*delay);
            effect.delayed = if *answer { Delayed::Response } else { Delayed::Request };
            struck
        }
        FaultAction::Close { when, delay, struck } => {
            effect.connection = Some(match when {
                When::Before => ConnectionEffect::CloseBefore,
                When::After => ConnectionEffect::CloseAfter,
            });
            effect.delay = *delay;
            struck
        }
        FaultAction::Stall { struck } => {
            effect.connection = Some(ConnectionEffect::Stall);
            struck
        }
        FaultAction::GoAway { struck } => {
            effect.connection = Some(ConnectionEffect::GoAway);
            struck
        }
        FaultAction::List
        | FaultAction::Add { .. }
        | FaultAction::Rm { .. }
        | FaultAction::Clear
        | FaultAction::Seed { .. } => return FaultRule::new(effect),
    };
    aimed(FaultRule::new(effect), struck)
}

/// The rule, for the requests that were meant.
fn aimed(mut rule: FaultRule, struck: &Struck) -> FaultRule {
    rule.id.clone_from(&struck.id);
    rule.probability = struck.share.map(Probability);
    rule.schedule.every_nth = struck.every_nth;
    rule.schedule.hits_max = struck.count;
    rule.schedule.start_after = struck.after;
    rule.schedule.duration = struck.lasting;
    let filter = &mut rule.filter;
    filter.operations.clone_from(&struck.operations);
    filter.resources.clone_from(&struck.resources);
    filter.regions.clone_from(&struck.regions);
    filter.database.clone_from(&struck.database);
    if let Some(path) = &struck.container {
        filter.database = Some(path.database.clone());
        filter.container = Some(path.container.clone());
    }
    filter.partition_key = struck.partition_key.as_deref().map(|key| match serde_json::from_str(key) {
        Ok(Value::Array(parts)) => Value::Array(parts),
        // A word is a word, also when it looks like a number.
        _ => Value::String(key.to_owned()),
    });
    filter.partition_key_range = struck.range;
    rule
}

fn listed(answer: &Value) -> String {
    let rules = list(&answer["rules"]);
    let seed = text(&answer["seed"]);
    if rules.is_empty() {
        format!("no rules (seed {seed})")
    } else {
        format!("{}\n\nseed {seed}", table(rules))
    }
}

/// A row per rule.
fn table(rules: &[Value]) -> Table {
    let mut table = Table::new(&["RULE", "EFFECT", "MATCH", "STATE", "STRUCK"]);
    for rule in rules {
        table.row(vec![
            text(&rule["id"]),
            effect(&rule["effect"]),
            matched(rule),
            state(rule),
            format!("{} of {}", text(&rule["struck"]), text(&rule["met"])),
        ]);
    }
    table
}

/// `delay 20ms, 429/3200`.
fn effect(effect: &Value) -> String {
    let mut words = Vec::new();
    if !effect["delay"].is_null() {
        let what = if effect["delayed"] == "answer" { "hold answer" } else { "delay" };
        words.push(format!("{what} {}", delay(&effect["delay"])));
    }
    match (text(&effect["status"]), text(&effect["subStatus"])) {
        (status, _) if status.is_empty() => {}
        (status, sub) if sub.is_empty() => words.push(status),
        (status, sub) => words.push(format!("{status}/{sub}")),
    }
    words.extend(effect["connection"].as_str().map(str::to_owned));
    words.join(", ")
}

fn delay(delay: &Value) -> String {
    match (&delay["from"], &delay["p50"]) {
        (Value::Null, Value::Null) => text(delay),
        (Value::Null, p50) => format!("p50={} p99={}", text(p50), text(&delay["p99"])),
        (from, _) => format!("{}..{}", text(from), text(&delay["to"])),
    }
}

/// `read in East US, share 0.3`.
fn matched(rule: &Value) -> String {
    let filter = &rule["match"];
    let joined = |value: &Value| list(value).iter().map(text).collect::<Vec<_>>().join("|");
    let mut words: Vec<String> =
        ["operations", "resources", "methods", "regions"].iter().map(|name| joined(&filter[name])).collect();
    words.push(match (text(&filter["database"]), text(&filter["container"])) {
        (database, container) if container.is_empty() => database,
        (database, container) => format!("{database}/{container}"),
    });
    for (name, value) in [
        ("key", &filter["partitionKey"]),
        ("range", &filter["partitionKeyRange"]),
        ("share", &rule["share"]),
        ("every", &rule["everyNth"]),
        ("count", &rule["count"]),
    ] {
        if !value.is_null() {
            words.push(format!("{name} {}", text(value)));
        }
    }
    words.retain(|word| !word.is_empty());
    if words.is_empty() { "everything".to_owned() } else { words.join(", ") }
}

fn state(rule: &Value) -> String {
    let state = text(&rule["state"]);
    match (text(&rule["startsIn"]), text(&rule["endsIn"])) {
        (starts, _) if !starts.is_empty() => format!("starts in {starts}"),
        (_, ends) if !ends.is_empty() => format!("{state}, {ends} left"),
        _ => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_becomes_a_rule() {
        let struck = Struck {
            operations: vec!["read".parse().unwrap()],
            container: Some("shop/carts".parse().unwrap()),
            partition_key: Some("7".to_owned()),
            share: Some(0.5),
            lasting: Some("30s".parse().unwrap()),
            ..Struck::default()
        };
        let action =
            FaultAction::Close { when: When::After, delay: Some("1ms..2ms".parse().unwrap()), struck };
        let expected = json!({
            "match": {"operations": ["read"], "database": "shop", "container": "carts", "partitionKey": "7"},
            "share": 0.5,
            "for": "30s",
            "effect": {"delay": {"from": "1ms", "to": "2ms"}, "connection": "closeAfter"},
        });
        assert_eq!(serde_json::to_value(rule(&action)).unwrap(), expected);
    }

    #[test]
    fn rules_are_shown_in_a_line_each() {
        let rules = [
            json!({"id": "storm", "match": {"operations": ["read", "query"], "regions": ["East US"]}, "share": 0.3,
                   "effect": {"delay": "5ms", "status": 429, "subStatus": 3200}, "state": "active",
                   "endsIn": "30s", "met": 10, "struck": 3}),
            json!({"id": "fault-1", "effect": {"connection": "closeBefore"}, "state": "ended", "met": 1, "struck": 1}),
        ];
        let expected = "\
RULE     EFFECT               MATCH                           STATE             STRUCK
storm    delay 5ms, 429/3200  read|query, East US, share 0.3  active, 30s left  3 of 10
fault-1  closeBefore          everything                      ended             1 of 1";
        assert_eq!(table(&rules).to_string(), expected);
        assert_eq!(listed(&json!({"seed": 7, "rules": []})), "no rules (seed 7)");
    }
}
