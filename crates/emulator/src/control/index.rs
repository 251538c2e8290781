//! `/`: the list of routes.

use http::Method;
use serde_json::{Value, json};

use super::routes::Route;
use super::{Control, ControlRequest, ControlResult, ROUTE_GROUPS};

pub(super) const ROUTES: &[Route] =
    &[Route { method: Method::GET, path: "/", about: "this list", handle: list }];

fn list(_: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    let entry = |route: &Route| json!({ "route": route.name(), "about": route.about });
    let routes: Vec<Value> = ROUTE_GROUPS.iter().flat_map(|group| group.iter()).map(entry).collect();
    super::json(&json!({ "routes": routes }))
}
