//! `/clock`: look at the account's time, freeze it, move it, let it run.

use http::Method;
use serde::{Deserialize, Serialize};

use super::ask::Nothing;
use super::table::Route;
use super::{Answer, Ask, Control, Problem};
use ::clock::{Clock, Span, Ticks, Times};

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
];

/// The last moment that has a name everywhere.
const LAST: &str = "9999-12-31T23:59:59Z";

/// What every route here answers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// The account's time.
    now: String,
    /// The same as `_ts` counts it.
    timestamp: i64,
    frozen: bool,
    /// The time outside, which clients sign with.
    machine: String,
    /// Seconds by which the account is ahead of it, negative when behind.
    ahead_seconds: f64,
}

fn show(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    shown(&control.clock)
}

fn shown(clock: &Clock) -> Answer {
    let Times { account: now, machine } = clock.times();
    super::json(&Shown {
        now: now.to_string(),
        timestamp: now.seconds(),
        frozen: clock.is_frozen(),
        machine: machine.to_string(),
        ahead_seconds: now.milliseconds().saturating_sub(machine.milliseconds()) as f64 / 1_000.0,
    })
}

fn freeze(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.clock.freeze();
    shown(&control.clock)
}

fn resume(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.clock.resume();
    shown(&control.clock)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    by: Span,
}

fn advance(control: &Control, ask: &Ask) -> Answer {
    let Advance { by } = ask.body()?;
    let last: Ticks = LAST.parse().expect("a moment in the form moments have");
    if control.clock.now().plus(by.0) > last {
        return Err(Problem::bad_request(format!("{by} from now is after {LAST}, the last moment there is")));
    }
    control.clock.advance(by.0);
    shown(&control.clock)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    to: String,
}

fn set(control: &Control, ask: &Ask) -> Answer {
    let Set { to } = ask.body()?;
    let to: Ticks = to.parse().map_err(|error| Problem::bad_request(format!("{error}")))?;
    control.clock.set(to);
    shown(&control.clock)
}
