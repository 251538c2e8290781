//! The diagnostics of an operation as JSON.

use std::time::{Duration, Instant};

use perihelion_http::trace::RequestTrace;
use serde::Serialize;

use super::Diagnostics;
use super::attempt_record::{AttemptOutcome, AttemptRecord};
use perihelion_http::trace::Sent;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiagnosticsJson<'a> {
    operation: &'a str,
    elapsed_ms: f64,
    request_charge: f64,
    attempt_count: u32,
    throttled: u32,
    hedges: u32,
    failovers: u32,
    abandoned: u32,
    attempts: Vec<AttemptJson<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    omitted: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_attempts: Vec<AttemptJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptJson<'a> {
    context: &'static str,
    region: &'a str,
    endpoint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_range: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diverted_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diverted_because: Option<String>,
    started_ms: f64,
    took_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_status: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_charge: Option<f64>,
    sent: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<ConnectionJson>,
    next: &'static str,
}

/// The connection, as far as the client reported it; times are offsets from the start of the attempt.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reuse: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connect_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    complete_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

impl Diagnostics {
    /// The diagnostics with every attempt that was kept, as one JSON object.
    pub fn to_json(&self) -> String {
        let (first, last) = self.parts();
        let origin = self.attempts.iter().map(|attempt| attempt.outcome.span().0).min();
        let write = |attempt| attempt_json(attempt, origin);
        let json = DiagnosticsJson {
            operation: self.operation,
            elapsed_ms: milliseconds(self.elapsed),
            request_charge: round(self.totals.charge),
            attempt_count: self.totals.attempts,
            throttled: self.totals.throttled,
            hedges: self.totals.hedges,
            failovers: self.totals.failovers,
            abandoned: self.totals.abandoned,
            attempts: first.iter().map(write).collect(),
            omitted: self.omitted(),
            last_attempts: last.iter().map(write).collect(),
        };
        serde_json::to_string(&json).expect("numbers and text are always JSON")
    }
}

fn attempt_json(attempt: &AttemptRecord, origin: Option<Instant>) -> AttemptJson<'_> {
    let (started, took) = attempt.outcome.span();
    let sent = attempt.outcome.sent();
    let status = sent.and_then(|record| record.status);
    AttemptJson {
        context: attempt.context.name(),
        region: attempt.endpoint.region().as_str(),
        endpoint: attempt.endpoint.authority(),
        partition_range: attempt.range.map(|range| range.0),
        diverted_from: attempt.diversion.as_ref().map(|diversion| diversion.region.as_str()),
        diverted_because: attempt.diversion.as_ref().map(|diversion| diversion.cause.to_string()),
        started_ms: origin.map_or(0.0, |origin| milliseconds(started.saturating_duration_since(origin))),
        took_ms: milliseconds(took),
        waited_ms: sent.map(|record| record.waited).filter(|wait| !wait.is_zero()).map(milliseconds),
        shard: sent.and_then(|record| record.shard),
        status: status.map(|(status, _)| status.0),
        sub_status: status.map(|(_, sub_status)| sub_status.0).filter(|code| *code != 0),
        request_charge: sent.map(|record| round(record.charge)),
        sent: match &attempt.outcome {
            AttemptOutcome::Sent(record) => match record.sent {
                Sent::NotSent => "no",
                Sent::MaybeSent => "maybe",
                Sent::Sent => "yes",
            },
            AttemptOutcome::Abandoned { .. } => "maybe",
        },
        connection: sent.and_then(|record| connection_json(&record.exchange)),
        next: attempt.next,
    }
}

fn connection_json(exchange: &RequestTrace) -> Option<ConnectionJson> {
    if *exchange == RequestTrace::default() {
        return None;
    }
    Some(ConnectionJson {
        id: exchange.connection.map(|id| id.get()),
        reuse: exchange.reuse.map(|reuse| reuse.to_string()),
        protocol: exchange.protocol.map(|protocol| protocol.to_string()),
        local: exchange.local.map(|address| address.to_string()),
        remote: exchange.remote.map(|address| address.to_string()),
        dns_ms: exchange.dns.map(milliseconds),
        connect_ms: exchange.connect.map(milliseconds),
        tls_ms: exchange.tls.map(milliseconds),
        ready_ms: exchange.connection_ready.map(milliseconds),
        sent_ms: exchange.request_sent.map(milliseconds),
        first_byte_ms: exchange.first_byte.map(milliseconds),
        complete_ms: exchange.complete.map(milliseconds),
        failed: exchange.failed_step.map(|step| step.to_string()),
    })
}

/// Milliseconds, rounded to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// To the hundredth, as the service charges.
fn round(charge: f64) -> f64 {
    (charge * 100.0).round() / 100.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
