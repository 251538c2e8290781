//! `peri clock`: ask, or change and show what it is then.

use emulator::clock::HumanDuration;
use serde_json::{Value, json};

use crate::arguments::{Clock, ClockAction};
use crate::control::ControlPort;
use crate::exit::Failure;

/// Does what was asked and shows the clock as it is afterwards.
pub(crate) fn run(clock: &Clock) -> Result<(), Failure> {
    let port = ControlPort::of(&clock.control)?;
    let answer = match &clock.action {
        None | Some(ClockAction::Show) => port.get("/clock"),
        Some(ClockAction::Freeze) => port.post("/clock/freeze", &json!({})),
        Some(ClockAction::Advance { duration }) => port.post("/clock/advance", &json!({ "by": duration })),
        Some(ClockAction::Set { time }) => port.post("/clock/set", &json!({ "to": time.to_string() })),
        Some(ClockAction::Resume) => port.post("/clock/resume", &json!({})),
    }?;
    port.show(&answer, text);
    Ok(())
}

/// `2030-01-31T08:00:00Z, frozen, 3h ahead of this machine`.
fn text(answer: &Value) -> String {
    let now = answer["now"].as_str().unwrap_or("?");
    let frozen = if answer["frozen"] == true { "frozen" } else { "running" };
    let ahead = answer["aheadSeconds"].as_f64().unwrap_or_default();
    // Milliseconds are noise next to the time it took to ask.
    let distance = HumanDuration(std::time::Duration::from_secs(ahead.abs().round() as u64));
    let distance = match ahead {
        _ if distance == HumanDuration::default() => "with the machine's time".to_owned(),
        ahead if ahead > 0.0 => format!("{distance} ahead of the machine's time"),
        _ => format!("{distance} behind the machine's time"),
    };
    format!("{now}   {frozen}, {distance}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_sees_the_time_and_how_it_differs() {
        let cases = [
            (false, 0.2, "running, with the machine's time"),
            (true, 5_400.0, "frozen, 1h 30m ahead of the machine's time"),
            (false, -86_400.4, "running, 1day behind the machine's time"),
        ];
        for (frozen, ahead, expected) in cases {
            let answer = json!({ "now": "2030-01-31T08:00:00Z", "frozen": frozen, "aheadSeconds": ahead });
            assert_eq!(text(&answer), format!("2030-01-31T08:00:00Z   {expected}"));
        }
    }
}
