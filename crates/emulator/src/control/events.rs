//! `/events`: what was done to the account, and what that caused.

use http::Method;
use serde::Serialize;
use serde_json::json;

use super::requests::earlier;
use super::routes::Route;
use super::{Control, ControlRequest, ControlResult};

pub(super) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/events",
    about: "what was done to the account and what it caused, newest first; ?limit=, ?kind=split, ?region=, ?after=number",
    handle: list,
}];

/// Events per response when the query sets no limit.
const LIMIT_DEFAULT: usize = 100;

/// One event, as the control port shows it.
#[derive(Debug, Serialize)]
struct EventView<'a> {
    number: u64,
    /// When it happened, by the wall clock.
    time: String,
    kind: &'static str,
    region: Option<&'a str>,
    message: &'a str,
}

fn list(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&["limit", "kind", "region", "after"])?;
    let limit = request.parse_parameter("limit")?.unwrap_or(LIMIT_DEFAULT);
    let after: u64 = request.parse_parameter("after")?.unwrap_or(0);
    let kind = request.parameter("kind");
    let topology = control.account.regions.current();
    let find = |name: &str| topology.find(name).map(|id| topology.region(id).name.clone());
    let region: Option<String> = request.parameter("region").map(find).transpose()?;
    let (newest, found) = control.account.events.latest(after, limit, |event| {
        kind.is_none_or(|kind| event.kind.name() == kind) && (region.is_none() || event.region == region)
    });
    let (wall_clock, uptime) = (control.clock.wall_clock(), control.clock.uptime());
    let views = found.iter().map(|event| EventView {
        number: event.number,
        time: earlier(wall_clock, uptime.saturating_sub(event.uptime)).to_string(),
        kind: event.kind.name(),
        region: event.region.as_deref(),
        message: &event.message,
    });
    super::json(&json!({ "newest": newest, "events": views.collect::<Vec<_>>() }))
}
