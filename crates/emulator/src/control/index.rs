//! `/`: what the control port can be asked.

use http::Method;
use serde_json::{Value, json};

use super::table::Route;
use super::{Answer, Ask, Control, GROUPS};

pub(super) const ROUTES: &[Route] =
    &[Route { method: Method::GET, path: "/", about: "this list", handle: list }];

fn list(_: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    let entry = |route: &Route| json!({ "route": route.name(), "about": route.about });
    let routes: Vec<Value> = GROUPS.iter().flat_map(|group| group.iter()).map(entry).collect();
    super::json(&json!({ "routes": routes }))
}
