//! `peri fault`: adds, lists and removes fault rules.

use std::io::Read as _;

use control_client::escape;
use emulator::faults::{ConnectionEffect, Delayed, FaultEffect, FaultRule, Probability};
use serde_json::{Value, json};

use crate::arguments::{CloseTime, Fault, FaultAction, RequestFilter};
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::Table;

/// The longest rule that is read from a file.
const RULE_BYTES_MAX: u64 = 1024 * 1024;

/// Runs the command `peri fault`.
pub(crate) fn run(fault: &Fault) -> Result<(), CommandError> {
    let port = ControlPort::of(&fault.control)?;
    match &fault.action {
        FaultAction::List => {
            let response = port.get("/faults")?;
            port.show(&response, rules_text);
        }
        FaultAction::Rm { id } => {
            let response = port.delete(&format!("/faults/{}", escape(id)))?;
            port.show(&response, |_| format!("removed '{id}'"));
        }
        FaultAction::Clear => {
            let response = port.delete("/faults")?;
            port.show(&response, |response| match response["removed"].as_u64() {
                Some(1) => "removed 1 rule".to_owned(),
                count => format!("removed {} rules", count.unwrap_or_default()),
            });
        }
        FaultAction::Seed { seed } => {
            let response = port.post("/faults/seed", &json!({ "seed": seed }))?;
            port.show(&response, |_| format!("the seed is {seed}, and all rules count from 0"));
        }
        FaultAction::Add { file } => add(&port, &read(file)?)?,
        action => add(&port, &rule(action))?,
    }
    Ok(())
}

fn add(port: &ControlPort, rule: &impl serde::Serialize) -> Result<(), CommandError> {
    let response = port.post("/faults", rule)?;
    port.show(&response, |response| table(std::slice::from_ref(response)).to_string());
    Ok(())
}

/// Reads a rule from a file. The account checks it.
fn read(file: &str) -> Result<Value, CommandError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        CommandError::usage(format!("cannot read a rule from '{file}': {error}"))
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

/// The rule of the command line. Commands that add no rule give one without effect.
fn rule(action: &FaultAction) -> FaultRule {
    let mut effect = FaultEffect::default();
    let filter = match action {
        FaultAction::Status { status, sub_status, retry_after, message, delay, filter } => {
            effect.status = Some(*status);
            effect.sub_status = *sub_status;
            effect.retry_after = *retry_after;
            effect.message.clone_from(message);
            effect.delay = *delay;
            filter
        }
        FaultAction::Delay { delay, delay_response, filter } => {
            effect.delay = Some(*delay);
            effect.delayed = if *delay_response { Delayed::Response } else { Delayed::Request };
            filter
        }
        FaultAction::Close { when, delay, filter } => {
            effect.connection = Some(match when {
                CloseTime::Before => ConnectionEffect::CloseBefore,
                CloseTime::After => ConnectionEffect::CloseAfter,
            });
            effect.delay = *delay;
            filter
        }
        FaultAction::Stall { filter } => {
            effect.connection = Some(ConnectionEffect::Stall);
            filter
        }
        FaultAction::GoAway { filter } => {
            effect.connection = Some(ConnectionEffect::GoAway);
            filter
        }
        FaultAction::List
        | FaultAction::Add { .. }
        | FaultAction::Rm { .. }
        | FaultAction::Clear
        | FaultAction::Seed { .. } => return FaultRule::new(effect),
    };
    with_filter(FaultRule::new(effect), filter)
}

/// Adds the filter and the schedule of the command line to a rule.
fn with_filter(mut rule: FaultRule, requests: &RequestFilter) -> FaultRule {
    rule.id.clone_from(&requests.id);
    rule.probability = requests.share.map(Probability);
    rule.schedule.every_nth = requests.every_nth;
    rule.schedule.hits_max = requests.count;
    rule.schedule.start_after = requests.after;
    rule.schedule.duration = requests.duration;
    let filter = &mut rule.filter;
    filter.operations.clone_from(&requests.operations);
    filter.resources.clone_from(&requests.resources);
    filter.regions.clone_from(&requests.regions);
    filter.database.clone_from(&requests.database);
    if let Some(path) = &requests.container {
        filter.database = Some(path.database.clone());
        filter.container = Some(path.container.clone());
    }
    filter.partition_key = requests.partition_key.as_deref().map(|key| match serde_json::from_str(key) {
        Ok(Value::Array(parts)) => Value::Array(parts),
        // Anything but an array is a string, also if it looks like a number.
        _ => Value::String(key.to_owned()),
    });
    filter.partition_key_range = requests.range;
    rule
}

fn rules_text(response: &Value) -> String {
    let rules = list(&response["rules"]);
    let seed = text(&response["seed"]);
    if rules.is_empty() {
        format!("no rules (seed {seed})")
    } else {
        format!("{}\n\nseed {seed}", table(rules))
    }
}

/// A row per rule.
fn table(rules: &[Value]) -> Table {
    let mut table = Table::new(&["RULE", "EFFECT", "MATCH", "STATE", "INJECTED"]);
    for rule in rules {
        table.row(vec![
            text(&rule["id"]),
            effect_text(&rule["effect"]),
            match_text(rule),
            state(rule),
            injected(rule),
        ]);
    }
    table
}

/// How many requests a rule applied to, or how many connections of each region.
fn injected(rule: &Value) -> String {
    match rule["connections"].as_object() {
        None => format!("{} of {}", text(&rule["struck"]), text(&rule["met"])),
        Some(by_region) => {
            let counts = by_region.iter().map(|(region, count)| format!("{region} {}", text(count)));
            format!("connections: {}", counts.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The effect of a rule as text: `delay 20ms, 429/3200`.
fn effect_text(effect: &Value) -> String {
    let mut words = Vec::new();
    if !effect["delay"].is_null() {
        let what = if effect["delayed"] == "answer" { "delay response" } else { "delay" };
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

/// The requests that a rule matches as text: `read, East US, share 0.3`.
fn match_text(rule: &Value) -> String {
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
    fn the_command_line_becomes_a_rule() {
        let filter = RequestFilter {
            operations: vec!["read".parse().unwrap()],
            container: Some("shop/carts".parse().unwrap()),
            partition_key: Some("7".to_owned()),
            share: Some(0.5),
            duration: Some("30s".parse().unwrap()),
            ..RequestFilter::default()
        };
        let action =
            FaultAction::Close { when: CloseTime::After, delay: Some("1ms..2ms".parse().unwrap()), filter };
        let expected = json!({
            "match": {"operations": ["read"], "database": "shop", "container": "carts", "partitionKey": "7"},
            "share": 0.5,
            "for": "30s",
            "effect": {"delay": {"from": "1ms", "to": "2ms"}, "connection": "closeAfter"},
        });
        assert_eq!(serde_json::to_value(rule(&action)).unwrap(), expected);
    }

    #[test]
    fn each_rule_is_shown_in_a_line() {
        let rules = [
            json!({"id": "storm", "match": {"operations": ["read", "query"], "regions": ["East US"]}, "share": 0.3,
                   "effect": {"delay": "5ms", "status": 429, "subStatus": 3200}, "state": "active",
                   "endsIn": "30s", "met": 10, "struck": 3}),
            json!({"id": "region:eastus", "effect": {"connection": "refuse"}, "match": {"regions": ["East US"]},
                   "state": "active", "met": 7, "struck": 7, "connections": {"East US": 7}}),
            json!({"id": "fault-1", "effect": {"connection": "closeBefore"}, "state": "ended", "met": 1, "struck": 1}),
        ];
        let expected = "\
RULE           EFFECT               MATCH                           STATE             INJECTED
storm          delay 5ms, 429/3200  read|query, East US, share 0.3  active, 30s left  3 of 10
region:eastus  refuse               East US                         active            connections: East US 7
fault-1        closeBefore          everything                      ended             1 of 1";
        assert_eq!(table(&rules).to_string(), expected);
        assert_eq!(rules_text(&json!({"seed": 7, "rules": []})), "no rules (seed 7)");
    }
}
