//! The client that asks the rules first, and the factory that puts it in front of every other.

use crate::transport::{HttpClientConfig, Transport, TransportFactory, TransportRequest};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azure_core::http::Url;
use azure_core::http::headers::Headers;
use futures::future::BoxFuture;
use perihelion_http::trace::{self, RequestTrace, Sent, Step};
use perihelion_http::{Error, ErrorKind};
use protocol::headers as names;
use protocol::status::{Status, SubStatus};

use super::FaultInjector;
use super::condition::Seen;
use super::reaction::{Outcome, Reaction};
use crate::routing::Endpoint;
use crate::transport::TransportResponse;

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
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        let (faults, patience) = (self.faults.clone(), config.request_timeout);
        let inner = self.inner.create(config);
        Arc::new(FaultInjectingHttpClient { inner, faults, number, patience })
    }

    fn endpoint_in_use(&self, endpoint: &Endpoint) {
        self.faults.region_is(endpoint.authority(), endpoint.region());
        self.inner.endpoint_in_use(endpoint);
    }
}

/// A client that asks the rules before it hands a request on.
#[derive(Debug)]
pub struct FaultInjectingHttpClient {
    inner: Arc<dyn Transport>,
    faults: FaultInjector,
    number: u64,
    /// How long a timeout takes where nobody set a deadline.
    patience: Duration,
}

impl FaultInjectingHttpClient {
    async fn execute(&self, request: &TransportRequest<'_>) -> azure_core::Result<TransportResponse> {
        let authority = request.authority();
        let region = self.faults.region_of(&authority);
        let clock = self.faults.clock();
        let reaction = Seen::of(request, &authority, region, self.number)
            .and_then(|seen| self.faults.reaction(&seen, clock.now()));
        let Some(Reaction { delay, outcome }) = reaction else {
            return self.inner.send(request).await;
        };
        if !delay.is_zero() {
            let reporter = trace::start_trace();
            reporter.report(&RequestTrace::started());
            clock.sleep(delay).await;
        }
        match outcome {
            Outcome::PassOn => self.inner.send(request).await,
            Outcome::Answer { status, sub_status, retry_after } => {
                report(Sent::Sent, None);
                Ok(answer(status, sub_status, retry_after))
            }
            Outcome::ConnectionErrorBeforeSending => {
                Err(failure(ErrorKind::Unreachable, &authority, report(Sent::NotSent, Some(Step::Connect))))
            }
            Outcome::ConnectionErrorAfterSending => {
                // Up to the last byte, so that the service is done with it for certain.
                self.inner.send(request).await?;
                Err(failure(ErrorKind::Closed, &authority, report(Sent::Sent, Some(Step::FirstByte))))
            }
            Outcome::Timeout => {
                let record = report(Sent::Sent, Some(Step::FirstByte));
                match trace::request_options().deadline {
                    Some(deadline) => clock.sleep_until(deadline).await,
                    None => clock.sleep(self.patience).await,
                }
                Err(failure(ErrorKind::TimedOut, &authority, record))
            }
        }
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

/// Says what "happened" to whoever observes the request.
fn report(sent: Sent, failed: Option<Step>) -> RequestTrace {
    let reporter = trace::start_trace();
    let mut record = RequestTrace::started();
    (record.sent, record.failed_step) = (sent, failed);
    reporter.report(&record);
    record
}

fn failure(kind: ErrorKind, authority: &str, record: RequestTrace) -> azure_core::Error {
    Error::new(kind, authority, record).with_source("a fault rule says so").into()
}

fn answer(status: Status, sub_status: SubStatus, retry_after: Option<Duration>) -> TransportResponse {
    let mut headers = Headers::new();
    if !sub_status.is_none() {
        headers.insert(names::SUB_STATUS, sub_status.to_string());
    }
    if let Some(wait) = retry_after {
        headers.insert(names::RETRY_AFTER_MS, wait.as_millis().to_string());
    }
    let body = format!(r#"{{"code":"{}","message":"a fault rule says so"}}"#, status.code_name());
    TransportResponse::new(status, headers.into(), body.into())
}
