//! The HTTP client that evaluates the rules before it sends, and the factory that puts it in front of every other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azure_core::http::headers::{HeaderName, Headers};
use faults::{ConnectionEffect, FAULT_HEADER, FaultDecision, FaultEffect};
use futures::future::BoxFuture;
use perihelion_http::exchange::{self, Exchange, Sent, Step};
use perihelion_http::{Error, ErrorKind};
use protocol::headers as names;
use protocol::status::Status;
use serde_json::json;

use super::FaultInjector;
use super::attributes::SentRequest;
use crate::routing::Endpoint;
use crate::sharding::{HttpClientConfig, HttpClientFactory, NewClient};
use crate::transport::carrier::Carrier as Transport;
use crate::transport::outcome::Answer as TransportResponse;
use crate::transport::request::Outgoing as TransportRequest;

/// The message of injected responses and errors.
const INJECTED: &str = "a fault was injected into this request";

/// Puts a [`FaultInjectingHttpClient`] in front of every client that another factory makes.
#[derive(Debug)]
pub struct FaultInjectingHttpClientFactory {
    inner: Arc<dyn HttpClientFactory>,
    faults: FaultInjector,
    created: AtomicU64,
}

impl FaultInjectingHttpClientFactory {
    /// Wraps `inner`; its clients obey the rules of `faults`, now and later.
    pub fn new(inner: Arc<dyn HttpClientFactory>, faults: FaultInjector) -> FaultInjectingHttpClientFactory {
        FaultInjectingHttpClientFactory { inner, faults, created: AtomicU64::new(0) }
    }
}

impl HttpClientFactory for FaultInjectingHttpClientFactory {
    fn create(&self, config: &HttpClientConfig) -> NewClient {
        // Relaxed: every client gets a number of its own, and nothing else depends on it.
        let shard = self.created.fetch_add(1, Ordering::Relaxed);
        let (faults, request_timeout) = (self.faults.clone(), config.request_timeout);
        self.inner
            .create(config)
            .wrapped(|inner| Arc::new(FaultInjectingHttpClient { inner, faults, shard, request_timeout }))
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
            return self.inner.carry(request).await;
        }
        let authority = request.authority();
        let decision = self.decide(request, &authority);
        if !decision.request_delay.is_zero() {
            let reporter = exchange::begin();
            reporter.report(&Exchange::begun());
            self.faults.clock().sleep(decision.request_delay).await;
        }
        let result = match decision.effect.as_deref() {
            Some(effect) => self.inject(effect, &decision, request, &authority).await,
            None => self.inner.carry(request).await,
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
                self.inner.carry(request).await?;
                let record = report(Sent::Sent, Some(Step::FirstByte));
                Err(failure(ErrorKind::Closed, authority, record))
            }
            Some(ConnectionEffect::Stall) => {
                if effect.status.is_none() {
                    self.inner.carry(request).await?;
                }
                Err(self.time_out(Step::Body, authority).await)
            }
            Some(ConnectionEffect::Timeout) => Err(self.time_out(Step::FirstByte, authority).await),
            // Rules with effects that the driver does not have are rejected when they are added.
            Some(_) | None => self.inner.carry(request).await,
        }
    }

    /// Waits for the deadline of the request in this step.
    async fn time_out(&self, step: Step, authority: &str) -> azure_core::Error {
        let record = report(Sent::Sent, Some(step));
        match exchange::wanted().deadline {
            Some(deadline) => self.faults.clock().sleep_until(deadline).await,
            None => self.faults.clock().sleep(self.request_timeout).await,
        }
        failure(ErrorKind::TimedOut, authority, record)
    }
}

impl Transport for FaultInjectingHttpClient {
    fn carry<'a>(
        &'a self,
        request: &'a TransportRequest<'a>,
    ) -> BoxFuture<'a, azure_core::Result<TransportResponse>> {
        Box::pin(self.execute(request))
    }
}

/// Reports what an injected failure did to the request to the scope that observes it.
fn report(sent: Sent, failed: Option<Step>) -> Exchange {
    let reporter = exchange::begin();
    let mut record = Exchange::begun();
    (record.sent, record.failed) = (sent, failed);
    reporter.report(&record);
    record
}

fn failure(kind: ErrorKind, authority: &str, record: Exchange) -> azure_core::Error {
    Error::new(kind, authority, record).because(INJECTED).into()
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
