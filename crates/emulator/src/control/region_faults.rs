//! `/regions/{region}/…`: the switches of a whole region.

use http::Method;
use serde::Deserialize;

use super::request::EmptyBody;
use super::routes::Route;
use super::{Control, ControlRequest, ControlResult};
use crate::faults::{Delay, DownMode, FaultError, RegionControl, RegionFault};
use ::clock::HumanDuration;

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/regions/{region}/down",
        about: "take it down; takes {\"as\": \"refused|blackHole|unavailable\", \"for\": \"30s\"}",
        handle: down,
    },
    Route { method: Method::POST, path: "/regions/{region}/up", about: "end whatever is wrong", handle: up },
    Route {
        method: Method::POST,
        path: "/regions/{region}/drain",
        about: "answer 403/1008 while it is still listed; takes {\"for\"}",
        handle: drain,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/slow",
        about: "make requests wait; takes {\"by\": \"200ms\" or a distribution, \"for\"}",
        handle: slow,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/storm",
        about: "throttle with 429/3200; takes {\"retryAfter\", \"share\", \"for\"}",
        handle: storm,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/failover",
        about: "make it the region that writes",
        handle: fail_over,
    },
];

/// A body that says for how long, at most.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DurationBody {
    #[serde(rename = "for", default)]
    lasting: Option<HumanDuration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DownBody {
    #[serde(rename = "as", default)]
    mode: DownMode,
    #[serde(rename = "for", default)]
    lasting: Option<HumanDuration>,
}

fn down(control: &Control, ask: &ControlRequest) -> ControlResult {
    let DownBody { mode: how, lasting } = ask.body()?;
    inject(control, ask, RegionFault::Down(how), lasting)
}

fn drain(control: &Control, ask: &ControlRequest) -> ControlResult {
    let DurationBody { lasting } = ask.body()?;
    inject(control, ask, RegionFault::Drain, lasting)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowBody {
    by: Delay,
    #[serde(rename = "for", default)]
    lasting: Option<HumanDuration>,
}

fn slow(control: &Control, ask: &ControlRequest) -> ControlResult {
    let SlowBody { by, lasting } = ask.body()?;
    inject(control, ask, RegionFault::Slow(by), lasting)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StormBody {
    #[serde(default)]
    retry_after: Option<HumanDuration>,
    #[serde(default)]
    share: Option<f64>,
    #[serde(rename = "for", default)]
    lasting: Option<HumanDuration>,
}

fn storm(control: &Control, ask: &ControlRequest) -> ControlResult {
    let StormBody { retry_after, share, lasting } = ask.body()?;
    let retry_after = retry_after.map(|span| span.0);
    inject(control, ask, RegionFault::Storm { retry_after, share }, lasting)
}

fn inject(
    control: &Control,
    ask: &ControlRequest,
    trouble: RegionFault,
    lasting: Option<HumanDuration>,
) -> ControlResult {
    let switch = region_control(control, ask)?;
    let switch = match lasting {
        Some(HumanDuration(lasting)) => switch.lasting(lasting),
        None => switch,
    };
    switch.inject(trouble)?;
    super::regions::regions_view(control)
}

fn up(control: &Control, ask: &ControlRequest) -> ControlResult {
    let EmptyBody {} = ask.body()?;
    region_control(control, ask)?.up()?;
    super::regions::regions_view(control)
}

fn fail_over(control: &Control, ask: &ControlRequest) -> ControlResult {
    let EmptyBody {} = ask.body()?;
    region_control(control, ask)?.fail_over()?;
    super::regions::regions_view(control)
}

fn region_control(control: &Control, ask: &ControlRequest) -> Result<RegionControl, FaultError> {
    control.faults.region(ask.segment(0))
}
