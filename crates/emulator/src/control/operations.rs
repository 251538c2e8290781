//! `/operations`, and the splits and merges that become one.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::request::EmptyBody;
use super::response::json_with;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use engine::account::operations::{Change, Operation, OperationError, Phase, Progression, Subject};

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/{range}/split",
        about: r#"split a range in the middle or at {"epk":"1F…"}, after {"lockDurationMs":2000} of 410/1007, or step by step with {"progressionMode":"manual"}"#,
        handle: split,
    },
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/merge",
        about: r#"merge neighbours {"partitionIds":[1,2]}; the rest as for a split"#,
        handle: merge,
    },
    Route {
        method: Method::GET,
        path: "/operations/{operation}",
        about: "how a split or merge is: Preparing, Swapping, Succeeded or Failed",
        handle: show,
    },
    Route {
        method: Method::POST,
        path: "/operations/{operation}/advance",
        about: "carry a manual one on to its next phase",
        handle: advance,
    },
    Route {
        method: Method::POST,
        path: "/operations/{operation}/cancel",
        about: "call it off; its ranges serve as before",
        handle: cancel,
    },
];

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    #[default]
    Midpoint,
    Epk,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Split {
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    epk: Option<String>,
    #[serde(default)]
    progression_mode: Progression,
    #[serde(default)]
    lock_duration_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Merge {
    #[serde(alias = "ranges")]
    partition_ids: Vec<u32>,
    #[serde(default)]
    progression_mode: Progression,
    #[serde(default)]
    lock_duration_ms: Option<u64>,
}

/// An operation, for people and scripts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationView {
    operation_id: String,
    kind: &'static str,
    status: &'static str,
    phase: Phase,
    database: String,
    container: String,
    /// The ranges that are no longer there.
    retired: Vec<u32>,
    /// Those in their place.
    ranges: Vec<u32>,
    /// The same, of a split.
    children: Vec<u32>,
    /// The same, of a merge.
    into: Option<u32>,
    error: Option<String>,
}

fn split(control: &Control, ask: &ControlRequest) -> ControlResult {
    let Split { mode, epk, progression_mode, lock_duration_ms } = ask.body()?;
    match (mode, &epk) {
        (Some(Mode::Midpoint), Some(_)) => {
            return Err(ControlError::bad_request("mode 'midpoint' takes no 'epk'; leave one of them out"));
        }
        (Some(Mode::Epk), None) => {
            return Err(ControlError::bad_request("mode 'epk' needs an 'epk': hexadecimal digits"));
        }
        _ => {}
    }
    let change = Change::Split { range: range(ask)?, at: epk };
    begin(control, ask, change, progression_mode, lock_duration_ms)
}

fn merge(control: &Control, ask: &ControlRequest) -> ControlResult {
    let Merge { partition_ids, progression_mode, lock_duration_ms } = ask.body()?;
    begin(control, ask, Change::Merge { ranges: partition_ids }, progression_mode, lock_duration_ms)
}

fn begin(
    control: &Control,
    ask: &ControlRequest,
    change: Change,
    progression: Progression,
    lock_ms: Option<u64>,
) -> ControlResult {
    let (database, container) = (ask.segment(0).to_owned(), ask.segment(1).to_owned());
    let subject = Subject { database, container, change };
    let begun = control.operations.begin(subject, progression, lock_ms.map(Duration::from_millis))?;
    json_with(StatusCode::ACCEPTED, &operation_view(&begun))
}

fn show(control: &Control, ask: &ControlRequest) -> ControlResult {
    ask.allow_parameters(&[])?;
    super::json(&operation_view(&control.operations.get(ask.segment(0))?))
}

fn advance(control: &Control, ask: &ControlRequest) -> ControlResult {
    let EmptyBody {} = ask.body()?;
    super::json(&operation_view(&control.operations.advance(ask.segment(0))?))
}

fn cancel(control: &Control, ask: &ControlRequest) -> ControlResult {
    let EmptyBody {} = ask.body()?;
    super::json(&operation_view(&control.operations.cancel(ask.segment(0))?))
}

fn operation_view(operation: &Operation) -> OperationView {
    let is_split = matches!(operation.subject.change, Change::Split { .. });
    let made = &operation.made;
    OperationView {
        operation_id: operation.id.to_string(),
        kind: if is_split { "split" } else { "merge" },
        status: match operation.phase {
            Phase::Preparing | Phase::Swapping => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
        },
        phase: operation.phase,
        database: operation.subject.database.clone(),
        container: operation.subject.container.clone(),
        retired: if operation.phase == Phase::Succeeded { operation.subject.ranges() } else { Vec::new() },
        ranges: made.clone(),
        children: if is_split { made.clone() } else { Vec::new() },
        into: made.first().copied().filter(|_| !is_split),
        error: operation.error.clone(),
    }
}

/// The partition key range that a path names.
pub(super) fn range(ask: &ControlRequest) -> Result<u32, ControlError> {
    let text = ask.segment(2);
    let expected = || format!("expected the id of a partition key range, a number, found '{text}'");
    text.parse().map_err(|_| ControlError::bad_request(expected()))
}

impl From<OperationError> for ControlError {
    fn from(error: OperationError) -> ControlError {
        let message = error.to_string();
        match error {
            OperationError::Partitions(error) => error.into(),
            OperationError::Unknown(_) => ControlError::not_found(message),
            _ => ControlError::conflict(message),
        }
    }
}
