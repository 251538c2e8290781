//! The span of one operation.

use std::fmt;
use std::future::Future;

use protocol::headers;
use protocol::status::{Status, SubStatus};
use tracing::{Instrument, Span, field};

use super::attributes::{contacted_regions, last_status};
use super::names::{self, OPERATION_TARGET};
use crate::diagnostics::{Diagnostics, Totals};
use crate::error::{Error, Result};
use crate::operation::{Operation, OperationKind};
use crate::response::Response;
use crate::routing::Endpoint;

/// What the spans of a driver's operations have in common.
#[derive(Debug)]
pub(crate) struct ClientIdentity {
    endpoint: Endpoint,
    client_id: String,
    user_agent: String,
}

impl ClientIdentity {
    /// The identity of a driver for the account at `endpoint`.
    pub(crate) fn new(endpoint: Endpoint, client_id: &str, user_agent: &str) -> ClientIdentity {
        ClientIdentity { endpoint, client_id: client_id.to_owned(), user_agent: user_agent.to_owned() }
    }

    /// The host of the account's own endpoint.
    pub(crate) fn host(&self) -> &str {
        self.endpoint.url().host_str().unwrap_or_default()
    }

    /// The port of the account's own endpoint.
    pub(crate) fn port(&self) -> u16 {
        self.endpoint.url().port_or_known_default().unwrap_or_default()
    }
}

/// The span of an operation that a subscriber asked for. An operation that is dropped before it ends is recorded as
/// cancelled.
#[derive(Debug)]
pub(crate) struct OperationSpan {
    span: Span,
    has_ended: bool,
}

impl OperationSpan {
    /// A span for the operation, if a subscriber wants one. Without one it costs a comparison.
    pub(crate) fn start(
        operation: &Operation,
        client: &ClientIdentity,
        consistency: impl Fn() -> &'static str,
    ) -> Option<OperationSpan> {
        let target = operation.target();
        let span = tracing::info_span!(
            target: OPERATION_TARGET,
            "operation",
            otel.name = %SpanName(operation),
            otel.kind = "client",
            db.system.name = names::SYSTEM,
            db.operation.name = operation.name(),
            db.namespace = target.database_name(),
            db.collection.name = target.container_name().map(|name| name.container()),
            server.address = client.host(),
            server.port = client.port(),
            azure.client.id = client.client_id.as_str(),
            azure.cosmosdb.connection.mode = names::GATEWAY,
            azure.cosmosdb.consistency.level = consistency(),
            azure.cosmosdb.request.body.size = body_size(operation),
            azure.resource_provider.namespace = names::RESOURCE_PROVIDER,
            user_agent.original = client.user_agent.as_str(),
            azure.cosmosdb.operation.contacted_regions = field::Empty,
            azure.cosmosdb.operation.request_charge = field::Empty,
            azure.cosmosdb.response.sub_status_code = field::Empty,
            db.response.returned_rows = field::Empty,
            db.response.status_code = field::Empty,
            "error.type" = field::Empty,
            otel.status_code = field::Empty,
            perihelion.attempts = field::Empty,
            perihelion.retries = field::Empty,
            perihelion.hedges = field::Empty,
            perihelion.failovers = field::Empty,
            perihelion.throttled = field::Empty,
        );
        (!span.is_disabled()).then_some(OperationSpan { span, has_ended: false })
    }

    /// Carries out the operation within the span, and records how it ended.
    pub(crate) async fn around(
        mut self,
        operation: &Operation,
        work: impl Future<Output = Result<Response>>,
    ) -> Result<Response> {
        let result = work.instrument(self.span.clone()).await;
        self.has_ended = true;
        self.record_result(operation, &result);
        result
    }

    fn record_result(&self, operation: &Operation, result: &Result<Response>) {
        match result {
            Ok(response) => {
                self.record_status(Some((response.status(), response.headers().sub_status())));
                self.record_diagnostics(response.diagnostics());
                if let Some(rows) = returned_rows(operation, response) {
                    self.span.record(names::DB_RESPONSE_RETURNED_ROWS, rows);
                }
                let summary = response.diagnostics().summary();
                tracing::debug!(target: OPERATION_TARGET, parent: &self.span, %summary, "operation succeeded");
            }
            Err(error) => {
                let default = Diagnostics::default();
                let diagnostics = error.diagnostics().unwrap_or(&default);
                self.record_status(error_status(error));
                self.record_diagnostics(diagnostics);
                self.span.record(names::ERROR_TYPE, &*error_type(error));
                self.span.record("otel.status_code", "error");
                let summary = diagnostics.summary();
                tracing::debug!(target: OPERATION_TARGET, parent: &self.span, %error, %summary, "operation failed");
            }
        }
    }

    fn record_status(&self, status: Option<(Status, SubStatus)>) {
        if let Some((Status(status), SubStatus(sub_status))) = status {
            self.span.record(names::DB_RESPONSE_STATUS_CODE, field::display(status));
            self.span.record(names::SUB_STATUS_CODE, sub_status);
        }
    }

    fn record_diagnostics(&self, diagnostics: &Diagnostics) {
        let totals = diagnostics.totals();
        self.span.record(names::REQUEST_CHARGE, totals.charge);
        if totals.attempts > 0 {
            // `tracing` has no lists: this is one text.
            self.span.record(names::CONTACTED_REGIONS, field::debug(contacted_regions(diagnostics)));
        }
        self.span.record(names::ATTEMPTS, totals.attempts);
        let counts = [
            (names::RETRIES, retries(&totals)),
            (names::HEDGES, totals.hedges),
            (names::FAILOVERS, totals.failovers),
            (names::THROTTLED, totals.throttled),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            self.span.record(name, count);
        }
    }
}

impl Drop for OperationSpan {
    fn drop(&mut self) {
        if !self.has_ended {
            self.span.record(names::ERROR_TYPE, names::CANCELLED);
            self.span.record("otel.status_code", "error");
            tracing::debug!(target: OPERATION_TARGET, parent: &self.span, "operation cancelled");
        }
    }
}

/// The name of a span: the operation, and the container or else the database that it is about.
struct SpanName<'a>(&'a Operation);

impl fmt::Display for SpanName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.0.target();
        f.write_str(self.0.name())?;
        match target.container_name().map(|name| name.container()).or(target.database_name()) {
            Some(about) => write!(f, " {about}"),
            None => Ok(()),
        }
    }
}

/// The bytes of the request's body, if it has one.
fn body_size(operation: &Operation) -> Option<u64> {
    let length = operation.body().len();
    (length > 0).then_some(length as u64)
}

/// How many attempts came after the first, hedged ones not counted.
pub(super) fn retries(totals: &Totals) -> u32 {
    totals.attempts.saturating_sub(totals.hedges).saturating_sub(1)
}

/// The number of items of a page of a query or feed.
pub(super) fn returned_rows(operation: &Operation, response: &Response) -> Option<u64> {
    match operation.kind() {
        OperationKind::ReadFeed | OperationKind::Query => {
            response.header(headers::ITEM_COUNT).and_then(|count| count.parse().ok())
        }
        OperationKind::Create
        | OperationKind::Read
        | OperationKind::Replace
        | OperationKind::Upsert
        | OperationKind::Delete
        | OperationKind::Patch
        | OperationKind::Batch
        | OperationKind::QueryPlan
        | OperationKind::Execute => None,
    }
}

/// The status of an error, or else of the last response before it.
pub(super) fn error_status(error: &Error) -> Option<(Status, SubStatus)> {
    let own = error.status().map(|status| (status, error.sub_status()));
    own.or_else(|| last_status(error.diagnostics()?))
}

/// The type of an error: the status that the service ended the operation with, or else the kind of the error.
pub(super) fn error_type(error: &Error) -> std::borrow::Cow<'static, str> {
    match error.status() {
        Some(Status(status)) => status.to_string().into(),
        None => error.kind().name().into(),
    }
}
