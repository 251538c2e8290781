//! `/clock`: shows the account time, freezes it, moves it, resumes it.

use http::Method;
use serde::{Deserialize, Serialize};

use super::request::EmptyBody;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use ::clock::{Clock, ClockReading, HumanDuration, Ticks};

pub(super) const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/clock", about: "the account's time", handle: show },
    Route { method: Method::POST, path: "/clock/freeze", about: "stop it where it is", handle: freeze },
    Route {
        method: Method::POST,
        path: "/clock/advance",
        about: r#"move it by {"by":"1h30m"}"#,
        handle: advance,
    },
    Route {
        method: Method::POST,
        path: "/clock/set",
        about: r#"set it {"to":"2030-01-31T08:00:00Z"}"#,
        handle: set,
    },
    Route {
        method: Method::POST,
        path: "/clock/resume",
        about: "let it run from where it is",
        handle: resume,
    },
    Route {
        method: Method::POST,
        path: "/clock/reset",
        about: "let it run with the machine's time",
        handle: reset,
    },
];

/// The latest account time that can be set.
const TIMESTAMP_MAX: &str = "9999-12-31T23:59:59Z";

/// The response of every route here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClockView {
    /// The account time as RFC 3339 text.
    now: String,
    /// The account time in seconds since the epoch, as in `_ts`.
    timestamp: i64,
    frozen: bool,
    /// The wall-clock time, which clients sign with.
    machine: String,
    /// Seconds by which the account time is ahead of the wall clock, negative when behind.
    ahead_seconds: f64,
}

fn show(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    clock_view(&control.clock)
}

fn clock_view(clock: &Clock) -> ControlResult {
    let ClockReading { account: now, wall_clock } = clock.read();
    super::json(&ClockView {
        now: now.to_string(),
        timestamp: now.seconds(),
        frozen: clock.is_frozen(),
        machine: wall_clock.to_string(),
        ahead_seconds: now.milliseconds().saturating_sub(wall_clock.milliseconds()) as f64 / 1_000.0,
    })
}

fn freeze(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.clock.freeze();
    clock_view(&control.clock)
}

fn resume(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.clock.resume();
    clock_view(&control.clock)
}

fn reset(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.clock.set(control.clock.wall_clock());
    control.clock.resume();
    clock_view(&control.clock)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    by: HumanDuration,
}

fn advance(control: &Control, request: &ControlRequest) -> ControlResult {
    let Advance { by } = request.body()?;
    let last: Ticks = TIMESTAMP_MAX.parse().expect("a moment in the form moments have");
    if control.clock.now().plus(by.0) > last {
        return Err(ControlError::bad_request(format!(
            "{by} from now is after {TIMESTAMP_MAX}, the last moment there is"
        )));
    }
    control.clock.advance(by.0);
    clock_view(&control.clock)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    to: String,
}

fn set(control: &Control, request: &ControlRequest) -> ControlResult {
    let Set { to } = request.body()?;
    let to: Ticks = to.parse().map_err(|error| ControlError::bad_request(format!("{error}")))?;
    control.clock.set(to);
    clock_view(&control.clock)
}
