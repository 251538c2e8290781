//! `/faults`: the rules of fault injection.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use crate::faults::{FaultError, FaultRule};

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/faults",
        about: "the rules in force and those that ended, with what they struck",
        handle: list,
    },
    Route {
        method: Method::POST,
        path: "/faults",
        about: "add a rule, or replace the one with the same id; takes {\"match\", \"effect\", \"for\", …}",
        handle: add,
    },
    Route { method: Method::DELETE, path: "/faults", about: "remove every rule", handle: clear },
    Route {
        method: Method::POST,
        path: "/faults/seed",
        about: "start chance anew; takes {\"seed\": 7}",
        handle: seed,
    },
    Route { method: Method::GET, path: "/faults/{id}", about: "one rule", handle: show },
    Route { method: Method::DELETE, path: "/faults/{id}", about: "remove one rule", handle: remove },
];

fn list(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    super::json(&json!({ "seed": control.faults.seed(), "rules": control.faults.list() }))
}

fn add(control: &Control, request: &ControlRequest) -> ControlResult {
    let rule: FaultRule = request.body()?;
    let id = control.faults.add(rule)?;
    rule_view(control, &id)
}

fn show(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    rule_view(control, request.segment(0))
}

fn rule_view(control: &Control, id: &str) -> ControlResult {
    super::json(&control.faults.get(id).ok_or_else(|| unknown_rule(id))?)
}

fn remove(control: &Control, request: &ControlRequest) -> ControlResult {
    let id = request.segment(0);
    if !control.faults.remove(id)? {
        return Err(unknown_rule(id));
    }
    super::json(&json!({ "removed": id }))
}

fn clear(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    super::json(&json!({ "removed": control.faults.clear()? }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    seed: u64,
}

fn seed(control: &Control, request: &ControlRequest) -> ControlResult {
    let Seed { seed } = request.body()?;
    control.faults.set_seed(seed);
    super::json(&json!({ "seed": seed }))
}

fn unknown_rule(id: &str) -> ControlError {
    ControlError::not_found(format!("there is no rule '{id}'; GET /faults lists those there are"))
}

impl From<FaultError> for ControlError {
    fn from(error: FaultError) -> ControlError {
        match error {
            FaultError::Rule(error) => ControlError::bad_request(error.to_string()),
            FaultError::Region(error) => ControlError::from(error),
            FaultError::Port(error) => ControlError::conflict(error.to_string()),
        }
    }
}
