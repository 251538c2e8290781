use crate::diagnostics::{ExecutionContext, SendRecord};
use perihelion_http::trace::Sent;
use std::time::{Duration, Instant};

use azure_core::http::Url;
use perihelion_http::trace::{RequestTrace, Reuse, Step};
use protocol::partition_range::RangeId;
use protocol::status::{Status, SubStatus};

use super::*;
use crate::clock::Clock;
use crate::routing::{Diversion, DiversionCause, Endpoint, Region, Unavailable};
use crate::telemetry::{AttributeValue, names};

fn endpoint(region: &str) -> Endpoint {
    let host = region.to_lowercase().replace(' ', "");
    let url = Url::parse(&format!("https://{host}.example/")).expect("a URL");
    Endpoint::regional(Region::new(region), url)
}

fn to(context: ExecutionContext, endpoint: &Endpoint, range: Option<RangeId>) -> SentTo<'_> {
    SentTo { context, endpoint, range, diversion: None }
}

fn sent(started: Instant, took_ms: u64, status: Option<(u16, u32)>) -> SendRecord {
    SendRecord {
        started,
        took: Duration::from_millis(took_ms),
        status: status.map(|(status, sub_status)| (Status(status), SubStatus(sub_status))),
        charge: if status.is_some() { 1.0 } else { 0.0 },
        sent: if status.is_some() { Sent::Sent } else { Sent::NotSent },
        shard: Some(3),
        waited: Duration::ZERO,
        exchange: RequestTrace::default(),
    }
}

/// West fails, East throttles once and answers, North is abandoned.
fn recorded() -> Diagnostics {
    let start = Clock::machine().now();
    let at = |ms| start + Duration::from_millis(ms);
    let mut recorder = Recorder::new("read item", start);
    let (west, east, north) = (endpoint("West US"), endpoint("East US"), endpoint("North Europe"));
    let range = Some(RangeId(7));
    recorder.sent(
        to(ExecutionContext::Initial, &west, range),
        sent(start, 5, None),
        "another region: not sent",
    );
    recorder.sent(
        to(ExecutionContext::Failover, &east, range),
        sent(at(5), 2, Some((429, 3200))),
        "throttled",
    );
    recorder.abandoned(to(ExecutionContext::Hedging, &north, range), at(8), at(12));
    recorder.sent(to(ExecutionContext::Retry, &east, range), sent(at(9), 3, Some((200, 0))), "done");
    recorder.finish(at(1234))
}

#[test]
fn a_summary_is_one_line() {
    assert_eq!(
        recorded().summary().to_string(),
        "read item in 1.23 s, 2.00 RU: West US not sent 5.00 ms → East US 429/3200 2.00 ms → \
         North Europe (hedging) abandoned 4.00 ms → East US 200 3.00 ms"
    );
    assert_eq!(Diagnostics::default().summary().to_string(), "nothing in 0.00 ms, 0.00 RU");
}

#[test]
fn totals_count_every_attempt() {
    let expected = Totals { attempts: 4, charge: 2.0, throttled: 1, hedges: 1, failovers: 1, abandoned: 1 };
    assert_eq!(recorded().totals(), expected);
}

#[test]
fn json_has_every_attempt_and_why_the_next_step_was_taken() {
    let json: serde_json::Value = serde_json::from_str(&recorded().to_json()).expect("JSON");
    assert_eq!((&json["attemptCount"], &json["requestCharge"]), (&4.into(), &2.0.into()));
    assert!(json.get("omitted").is_none() && json.get("lastAttempts").is_none());
    let second = serde_json::json!({
        "context": "failover", "region": "East US", "endpoint": "eastus.example:443", "partitionRange": 7,
        "startedMs": 5.0, "tookMs": 2.0, "shard": 3, "status": 429, "subStatus": 3200,
        "requestCharge": 1.0, "sent": "yes", "next": "throttled",
    });
    assert_eq!(json["attempts"][1], second);
    assert_eq!(json["attempts"][0]["sent"], "no");
    assert_eq!(json["attempts"][2]["sent"], "maybe");
}

#[test]
fn attributes_have_the_names_of_the_conventions() {
    let attributes = recorded().attributes();
    let value = |name| attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    assert_eq!(value("db.system.name"), Some(AttributeValue::Word("azure.cosmosdb")));
    assert_eq!(value("db.response.status_code"), Some(AttributeValue::Text("200".into())));
    assert_eq!(value(names::REQUEST_CHARGE), Some(AttributeValue::Number(2.0)));
    let regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec();
    assert_eq!(value(names::CONTACTED_REGIONS), Some(AttributeValue::List(regions)));
}

#[test]
fn a_thousand_attempts_keep_the_first_and_the_last_in_order() {
    for count in [1, 8, 15, 16, 17, 20, 24, 25, 1000] {
        let start = Clock::machine().now();
        let mut recorder = Recorder::new("create item", start);
        let west = endpoint("West US");
        for number in 0..count {
            let record = sent(start, u64::from(number), Some((503, number)));
            recorder.sent(to(ExecutionContext::Retry, &west, None), record, "again");
        }
        let diagnostics = recorder.finish(start);
        let kept: Vec<u32> = diagnostics
            .attempts()
            .iter()
            .filter_map(|attempt| attempt.outcome.sent()?.status.map(|(_, sub_status)| sub_status.0))
            .collect();
        let all = ATTEMPTS_FIRST_MAX + ATTEMPTS_LAST_MAX;
        let expected: Vec<u32> = (0..count)
            .filter(|number| {
                *number < ATTEMPTS_FIRST_MAX as u32
                    || *number + ATTEMPTS_LAST_MAX as u32 >= count
                    || count as usize <= all
            })
            .collect();
        assert_eq!(kept, expected, "{count} attempts");
        assert_eq!(diagnostics.omitted() as usize, (count as usize).saturating_sub(all));
        assert_eq!(diagnostics.totals().attempts, count);
        assert!(diagnostics.summary().to_string().len() < 1000);
    }
}

#[test]
fn json_shows_what_the_connection_took() {
    let start = Clock::machine().now();
    let mut record = sent(start, 5, None);
    record.exchange.reuse = Some(Reuse::New);
    record.exchange.dns = Some(Duration::from_micros(1500));
    record.exchange.failed_step = Some(Step::Connect);
    let mut recorder = Recorder::new("read item", start);
    recorder.sent(to(ExecutionContext::Initial, &endpoint("West US"), None), record, "again");
    let json: serde_json::Value = serde_json::from_str(&recorder.finish(start).to_json()).expect("JSON");
    let expected = serde_json::json!({"reuse": "new", "dnsMs": 1.5, "failed": Step::Connect.to_string()});
    assert_eq!(json["attempts"][0]["connection"], expected);
    let plain: serde_json::Value = serde_json::from_str(&recorded().to_json()).expect("JSON");
    assert!(plain["attempts"][0].get("connection").is_none(), "nothing was reported");
}

#[test]
fn an_attempt_that_avoided_a_region_says_so_and_why() {
    let start = Clock::machine().now();
    let account = crate::routing::test_accounts::account(&["West US"], &["West US", "East US"]);
    let cause = DiversionCause::RegionUnavailable(Unavailable::All);
    let diversion = Diversion { region: account.hub().region().clone(), cause };
    let east = endpoint("East US");
    let mut recorder = Recorder::new("read", start);
    let diverted = SentTo { diversion: Some(&diversion), ..to(ExecutionContext::Initial, &east, None) };
    recorder.sent(diverted, sent(start, 3, Some((200, 0))), "done");
    let diagnostics = recorder.finish(start);
    assert!(
        diagnostics.summary().to_string().contains("East US (not West US: the region is unavailable) 200"),
        "{}",
        diagnostics.summary()
    );
    let json: serde_json::Value = serde_json::from_str(&diagnostics.to_json()).expect("JSON");
    assert_eq!(json["attempts"][0]["divertedFrom"], "West US");
    assert_eq!(json["attempts"][0]["divertedBecause"], "the region is unavailable");
}
