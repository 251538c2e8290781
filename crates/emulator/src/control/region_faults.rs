//! `/regions/{region}/…`: faults of a whole region, and failover to it.

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

/// A body with an optional duration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DurationBody {
    #[serde(rename = "for", default)]
    duration: Option<HumanDuration>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DownBody {
    #[serde(rename = "as", default)]
    mode: DownMode,
    #[serde(rename = "for", default)]
    duration: Option<HumanDuration>,
}

fn down(control: &Control, request: &ControlRequest) -> ControlResult {
    let DownBody { mode: how, duration } = request.body()?;
    inject(control, request, RegionFault::Down(how), duration)
}

fn drain(control: &Control, request: &ControlRequest) -> ControlResult {
    let DurationBody { duration } = request.body()?;
    inject(control, request, RegionFault::Drain, duration)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowBody {
    by: Delay,
    #[serde(rename = "for", default)]
    duration: Option<HumanDuration>,
}

fn slow(control: &Control, request: &ControlRequest) -> ControlResult {
    let SlowBody { by, duration } = request.body()?;
    inject(control, request, RegionFault::Slow(by), duration)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StormBody {
    #[serde(default)]
    retry_after: Option<HumanDuration>,
    #[serde(default)]
    share: Option<f64>,
    #[serde(rename = "for", default)]
    duration: Option<HumanDuration>,
}

fn storm(control: &Control, request: &ControlRequest) -> ControlResult {
    let StormBody { retry_after, share, duration } = request.body()?;
    let retry_after = retry_after.map(|duration| duration.0);
    inject(control, request, RegionFault::Storm { retry_after, share }, duration)
}

fn inject(
    control: &Control,
    request: &ControlRequest,
    fault: RegionFault,
    duration: Option<HumanDuration>,
) -> ControlResult {
    let region = region_control(control, request)?;
    let region = match duration {
        Some(HumanDuration(duration)) => region.with_duration(duration),
        None => region,
    };
    region.inject(fault)?;
    super::regions::regions_view(control)
}

fn up(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    region_control(control, request)?.up()?;
    super::regions::regions_view(control)
}

fn fail_over(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    region_control(control, request)?.fail_over()?;
    super::regions::regions_view(control)
}

fn region_control(control: &Control, request: &ControlRequest) -> Result<RegionControl, FaultError> {
    control.faults.region(request.segment(0))
}
