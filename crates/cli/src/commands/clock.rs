//! `peri clock`: shows and changes the account's clock.

use emulator::clock::HumanDuration;
use serde_json::{Value, json};

use crate::arguments::{Clock, ClockAction};
use crate::control::ControlPort;
use crate::exit::CommandError;

/// Runs the command and shows the clock as it is afterwards.
pub(crate) fn run(clock: &Clock) -> Result<(), CommandError> {
    let port = ControlPort::of(&clock.control)?;
    let response = match &clock.action {
        None | Some(ClockAction::Show) => port.get("/clock"),
        Some(ClockAction::Freeze) => port.post("/clock/freeze", &json!({})),
        Some(ClockAction::Advance { duration }) => port.post("/clock/advance", &json!({ "by": duration })),
        Some(ClockAction::Set { time }) => port.post("/clock/set", &json!({ "to": time.to_string() })),
        Some(ClockAction::Resume) => port.post("/clock/resume", &json!({})),
        Some(ClockAction::Reset) => port.post("/clock/reset", &json!({})),
    }?;
    port.show(&response, text);
    Ok(())
}

/// The clock as text: `2030-01-31T08:00:00Z   frozen, 3h ahead of the machine's time`.
fn text(response: &Value) -> String {
    let now = response["now"].as_str().unwrap_or("?");
    let frozen = if response["frozen"] == true { "frozen" } else { "running" };
    let ahead = response["aheadSeconds"].as_f64().unwrap_or_default();
    // The request took some milliseconds, so a finer difference would mean nothing.
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
    fn the_time_is_shown_with_its_difference_to_the_machine() {
        let cases = [
            (false, 0.2, "running, with the machine's time"),
            (true, 5_400.0, "frozen, 1h 30m ahead of the machine's time"),
            (false, -86_400.4, "running, 1day behind the machine's time"),
        ];
        for (frozen, ahead, expected) in cases {
            let response = json!({ "now": "2030-01-31T08:00:00Z", "frozen": frozen, "aheadSeconds": ahead });
            assert_eq!(text(&response), format!("2030-01-31T08:00:00Z   {expected}"));
        }
    }
}
