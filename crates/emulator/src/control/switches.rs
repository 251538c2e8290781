//! `/regions/{region}/…`: the switches of a whole region.

use http::Method;
use serde::Deserialize;

use super::ask::Nothing;
use super::table::Route;
use super::{Answer, Ask, Control};
use crate::clock::Span;
use crate::faults::{Delay, DownMode, FaultError, RegionControl, RegionFault};

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
struct Lasting {
    #[serde(rename = "for", default)]
    lasting: Option<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DownBody {
    #[serde(rename = "as", default)]
    how: DownMode,
    #[serde(rename = "for", default)]
    lasting: Option<Span>,
}

fn down(control: &Control, ask: &Ask) -> Answer {
    let DownBody { how, lasting } = ask.body()?;
    set_fault(control, ask, RegionFault::Down(how), lasting)
}

fn drain(control: &Control, ask: &Ask) -> Answer {
    let Lasting { lasting } = ask.body()?;
    set_fault(control, ask, RegionFault::Drain, lasting)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowBody {
    by: Delay,
    #[serde(rename = "for", default)]
    lasting: Option<Span>,
}

fn slow(control: &Control, ask: &Ask) -> Answer {
    let SlowBody { by, lasting } = ask.body()?;
    set_fault(control, ask, RegionFault::Slow(by), lasting)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StormBody {
    #[serde(default)]
    retry_after: Option<Span>,
    #[serde(default)]
    share: Option<f64>,
    #[serde(rename = "for", default)]
    lasting: Option<Span>,
}

fn storm(control: &Control, ask: &Ask) -> Answer {
    let StormBody { retry_after, share, lasting } = ask.body()?;
    let retry_after = retry_after.map(|span| span.0);
    set_fault(control, ask, RegionFault::Storm { retry_after, share }, lasting)
}

fn set_fault(control: &Control, ask: &Ask, fault: RegionFault, lasting: Option<Span>) -> Answer {
    let switch = switch(control, ask)?;
    let switch = match lasting {
        Some(Span(lasting)) => switch.lasting(lasting),
        None => switch,
    };
    switch.inject(fault)?;
    super::regions::shown(control)
}

fn up(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    switch(control, ask)?.up()?;
    super::regions::shown(control)
}

fn fail_over(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    switch(control, ask)?.fail_over()?;
    super::regions::shown(control)
}

fn switch(control: &Control, ask: &Ask) -> Result<RegionControl, FaultError> {
    control.faults.region(ask.segment(0))
}
