//! `/requests`: the request log.

use std::str::FromStr;
use std::time::Duration;

use http::Method;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;
use smol_str::SmolStr;

use super::routes::Route;
use super::{Control, ControlRequest, ControlResult};
use crate::request_log::{RequestRecord, STATUS_UNANSWERED};
use ::clock::Ticks;
use engine::catalog::CatalogSnapshot;
use engine::regions::RegionId;

pub(super) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/requests",
    about: "the last requests, newest first; ?limit=, ?region=, ?status=404 or 4xx, ?container=db/name, ?operation=, ?after=number",
    handle: list,
}];

/// Requests per response when the query sets no limit.
const LIMIT_DEFAULT: usize = 100;

/// One request, as the control port shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestView<'a> {
    number: u64,
    /// When the response was ready, by the wall clock.
    time: String,
    region: &'a str,
    method: &'a str,
    operation: &'static str,
    path: &'a str,
    database: Option<String>,
    container: Option<String>,
    range: Option<u32>,
    /// Zero when the connection was closed instead, 499 when it ended before the response.
    status: u16,
    /// One of the words `answered`, `closed` and `unanswered`.
    outcome: &'static str,
    sub_status: u32,
    charge: f64,
    duration_ms: f64,
    activity_id: &'a str,
    user_agent: &'a str,
    /// The fault rules that touched it, in order.
    rules: &'a [SmolStr],
}

fn list(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&["limit", "region", "status", "container", "operation", "after"])?;
    let limit = request.parse_parameter("limit")?.unwrap_or(LIMIT_DEFAULT);
    let after: u64 = request.parse_parameter("after")?.unwrap_or(0);
    let status: Option<StatusFilter> = request.parse_parameter("status")?;
    let operation = request.parameter("operation");
    let container = request.parameter("container");
    let topology = control.account.regions.current();
    let region: Option<RegionId> = request.parameter("region").map(|name| topology.find(name)).transpose()?;
    let snapshot = control.account.catalog.snapshot();
    let (newest, found) = control.request_log.latest(limit, |record| {
        record.number > after
            && region.is_none_or(|region| record.region == region)
            && status.is_none_or(|status| status.accepts(record.status))
            && operation.is_none_or(|operation| record.operation == operation)
            && container.is_none_or(|wanted| names_container(&container_of(record, &snapshot), wanted))
    });
    let (wall_clock, uptime) = (control.clock.wall_clock(), control.clock.uptime());
    let views = found.iter().map(|record| {
        let (database, container) = container_of(record, &snapshot);
        RequestView {
            number: record.number,
            time: earlier(wall_clock, uptime.saturating_sub(record.uptime)).to_string(),
            region: &topology.region(record.region).name,
            method: record.method.as_str(),
            operation: record.operation,
            path: record.path(),
            database,
            container,
            range: record.range(),
            status: record.status,
            outcome: match record.status {
                0 => "closed",
                STATUS_UNANSWERED => "unanswered",
                _ => "answered",
            },
            sub_status: record.sub_status,
            charge: record.charge,
            duration_ms: record.duration.as_secs_f64() * 1_000.0,
            activity_id: record.activity(),
            user_agent: &record.user_agent,
            rules: &record.rules,
        }
    });
    super::json(&json!({ "newest": newest, "requests": views.collect::<Vec<_>>() }))
}

/// The time that was `ago` before now.
pub(super) fn earlier(now: Ticks, ago: Duration) -> Ticks {
    Ticks(now.0.saturating_sub(Ticks(0).plus(ago).0))
}

/// One status, or all that begin with a digit: `404`, `4xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatusFilter {
    first: u16,
    last: u16,
}

impl StatusFilter {
    fn accepts(self, status: u16) -> bool {
        (self.first..=self.last).contains(&status)
    }
}

impl FromStr for StatusFilter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<StatusFilter, &'static str> {
        let expected = "expected a status like 404, or a class like 4xx";
        if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
            let class = class.parse::<u16>().ok().filter(|class| (1..=9).contains(class)).ok_or(expected)?;
            return Ok(StatusFilter { first: class * 100, last: class * 100 + 99 });
        }
        let status = text.parse().map_err(|_| expected)?;
        Ok(StatusFilter { first: status, last: status })
    }
}

/// The names in `dbs/{database}/colls/{container}`.
pub(super) fn parse_container_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("dbs/")?.split_once("/colls/")
}

/// The database and container a request is about, by name where they exist.
fn container_of(record: &RequestRecord, snapshot: &CatalogSnapshot) -> (Option<String>, Option<String>) {
    if let Some((database, container)) = record.container_path().and_then(parse_container_path) {
        return (Some(database.to_owned()), Some(container.to_owned()));
    }
    let mut segments = record.path().trim_matches('/').split('/');
    let mut id_after = |kind: &str| {
        let found = segments.next() == Some(kind);
        let id = segments.next().filter(|id| found && !id.is_empty())?;
        Some(percent_decode_str(id).decode_utf8_lossy().into_owned())
    };
    let Some(database) = id_after("dbs") else { return (None, None) };
    let container = id_after("colls");
    let entry = snapshot.database(&database);
    let container = container.map(|id| {
        let known = entry.and_then(|entry| entry.container(&id));
        known.map_or(id, |known| known.id.to_string())
    });
    (Some(entry.map_or(database, |entry| entry.id.to_string())), container)
}

/// Whether this is the container that `wanted` names, with or without its database.
fn names_container((database, container): &(Option<String>, Option<String>), wanted: &str) -> bool {
    let (Some(database), Some(container)) = (database, container) else { return false };
    container == wanted || wanted.split_once('/') == Some((database, container))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_filter_is_a_status_or_a_class() {
        let four: StatusFilter = "4xx".parse().unwrap();
        assert!(four.accepts(404) && four.accepts(499) && !four.accepts(500) && !four.accepts(399));
        let exact: StatusFilter = "429".parse().unwrap();
        assert!(exact.accepts(429) && !exact.accepts(428));
        for bad in ["", "xx", "0xx", "10xx", "ok", "-1"] {
            assert!(bad.parse::<StatusFilter>().is_err(), "{bad}");
        }
    }
}
