//! `/operations`: splits and merges of partitions, and their progress.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::request::EmptyBody;
use super::response::json_with;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use engine::account::operations::{
    Operation, OperationError, OperationTarget, PartitionChange, Phase, ProgressionMode,
};

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/databases/{database}/containers/{container}/partitions/{range}/split",
        about: r#"split a range in the middle or at {"epk":"1F…"}, after {"lockDurationMs":2000} of 410/1007 to every request there, or step by step with {"progressionMode":"manual"}"#,
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
    progression_mode: ProgressionMode,
    #[serde(default)]
    lock_duration_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Merge {
    #[serde(alias = "ranges")]
    partition_ids: Vec<u32>,
    #[serde(default)]
    progression_mode: ProgressionMode,
    #[serde(default)]
    lock_duration_ms: Option<u64>,
}

/// A split or merge, as the control port shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct OperationView {
    operation_id: String,
    kind: &'static str,
    status: &'static str,
    phase: Phase,
    database: String,
    container: String,
    /// The ranges that were replaced.
    retired: Vec<u32>,
    /// The ranges that replace them.
    ranges: Vec<u32>,
    /// The new ranges of a split.
    children: Vec<u32>,
    /// The new range of a merge.
    into: Option<u32>,
    error: Option<String>,
}

fn split(control: &Control, request: &ControlRequest) -> ControlResult {
    let Split { mode, epk, progression_mode, lock_duration_ms } = request.body()?;
    match (mode, &epk) {
        (Some(Mode::Midpoint), Some(_)) => {
            return Err(ControlError::bad_request("mode 'midpoint' takes no 'epk'; leave one of them out"));
        }
        (Some(Mode::Epk), None) => {
            return Err(ControlError::bad_request("mode 'epk' needs an 'epk': hexadecimal digits"));
        }
        _ => {}
    }
    let change = PartitionChange::Split { range: range(request)?, at: epk };
    begin(control, request, change, progression_mode, lock_duration_ms)
}

fn merge(control: &Control, request: &ControlRequest) -> ControlResult {
    let Merge { partition_ids, progression_mode, lock_duration_ms } = request.body()?;
    begin(
        control,
        request,
        PartitionChange::Merge { ranges: partition_ids },
        progression_mode,
        lock_duration_ms,
    )
}

fn begin(
    control: &Control,
    request: &ControlRequest,
    change: PartitionChange,
    progression: ProgressionMode,
    lock_ms: Option<u64>,
) -> ControlResult {
    let (database, container) = (request.segment(0).to_owned(), request.segment(1).to_owned());
    let subject = OperationTarget { database, container, change };
    let operation = control.operations.begin(subject, progression, lock_ms.map(Duration::from_millis))?;
    json_with(StatusCode::ACCEPTED, &operation_view(&operation))
}

fn show(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    super::json(&operation_view(&control.operations.get(request.segment(0))?))
}

fn advance(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    super::json(&operation_view(&control.operations.advance(request.segment(0))?))
}

fn cancel(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    super::json(&operation_view(&control.operations.cancel(request.segment(0))?))
}

fn operation_view(operation: &Operation) -> OperationView {
    let is_split = matches!(operation.target.change, PartitionChange::Split { .. });
    let made = &operation.new_ranges;
    OperationView {
        operation_id: operation.id.to_string(),
        kind: if is_split { "split" } else { "merge" },
        status: match operation.phase {
            Phase::Preparing | Phase::Swapping => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
        },
        phase: operation.phase,
        database: operation.target.database.clone(),
        container: operation.target.container.clone(),
        retired: if operation.phase == Phase::Succeeded { operation.target.ranges() } else { Vec::new() },
        ranges: made.clone(),
        children: if is_split { made.clone() } else { Vec::new() },
        into: made.first().copied().filter(|_| !is_split),
        error: operation.error.clone(),
    }
}

/// The partition key range id in the path.
pub(super) fn range(request: &ControlRequest) -> Result<u32, ControlError> {
    let text = request.segment(2);
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
