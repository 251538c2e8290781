//! `/faults`: the rules by which requests fail on purpose.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::table::Route;
use super::{Answer, Ask, Control, Problem};
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

fn list(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    super::json(&json!({ "seed": control.faults.seed(), "rules": control.faults.list() }))
}

fn add(control: &Control, ask: &Ask) -> Answer {
    let rule: FaultRule = ask.body()?;
    let id = control.faults.add(rule)?;
    shown(control, &id)
}

fn show(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    shown(control, ask.segment(0))
}

fn shown(control: &Control, id: &str) -> Answer {
    super::json(&control.faults.get(id).ok_or_else(|| unknown(id))?)
}

fn remove(control: &Control, ask: &Ask) -> Answer {
    let id = ask.segment(0);
    if !control.faults.remove(id)? {
        return Err(unknown(id));
    }
    super::json(&json!({ "removed": id }))
}

fn clear(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    super::json(&json!({ "removed": control.faults.clear()? }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    seed: u64,
}

fn seed(control: &Control, ask: &Ask) -> Answer {
    let Seed { seed } = ask.body()?;
    control.faults.set_seed(seed);
    super::json(&json!({ "seed": seed }))
}

fn unknown(id: &str) -> Problem {
    Problem::not_found(format!("there is no rule '{id}'; GET /faults lists those there are"))
}

impl From<FaultError> for Problem {
    fn from(error: FaultError) -> Problem {
        match error {
            FaultError::Rule(error) => Problem::bad_request(error.to_string()),
            FaultError::Region(error) => Problem::from(error),
            FaultError::Port(error) => Problem::conflict(error.to_string()),
        }
    }
}
