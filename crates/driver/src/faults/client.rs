//! The transport that evaluates the rules before it sends, and the factory that wraps every other transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azure_core::http::Url;
use azure_core::http::headers::{HeaderName, Headers};
use faults::{ConnectionEffect, FAULT_HEADER, FaultDecision, FaultEffect};
use futures::future::BoxFuture;
use perihelion_http::trace::{self, RequestTrace, Sent, Step};
use perihelion_http::{Error, ErrorKind};
use protocol::headers as names;
use protocol::status::Status;
use serde_json::json;

use super::FaultInjector;
use super::attributes::SentRequest;
use crate::routing::Endpoint;
use crate::transport::{HttpClientConfig, Transport, TransportFactory, TransportRequest, TransportResponse};

/// The message of injected responses and errors.
const INJECTED: &str = "a fault was injected into this request";

/// Puts a [`FaultInjectingHttpClient`] in front of every client that another factory makes.
#[derive(Debug)]
pub struct FaultInjectingHttpClientFactory {
    inner: Arc<dyn TransportFactory>,
    faults: FaultInjector,
    created: AtomicU64,
}

impl FaultInjectingHttpClientFactory {
    /// Wraps `inner`; its clients obey the rules of `faults`, now and later.
    pub fn new(inner: Arc<dyn TransportFactory>, faults: FaultInjector) -> FaultInjectingHttpClientFactory {
        FaultInjectingHttpClientFactory { inner, faults, created: AtomicU64::new(0) }
    }
}

impl TransportFactory for FaultInjectingHttpClientFactory {
    fn create(&self, config: &HttpClientConfig) -> Arc<dyn Transport> {
        // Relaxed: every client gets a number of its own, and nothing else depends on it.
        let shard = self.created.fetch_add(1, Ordering::Relaxed);
        let (faults, request_timeout) = (self.faults.clone(), config.request_timeout);
        let inner = self.inner.create(config);
        Arc::new(FaultInjectingHttpClient { inner, faults, shard, request_timeout })
    }

    fn endpoint_in_use(&self, endpoint: &Endpoint) {
        self.faults.set_region(endpoint.authority(), endpoint.region());
        self.inner.endpoint_in_use(endpoint);
    }
}

/// A client that evaluates the rules before it sends a request.
#[derive(Debug)]
pub struct FaultInjectingHttpClient {
    inner: Arc<dyn Transport>,
    faults: FaultInjector,
    /// The number of this client, which rules call the shard.
    shard: u64,
    /// How long a timeout takes where the request has no deadline.
    request_timeout: Duration,
}

impl FaultInjectingHttpClient {
    async fn execute(&self, request: &TransportRequest<'_>) -> azure_core::Result<TransportResponse> {
        if !self.faults.has_rules() {
            return self.inner.send(request).await;
        }
        let authority = request.authority();
        let decision = self.decide(request, &authority);
        if !decision.request_delay.is_zero() {
            let reporter = trace::start_trace();
            reporter.report(&RequestTrace::started());
            self.faults.clock().sleep(decision.request_delay).await;
        }
        let result = match decision.effect.as_deref() {
            Some(effect) => self.inject(effect, &decision, request, &authority).await,
            None => self.inner.send(request).await,
        };
        if !decision.response_delay.is_zero() {
            self.faults.clock().sleep(decision.response_delay).await;
        }
        result
    }

    fn decide(&self, request: &TransportRequest<'_>, authority: &str) -> FaultDecision {
        let sent = SentRequest::read(request);
        let region = self.faults.region_of(authority);
        self.faults.decide(&sent.attributes(
            authority,
            region.as_ref().map(|region| region.as_str()),
            self.shard,
        ))
    }

    /// Responds in the service's place, or breaks the connection.
    async fn inject(
        &self,
        effect: &FaultEffect,
        decision: &FaultDecision,
        request: &TransportRequest<'_>,
        authority: &str,
    ) -> azure_core::Result<TransportResponse> {
        match effect.connection {
            None if effect.status.is_some() => {
                report(Sent::Sent, None);
                Ok(response(effect, decision))
            }
            Some(ConnectionEffect::FailBeforeSending) => {
                let record = report(Sent::NotSent, Some(Step::Connect));
                Err(failure(ErrorKind::Unreachable, authority, record))
            }
            Some(ConnectionEffect::CloseBefore) => {
                let record = report(Sent::Sent, Some(Step::FirstByte));
                Err(failure(ErrorKind::Closed, authority, record))
            }
            Some(ConnectionEffect::CloseAfter) => {
                // The response is read to its end, so that the operation has been carried out for certain.
                self.inner.send(request).await?;
                let record = report(Sent::Sent, Some(Step::FirstByte));
                Err(failure(ErrorKind::Closed, authority, record))
            }
            Some(ConnectionEffect::Stall) => {
                if effect.status.is_none() {
                    self.inner.send(request).await?;
                }
                Err(self.time_out(Step::Body, authority).await)
            }
            Some(ConnectionEffect::Timeout) => Err(self.time_out(Step::FirstByte, authority).await),
            // Rules with effects that the driver does not have are rejected when they are added.
            Some(_) | None => self.inner.send(request).await,
        }
    }

    /// Waits for the deadline of the request in this step.
    async fn time_out(&self, step: Step, authority: &str) -> azure_core::Error {
        let record = report(Sent::Sent, Some(step));
        match trace::request_options().deadline {
            Some(deadline) => self.faults.clock().sleep_until(deadline).await,
            None => self.faults.clock().sleep(self.request_timeout).await,
        }
        failure(ErrorKind::TimedOut, authority, record)
    }
}

impl Transport for FaultInjectingHttpClient {
    fn send<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        Box::pin(self.execute(request))
    }

    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>> {
        self.inner.connect(endpoint)
    }
}

/// Reports what an injected failure did to the request to the scope that observes it.
fn report(sent: Sent, failed: Option<Step>) -> RequestTrace {
    let reporter = trace::start_trace();
    let mut record = RequestTrace::started();
    (record.sent, record.failed_step) = (sent, failed);
    reporter.report(&record);
    record
}

fn failure(kind: ErrorKind, authority: &str, record: RequestTrace) -> azure_core::Error {
    Error::new(kind, authority, record).with_source(INJECTED).into()
}

/// The response of a rule, which names the rule.
fn response(effect: &FaultEffect, decision: &FaultDecision) -> TransportResponse {
    let status = Status(effect.status.unwrap_or(Status::SERVICE_UNAVAILABLE.0));
    let mut headers = Headers::new();
    for (name, value) in &effect.headers {
        headers.insert(HeaderName::from(name.to_ascii_lowercase()), value.clone());
    }
    if let Some(sub_status) = effect.sub_status {
        headers.insert(names::SUB_STATUS, sub_status.to_string());
    }
    if let Some(wait) = effect.response_retry_after() {
        headers.insert(names::RETRY_AFTER_MS, wait.as_millis().to_string());
    }
    if let Some(rule) = decision.rules.last() {
        headers.insert(FAULT_HEADER, rule.to_string());
    }
    let message = effect.message.as_deref().unwrap_or(INJECTED);
    let body = json!({"code": status.code_name(), "message": message}).to_string();
    TransportResponse::new(status, headers.into(), body.into())
}
