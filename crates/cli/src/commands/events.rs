//! `peri events`: shows what happened to the account, and with `--follow` what happens.

use std::time::Duration;

use control_client::escape;
use serde_json::Value;

use super::requests::clock_time;
use crate::arguments::Events;
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::{self, Table};

/// How often `--follow` asks for new events.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
/// How many new events are read at a time: as many as are remembered.
const FOLLOW_LIMIT: usize = 1_000;

const COLUMNS: [&str; 4] = ["TIME", "EVENT", "REGION", "WHAT HAPPENED"];
/// The widths of the columns with `--follow`, where later cells are not known yet.
const WIDTHS: [u16; 4] = [12, 18, 16, 0];

/// Shows events, oldest first.
pub(crate) fn run(events: &Events) -> Result<(), CommandError> {
    let port = ControlPort::of(&events.control)?;
    let mut response = port.get(&path(events, events.limit, None))?;
    if !events.follow {
        port.show(&response, |response| table(response).to_string());
        return Ok(());
    }
    if !events.control.json {
        output::data(&Table::with_widths(&COLUMNS, &WIDTHS).to_string());
    }
    // Ends with a signal, when nobody reads the output any more, or with an error when the account stops.
    loop {
        for event in list(&response["events"]).iter().rev() {
            match events.control.json {
                true => output::json(event),
                false => output::data(&line(event)),
            }
        }
        let newest = response["newest"].as_u64().unwrap_or_default();
        if !output::wait_while_read(FOLLOW_INTERVAL) {
            return Ok(());
        }
        response = port.get(&path(events, FOLLOW_LIMIT, Some(newest)))?;
    }
}

fn path(events: &Events, limit: usize, after: Option<u64>) -> String {
    let mut path = format!("/events?limit={limit}");
    for (name, value) in [("kind", &events.kind), ("region", &events.region)] {
        if let Some(value) = value {
            path += &format!("&{name}={}", escape(value));
        }
    }
    after.into_iter().for_each(|after| path += &format!("&after={after}"));
    path
}

fn table(response: &Value) -> Table {
    let mut table = Table::new(&COLUMNS);
    list(&response["events"]).iter().rev().for_each(|event| table.row(cells(event)));
    table
}

fn cells(event: &Value) -> Vec<String> {
    vec![
        clock_time(&text(&event["time"])),
        text(&event["kind"]),
        text(&event["region"]),
        text(&event["message"]),
    ]
}

/// One event as a line of the table with `--follow`.
fn line(event: &Value) -> String {
    let mut table = Table::with_widths(&COLUMNS, &WIDTHS);
    table.row(cells(event));
    table.rows()
}
