//! `peri region`: shows and changes the state of regions.

use control_client::escape;
use serde_json::{Value, json};

use crate::arguments::{DurationOption, Region, RegionAction};
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::Table;

/// Runs the command and shows the regions as they are afterwards.
pub(crate) fn run(region: &Region) -> Result<(), CommandError> {
    let port = ControlPort::of(&region.control)?;
    let replication = |name: &str, verb: &str| {
        port.post(&format!("/regions/{}/replication/{verb}", escape(name)), &json!({}))
    };
    let post = |name: &str, verb: &str, mut body: Value, option: Option<&DurationOption>| {
        if let Some(span) = option.and_then(|option| option.duration) {
            body["for"] = json!(span);
        }
        port.post(&format!("/regions/{}/{verb}", escape(name)), &body)
    };
    let response = match &region.action {
        RegionAction::List => port.get("/regions"),
        RegionAction::Down { name, how, duration } => {
            post(name, "down", json!({ "as": how }), Some(duration))
        }
        RegionAction::Up { name } => post(name, "up", json!({}), None),
        RegionAction::Drain { name, duration } => post(name, "drain", json!({}), Some(duration)),
        RegionAction::Slow { name, by, duration } => post(name, "slow", json!({ "by": by }), Some(duration)),
        RegionAction::Storm { name, retry_after, share, duration } => {
            let body = json!({ "retryAfter": retry_after, "share": share });
            post(name, "storm", body, Some(duration))
        }
        RegionAction::Add { name } => post(name, "add", json!({}), None),
        RegionAction::Failover { name } => post(name, "failover", json!({}), None),
        RegionAction::Lag { lag, from, to } => {
            port.post("/regions/lag", &json!({ "lag": lag.to_string(), "from": from, "to": to }))
        }
        RegionAction::Pause { name } => replication(name, "pause"),
        RegionAction::Resume { name } => replication(name, "resume"),
    }?;
    port.show(&response, |response| table(&response["regions"]).to_string());
    Ok(())
}

/// A table with a row for each region.
pub(super) fn table(regions: &Value) -> Table {
    let mut table = Table::new(&["REGION", "ENDPOINT", "STATE", "LAG"]);
    for region in list(regions) {
        table.row(vec![
            text(&region["name"]),
            text(&region["endpoint"]).trim_end_matches('/').to_owned(),
            state(region),
            lag(&region["lagFrom"]),
        ]);
    }
    table
}

fn state(region: &Value) -> String {
    let role = match (&region["removed"], &region["writes"]) {
        (Value::Bool(true), _) => "removed",
        (_, Value::Bool(true)) => "writes",
        _ => "reads",
    };
    let mut words = vec![role.to_owned()];
    if region["paused"] == true {
        words.push("paused".to_owned());
    }
    match (region["condition"].as_str(), region["endsIn"].as_str()) {
        (None | Some("up"), _) => {}
        (Some(condition), Some(left)) => words.push(format!("{condition} for {left}")),
        (Some(condition), None) => words.push(condition.to_owned()),
    }
    words.extend(region["problem"].as_str().map(str::to_owned));
    words.join(", ")
}

/// The lag of a region: one value if it is the same from all regions, otherwise one for each.
fn lag(from: &Value) -> String {
    let Some(from) = from.as_object() else { return String::new() };
    let mut all = from.values();
    match all.next() {
        None => String::new(),
        Some(first) if all.all(|other| other == first) => text(first),
        Some(_) => {
            let each = from.iter().map(|(name, lag)| format!("{} from {name}", text(lag)));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_shown_with_their_state_and_lag() {
        let regions = json!([
            { "name": "West US", "endpoint": "http://localhost:8081/", "writes": true, "paused": false,
              "lagFrom": { "East US": "0s", "North Europe": "0s" } },
            { "name": "East US", "endpoint": "http://localhost:8082/", "writes": false, "paused": true,
              "lagFrom": { "West US": "2s", "North Europe": "0s" } },
            { "name": "Gone", "endpoint": "http://localhost:8083/", "writes": false, "paused": false,
              "condition": "refused", "endsIn": "30s", "lagFrom": {} },
            { "name": "Left", "endpoint": "http://localhost:8084/", "writes": false, "paused": false,
              "removed": true, "condition": "draining", "lagFrom": {} },
            { "name": "Alone", "condition": "up", "endpoint": "http://localhost:1/", "writes": true, "paused": false, "lagFrom": {} },
        ]);
        let expected = "\
REGION   ENDPOINT               STATE                   LAG
West US  http://localhost:8081  writes                  0s
East US  http://localhost:8082  reads, paused           0s from North Europe, 2s from West US
Gone     http://localhost:8083  reads, refused for 30s
Left     http://localhost:8084  removed, draining
Alone    http://localhost:1     writes";
        assert_eq!(table(&regions).to_string(), expected);
    }
}
