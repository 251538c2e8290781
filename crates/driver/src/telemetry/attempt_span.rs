//! The span of one request of an operation.

use std::fmt;

use perihelion_http::trace::{RequestTrace, Reuse, Sent};
use protocol::status::{Status, SubStatus};
use tracing::{Span, field};

use super::names::{self, ATTEMPT_TARGET};
use crate::diagnostics::{ExecutionContext, SendRecord};
use crate::routing::Endpoint;

/// The span of a request that a subscriber asked for. A request that is dropped before its response is recorded as
/// abandoned.
#[derive(Debug)]
pub(crate) struct AttemptSpan {
    span: Span,
    has_ended: bool,
}

impl AttemptSpan {
    /// A span for a request, if a subscriber wants one. Without one it costs a comparison. `resends` counts the
    /// requests of the same attempt before this one: after 429, or over another connection. `activity_id` is only
    /// called for a span.
    pub(crate) fn start<'a>(
        context: ExecutionContext,
        endpoint: &Endpoint,
        resends: usize,
        activity_id: impl FnOnce() -> Option<&'a str>,
    ) -> Option<AttemptSpan> {
        let span = tracing::debug_span!(
            target: ATTEMPT_TARGET,
            "attempt",
            otel.name = %format_args!("attempt {}", endpoint.region()),
            otel.kind = "internal",
            perihelion.region = endpoint.region().as_str(),
            perihelion.attempt.context = context.name(),
            http.request.resend_count = (resends > 0).then_some(resends as u64),
            server.address = endpoint.url().host_str(),
            server.port = endpoint.url().port_or_known_default(),
            azure.service.request.id = activity_id(),
            azure.cosmosdb.operation.request_charge = field::Empty,
            azure.cosmosdb.response.sub_status_code = field::Empty,
            db.response.status_code = field::Empty,
            perihelion.attempt.outcome = field::Empty,
            perihelion.attempt.sent = field::Empty,
            perihelion.shard = field::Empty,
            perihelion.connection = field::Empty,
            "error.type" = field::Empty,
            otel.status_code = field::Empty,
        );
        if span.is_disabled() {
            return None;
        }
        tracing::debug!(target: ATTEMPT_TARGET, parent: &span, "request started");
        Some(AttemptSpan { span, has_ended: false })
    }

    /// The span itself, to send the request in.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records what became of the request.
    pub(crate) fn end(mut self, record: &SendRecord) {
        self.has_ended = true;
        let span = &self.span;
        let SendRecord { took, status, charge, sent, shard, waited, exchange, .. } = record;
        span.record("perihelion.attempt.sent", sent_name(*sent));
        if let Some(shard) = shard {
            span.record("perihelion.shard", shard);
        }
        if let Some(connection) = exchange.connection {
            span.record("perihelion.connection", connection.get());
        }
        let connection = ConnectionSteps(exchange);
        match status {
            Some((Status(status), SubStatus(sub_status))) => {
                span.record("perihelion.attempt.outcome", "response");
                span.record(names::DB_RESPONSE_STATUS_CODE, field::display(status));
                span.record(names::SUB_STATUS_CODE, sub_status);
                span.record(names::REQUEST_CHARGE, charge);
                if *status >= 400 {
                    span.record(names::ERROR_TYPE, field::display(status));
                    span.record("otel.status_code", "error");
                }
                tracing::debug!(
                    target: ATTEMPT_TARGET,
                    parent: span,
                    status,
                    sub_status,
                    charge,
                    ?took,
                    ?waited,
                    %connection,
                    "response received"
                );
            }
            None => {
                span.record("perihelion.attempt.outcome", "no_response");
                span.record(names::ERROR_TYPE, "no_response");
                span.record("otel.status_code", "error");
                let sent = sent_name(*sent);
                tracing::debug!(
                    target: ATTEMPT_TARGET,
                    parent: span,
                    sent,
                    ?took,
                    ?waited,
                    %connection,
                    "no response"
                );
            }
        }
    }
}

impl Drop for AttemptSpan {
    fn drop(&mut self) {
        if !self.has_ended {
            self.span.record("perihelion.attempt.outcome", "abandoned");
            tracing::debug!(target: ATTEMPT_TARGET, parent: &self.span, "request abandoned");
        }
    }
}

fn sent_name(sent: Sent) -> &'static str {
    match sent {
        Sent::NotSent => "no",
        Sent::MaybeSent => "maybe",
        Sent::Sent => "yes",
    }
}

/// The connection of a request and its steps, as one text: `new h2 connection 3 to 127.0.0.1:443, connected after
/// 1.2ms`.
struct ConnectionSteps<'a>(&'a RequestTrace);

impl fmt::Display for ConnectionSteps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace = self.0;
        match trace.reuse {
            Some(Reuse::New) => f.write_str("new")?,
            Some(Reuse::Reused) => f.write_str("reused")?,
            None => f.write_str("unknown")?,
        }
        if let Some(protocol) = trace.protocol {
            write!(f, " {protocol}")?;
        }
        f.write_str(" connection")?;
        if let Some(id) = trace.connection {
            write!(f, " {}", id.get())?;
        }
        if let Some(remote) = trace.remote {
            write!(f, " to {remote}")?;
        }
        let steps = [
            ("resolved", trace.dns),
            ("connected", trace.connect),
            ("secured", trace.tls),
            ("ready", trace.connection_ready),
            ("sent", trace.request_sent),
            ("answered", trace.first_byte),
        ];
        for (step, after) in steps.into_iter().filter_map(|(step, after)| Some((step, after?))) {
            write!(f, ", {step} after {after:?}")?;
        }
        match trace.failed_step {
            Some(step) => write!(f, ", failed at: {step}"),
            None => Ok(()),
        }
    }
}
