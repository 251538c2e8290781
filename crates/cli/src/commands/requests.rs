//! `peri requests`: shows the last requests, and with `--follow` new ones.

use std::time::Duration;

use control_client::escape;
use serde_json::Value;

use crate::arguments::Requests;
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::{self, Table};

/// How often `--follow` asks for new requests.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);
/// How many new requests are read at a time: more than happen between two polls.
const FOLLOW_LIMIT: usize = 100_000;

/// Shows requests, oldest first.
pub(crate) fn run(requests: &Requests) -> Result<(), CommandError> {
    let port = ControlPort::of(&requests.control)?;
    let response = port.get(&path(requests, requests.limit, None))?;
    if !requests.follow {
        port.show(&response, |response| table(response).to_string());
        return Ok(());
    }
    if !requests.control.json {
        output::data(&Table::with_widths(&COLUMNS, &WIDTHS).to_string());
    }
    let mut response = response;
    // Ends with a signal, or with an error when the account stops.
    loop {
        for request in list(&response["requests"]).iter().rev() {
            match requests.control.json {
                true => output::json(request),
                false => output::data(&line(request)),
            }
        }
        let newest = response["newest"].as_u64().unwrap_or_default();
        std::thread::sleep(FOLLOW_INTERVAL);
        response = port.get(&path(requests, FOLLOW_LIMIT, Some(newest)))?;
    }
}

fn path(requests: &Requests, limit: usize, after: Option<u64>) -> String {
    let mut path = format!("/requests?limit={limit}");
    let filters = [
        ("region", &requests.region),
        ("status", &requests.status),
        ("container", &requests.container),
        ("operation", &requests.operation),
    ];
    for (name, value) in filters {
        if let Some(value) = value {
            path += &format!("&{name}={}", escape(value));
        }
    }
    if let Some(after) = after {
        path += &format!("&after={after}");
    }
    path
}

const COLUMNS: [&str; 9] =
    ["TIME", "REGION", "OPERATION", "CONTAINER", "RANGE", "STATUS", "RU", "MS", "FAULTS"];

fn table(response: &Value) -> Table {
    let mut table = Table::new(&COLUMNS);
    for request in list(&response["requests"]).iter().rev() {
        table.row(cells(request).to_vec());
    }
    table
}

fn cells(request: &Value) -> [String; 9] {
    let number = |member: &str| request[member].as_f64().unwrap_or_default();
    let container = [&request["database"], &request["container"]].map(text);
    let status = match number("subStatus") {
        _ if request["outcome"] == "unanswered" => "aborted".to_owned(),
        _ if request["status"] == 0 => "closed".to_owned(),
        0.0 => text(&request["status"]),
        sub_status => format!("{}/{sub_status}", text(&request["status"])),
    };
    [
        clock_time(&text(&request["time"])),
        text(&request["region"]),
        text(&request["operation"]),
        container.join("/").trim_end_matches('/').to_owned(),
        text(&request["range"]),
        status,
        format!("{:.2}", number("charge")),
        format!("{:.2}", number("durationMs")),
        list(&request["rules"]).iter().map(text).collect::<Vec<_>>().join(", "),
    ]
}

/// The time of day: `19:23:36.123` of `2026-11-15T19:23:36.1234567Z`.
fn clock_time(time: &str) -> String {
    let time = time.split_once('T').map_or(time, |(_, time)| time).trim_end_matches('Z');
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!("{seconds}.{:0<3}", fraction.get(..3).unwrap_or(fraction))
}

/// The widths of the columns with `--follow`, which most cells fit in: later cells are not known yet.
const WIDTHS: [u16; 9] = [12, 12, 18, 20, 5, 8, 8, 8, 0];

/// One request as a line of the table with `--follow`.
fn line(request: &Value) -> String {
    let mut table = Table::with_widths(&COLUMNS, &WIDTHS);
    table.row(cells(request).to_vec());
    table.rows()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_shown_oldest_first() {
        let response = json!({ "newest": 2, "requests": [
            { "time": "2026-11-15T19:23:36.5Z", "region": "East US", "operation": "read_item", "database": "d",
              "container": "c", "range": 0, "status": 404, "subStatus": 1002, "charge": 1.0, "durationMs": 0.1234 },
            { "time": "2026-11-15T19:23:35Z", "region": "West US", "operation": "create_database",
              "database": "d", "container": null, "range": null, "status": 201, "subStatus": 0,
              "charge": 4.95, "durationMs": 12.0, "rules": ["slow", "west"] },
            { "time": "2026-11-15T19:23:34Z", "region": "West US", "operation": "read_item",
              "database": "d", "container": "c", "range": null, "status": 499, "outcome": "unanswered",
              "subStatus": 0, "charge": 0.0, "durationMs": 250.0, "rules": ["slow"] },
        ]});
        let expected = "\
TIME          REGION   OPERATION        CONTAINER  RANGE  STATUS      RU      MS  FAULTS
19:23:34.000  West US  read_item        d/c               aborted   0.00  250.00  slow
19:23:35.000  West US  create_database  d                 201       4.95   12.00  slow, west
19:23:36.500  East US  read_item        d/c        0      404/1002  1.00    0.12";
        assert_eq!(table(&response).to_string(), expected);
    }
}
